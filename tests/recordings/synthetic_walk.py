"""A walk whose torques are known: a model of OpenSim's kind, its markers, two force plates, and all as files.

x points forwards, y upwards, z to the right.  Each foot stands flat for 0.62 of a stride and swings over; the pelvis
goes on at constant speed and sways over the standing foot.  Angles of the legs follow in closed form.  The motion is
the spline through these positions, and the plates measure what it takes: the wrench at the root, shared by the feet,

    F_r = s F,  p_r = p + (1 − s) d,    F_l = (1 − s) F,  p_l = p − s d,    d from the left foot to the right,

p being where the whole force F acts on the ground.  Inverse dynamics of these positions has no residuals.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import kinegrad as kg
from kinegrad.io import Markers, StorageTable, coordinate_table, write_storage, write_trc
from kinegrad.io.opensim import read
from kinegrad.recordings import ForcePlate, RecordedMotion, motion_from_positions, plate_loads
from tests.io.opensim.files import J, constant, linear, new_layout

Array = NDArray[np.float64]

STRIDE, STANCE, SPEED = 1.2, 0.62, 0.8  # s, part of a stride, m/s
HEIGHT, SWAY, BOB, LIFT = 0.86, 0.03, 0.01, 0.08  # m: of the hips, of the pelvis sideways and upwards, of a foot
THIGH, SHANK, ANKLE, HIP = 0.42, 0.42, 0.08, 0.09  # m: lengths, height of the ankle, hips from the middle
FLAT = ("0 0 0", "0 0 0")
MARKER = '<Marker name="{}"><socket_parent_frame>/bodyset/{}</socket_parent_frame><location>{}</location></Marker>'
PLACES = {
    "pelvis": ("-0.1 0.05 0.1", "-0.1 0.05 -0.1", "0.12 0.05 0.12", "0.12 0.05 -0.12"),
    "femur": ("0.06 -0.15 0.03", "-0.02 -0.25 0.07", "0.0 -0.40 0.05"),
    "tibia": ("0.05 -0.10 0.02", "-0.02 -0.22 0.05", "0.0 -0.40 0.04"),
    "calcn": ("-0.06 -0.05 0.0", "0.12 -0.06 0.04", "0.12 -0.05 -0.04"),
}


def turns(*axes: tuple[str, str]) -> dict[str, tuple[str, str, str]]:
    """Hinges of a CustomJoint, one after another: coordinate and axis; OpenSim wants three axes, so others are held."""
    rest = [axis for axis in ("1 0 0", "0 1 0", "0 0 1") if axis not in [axis for _, axis in axes]]
    held = {f"rotation{k}": ("", axis, constant(0.0)) for k, axis in enumerate(rest, len(axes) + 1)}
    return {f"rotation{k}": (name, axis, linear()) for k, (name, axis) in enumerate(axes, 1)} | held


def osim_text() -> str:
    """The model: 16 coordinates, 7 bodies of 69 kg, 22 markers."""
    x, y, z = "1 0 0", "0 1 0", "0 0 1"
    root = turns(("pelvis_tilt", z), ("pelvis_list", x), ("pelvis_rotation", y)) | {
        f"translation{k}": (f"pelvis_{name}", axis, linear())
        for k, (name, axis) in enumerate((("tx", x), ("ty", y), ("tz", z)), 1)
    }
    joints = [J("CustomJoint", "pelvis", "ground", tuple(name for name, _, _ in root.values()), root, FLAT, FLAT,
                mass="45", com="0 0.2 0", inertia="2.5 1.0 2.5 0 0 0")]  # fmt: skip
    for side, out in (("r", HIP), ("l", -HIP)):
        hip, ankle = (f"hip_adduction_{side}", f"hip_flexion_{side}"), (f"ankle_angle_{side}", f"subtalar_angle_{side}")
        knee = (f"knee_angle_{side}",)
        joints += [
            J("CustomJoint", f"femur_{side}", "pelvis", hip, turns((hip[0], x), (hip[1], z)), (f"0 0 {out}", "0 0 0"),
              FLAT, mass="7.5", com="0 -0.18 0", inertia="0.12 0.03 0.12 0 0 0"),
            J("CustomJoint", f"tibia_{side}", f"femur_{side}", knee, turns((knee[0], z)), (f"0 {-THIGH} 0", "0 0 0"),
              FLAT, mass="3.5", com="0 -0.18 0", inertia="0.05 0.005 0.05 0 0 0"),
            J("CustomJoint", f"calcn_{side}", f"tibia_{side}", ankle, turns((ankle[0], z), (ankle[1], x)),
              (f"0 {-SHANK} 0", "0 0 0"), FLAT, mass="1", com="0.05 -0.04 0", inertia="0.002 0.004 0.004 0 0 0"),
        ]  # fmt: skip
    markers = "".join(
        MARKER.format(f"{joint.body}_{k}", joint.body, place)
        for joint in joints
        for k, place in enumerate(PLACES[joint.body.split("_")[0]])
    )
    return new_layout(joints, markers=markers)


def step(x: Array) -> Array:
    """From 0 to 1 with two continuous derivatives."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x)


def foot(t: Array, late: float) -> tuple[Array, Array, Array]:
    """Place and height of a foot that lands `late` strides after t = 0, and how much of the body is on it."""
    phase = t / STRIDE - late
    number, part = np.floor(phase), phase - np.floor(phase)
    swing = np.clip((part - STANCE) / (1 - STANCE), 0.0, 1.0)
    x = SPEED * STRIDE * (number + late + STANCE / 2 + step(swing))
    double = STANCE - 0.5  # both feet on the ground, part of a stride
    return x, LIFT * 64 * (swing * (1 - swing)) ** 3, step(part / double) - step((part - 0.5) / double)


def positions(model: kg.Model, t: Array) -> tuple[Array, Array, Array]:
    """Coordinates, the part of the force on the right foot, and the way from the left foot to the right."""
    q = np.zeros((len(t), model.nq))

    def put(name: str, value: Array | float) -> None:
        q[:, model.coordinate_index(name)] = value

    turn = 2 * np.pi * t / STRIDE
    where = np.stack(
        [
            SPEED * t,
            HEIGHT - 0.02 - BOB * np.cos(2 * (turn - np.pi * STANCE)),
            SWAY * np.cos(turn - np.pi * STANCE),
        ],
        axis=-1,
    )
    for name, value in zip(("pelvis_tx", "pelvis_ty", "pelvis_tz"), where.T, strict=True):
        put(name, value)
    feet = []
    for side, out, late in (("r", HIP, 0.0), ("l", -HIP, 0.5)):
        x, height, part = foot(t, late)
        place = np.stack([x, height + ANKLE, np.full_like(x, out)], axis=-1)
        feet.append((place, part))
        d = place - where - [0.0, 0.0, out]
        down = -np.hypot(d[:, 1], d[:, 2])
        adduction = np.arctan2(d[:, 2] / down, d[:, 1] / down)
        bend = np.arccos((d[:, 0] ** 2 + down**2 - THIGH**2 - SHANK**2) / (2 * THIGH * SHANK))
        flexion = np.arctan2(d[:, 0], -down) + np.arctan2(SHANK * np.sin(bend), THIGH + SHANK * np.cos(bend))
        put(f"hip_adduction_{side}", adduction)
        put(f"hip_flexion_{side}", flexion)
        put(f"knee_angle_{side}", -bend)
        put(f"ankle_angle_{side}", bend - flexion)
        put(f"subtalar_angle_{side}", -adduction)
    (right, part), (left, _) = feet
    return q, part, (right - left) * [1.0, 0.0, 1.0]


@dataclass(frozen=True, eq=False)
class SyntheticWalk:
    """A walk, and what it was made of.

    Attributes
    ----------
    model : Model
    motion : RecordedMotion
        q, v, a, and the torques as its tau: without residuals.
    plates : list of ForcePlate
        Of the right foot and of the left, with their links; no force while a foot swings.
    markers : Markers
        Exact, of all frames of the model.
    """

    model: kg.Model
    motion: RecordedMotion
    plates: list[ForcePlate]
    markers: Markers

    def noisy(self, error: float = 0.001, seed: int = 0) -> Markers:
        """The markers with errors, m."""
        x = self.markers.position
        return replace(self.markers, position=x + error * np.random.default_rng(seed).normal(size=x.shape))

    def forces(self, starts: tuple[str, str] = ("ground_force_", "1_ground_force_")) -> StorageTable:
        """The table of the plates as OpenSim's examples have it: v, p, and the torque (`force` → `torque`)."""
        names = [f"{start}{what}{x}" for start in starts for what in "vp" for x in "xyz"]
        names += [f"{start.replace('force', 'torque')}{x}" for start in starts for x in "xyz"]
        columns = [x for plate in self.plates for x in (plate.force, plate.point)]
        columns += [plate.torque for plate in self.plates]
        return StorageTable(self.motion.t, tuple(names), np.hstack(columns), title="forces")

    def write(self, folder: Path, markers: Markers | None = None) -> None:
        """Files m.osim, walk.trc, walk.mot (degrees), grf.mot and grf.xml."""
        (folder / "m.osim").write_text(osim_text(), encoding="utf-8")
        write_trc(folder / "walk.trc", self.markers if markers is None else markers)
        write_storage(folder / "walk.mot", coordinate_table(self.model, self.motion.t, self.motion.q))
        write_storage(folder / "grf.mot", self.forces())
        (folder / "grf.xml").write_text(
            external_loads({"calcn_r": "ground_force_", "calcn_l": "1_ground_force_"}), encoding="utf-8"
        )


def external_loads(starts: dict[str, str], datafile: str = "grf.mot") -> str:
    """An ExternalLoads file: for each body, what its columns begin with."""
    parts = "".join(
        f'<ExternalForce name="{body}"><applied_to_body>{body}</applied_to_body>'
        "<force_expressed_in_body>ground</force_expressed_in_body>"
        "<point_expressed_in_body>ground</point_expressed_in_body>"
        f"<force_identifier>{start}v</force_identifier><point_identifier>{start}p</point_identifier>"
        f"<torque_identifier>{start.replace('force', 'torque')}</torque_identifier></ExternalForce>"
        for body, start in starts.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" ?><OpenSimDocument Version="40000"><ExternalLoads name="loads"><objects>'
        f"{parts}</objects><groups/><datafile>{datafile}</datafile></ExternalLoads></OpenSimDocument>\n"
    )


@lru_cache(maxsize=1)
def model_and_frames() -> tuple[kg.Model, dict[str, str]]:
    """The model, and its frame of each marker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.osim")
        path.write_text(osim_text(), encoding="utf-8")
        file = read(path)
    return file.model, dict(file.markers)


def synthetic_walk(count: int = 121, rate: float = 100.0) -> SyntheticWalk:
    """The walk, by default for one stride, sampled at `rate` Hz."""
    model, frames = model_and_frames()
    t = np.arange(count) / rate
    q, part, apart = positions(model, t)
    motion = motion_from_positions(model, t, q)
    free = kg.inverse_dynamics(model, motion.q, motion.v, motion.a)
    X, J = kg.forward_kinematics(model, motion.q), kg.jacobian(model, motion.q, link="pelvis")
    by_root = np.concatenate([J.linear, J.angular], axis=1)[:, :, :6].transpose(0, 2, 1)
    wrench = np.linalg.solve(by_root, free[:, :6, None])[..., 0]  # force and moment about the pelvis
    force = wrench[:, :3]
    moment = wrench[:, 3:] + np.cross(X.at(model, "pelvis").transform[:, :3, 3], force)
    point = np.stack([moment[:, 2], 0 * t, -moment[:, 0]], axis=-1) / force[:, 1:2]  # p × F has these x and z
    across = moment - np.cross(point, force)  # vertical
    plates = []
    for name, share, away in (("r", part, 1 - part), ("l", 1 - part, -part)):
        loaded = share[:, None] > 1e-9
        plates.append(
            ForcePlate(
                t,
                np.where(loaded, share[:, None] * force, 0.0),
                np.where(loaded, point + away[:, None] * apart, 0.0),
                np.where(loaded, share[:, None] * across, 0.0),
                link=f"calcn_{name}",
                name=f"plate_{name}",
            )
        )
    tau = kg.inverse_dynamics(model, motion.q, motion.v, motion.a, loads=plate_loads(model, motion.q, plates))
    names = tuple(frames)
    x = kg.point_motion(model, motion.q, link=[frames[name] for name in names]).position
    return SyntheticWalk(model, replace(motion, tau=tau), plates, Markers(t, names, x))
