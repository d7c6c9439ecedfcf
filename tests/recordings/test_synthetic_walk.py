"""The synthetic walk is what it says: feet stand where they are, plates and torques explain the motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import kinegrad as kg
from kinegrad.recordings import assign_links
from tests.recordings.synthetic_walk import ANKLE, STANCE, STRIDE, synthetic_walk


def test_no_residuals_and_feet_that_stand() -> None:
    """The root needs no force, and a standing foot does not move: to rounding of the angles."""
    walk = synthetic_walk()
    model, motion = walk.model, walk.motion
    assert motion.tau is not None
    assert np.abs(motion.tau[:, :6]).max() < 1e-9 * 9.81 * model.total_mass
    standing = motion.t < STANCE * STRIDE - 0.01
    foot = kg.forward_kinematics(model, motion.q).at(model, "calcn_r").transform[standing]
    assert np.abs(foot - foot[0]).max() < 1e-12
    assert abs(foot[0, 1, 3] - ANKLE) < 1e-12
    bearing = motion.t[(walk.plates[0].force != 0).any(axis=1)]
    assert bearing.max() < STANCE * STRIDE + 0.01
    nobody = [replace(plate, link="") for plate in walk.plates]
    assert [plate.link for plate in assign_links(model, motion.t, motion.q, nobody)] == ["calcn_r", "calcn_l"]
    weight = sum(plate.force for plate in walk.plates).mean(axis=0)
    assert np.abs(weight - [0.0, 9.81 * model.total_mass, 0.0]).max() < 0.05 * 9.81 * model.total_mass
