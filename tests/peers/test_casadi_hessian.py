"""Second derivatives of inverse dynamics against CasADi's exact Hessian of the same mechanism, built of symbols."""

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import random_state, tree

pytest.importorskip("casadi")
from tests.peers.casadi_model import symbolic_hessian


@pytest.mark.parametrize("which", ["puma560", "tree"])
def test_hessian(which):
    """Another formulation (link frames) and another differentiation (source transformation): to rounding of both."""
    model = kg.samples.puma560() if which == "puma560" else tree(4, largest=6)
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
        whole = np.block([[found.d2_dqdq, qv, qa], [qv.T, found.d2_dvdv, zero], [qa.T, zero, zero]])
        np.testing.assert_allclose(whole, second, rtol=0, atol=1e-12 * abs(second).max())
