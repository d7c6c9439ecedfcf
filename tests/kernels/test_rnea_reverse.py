"""The reverse sweep of inverse dynamics runs on duals, too: its slopes are second derivatives of wᵀτ."""

import numba
import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad._kernels import rnea_reverse
from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.joints import frames
from kinegrad._kernels.lanes.dual import Pair, vary
from kinegrad._kernels.mechanism import VARIED, Mechanism, unpack, unpack_slopes
from tests.conftest import random_state, tree

_block, _N = rnea_reverse.block, rnea_reverse.N


@numba.njit
def gradients(m, dm, q, v, a, w, force, point, torque, by_q, by_v, by_a, scratch, start, stop):
    """∂(wᵀτ)/∂(q, v, a) and their slopes: q, v, a, w, results and scratch are Pairs."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, WIDTH):
        own = vary(m, dm, r)
        frames(own, q, r, scratch, _N)
        _block(own, q, v, a, w, force, point, torque, by_q, by_v, by_a, None, r, scratch)


def slopes_of_gradients(model, state, direction, w, loads):
    """Values and slopes of the gradients, (3, n) each, along a direction of q, v and a."""
    n, constants = model.n, engine.mechanism(model)
    fixed = tuple(np.zeros((1, getattr(Mechanism(*constants), name).size)) for name in VARIED)
    pairs = [Pair(x[None], dx[None]) for x, dx in zip(state, direction, strict=True)]
    weights = Pair(w[None], np.zeros((1, n)))
    arrays = loads.arrays(model)
    rows = [arrays[what].reshape(1, -1).copy() for what in ("force", "point", "torque")]
    results = [Pair(np.zeros((1, n)), np.zeros((1, n))) for _ in range(3)]
    slots = (n + 1) * _N
    scratch = Pair(np.zeros((slots, WIDTH)), np.zeros((slots, WIDTH)))
    gradients(constants, fixed, *pairs, weights, *rows, *results, scratch, 0, 1)
    return np.array([x.value[0] for x in results]), np.array([x.slope[0] for x in results])


def gradient(model, q, v, a, w, loads):
    return np.array([*vars(kg.inverse_dynamics_vjp(model, q, v, a, w, loads=loads)).values()])


@pytest.mark.skipif(not JIT, reason="without the JIT duals are complex numbers, and arrays of them are made elsewhere")
@pytest.mark.parametrize("seed", range(4))
def test_slopes_of_the_gradient(seed):
    """Against central differences of vjp, extrapolated: of step h = 1e-3 they err by some h⁴ and by ε/h of the largest
    entry, times what a few turns of a chain make of it."""
    model, rng = tree(seed), np.random.default_rng(seed)
    state, w = random_state(model, seed), rng.normal(size=model.n)
    direction = rng.normal(size=(3, model.n))
    force, point, torque = rng.normal(size=(3, model.n, 3))
    loads = kg.Loads(force=force, point=point, torque=torque)
    value, slope = slopes_of_gradients(model, state, direction, w, loads)
    wanted = gradient(model, *state, w, loads)
    np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())

    def difference(h):
        ahead, behind = (
            gradient(model, *(x + sign * h * dx for x, dx in zip(state, direction, strict=True)), w, loads)
            for sign in (1, -1)
        )
        return (ahead - behind) / (2 * h)

    h = 1e-3
    numerical = (4 * difference(h / 2) - difference(h)) / 3
    np.testing.assert_allclose(slope, numerical, rtol=0, atol=1e-9 * np.abs(slope).max())


def test_second_derivatives_are_symmetric():
    """H δ·ε = H ε·δ for the Hessian H of wᵀτ, to rounding."""
    if not JIT:
        pytest.skip("without the JIT duals are complex numbers")
    model, rng = tree(2), np.random.default_rng(9)
    state, w, one, other = random_state(model, 2), rng.normal(size=model.n), *rng.normal(size=(2, 3, model.n))
    _, first = slopes_of_gradients(model, state, one, w, kg.Loads())
    _, second = slopes_of_gradients(model, state, other, w, kg.Loads())
    size = np.abs(first * other).sum()
    assert abs((first * other).sum() - (second * one).sum()) <= 1e-13 * size
