"""Force plates of C3D files: what was applied to the plate is what is found, whatever its type, place and units.

Channels are made here from forces fᵢ at places, one by one, as each type of plate would measure them; ezc3d writes the
files, and its own filter of force plates is compared with where it is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.recordings import plate_loads, read_c3d

ezc3d = pytest.importorskip("ezc3d")

FRAMES, PER_FRAME = 4, 5
SAMPLES = FRAMES * PER_FRAME
SINGLE = 2e-6  # files of C3D hold single precision


@dataclass
class Plate:
    """A plate in a world whose z is up: its frame has z downwards, as plates have, unless turned."""

    kind: int
    middle: np.ndarray = field(default_factory=lambda: np.array([0.6, -0.3, 0.0]))
    angle: float = 0.4  # about the vertical
    origin: tuple[float, float, float] = (0.002, -0.001, -0.041)  # m; of type 3: a, b, depth
    sides: tuple[float, float] = (0.4, 0.6)
    seed: int = 0

    @property
    def R(self) -> np.ndarray:
        c, s = np.cos(self.angle), np.sin(self.angle)
        return np.array([[c, s, 0], [s, -c, 0], [0, 0, -1.0]])

    @property
    def corners(self) -> np.ndarray:
        a, b = self.sides[0] / 2, self.sides[1] / 2
        return self.middle + np.array([[a, b, 0], [-a, b, 0], [-a, -b, 0], [a, -b, 0]]) @ self.R.T

    def applied(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Force on the foot, its point, and free moment in the world; N, m."""
        rng = np.random.default_rng(self.seed)
        force = np.stack([rng.normal(0, 60, SAMPLES), rng.normal(0, 60, SAMPLES), rng.uniform(300, 900, SAMPLES)], -1)
        local = rng.uniform(-0.15, 0.15, (SAMPLES, 2))
        point = self.middle + np.concatenate([local, np.zeros((SAMPLES, 1))], axis=1) @ self.R.T
        return force, point, np.stack([np.zeros(SAMPLES), np.zeros(SAMPLES), rng.normal(0, 5, SAMPLES)], axis=-1)

    def channels(self, length: float) -> np.ndarray:
        """What it measures, (channels, samples), with lengths in this unit."""
        force, point, torque = self.applied()
        F, r, T = force @ self.R, (point - self.middle) @ self.R, torque @ self.R
        if self.kind == 1:
            return np.concatenate([F, r[:, :2] / length, T[:, 2:] / length], axis=1).T
        below = np.array(self.origin) * ([0, 0, 1] if self.kind == 3 else [1, 1, 1])
        M = np.cross(r + below, F) + T  # about the origin, which the middle is at `below` from
        if self.kind == 3:
            a, b = self.origin[:2]
            sensors = [(a, b), (-a, b), (-a, -b), (a, -b)]
            A = np.zeros((6, 8))  # (F, M) of each channel at its sensors, half of a pair's force at each
            for k, pair in enumerate(((0, 1), (2, 3), (0, 3), (1, 2))):
                axis = np.eye(3)[k // 2]
                A[:, k] = sum(np.r_[axis, np.cross([*sensors[i], 0], axis)] for i in pair) / 2
            for i, (x, y) in enumerate(sensors):
                A[:, 4 + i] = np.r_[0, 0, 1, np.cross([x, y, 0], [0, 0, 1])]
            return np.linalg.lstsq(A, np.concatenate([F, M], axis=1).T, rcond=None)[0]
        wrench = np.concatenate([F, M / length], axis=1).T
        return np.linalg.solve(self.matrix, wrench) if self.kind == 4 else wrench

    @property
    def matrix(self) -> np.ndarray:
        """Of type 4: from volts, with cross-talk."""
        return np.diag([150, 150, 300, 9e4, 9e4, 5e4]) + np.random.default_rng(5).normal(0, 1, (6, 6))


def write(
    path: Path, plates: list[Plate], *, length: float = 1e-3, moments: str = "", sign: int = 1, **changes
) -> None:
    """A file of these plates, with lengths in units of `length` metres; `moments`: ANALOG:UNITS of moments."""
    unit = {1e-3: "mm", 1e-2: "cm", 1.0: "m"}[length]
    file = ezc3d.c3d()
    points, analog = file["parameters"]["POINT"], file["parameters"]["ANALOG"]
    points["RATE"]["value"], points["UNITS"]["value"], points["LABELS"]["value"] = [100], [unit], ("marker",)
    file["data"]["points"] = np.ones((4, 1, FRAMES))
    blocks = []
    for plate in plates:
        x = sign * plate.channels(length)
        if plate.kind == 1:
            x[3:5] *= sign
        if moments in ("Nm", "N.m") and plate.kind == 2:
            x[3:] *= length
        blocks.append(x)
    numbers = np.concatenate([*blocks, np.zeros((1, SAMPLES))])
    first = 1 + np.cumsum([0, *(len(x) for x in blocks)])
    analog["RATE"]["value"] = [100 * PER_FRAME]
    analog["LABELS"]["value"] = tuple(f"c{k + 1}" for k in range(len(numbers)))
    units = []
    for plate, x in zip(plates, blocks, strict=True):
        force = "V" if plate.kind == 4 else "N"
        units += [force] * 3 + ([moments or f"N{unit}"] * 3 if plate.kind == 2 else [""] * (len(x) - 3))
    analog["UNITS"]["value"] = (*changes.pop("units", units), "V")
    file["data"]["analogs"] = numbers[None]
    several = len(plates)
    channel = np.zeros((8, several))
    for k, x in enumerate(blocks):
        channel[: len(x), k] = first[k] + np.arange(len(x))
    set_ = {
        "USED": [several], "TYPE": [p.kind for p in plates], "CHANNEL": channel,
        "CORNERS": np.stack([p.corners.T for p in plates], axis=-1) / length,
        "ORIGIN": np.stack([np.array(p.origin) for p in plates], axis=-1) / length,
        "CAL_MATRIX": np.stack([p.matrix if p.kind == 4 else np.eye(6) for p in plates], axis=-1),
    } | changes  # fmt: skip
    for name, value in set_.items():
        whole = name in ("USED", "TYPE", "CHANNEL")  # ezc3d's own filter insists on whole numbers
        file["parameters"]["FORCE_PLATFORM"][name]["value"] = np.asarray(value, dtype=int if whole else float)
    file.write(str(path))


def check(path: Path, plates: list[Plate], **options) -> list[kg.recordings.ForcePlate]:
    _, found = read_c3d(path, up="z", **options)
    assert [plate.name for plate in found] == [f"plate{k + 1}" for k in range(len(plates))]
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    for one, plate in zip(found, plates, strict=True):
        force, point, torque = (x @ turn.T for x in plate.applied())
        np.testing.assert_allclose(one.t, np.arange(SAMPLES) / (100 * PER_FRAME), rtol=0, atol=1e-9)
        np.testing.assert_allclose(one.force, force, rtol=0, atol=SINGLE * 900)
        np.testing.assert_allclose(one.point, point, rtol=0, atol=SINGLE)
        np.testing.assert_allclose(one.torque, torque, rtol=0, atol=SINGLE * 200)
    return found


SENSORS = Plate(3, origin=(0.12, 0.2, -0.05))


@pytest.mark.parametrize("length", [1e-3, 1e-2, 1.0], ids=["mm", "cm", "m"])
@pytest.mark.parametrize("plate", [Plate(1), Plate(2), SENSORS, Plate(4)], ids=lambda plate: f"type{plate.kind}")
def test_types_and_units(tmp_path: Path, plate: Plate, length: float) -> None:
    path = tmp_path / "a.c3d"
    write(path, [plate], length=length)
    found = check(path, [plate])[0]
    theirs = ezc3d.c3d(str(path), extract_forceplat_data=True)["data"]["platform"][0]
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    np.testing.assert_allclose(found.force, theirs["force"].T @ turn.T, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.point, length * theirs["center_of_pressure"].T @ turn.T, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.torque, length * theirs["Tz"].T @ turn.T, rtol=0, atol=1e-9)


def test_several_plates_and_their_loads(tmp_path: Path) -> None:
    """On a foot with its origin at o, the load is F and T + (r − o) × F."""
    plates = [Plate(2), Plate(4, np.array([0.1, 0.3, 0.02]), angle=2.0, seed=1), Plate(2, angle=-1.0, seed=2)]
    path = tmp_path / "a.c3d"
    write(path, plates)
    found = check(path, plates)
    builder = kg.ModelBuilder("body")
    for name in ("left", "right"):
        builder.add(name, None, kg.prismatic("y"), placement=[0.3, 0.1, 0.2], inertia=kg.Inertia.sphere(1.0, 0.1))
    model = builder.build()
    q = np.full((FRAMES, 2), 0.25)
    t = np.arange(FRAMES) / 100
    links = ("left", "right", "left")
    at = [kg.recordings.ForcePlate(t, *(x[::PER_FRAME] for x in (p.force, p.point, p.torque)), link=link)
          for p, link in zip(found, links, strict=True)]  # fmt: skip
    loads = plate_loads(model, q, at)
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    for i, link in enumerate(model.link_names):
        force, torque = np.zeros((2, FRAMES, 3))
        for plate, on in zip(plates, links, strict=True):
            F, r, T = (x[::PER_FRAME] @ turn.T for x in plate.applied())
            if on == link:
                force += F
                torque += T + np.cross(r - [0.3, 0.35, 0.2], F)
        np.testing.assert_allclose(loads.force[:, i], force, rtol=0, atol=0.01)
        np.testing.assert_allclose(loads.torque[:, i], torque, rtol=0, atol=0.005)


@pytest.mark.parametrize("unit", ["Nm", "N.m"])
def test_moments_in_newton_metres_beside_positions_in_millimetres(tmp_path: Path, unit: str) -> None:
    """What a channel says of itself counts; ezc3d's filter takes them for N·mm: points are a thousand times off."""
    plate, path = Plate(2), tmp_path / "a.c3d"
    write(path, [plate], moments=unit)
    check(path, [plate])


@pytest.mark.parametrize("kind", [1, 2, 4])
def test_forces_on_the_plate_are_turned_into_those_on_the_foot(tmp_path: Path, kind: int) -> None:
    plate, path = Plate(kind), tmp_path / "a.c3d"
    write(path, [plate], sign=-1)
    check(path, [plate])


def test_origins_the_other_way_round(tmp_path: Path) -> None:
    for plate in (Plate(2), SENSORS):
        flipped = -np.array(plate.origin) * ([-1, -1, 1] if plate.kind == 3 else [1, 1, 1])
        write(tmp_path / "a.c3d", [plate], ORIGIN=flipped[:, None] * 1000)
        check(tmp_path / "a.c3d", [plate])


def test_nothing_is_borne_below_the_threshold(tmp_path: Path) -> None:
    """And the point stays the nearest one."""
    path = tmp_path / "a.c3d"
    write(path, [Plate(2)])
    vertical = read_c3d(path, up="z")[1][0].force[:, 1]
    limit = float(np.median(vertical))
    plate = read_c3d(path, up="z", threshold=limit)[1][0]
    low = vertical < limit
    assert low.any()
    assert (plate.force[low] == 0).all()
    assert (plate.torque[low] == 0).all()
    on = np.flatnonzero(~low)
    for k in np.flatnonzero(low):
        near = np.abs(on - k)
        assert any(np.array_equal(plate.point[k], plate.point[i]) for i in on[near == near.min()])
    nothing = read_c3d(path, up="z", threshold=1e6)[1][0]
    assert not nothing.force.any()
    np.testing.assert_allclose(nothing.point, np.tile([0.6, 0, 0.3], (SAMPLES, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"TYPE": [5]}, r"plate 1 is of type 5 \(Kistler with a matrix of 6 × 8\); expected 1, 2, 3 or 4, or plates"),
        ({"TYPE": [21]}, r"plate 1 is of type 21 \(AMTI stairs\); expected 1, 2, 3 or 4"),
        ({"TYPE": [99]}, "plate 1 is of type 99; expected 1, 2, 3 or 4"),
        ({"CHANNEL": np.full((6, 1), 40.0)}, "plate 1 is on channel 40; expected one of the 7 of the file"),
        ({"CHANNEL": np.ones((4, 1))}, r"FORCE_PLATFORM:CHANNEL has shape \(4, 1\); expected 6 numbers of plate 1"),
        ({"CORNERS": np.zeros((3, 4, 1))}, "CORNERS of plate 1 have no area; expected the corners of a rectangle"),
        ({"USED": [2]}, "plate 2|of plate 2"),
        ({"units": ["V"] * 6}, "channel 'c1' of a force plate is in 'V'; expected N or kN"),
        ({"units": ["N"] * 3 + ["lbf"] * 3}, "channel 'c4' of a force plate is in 'lbf'; expected N·mm or N·m"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, changes: dict, sentence: str) -> None:
    path = tmp_path / "a.c3d"
    write(path, [Plate(2)], **changes)
    with pytest.raises(kg.InputError, match=sentence):
        read_c3d(path, up="z")
    markers, plates = read_c3d(path, up="z", plates=False)
    assert markers.names == ("marker",)
    assert plates == []


def test_the_axis_that_is_up_is_checked(tmp_path: Path) -> None:
    write(tmp_path / "a.c3d", [Plate(2)])
    with pytest.raises(kg.InputError, match="its force plates are not across y; expected up='z', or plates=False"):
        read_c3d(tmp_path / "a.c3d")
    for name, value in (("plates", 1), ("threshold", -1.0)):
        with pytest.raises(kg.InputError, match=f"`{name}` is"):
            read_c3d(tmp_path / "a.c3d", **{name: value})
