"""Motion files of OpenSim: what is written is read to the last bit, in degrees or not; what is wrong is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinegrad import samples
from kinegrad.errors import InputError, RecordingWarning, UnitsWarning
from kinegrad.io import read_positions
from kinegrad.io.storage_file import StorageTable, coordinate_table, read_storage, write_storage

GOOD = (
    "Coordinates\nversion=1\nnRows=2\nnColumns=3\ninDegrees=yes\nendheader\ntime\tshoulder\telbow\n0\t1\t2\n0.5\t3\t4\n"
)


def written(folder: Path, text: str, name: str = "m.mot") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_round_trip_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = StorageTable(np.cumsum(rng.random(9)), ("a b", "c/d"), rng.normal(size=(9, 2)) * 1e-7, title="my forces")
    write_storage(tmp_path / "x.sto", table)
    assert read_storage(tmp_path / "x.sto") == StorageTable(
        table.t, table.names, table.values, False, "my forces", {"version": "1"}
    )


def test_degrees_are_those_of_what_turns(tmp_path: Path) -> None:
    cart = samples.cart_pendulum()
    q = np.array([[0.3, 0.5]])
    write_storage(tmp_path / "x.mot", coordinate_table(cart, [0.0], q))
    table = read_storage(tmp_path / "x.mot")
    assert table.values[0].tolist() == [0.3, np.rad2deg(0.5)]
    assert np.abs(table.coordinates(cart)[0] - q).max() < 1e-16
    types = dict.fromkeys(cart.coordinate_names, "coupled")  # a coupled coordinate is never in degrees
    assert table.coordinates(cart, motion_types=types)[0].tolist() == table.values.tolist()


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\t", "  "),
        "name w\nversion 1\ndatacolumns 3\ndatarows 2\nrange 0 0.5\nendheader\ntime shoulder elbow\n0 1 2\n0.5 3 4\n",
        GOOD.replace("Coordinates\n", ""),
        GOOD.replace("\tshoulder\telbow", "\t/jointset/s/shoulder/value\t/jointset/e/elbow/value"),
        GOOD.replace("3\t4\n", "3\t4\t\n"),
    ],
)
def test_spellings(tmp_path: Path, text: str) -> None:
    q, missing, unused = read_storage(written(tmp_path, text)).coordinates(samples.two_link())
    assert np.rint(np.rad2deg(q) if "inDegrees" in text else q).tolist() == [[1, 2], [3, 4]]
    assert (missing, unused) == ((), ())


@pytest.mark.parametrize("change", ["nRows=3", "nRows=1", "nColumns=40", "nColumns=2", "nColumns=few"])
def test_labels_and_lines_count_rather_than_the_header(tmp_path: Path, change: str) -> None:
    """As in OpenSim 4.6, whose numbers of rows and columns may be wrong; a warning says so."""
    what, declared = change.split("=")
    text = GOOD.replace(f"{what}={3 if what == 'nColumns' else 2}", change)
    with pytest.warns(RecordingWarning, match=f"declares '{declared}' {what[1:].lower()} and has"):
        found = read_storage(written(tmp_path, text))
    assert found == read_storage(written(tmp_path, GOOD))


# --- degrees or radians -----------------------------------------------------------------------------------------------


OLD = GOOD.replace("version=1\n", "").replace(
    "inDegrees=yes", "Units are S.I. units (second, meters, Newtons, ...)\nAngles are in degrees."
)
HELP = "If the header above contains a line with 'inDegrees', this indicates whether rotational values are in degrees"


@pytest.mark.parametrize(
    ("text", "units", "degrees"),
    [
        (OLD, None, True),
        (OLD, "deg", True),
        (OLD.replace("in degrees", "in radians"), None, False),
        (OLD.replace("Angles are in", "angles are in"), None, True),
        (OLD.replace("Angles are in", "Units are S.I. units. Angles are in"), None, True),
        (OLD.replace("in degrees", "in Deg"), None, True),
        (GOOD.replace("inDegrees=yes", "indegrees=yes"), None, True),
        (GOOD.replace("inDegrees=yes", "inDegrees = Yes"), None, True),
        (GOOD.replace("inDegrees=yes", HELP), None, False),
        (GOOD.replace("inDegrees=yes\n", ""), None, False),
        (GOOD.replace("inDegrees=yes\n", ""), "deg", True),
        (GOOD.replace("inDegrees=yes\n", "").replace("version=1\n", ""), "deg", True),
        (GOOD.replace("inDegrees=yes\n", "").replace("version=1\n", ""), "rad", False),
        (GOOD, "deg", True),
    ],
)
def test_what_headers_say_of_angles(tmp_path: Path, text: str, units: str | None, degrees: bool) -> None:
    """The sentence of OpenSim 1 and 2 counts, as do `units` where a file says nothing; no warning of small angles."""
    path = written(tmp_path, text)
    q, _, _ = read_storage(path).coordinates(samples.two_link(), units=units)
    assert np.rint(np.rad2deg(q) if degrees else q).tolist() == [[1, 2], [3, 4]]
    assert np.array_equal(read_positions(path, samples.two_link(), units=units).q, q)


def test_headers_that_say_nothing_are_warned_about(tmp_path: Path) -> None:
    """Numbers that look like degrees; and any angles in a file without version, which OpenSim takes for degrees."""
    arm, silent = samples.two_link(), GOOD.replace("inDegrees=yes\n", "")
    assert read_storage(written(tmp_path, silent)).in_degrees is None
    large = read_storage(written(tmp_path, silent.replace("\t4", "\t-40")))
    with pytest.warns(UnitsWarning, match=r"'elbow' reaches 40 rad, which looks like degrees, and the file does not"):
        large.coordinates(arm)
    large.coordinates(arm, units="rad")  # said: no warning, which would be an error here
    with pytest.warns(UnitsWarning, match=r"says neither their unit nor a version; OpenSim takes them for degrees"):
        read_positions(written(tmp_path, silent.replace("version=1\n", "")), arm)
    wrong = read_storage(written(tmp_path, GOOD.replace("=yes", "=no").replace("\t4", "\t-40")))
    with pytest.warns(UnitsWarning, match=r"which looks like degrees, and the file says radians \(inDegrees=no\)"):
        wrong.coordinates(arm)
    with pytest.raises(InputError, match=r"m.mot: `units` is 'deg', and the table has radians \(inDegrees=no\)"):
        read_positions(written(tmp_path, GOOD.replace("=yes", "=no")), arm, units="deg")
    with pytest.warns(UnitsWarning, match=r"inDegrees is 'no', and 'Angles are in degrees.'; the former counts"):
        assert read_storage(written(tmp_path, OLD.replace("Angles", "inDegrees=no\nAngles"))).in_degrees is False
    write_storage(tmp_path / "x.mot", StorageTable([0.0], ("elbow",), [[1.0]], in_degrees=None))
    assert "inDegrees" not in (tmp_path / "x.mot").read_text()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("inDegrees=yes", "inDegrees=maybe"), "inDegrees is 'maybe'; expected yes or no"),
        (("endheader", "end"), "has no line 'endheader'"),
        (("0.5\t", "0,5\t"), "line 9: column 'time' is '0,5'; expected a finite decimal number, with a decimal point"),
        (("\t4", "\tNaN"), "line 9: column 'elbow' is 'NaN'; expected a number: nothing may be missing here"),
        (("\t4", "\t0x4"), "expected a finite decimal number"),
        (("\t4", "\t1e999"), "expected a number below 1.8e308"),
        (("\t4", "\tinf"), "expected a finite decimal number"),
        (("\t4", ""), "line 9: has 2 values; expected 3, one for each column"),
        (("\t4", "\t4\t5"), "line 9: has 4 values; expected 3"),
        (("0.5\t", "0\t"), "time goes from 0 to 0 s at instant 1; expected it to increase"),
        (("\telbow", "\tshoulder"), "column 'shoulder' is there twice; expected once"),
        (("time\t", "t\t"), "the first column is 't'; expected 'time'"),
        (("nRows=2", "nRows=2\nnRows=2"), "nRows is declared twice"),
        (("version=1", "DataType=Vec3"), "the file holds 'Vec3'; expected DataType=double"),
        (("Coordinates", "\0"), "holds the character NUL"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace("?", r"\?").replace("(", r"\(")):
        read_storage(written(tmp_path, GOOD.replace(*change)))


def test_refused_as_motions(tmp_path: Path) -> None:
    arm = samples.two_link()
    table = read_storage(written(tmp_path, GOOD.replace("elbow", "elbo")))
    with pytest.raises(InputError, match="column 'elbow' is missing"):
        table.coordinates(arm)
    q, missing, unused = table.coordinates(arm, defaults={"elbow": 0.25})
    assert (q[:, 1].tolist(), missing, unused) == ([0.25, 0.25], ("elbow",), ("elbo",))
    twice = StorageTable([0.0], ("elbow", "/jointset/e/elbow/value", "shoulder"), [[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="columns 'elbow' and '/jointset/e/elbow/value' are one coordinate"):
        twice.coordinates(arm)
    with pytest.raises(InputError, match="coordinate 'elbow' is missing at t = 0 s"):
        StorageTable([0.0], ("elbow", "shoulder"), [[np.nan, 1.0]]).coordinates(arm)
    with pytest.raises(InputError, match="are unknown here; expected"):
        read_storage(tmp_path / "x.txt")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_storage(tmp_path / "x.mot")
    with pytest.raises(InputError, match="is empty"):
        read_storage(written(tmp_path, ""))
    with pytest.raises(InputError, match="has no instants"):
        read_storage(written(tmp_path, GOOD.split("0\t1")[0].replace("nRows=2", "nRows=0")))
