"""Rounding errors beside Pinocchio's, which works in the frame of each joint; both against extended precision."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import random_state
from tests.reference import oracle
from tests.test_rounding import WIDE, scaled, wide

pin = pytest.importorskip("pinocchio")
from tests.peers.pinocchio_model import pinocchio_model
from tests.peers.test_pinocchio import peer_tree

MODELS = [
    samples.human43(),
    samples.puma560(),
    samples.spatial_chain(20),
    *(peer_tree(seed).replace(armature=np.zeros(peer_tree(seed).n)) for seed in range(40)),
]


def errors(model, seed):
    """The largest error of M with ones on its diagonal, ours and Pinocchio's."""
    q = random_state(model, seed)[0]
    expected = scaled(oracle.mass_matrix(wide(model), q.astype(WIDE)))
    twin = pinocchio_model(model)
    data = twin.createData()
    upper = np.triu(pin.crba(twin, data, q))
    theirs = upper + np.triu(upper, 1).T
    return [float(np.abs(scaled(M) - expected).max()) for M in (kg.mass_matrix(model, q), theirs)]


@pytest.mark.skipif(np.finfo(WIDE).eps >= np.finfo(float).eps, reason="NumPy has no type wider than float64 here")
def test_mass_matrices_are_as_exact_as_pinocchios():
    """Within a factor of two in the median.  About one point common to all links it was nine.

    Single models may differ more: an inertia about an oblique axis is a sum of nine terms in the axes of the world,
    and one entry in those of the joint.  Twenty roundings are allowed for.
    """
    ours, theirs = np.array([errors(model, seed) for model in MODELS for seed in range(3)]).T
    floor = np.finfo(float).eps / 2
    assert np.median(np.maximum(ours, floor) / np.maximum(theirs, floor)) <= 2
    assert (ours <= np.maximum(10 * theirs, 20 * np.finfo(float).eps)).all()
