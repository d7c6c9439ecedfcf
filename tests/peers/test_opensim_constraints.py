"""Constraints of OpenSim's files: the same accelerations, and torques of constraints, as Simbody finds under them.

Two arms of four joints each are closed in a configuration by the constraint in question; its frames are computed from
there, so that configuration and speeds satisfy it in both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kinegrad as kg
from kinegrad.io.opensim import OpenSimFile, read
from tests.io.opensim.files import J, linear, new_layout, old_layout

opensim_model = pytest.importorskip("tests.peers.opensim_model", reason="needs opensim", exc_type=ImportError)

KINDS = ("WeldConstraint", "PointConstraint", "ConstantDistanceConstraint", "PointOnLineConstraint")
NAMES = tuple(f"{arm}{k}" for arm in "ab" for k in range(4))


def joints(q0: np.ndarray) -> list[J]:
    found = []
    for name, value in zip(NAMES, q0, strict=True):
        arm, k = name[0], int(name[1])
        above = "ground" if k == 0 else f"{arm}{k - 1}"
        flags = {f"q_{name}": f"<default_value>{float(value)!r}</default_value>"}
        shift, turn = (
            f"0.1 {-0.2 if arm == 'a' else 0.1} {0.1 * k}",
            f"{0.5 * k} {0.3 * k - 0.2} {0.4 if arm == 'a' else -0.7}",
        )
        axes = {"rotation1": (f"q_{name}", "0.3 1 0.2", linear())}
        found.append(
            J("CustomJoint" if k % 2 else "PinJoint", name, above, (f"q_{name}",), axes, (shift, turn), flags=flags)
        )
    return found


def text(x: np.ndarray) -> str:
    return " ".join(repr(float(c)) for c in x)


def constraint(kind: str, A: np.ndarray, B: np.ndarray, new: bool) -> str:
    """Between points of a3 and b3, closed where the bodies are at A and B."""
    mine = np.array([0.05, -0.3, 0.1])
    there = np.linalg.inv(B) @ A @ np.r_[mine, 1.0]
    turn = Rotation.from_matrix(B[:3, :3].T @ A[:3, :3]).as_euler("XYZ")
    paths = ("/bodyset/a3", "/bodyset/b3")
    names = ("line_body", "follower_body") if kind == "PointOnLineConstraint" else ("body_1", "body_2")
    ends = [f"<socket_{name}>{path}</socket_{name}>" if new else f"<{name}>{path[9:]}</{name}>"
            for name, path in zip(names, paths, strict=True)]  # fmt: skip
    if kind == "WeldConstraint" and new:
        frames = "".join(
            f'<PhysicalOffsetFrame name="{name}"><socket_parent>{path}</socket_parent>'
            f"<translation>{text(at)}</translation><orientation>{text(angles)}</orientation></PhysicalOffsetFrame>"
            for name, path, at, angles in (("one", paths[0], mine, np.zeros(3)), ("two", paths[1], there[:3], turn))
        )
        parts = [f"<socket_frame1>one</socket_frame1><socket_frame2>two</socket_frame2><frames>{frames}</frames>"]
    elif kind == "PointOnLineConstraint":
        along = np.array([0.2, -0.5, 0.4])
        parts = [*ends, f"<line_direction_vec>{text(along)}</line_direction_vec>",
                 f"<point_on_line>{text(mine - 0.7 * along)}</point_on_line>",
                 f"<point_on_follower>{text(there[:3])}</point_on_follower>"]  # fmt: skip
    else:
        far = there[:3] + ([0.2, 0.1, -0.3] if kind == "ConstantDistanceConstraint" else [0.0, 0.0, 0.0])
        parts = [
            *ends,
            f"<location_body_1>{text(mine)}</location_body_1>",
            f"<location_body_2>{text(far)}</location_body_2>",
        ]
        if kind == "WeldConstraint":
            parts.append(
                f"<orientation_body_1>0 0 0</orientation_body_1><orientation_body_2>{text(turn)}</orientation_body_2>"
            )
        if kind == "ConstantDistanceConstraint":
            parts.append(f"<constant_distance>{float(np.sqrt(0.14))!r}</constant_distance>")
    return f'<ConstraintSet><objects><{kind} name="closure">{"".join(parts)}</{kind}></objects></ConstraintSet>'


def closed(path: Path, kind: str, layout: object) -> tuple[OpenSimFile, np.ndarray]:
    q0 = np.random.default_rng(4).uniform(-0.8, 0.8, 8)
    path.write_text(layout(joints(q0)))
    model = read(path).model
    order = [f"q_{name}" for name in NAMES]
    q = q0[[order.index(name) for name in model.coordinate_names]]
    T = kg.forward_kinematics(model, q)
    ends = (T.at(model, name).transform for name in ("a3", "b3"))
    path.write_text(layout(joints(q0), constraint(kind, *ends, new=layout is new_layout)))
    return read(path), q


@pytest.mark.parametrize("layout", [new_layout, old_layout])
@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_under_constraints(tmp_path: Path, kind: str, layout: object) -> None:
    """OpenSim rounds frames of welds in files of version 3 to six digits when it reads them."""
    rounded = kind == "WeldConstraint" and layout is old_layout
    closure, tolerance = (1e-5, 1e-4) if rounded else (1e-12, 1e-9)
    path = tmp_path / "m.osim"
    file, q = closed(path, kind, layout)
    model, constraints = file.model, file.constraints
    assert constraints.m == {"WeldConstraint": 6, "PointConstraint": 3, "PointOnLineConstraint": 2}.get(kind, 1)
    assert not file.report.counts
    assert np.abs(constraints.error(q)).max() < 1e-12
    v = kg.project_velocity(model, constraints, q, np.random.default_rng(5).normal(size=8))
    found = kg.constrained_dynamics(model, constraints, q, v, np.zeros(8))
    twin = opensim_model.OpenSimTwin(path, file, {})
    full, rates, _, G = twin._full(q, v, v)
    twin.state.setQ(opensim_model.vector(full))
    twin.state.setU(opensim_model.vector(rates))
    twin.model.realizeAcceleration(twin.state)
    assert np.abs(twin.state.getQErr().to_numpy()).max() < closure  # it is closed there, too
    assert np.abs(twin.state.getUErr().to_numpy()).max() < closure
    a = G.T @ twin.state.getUDot().to_numpy()
    assert np.abs(found.a - a).max() < tolerance * np.abs(a).max()
    without = kg.forward_dynamics(model, q, v, np.zeros(8))
    assert np.abs(without - a).max() > 1e-2 * np.abs(a).max()
