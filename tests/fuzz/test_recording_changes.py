"""The same walk in other files: the same torques, or a warning or a refusal that names the difference.

Angles in degrees or radians, said in several ways or not at all; lengths in mm; another axis up, turned or not; columns
renamed, permuted, added; plates split, upside down, in mm; headers with other numbers; markers that are not seen.
"""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.io import Markers, StorageTable, coordinate_table, read_storage, read_trc, write_storage, write_trc
from kinegrad.recordings import (
    ForcePlate,
    analyze_recording,
    inverse_kinematics,
    plates_of,
    read_external_loads,
    turn_upright,
)
from tests.fuzz.cases import cases
from tests.recordings.synthetic_walk import SyntheticWalk, external_loads, synthetic_walk
from tests.recordings.test_force_columns import DIALECTS, table
from tests.recordings.test_upright import on_side

LOWPASS = 6.0
SAID = {  # what must be said, in the words of a warning or a refusal
    "silent degrees": "looks like degrees",
    "no version": "OpenSim takes them for degrees",
    "wrong units": "`units` is 'deg', and the table has radians",
    "not turned": "from the vertical of the model|from upright",
    "plates not turned": "from the vertical of the model",
    "points in mm": "is it in m",
    "forces on plates": "are these forces on the plates",
    "a plate of unknown names": "belong to no plate that is found",
    "six more columns": "belong to no plate that is found",
    "two more columns": "no plate uses: 'emg",
    "a plate is missing": "is a plate missing",
    "wrong numbers": "which are read; is it cut off",
}
HARMLESS = {"two more columns", "wrong numbers"}  # is said, and changes nothing


@dataclass
class Files:
    """What is in the files of a recording, and how it is to be read."""

    walk: SyntheticWalk
    folder: Path
    plates: list[ForcePlate]
    markers: Markers
    spelling: list[tuple[str, str, str]]
    units: str | None = None
    header: str = "inDegrees=yes"
    version: str = "version=1\n"
    degrees: bool = True
    up: str | None = None
    more: int = 0
    millimetres: bool = False
    xml: bool = False
    wrong: bool = False
    expected: list[str] = field(default_factory=list)

    def torques(self, rng: random.Random, from_markers: bool) -> np.ndarray:
        """Write and read everything, and analyse it."""
        model, t = self.walk.model, self.walk.motion.t
        plates = self.forces(rng)
        if self.up is not None:
            plates = [turn_upright(model, plate, up=self.up) for plate in plates]
        q = self.coordinates_of_markers(rng) if from_markers else self.coordinates(rng)
        found = analyze_recording(model, t, q, plates=plates, lowpass=LOWPASS)
        return found.tau

    def forces(self, rng: random.Random) -> list[ForcePlate]:
        given = table(replace(self.walk, plates=self.plates), tuple(self.spelling))
        names = (*given.names, *(f"emg{k + 1}" for k in range(self.more)))
        values = np.column_stack([given.values, np.ones((len(given.t), self.more))])
        order = rng.sample(range(len(names)), len(names))
        write_storage(self.folder / "f.mot", StorageTable(given.t, tuple(names[k] for k in order), values[:, order]))
        self.spoil("f.mot")
        if not self.xml:
            return plates_of(read_storage(self.folder / "f.mot", missing=True))
        starts = {
            plate.link: spelling[0][: -len("v{}")] for plate, spelling in zip(self.plates, self.spelling, strict=True)
        }
        (self.folder / "f.xml").write_text(external_loads(starts, "f.mot"), encoding="utf-8")
        return read_external_loads(self.folder / "f.xml")

    def coordinates(self, rng: random.Random) -> np.ndarray:
        motion = self.walk.motion
        given = coordinate_table(self.walk.model, motion.t, motion.q, in_degrees=self.degrees)
        order = rng.sample(range(len(given.names)), len(given.names))
        columns = replace(
            given, names=tuple(given.names[k] for k in order), values=given.values[:, order], in_degrees=None
        )
        path = self.folder / "q.mot"
        write_storage(path, columns)
        path.write_text(
            path.read_text().replace("version=1\n", f"{self.version}{self.header}\n" if self.header else self.version)
        )
        self.spoil("q.mot")
        return read_storage(path).coordinates(self.walk.model, units=self.units)[0]

    def coordinates_of_markers(self, rng: random.Random) -> np.ndarray:
        names = [*self.markers.names]
        rng.shuffle(names)
        seen = self.markers.select(names)
        if self.more:
            more = Markers(seen.t, ("sync",), np.zeros((len(seen.t), 1, 3)))
            seen = Markers(seen.t, (*seen.names, "sync"), np.concatenate([seen.position, more.position], axis=1))
        scale = 1000.0 if self.millimetres else 1.0
        write_trc(self.folder / "m.trc", replace(seen, position=scale * seen.position))
        if self.millimetres:
            path = self.folder / "m.trc"
            path.write_text(path.read_text().replace("\tm\t", "\tmm\t", 1))
        self.spoil("m.trc")
        read = read_trc(self.folder / "m.trc")
        read = read if self.up is None else turn_upright(self.walk.model, read, up=self.up)
        return inverse_kinematics(self.walk.model, read, tolerance=1e-13).q

    def spoil(self, name: str) -> None:
        """Wrong numbers of rows and columns in a header."""
        if self.wrong:
            path, count = self.folder / name, len(self.walk.motion.t)
            text = path.read_text()
            new = re.sub(r"nColumns=\d+", "nColumns=99", text) if name != "m.trc" else text.replace(
                f"\t{count}\t", f"\t{count + 1}\t", 1
            )  # fmt: skip
            assert new != text
            path.write_text(new)

    def __post_init__(self) -> None:
        assert len(self.spelling) == len(self.plates)


def turned(plates: list[ForcePlate]) -> list[ForcePlate]:
    return [replace(p, force=on_side(p.force), point=on_side(p.point), torque=on_side(p.torque)) for p in plates]


def drawn(rng: random.Random, walk: SyntheticWalk, folder: Path, from_markers: bool) -> Files:
    """A recording with some changes; what must be said of them is in `expected`."""
    spelling = list(DIALECTS[rng.choice([name for name in DIALECTS if name != "capitals"])])
    files = Files(walk, folder, list(walk.plates), walk.markers, spelling)
    if rng.random() < 0.3:  # one plate as two that bear half of it, on both sides of its point
        k = rng.randrange(2)
        plate = files.plates.pop(k)
        aside, half = np.array([0.1, 0.0, -0.05]), {"force": plate.force / 2, "torque": plate.torque / 2}
        loaded = (plate.force != 0).any(axis=1, keepdims=True)
        files.plates += [replace(plate, point=plate.point + s * aside * loaded, **half) for s in (1, -1)]
        files.spelling = [
            tuple(name.replace("{}", f"{j}_{{}}") for name in ("P{}_v", "P{}_p", "P{}_m")) for j in range(3)
        ]
        files.spelling = [tuple(f"plate{j}_{part}{{}}" for part in "vpm") for j in range(3)]
    files.millimetres, files.more = rng.random() < 0.5, rng.choice([0, 0, 0, 2])
    files.expected += ["two more columns"] * bool(files.more)
    if rng.random() < 0.3:
        files.wrong = True
        files.expected.append("wrong numbers")
    if not from_markers:
        change_angles(rng, files)
    trouble = rng.choice(["", "", "", "not turned", "plates not turned", "points in mm", "forces on plates",
                          "a plate of unknown names", "six more columns", "a plate is missing"])  # fmt: skip
    if rng.random() < 0.4 or trouble == "not turned":
        files.plates = turned(files.plates)
        files.markers = replace(walk.markers, position=on_side(walk.markers.position))
        files.up = None if trouble == "not turned" else "z"
    files.expected += [trouble] * bool(trouble)
    if trouble == "plates not turned":
        files.plates = turned(files.plates)
    elif trouble == "points in mm":
        files.plates = [replace(p, point=1000 * p.point) for p in files.plates]
    elif trouble == "forces on plates":
        files.plates = [replace(p, force=-p.force, torque=-p.torque) for p in files.plates]
    elif trouble == "a plate of unknown names":
        files.spelling[0] = ("Kraft {}", "Ort {}", "Dreh {}")
    elif trouble == "six more columns":
        files.more = 6
        files.expected = [what for what in files.expected if what != "two more columns"]
    elif trouble == "a plate is missing":
        files.plates, files.spelling = files.plates[:1], files.spelling[:1]
    files.xml = not trouble and not files.more and files.spelling == spelling
    files.xml &= all(force.endswith("force_v{}") for force, _, _ in files.spelling)
    return files


def change_angles(rng: random.Random, files: Files) -> None:
    """How the header says, or does not say, what angles are in."""
    way = rng.choice(
        ["yes", "sentence", "units", "no", "radians", "silent radians", "silent degrees", "no version", "wrong units"]
    )
    files.degrees = way in ("yes", "sentence", "units", "silent degrees")
    files.header = {"yes": "inDegrees=yes", "sentence": "Angles are in degrees.", "no": "inDegrees=no",
                    "wrong units": "inDegrees=no", "radians": "Angles are in radians."}.get(way, "")  # fmt: skip
    files.units = {"units": "deg", "wrong units": "deg"}.get(way)
    files.version = "" if way in ("sentence", "no version") else files.version
    files.expected += [way] * (way in SAID)


def one_case(case: int, folder: Path) -> str:
    """Analyse a changed recording, and check what comes of it."""
    rng = random.Random(f"recording changes {case}")
    walk, from_markers = synthetic_walk(61), bool(case % 2)
    files = drawn(rng, walk, folder, from_markers)
    right = analyze_recording(walk.model, walk.motion.t, walk.motion.q, plates=walk.plates, lowpass=LOWPASS).tau
    refused = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tau = files.torques(rng, from_markers)
        except InputError as error:
            refused, tau = str(error), right
    said = [str(each.message) for each in caught]
    assert all(issubclass(each.category, kg.KinegradWarning) for each in caught), (case, said)
    changed = np.abs(tau - right).max() > 1e-5 * np.abs(right).max()
    assert not changed or set(files.expected) - HARMLESS, (case, "other torques, and nothing that was said")
    assert not refused or files.expected, (case, refused)
    for what in files.expected:
        if not refused:
            assert any(re.search(SAID[what], text) for text in said), (case, what, said)
    if refused:
        assert any(re.search(SAID[what], refused) for what in files.expected), (case, files.expected, refused)
    if not files.expected:
        assert not said, (case, said)
    return "refused" if refused else "changed" if changed else "the same"


def test_the_same_walk_in_other_files(tmp_path: Path) -> None:
    found = [one_case(case, tmp_path) for case in range(cases(16))]
    assert {"refused", "changed", "the same"} <= set(found)  # or not everything was tested


def lost_markers(case: int) -> tuple[float, float]:
    """Hide markers of a body for a while; how many torques of a whole walk are within two bars, and the farthest."""
    rng = random.Random(f"lost markers {case}")
    walk = synthetic_walk()
    body, count = rng.choice(["calcn_r", "calcn_l", "tibia_r", "femur_l", "pelvis"]), rng.randint(2, 40)
    first = rng.randint(1, 119 - count)
    x = walk.noisy(seed=case).position.copy()
    x[first : first + count, [name.startswith(body) for name in walk.markers.names]] = np.nan
    found = inverse_kinematics(walk.model, replace(walk.markers, position=x))
    assert found.success, case
    options = {"plates": walk.plates, "lowpass": LOWPASS, "mass_error": 0, "length_error": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kg.RecordingWarning)
        exact = analyze_recording(walk.model, walk.motion.t, walk.motion.q, **options)
        lost = analyze_recording(walk.model, found.t, found.q, kinematics=found, marker_error=0.001, **options)
    off = np.abs(lost.tau - exact.tau)[first : first + count] / lost.errors.measured[first : first + count]
    return float(np.mean(off < 2)), float(off.max())


def test_bars_cover_what_hidden_markers_do() -> None:
    """Of normal errors 95 % are within two standard deviations."""
    found = [lost_markers(case) for case in range(cases(3, cost=4))]
    assert np.mean([within for within, _ in found]) > 0.85
    assert max(farthest for _, farthest in found) < 6
