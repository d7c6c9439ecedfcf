"""Motion files of OpenSim: what is written is read to the last bit, in degrees or not; what is wrong is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinegrad import samples
from kinegrad.errors import InputError
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
        "name walk\ndatacolumns 3\ndatarows 2\nrange 0 0.5\nendheader\ntime shoulder elbow\n0 1 2\n0.5 3 4\n",
        GOOD.replace("Coordinates\n", ""),
        GOOD.replace("\tshoulder\telbow", "\t/jointset/s/shoulder/value\t/jointset/e/elbow/value"),
        GOOD.replace("3\t4\n", "3\t4\t\n"),
    ],
)
def test_spellings(tmp_path: Path, text: str) -> None:
    q, missing, unused = read_storage(written(tmp_path, text)).coordinates(samples.two_link())
    assert np.rint(np.rad2deg(q) if "inDegrees" in text else q).tolist() == [[1, 2], [3, 4]]
    assert (missing, unused) == ((), ())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("nRows=2", "nRows=3"), "declares '3' rows and has 2; is it cut off?"),
        (("nColumns=3", "nColumns=4"), "declares '4' columns and has 3"),
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
