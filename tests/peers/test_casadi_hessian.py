"""Second derivatives of inverse dynamics against CasADi's exact Hessian of the same mechanism, built of symbols."""

from types import SimpleNamespace

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import random_state, tree

ca = pytest.importorskip("casadi")
from tests.peers.casadi_model import matrix, moved, symbolic_hessian, symbolic_torques

MODELS = {
    "puma560": kg.samples.puma560,
    "human43": kg.samples.human43,
    "tree": lambda: tree(4, largest=6),
    "chain": lambda: kg.samples.spatial_chain(12),
}


@pytest.mark.parametrize("which", MODELS)
def test_hessian(which):
    """Another formulation (link frames) and another differentiation (source transformation): to rounding of both, block
    by block; blocks that are zero are exactly so in both."""
    model = MODELS[which]()
    n, function = model.n, symbolic_hessian(model)
    for seed in range(3):
        q, v, a = random_state(model, seed)
        w = np.random.default_rng(seed).normal(size=n)
        tau, second = (np.array(x) for x in function(np.concatenate([q, v, a]), w))
        np.testing.assert_allclose(
            tau.ravel(), kg.inverse_dynamics(model, q, v, a), rtol=0, atol=1e-12 * abs(tau).max()
        )
        found = kg.inverse_dynamics_hessian(model, q, v, a, w)
        qv, qa, zero = found.d2_dqdv, found.d2_dqda, np.zeros((n, n))
        whole = [[found.d2_dqdq, qv, qa], [qv.T, found.d2_dvdv, zero], [qa.T, zero, zero]]
        for i in range(3):
            for j in range(3):
                block = second[i * n : (i + 1) * n, j * n : (j + 1) * n]
                np.testing.assert_allclose(whole[i][j], block, rtol=0, atol=1e-12 * abs(block).max())


def symbolic_design(model, p):
    """The model with parameters of its second link and joint as symbols: two turns of one placement among them."""
    turned = ca.mtimes([moved([1, 0, 0], p[3], 0.0), moved([0, 1, 0], p[4], 0.0)])
    fields = {name: list(getattr(model, name)) for name in ("mass", "com", "inertia", "placement", "tip", "armature")}
    fields["mass"][1] = p[0]
    fields["com"][1] = ca.vertcat(model.com[1, 0], p[1], model.com[1, 2])
    unit = np.zeros((3, 3))
    unit[0, 0] = 1.0
    fields["inertia"][1] = ca.SX(model.inertia[1]) + (p[2] - model.inertia[1, 0, 0]) * unit
    place = ca.mtimes(matrix(model.placement[1]), turned)
    place[0, 3] = p[5]
    fields["placement"][1] = place
    fields["tip"][1] = ca.mtimes(matrix(model.tip[1]), moved([0, 0, 1], p[6], 0.0))
    fields["gravity"] = ca.vertcat(model.gravity[0], model.gravity[1], p[7])
    fields["armature"][2] = p[8]
    kept = {name: getattr(model, name) for name in ("n", "joints", "parents", "stiffness", "rest", "damping")}
    return SimpleNamespace(**kept, **fields)


def test_by_design_parameters():
    """All blocks that parameters take part in, by CasADi: masses, inertias, lengths, and turns that do not commute."""
    model = tree(6, largest=4)
    model = model.replace(inertia=model.inertia + 0.5 * (model.mass > 0)[:, None, None] * np.eye(3))
    n, link, joint = model.n, model.link_names[1], model.joint_names[1]
    names = [
        f"{link}.mass", f"{link}.com.y", f"{link}.inertia.xx", f"{joint}.placement.rx", f"{joint}.placement.ry",
        f"{joint}.placement.x", f"{joint}.tip.rz", "gravity.z", f"{model.joint_names[2]}.armature",
    ]  # fmt: skip
    base = kg.Design(model, names)
    values = base.values + 0.2 * np.cos(np.arange(len(names)))
    x, w, p = ca.SX.sym("x", 3 * n), ca.SX.sym("w", n), ca.SX.sym("p", len(names))
    tau = symbolic_torques(symbolic_design(model, p), *(x[k * n : (k + 1) * n] for k in range(3)))
    second, gradient = ca.hessian(ca.dot(w, tau), ca.vertcat(x, p))
    function = ca.Function("second", [x, w, p], [gradient, second])
    design = base.at(values)
    for seed in range(3):
        q, v, a = random_state(model, seed)
        weights = np.random.default_rng(seed).normal(size=n)
        expected, whole = (np.array(found) for found in function(np.concatenate([q, v, a]), weights, values))
        size = np.abs(whole[:, 3 * n :]).max()
        slopes = kg.inverse_dynamics_design_vjp(design, q, v, a, weights)
        np.testing.assert_allclose(slopes, expected[3 * n :, 0], rtol=0, atol=1e-12 * np.abs(expected).max())
        found = kg.inverse_dynamics_design_hessian(design, q, v, a, weights)
        blocks = np.concatenate([found.d2_dqdp, found.d2_dvdp, found.d2_dadp, found.d2_dpdp])
        np.testing.assert_allclose(blocks, whole[:, 3 * n :], rtol=0, atol=1e-13 * size)
