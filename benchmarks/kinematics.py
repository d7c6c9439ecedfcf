"""Kinematics: poses and motion of all links of the 43-degree-of-freedom human

301 states of q = sin 2πt, one thread.  Pinocchio's `forwardKinematics` is called in a Python loop that copies
the pose of every joint into an array of shape (301, 43, 4, 4), or leaves the poses in Pinocchio's memory,
where the next state overwrites them.  Velocities and accelerations are always left there; kinegrad returns
everything.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.setting import sinusoid, twin
from benchmarks.timing import Case, Row, compare
from kinegrad import forward_kinematics
from kinegrad.samples import human43


def run(repeats: int) -> list[Row]:
    model = human43()
    states = sinusoid(model.n)
    other, data = twin(model)
    poses = list(data.oMi)[1:]  # live: each sees what Pinocchio last computed

    def ours(order: int) -> np.ndarray:
        return forward_kinematics(model, *states[: order + 1], threads=1).transform

    def loop(order: int) -> np.ndarray:
        T = np.empty((*states[0].shape, 4, 4))
        for k, state in enumerate(zip(*states[: order + 1], strict=True)):
            pin.forwardKinematics(other, data, *state)
            T[k] = [pose.homogeneous for pose in poses]
        return T

    def discarding_loop(order: int) -> None:
        for state in zip(*states[: order + 1], strict=True):
            pin.forwardKinematics(other, data, *state)

    def link_frames(T: np.ndarray) -> np.ndarray:
        """Pinocchio's joint frames, moved to the far ends of the links."""
        return T @ model.tip

    def cases(name: str, order: int) -> list[Case]:
        kept, left = "forwardKinematics loop", "forwardKinematics loop, left in place"
        return [
            Case(name, lambda: ours(order), lambda: loop(order), kept, same=link_frames),
            Case(name, lambda: ours(order), lambda: discarding_loop(order), left),
        ]

    with_motion = "poses, velocities, accelerations"
    return compare(cases("poses", 0) + cases(with_motion, 2), repeats)
