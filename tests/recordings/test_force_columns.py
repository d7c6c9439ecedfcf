"""Columns of force files: every spelling of the same two plates gives the same loads; what is not used is named."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from kinegrad.errors import FileError, InputError
from kinegrad.io import LeftOutWarning, StorageTable, write_storage
from kinegrad.recordings import ForcePlate, analyze_recording, plates_of, read_external_loads
from tests.recordings.synthetic_walk import SyntheticWalk, external_loads, synthetic_walk

# Two plates as files of laboratories have them: names of force, point and torque, {} being the axis.
DIALECTS = {
    "gait2392": (("ground_force_v{}", "ground_force_p{}", "ground_torque_{}"),
                 ("1_ground_force_v{}", "1_ground_force_p{}", "1_ground_torque_{}")),
    "sides first": (("R_ground_force_v{}", "R_ground_force_p{}", "R_ground_torque_{}"),
                    ("L_ground_force_v{}", "L_ground_force_p{}", "L_ground_torque_{}")),
    "sides inside": (("ground_force_r_v{}", "ground_force_r_p{}", "ground_torque_r_{}"),
                     ("ground_force_l_v{}", "ground_force_l_p{}", "ground_torque_l_{}")),
    "numbers inside": (("ground_force_1_v{}", "ground_force_1_p{}", "ground_moment_1_m{}"),
                       ("ground_force_2_v{}", "ground_force_2_p{}", "ground_moment_2_m{}")),
    "bodies": (("ground_force_calcn_r_v{}", "ground_force_calcn_r_p{}", "ground_force_calcn_r_m{}"),
               ("ground_force_calcn_l_v{}", "ground_force_calcn_l_p{}", "ground_force_calcn_l_m{}")),
    "plates": (("FP1_F{}", "FP1_COP{}", "FP1_T{}"), ("FP2_F{}", "FP2_COP{}", "FP2_T{}")),
    "numbers last": (("F{}1", "COP{}1", "M{}1"), ("F{}2", "COP{}2", "M{}2")),
    "capitals": (("F1{}", "P1{}", "M1{}"), ("F2{}", "P2{}", "M2{}")),
    "repeated": (("ground_force_v{}", "ground_force_p{}", "ground_torque_{}"),
                 ("ground_force_v{}.1", "ground_force_p{}.1", "ground_torque_{}.1")),
    "words": (("left_force_{}", "left_cop_{}", "left_free_moment_{}"),
              ("right_force_{}", "right_cop_{}", "right_free_moment_{}")),
}  # fmt: skip


def table(walk: SyntheticWalk, spelling: tuple[tuple[str, str, str], ...], axes: str = "xyz") -> StorageTable:
    names = [name.format(x) for plate in spelling for name in plate for x in axes]
    columns = [getattr(plate, what) for plate in walk.plates for what in ("force", "point", "torque")]
    return StorageTable(walk.motion.t, tuple(names), np.hstack(columns), title="forces")


def equal(found: list[ForcePlate], expected: list[ForcePlate]) -> bool:
    return len(found) == len(expected) and all(
        np.array_equal(getattr(a, what), getattr(b, what))
        for a, b in zip(found, expected, strict=True)
        for what in ("t", "force", "point", "torque")
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_spellings(dialect: str) -> None:
    """The same plates from every spelling, in any order of columns, without a warning."""
    walk = synthetic_walk(21)
    given = table(walk, DIALECTS[dialect], "XYZ" if dialect == "capitals" else "xyz")
    order = np.random.default_rng(0).permutation(len(given.names))
    mixed = StorageTable(given.t, tuple(given.names[k] for k in order), given.values[:, order])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert equal(plates_of(given), walk.plates)
        found = plates_of(mixed)
    assert equal(sorted(found, key=lambda plate: plate.name != plates_of(given)[0].name), walk.plates)


def test_vectors_of_opensims_c3d_adapter() -> None:
    walk = synthetic_walk(21)
    names = tuple(f"{what}{plate}_{axis}" for plate in (1, 2) for what in "fpm" for axis in (1, 2, 3))
    given = table(walk, DIALECTS["plates"])
    assert equal(plates_of(StorageTable(given.t, names, given.values)), walk.plates)


def test_only_the_vertical_free_moment() -> None:
    """What a free moment has no columns for is zero: it is vertical."""
    walk = synthetic_walk(21)
    given = table(walk, DIALECTS["gait2392"])
    kept = [k for k, name in enumerate(given.names) if "torque" not in name or name.endswith("y")]
    part = StorageTable(given.t, tuple(given.names[k] for k in kept), given.values[:, kept])
    found = plates_of(part)
    assert [np.abs(a.torque - b.torque).max() < 1e-9 for a, b in zip(found, walk.plates, strict=True)] == [True] * 2
    with pytest.raises(FileError, match="the forces have 1 columns that begin with 'ground_torque_'"):
        write_and_read(part, {"calcn_r": "ground_force_"})


def write_and_read(forces: StorageTable, starts: dict[str, str]) -> list[ForcePlate]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_storage(Path(folder, "grf.mot"), forces)
        Path(folder, "grf.xml").write_text(external_loads(starts), encoding="utf-8")
        return read_external_loads(Path(folder, "grf.xml"))


def test_a_plate_of_unknown_names_is_not_left_out() -> None:
    """The leg would walk on air: an error that shows the names, and how to map them; mapped, the torques are right."""
    walk = synthetic_walk()
    strange = (("Kraft {}", "Ort {}", "Dreh {}"), DIALECTS["gait2392"][1])
    given = table(walk, strange)
    with pytest.raises(
        InputError, match=r"9 columns belong to no plate that is found \('1_ground_force_'\): 'Kraft x'"
    ):
        plates_of(given)
    mapped = {"right": {"force": "Kraft", "point": "Ort", "torque": "Dreh"}}
    found = plates_of(given, {"right": "calcn_r", "1_ground_force_": "calcn_l"}, columns=mapped)
    assert equal(sorted(found, key=lambda plate: plate.link, reverse=True), walk.plates)
    tau = analyze_recording(walk.model, walk.motion.t, walk.motion.q, plates=found).tau
    assert np.abs(tau - walk.motion.tau).max() < 1e-9 * np.abs(walk.motion.tau).max()
    three = {"right": {"force": ("Kraft x", "Kraft y", "Kraft z"), "point": ("Ort x", None, "Ort z")}}
    with pytest.warns(LeftOutWarning, match="no plate uses: 'Ort y', 'Dreh x', 'Dreh y', 'Dreh z'"):
        assert np.array_equal(plates_of(given, columns=three)[1].force, walk.plates[0].force)
    with pytest.warns(LeftOutWarning, match="'Dreh z'"):
        assert len(plates_of(given, columns={})) == 1  # said by hand that they are none


def test_other_columns_are_named() -> None:
    walk = synthetic_walk(21)
    given = table(walk, DIALECTS["gait2392"])
    more = StorageTable(given.t, (*given.names, "emg1", "sync"), np.hstack([given.values, np.ones((21, 2))]))
    with pytest.warns(LeftOutWarning, match="no plate uses: 'emg1', 'sync'"):
        assert equal(plates_of(more), walk.plates)
    with pytest.warns(LeftOutWarning, match="no plate uses: '1_ground_force_vx'"):
        (found,) = write_and_read(given, {"calcn_r": "ground_force_"})
    assert found.link == "calcn_r"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ("f_vx f_vy f_vz", "plate 'f_' has columns of its force, and no three of its point"),
        ("fvx fvy fvz fpx fpy fpz 2_force_vy", "1 columns belong to no plate that is found .'f'.: '2_force_vy'"),
        ("fvx fvy fvz f_vx f_vy f_vz fpx fpy fpz", "columns 'f' and 'f_' are both the force of one plate"),
        ("hip knee ankle", "no columns of forces are found among 'hip', 'knee', 'ankle'"),
    ],
)
def test_refused(names: str, sentence: str) -> None:
    columns = tuple(names.split())
    with pytest.raises(InputError, match=sentence):
        plates_of(StorageTable([0.0], columns, np.ones((1, len(columns)))))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (3, "`columns` is 3; expected a dictionary of plates"),
        ({"a": "F"}, "is 'F'; expected {'force'"),
        ({"a": {"force": "F"}}, "`columns.'a'.`: quantity 'point' is missing"),
        ({"a": {"force": "F", "point": "C", "cop": "C"}}, "quantity 'cop' is unknown"),
        ({"a": {"force": "G", "point": "C"}}, "is 'G', which names no column; expected three of 'Fa'"),
        ({"a": {"force": "", "point": "C"}}, "is '', which names 6 columns"),
        ({"a": {"force": ("Fa", "Fb"), "point": "C"}}, "expected what three names begin with, or three names"),
        ({"a": {"force": ("Fa", "Fb", "Fd"), "point": "C"}}, "column 'Fd' is missing"),
    ],
)
def test_refused_maps(columns: object, sentence: str) -> None:
    names = tuple(f"{what}{x}" for what in "FC" for x in "abc")
    with pytest.raises(InputError, match=sentence):
        plates_of(StorageTable([0.0], names, np.ones((1, 6))), columns=columns)  # type: ignore[arg-type]


# --- ExternalLoads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("renamed", [("force_v", "force_v_"), ("torque_", "torque_about_"), ("force_p", "force_point")])
def test_identifiers_that_names_begin_with(renamed: tuple[str, str]) -> None:
    """As OpenSim reads them: the three columns whose names begin so."""
    walk = synthetic_walk(21)
    given = walk.forces()
    names = tuple(name.replace(*renamed) for name in given.names)
    found = write_and_read(
        StorageTable(given.t, names, given.values), {"calcn_r": "ground_force_", "calcn_l": "1_ground_force_"}
    )
    assert equal(found, walk.plates)
    assert [plate.link for plate in found] == ["calcn_r", "calcn_l"]


def test_a_force_without_a_point_is_refused(tmp_path: Path) -> None:
    """OpenSim lets it act at the origin of the body; it acted at the origin of the world."""
    walk = synthetic_walk(21)
    walk.write(tmp_path)
    text = external_loads({"calcn_r": "ground_force_"})
    text = text.replace("<point_identifier>ground_force_p</point_identifier>", "")
    (tmp_path / "grf.xml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match="has a force and no point_identifier"):
        read_external_loads(tmp_path / "grf.xml")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({k: {"force": "f_v", "point": "f_p"} for k in "ab"}, "'f_vx' is used for the force of plate 'a'"),
        ({"a": {"force": "f_v", "point": "f_v"}}, "and for the point of plate 'a'; expected once"),
        ({"a": {"force": ["f_vx"] * 3, "point": "f_p"}}, "is used for the force of plate 'a' and for the force"),
        ({"f_": {"force": "g_1", "point": "g_2"}}, "two plates are called 'f_'"),
    ],
)  # fmt: skip
def test_no_column_is_used_twice(columns, words):
    """A plate that was mapped twice doubled its force, without a word."""
    names = [f"f_{what}{x}" for what in "vp" for x in "xyz"] + [f"g_{k}{x}" for k in "12" for x in "xyz"]
    with pytest.raises(InputError, match=words):
        plates_of(StorageTable([0.0], tuple(names), np.ones((1, len(names)))), columns=columns)
