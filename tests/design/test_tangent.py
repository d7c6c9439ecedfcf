"""Slopes of torques and accelerations written out, against the same algorithms compiled for duals.

Hybrid dynamics of no prescribed joint is forward dynamics, of all joints inverse dynamics; its derivatives are duals.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from kinegrad.papers.anderson2002.experiment import chain_design, prepare
from kinegrad.papers.anderson2002.extended import WIDER, extended_derivatives


def tree_design(seed: int, loaded: bool) -> kg.Design:
    """Constants of every kind of a tree with massless links, screws, springs, dampers and armatures."""
    model = samples.random_tree(6, seed=seed)
    model = model.replace(armature=model.armature + 0.3)
    link, last, joints = model.link_names[int(np.argmax(model.mass))], model.link_names[-1], model.joint_names
    names = [f"{link}.{x}" for x in ("mass", "com.x", "inertia.yy", "inertia.xz")]
    names += [f"{joints[-1]}.{x}" for x in ("placement.y", "placement.rx", "stiffness", "rest", "damping", "armature")]
    names += [f"{joints[0]}.placement.rz", f"{joints[1]}.tip.y", f"{joints[2]}.tip.rx", "gravity.x"]
    names += [f"{x}.pitch" for x, joint in zip(joints, model.joints, strict=True) if joint.kind == "screw"]
    if not loaded:
        return kg.Design(model, names)
    loads = kg.Loads(force={last: [3.0, -2.0, 1.0]}, point={last: [0.1, 0.2, -0.3]}, torque={last: [0.5, 0.1, -0.2]})
    names += [f"{last}.load.{x}" for x in ("force.x", "point.y", "torque.z")]
    return kg.Design(model, names, loads=loads)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("loaded", [False, True], ids=["free", "loaded"])
@pytest.mark.parametrize("states", [1, 3, 70])
@pytest.mark.parametrize("seed", range(6))
def test_tangents_are_duals(seed, states, loaded):
    """Along constants and loads alone, and with states and torques that follow; lanes of either kind."""
    design = tree_design(seed, loaded)
    rng = np.random.default_rng(seed)
    q, v, x = rng.normal(size=(3, states, 6))
    slopes = dict(zip(("dq_dp", "dv_dp", "dtau_dp"), rng.normal(size=(3, states, 6, design.p)), strict=True))
    for follow in ({}, slopes, {"dtau_dp": slopes["dtau_dp"]}, {"dv_dp": slopes["dv_dp"]}):
        expected = kg.hybrid_dynamics_design_derivatives(design, q, v, x, x, prescribed=[], **follow).da_dp
        assert_close(kg.forward_dynamics_design_derivatives(design, q, v, x, **follow), expected)
    names = design.model.joint_names
    expected = kg.hybrid_dynamics_design_derivatives(design, q, v, x, x, prescribed=names).dtau_dp
    assert_close(kg.inverse_dynamics_design_derivatives(design, q, v, x), expected)


def test_more_directions_than_share_values():
    """Groups of them do not see each other: each parameter as if alone."""
    chain = samples.spatial_chain(30)
    names = [f"{x}.{what}" for x in chain.link_names for what in ("mass", "com.x", "com.z")]
    q, v, x = np.random.default_rng(0).normal(size=(3, 100, 30))
    together = kg.inverse_dynamics_design_derivatives(kg.Design(chain, names), q, v, x)
    for k in (0, 63, 64, 89):
        alone = kg.inverse_dynamics_design_derivatives(kg.Design(chain, [names[k]]), q, v, x)
        assert alone[..., 0].tobytes() == together[..., k].tobytes()


@pytest.mark.parametrize("states", [1, 70])
@pytest.mark.parametrize("seed", range(3))
def test_links_that_a_direction_does_not_reach(seed, states):
    """They are left out, so that memory of other directions must not be read in their place."""
    design = tree_design(seed, loaded=True)
    q, v, x = np.random.default_rng(seed).normal(size=(3, states, 6))
    for derivatives in (kg.forward_dynamics_design_derivatives, kg.inverse_dynamics_design_derivatives):
        together = derivatives(design, q, v, x)
        for k, name in enumerate(design.names):
            alone = derivatives(kg.Design(design.model, [name], loads=design.loads), q, v, x)
            np.testing.assert_allclose(alone[..., 0], together[..., k], rtol=0, atol=1e-13 * np.abs(together).max())


@pytest.mark.skipif(not WIDER, reason="long doubles are doubles here, so that there is nothing to judge by")
@pytest.mark.parametrize("n", [32, 100, 400])
def test_long_chains_keep_their_digits(n):
    """No less than duals do, against extended precision.  With forces summed over links, 3e-12 at n = 100."""
    case = prepare(chain_design(n))
    expected = extended_derivatives(case.chain, case.q[0], case.v[0], *case.slopes).T
    found = case.library(1)[0]
    assert np.abs(found - expected).max() <= 1e-14 * n * np.abs(expected).max()
