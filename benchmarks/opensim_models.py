"""Two walkers for the benchmarks beside OpenSim, written for the run: 16 coordinates, and 68, as large models have."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.io.opensim.files import J, new_layout
from tests.peers.test_opensim_recordings import FLAT, MARKER, ROOT, knee, walker

from kinegrad.io.opensim import OpenSimFile, read

__all__ = ["large_walker", "walker"]


def gimbal(body: str, parent: str, place: str, mass: str) -> J:
    return J("GimbalJoint", body, parent, tuple(f"{body}_{k}" for k in "123"), {}, (place, "0 0 0"), FLAT, mass=mass)


def pin(body: str, parent: str, place: str, mass: str) -> J:
    return J("PinJoint", body, parent, (f"{body}_1",), {}, (place, "0 0 0"), FLAT, mass=mass)


def large_walker(path: Path) -> OpenSimFile:
    """A pelvis, legs with spline knees and toes, a spine of seven gimbals, arms with shoulder girdles: 68 coordinates,
    27 bodies with three markers each."""
    joints = [J("CustomJoint", "pelvis", "ground", tuple(x for x, _, _ in ROOT.values()), ROOT, FLAT, FLAT, mass="9")]
    for side, z in (("r", 0.08), ("l", -0.08)):
        joints += [
            gimbal(f"femur_{side}", "pelvis", f"-0.07 -0.06 {z}", "8"),
            J("CustomJoint", f"tibia_{side}", f"femur_{side}", (f"knee{side}",), knee(f"knee{side}"), FLAT, FLAT, mass="3"),
            gimbal(f"foot_{side}", f"tibia_{side}", "0 -0.43 0", "1"),
            pin(f"toes_{side}", f"foot_{side}", "0.15 0 0", "0.2"),
        ]  # fmt: skip
    below = "pelvis"
    for k in range(7):
        joints.append(gimbal(f"spine{k}", below, "0 0.08 0", "4"))
        below = f"spine{k}"
    for side, z in (("r", 0.15), ("l", -0.15)):
        joints += [
            gimbal(f"clavicle_{side}", "spine4", f"0 0.05 {z}", "0.5"),
            gimbal(f"humerus_{side}", f"clavicle_{side}", f"0 0 {z}", "2"),
            pin(f"ulna_{side}", f"humerus_{side}", "0 -0.3 0", "1"),
            pin(f"radius_{side}", f"ulna_{side}", "0 -0.05 0", "1"),
            gimbal(f"hand_{side}", f"radius_{side}", "0 -0.22 0", "0.4"),
        ]
    joints.append(gimbal("head", below, "0 0.1 0", "4"))
    rng = np.random.default_rng(2)
    places = [(j.body, k, " ".join(f"{x:.3f}" for x in rng.uniform(-0.15, 0.15, 3))) for j in joints for k in range(3)]
    path.write_text(new_layout(joints, markers="".join(MARKER.format(*place) for place in places)), encoding="utf-8")
    return read(path)
