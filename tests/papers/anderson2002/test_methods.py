"""The methods of [anderson2002] agree with each other, with kinegrad and with an oracle; extended precision."""

import re

import numpy as np
import pytest

from kinegrad import (
    Design,
    InputError,
    forward_dynamics,
    forward_dynamics_design_derivatives,
    mass_matrix,
    samples,
)
from kinegrad.model.constants import find_constant
from kinegrad.papers.anderson2002 import extended as anderson2002_extended
from kinegrad.papers.anderson2002.chain import chain_of
from kinegrad.papers.anderson2002.experiment import (
    chain_design,
    prepare,
)
from kinegrad.papers.anderson2002.extended import WIDER, extended_derivatives
from kinegrad.papers.anderson2002.methods import METHODS
from tests.papers.anderson2002.chains import evaluated, random_chain, random_state, relative
from tests.reference import oracle

METHOD = pytest.mark.parametrize("method", METHODS)


def oracle_accelerations(model, q, v):
    """Complex-safe: M a = −c(q, v), by the route of transforms."""
    return np.linalg.solve(
        oracle.mass_matrix(model, q), -oracle.regular_lagrangian(model, q, v, np.zeros(len(model.parents)))
    )


def oracle_total_derivatives(design, q, v, dq, dv):
    """Along each parameter the constants, the coordinates and the speeds are moved together, by a complex step."""
    model, columns = design.model, []
    for j, spec in enumerate(design.parameters.values()):
        fields = {}
        for constant, coefficient in ({spec: 1.0} if isinstance(spec, str) else spec).items():
            for what, slope in find_constant(model, constant).slopes(model).items():
                fields[what] = fields.get(what, getattr(model, what)) + 1j * oracle.STEP * coefficient * slope
        moved = oracle.with_constants(model, **fields)
        a = oracle_accelerations(moved, q + 1j * oracle.STEP * dq[:, j], v + 1j * oracle.STEP * dv[:, j])
        columns.append(a.imag / oracle.STEP)
    return np.stack(columns, axis=1)


@METHOD
@pytest.mark.parametrize("make", [random_chain, chain_design], ids=["random", "spatial_chain"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_derivatives_by_complex_step(method, make, n):
    design = make(n)
    state = random_state(design)
    a, da = evaluated(method, design, *state)
    # rounding of M's factors: its condition is at most 1e5 here, times 2e-16
    assert relative(a, oracle_accelerations(design.model, *state[:2])) < 1e-11
    assert relative(da, oracle_total_derivatives(design, *state)) < 1e-11


@METHOD
@pytest.mark.parametrize("n", range(1, 13))
def test_methods_agree_with_kinegrad(method, n):
    for make, seed in ((chain_design, 1), (random_chain, 2)):
        design = make(n)
        q, v, dq, dv = random_state(design, seed)
        a, da = evaluated(method, design, q, v, dq, dv)
        exact = forward_dynamics_design_derivatives(design, q, v, np.zeros(n), dq_dp=dq, dv_dp=dv)
        tolerance = 1e-11  # with 12 bodies the condition of M is 1e6, times 2e-16
        if method == "conventional":  # M⁻¹ as a matrix is wrong by its condition times 2e-16, whatever it is applied to
            tolerance = max(1e-13, 4 * np.finfo(float).eps * np.linalg.cond(mass_matrix(design.model, q)))
        assert relative(a, forward_dynamics(design.model, q, v, np.zeros(n))) < tolerance
        assert relative(da, exact) < tolerance


@METHOD
def test_methods_do_not_change_what_they_are_given(method):
    design = random_chain(3)
    state = random_state(design)
    copies = [x.copy() for x in state]
    first = evaluated(method, design, *state)
    second = evaluated(method, design, *state)
    np.testing.assert_array_equal(first[1], second[1])
    for x, copy in zip(state, copies, strict=True):
        np.testing.assert_array_equal(x, copy)


def test_a_longer_bar_is_a_model_of_longer_bars():
    """Length and mass of a bar against differences of models built anew: the slopes themselves are right."""
    design, h = chain_design(1), 1e-6
    for j, change in enumerate(({"length": h}, {"mass": h})):
        pairs = [
            samples.spatial_chain(1, **{what: 1 + sign * step for what, step in change.items()}) for sign in (1, -1)
        ]
        chain = chain_of(design)
        radius = 2 * 0.05 * h if "length" in change else 0.0  # the sample's bars get thicker, too; the design's do not
        for what, slope in (("com", chain.dr[j]), ("mass", chain.dm[j])):
            difference = (getattr(pairs[0], what) - getattr(pairs[1], what)) / (2 * h)
            np.testing.assert_allclose(slope, difference, atol=1e-9)
        difference = (pairs[0].inertia - pairs[1].inertia)[0] / (2 * h)
        thicker = radius / h * 0.05 / 2 * np.diag([0.5, 0.5, 1.0])  # d/dL of m R²/4, m R²/4, m R²/2 with R = L/20
        np.testing.assert_allclose(chain.dinertia[j, 0], difference - thicker, atol=1e-9)


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (Design(samples.cart_pendulum(), ["rod.mass"]), "is not a chain of hinges"),
        (Design(samples.human43(), ["right_hand.mass"]), "is not a chain of hinges"),
        (Design(samples.two_link(), ["forearm.mass"]), "`tip` to be the identity"),
        (Design(samples.spatial_chain(2).replace(damping=[1, 0]), ["bar1.mass"]), "springs, dampers or rotors"),
        (Design(samples.spatial_chain(2), ["gravity.z"]), "'gravity.z' is not a length, a mass or an inertia"),
    ],
)
def test_other_models_are_refused(design, message):
    with pytest.raises(InputError, match=re.escape(message)):
        chain_of(design)


def torques(chain, j, q, v, a):
    """Of a motion along parameter j, in the arithmetic of what is given, (n,).

    Newton and Euler in the world frame, summed over bodies: nothing of the recursion is in it.
    """
    n = len(q)
    R, place, w, al = np.eye(3, dtype=q.dtype), *np.zeros((3, 3), q.dtype)
    acceleration = -chain.gravity.astype(q.dtype)
    hinges, axes, loads = [], [], []
    for k in range(n):
        arm = R @ chain.s[j, k]
        place, acceleration = place + arm, acceleration + np.cross(al, arm) + np.cross(w, np.cross(w, arm))
        hinges.append(place)
        E = oracle.skew(chain.e[k]).astype(q.dtype)
        R = R @ chain.C0[k] @ (np.eye(3) + np.sin(q[k]) * E + (1 - np.cos(q[k])) * (E @ E))
        axis, arm = R @ chain.e[k], R @ chain.r[j, k]
        w, al = w + axis * v[k], al + axis * a[k] + np.cross(w, axis) * v[k]
        place, acceleration = place + arm, acceleration + np.cross(al, arm) + np.cross(w, np.cross(w, arm))
        inertia, force = R @ chain.inertia[j, k] @ R.T, chain.m[j, k] * acceleration
        axes.append(axis)
        loads.append((force, inertia @ al + np.cross(w, inertia @ w) + np.cross(place, force)))
    return np.array(
        [axes[k] @ sum(moment - np.cross(hinges[k], force) for force, moment in loads[k:]) for k in range(n)]
    )


@pytest.mark.skipif(not WIDER, reason="longdouble is double here")
@pytest.mark.parametrize(("n", "tolerance"), [(2, 1e-18), (6, 1e-16), (12, 1e-16), (24, 5e-15)])
def test_extended_precision_is_that(n, tolerance):
    """dτ/dp of the motion is zero but for rounding; M⁻¹ times what is left of it is the error.

    In double the best method errs by 2e-16, 2e-15, 1e-14, 5e-13 at these sizes, and ε is 2000 times smaller here.
    """
    case = prepare(chain_design(n), 1)
    moved, q, v = anderson2002_extended._moved(case.chain, case.q[0], case.v[0], *case.slopes)
    a = anderson2002_extended._accelerations(moved, q, v)
    M = mass_matrix(case.design.model, case.q[0])
    for j in range(case.design.p):
        left = torques(moved, j, q[j], v[j], a[j]).imag / anderson2002_extended.STEP
        error = np.abs(np.linalg.solve(M, left.astype(float))).max() / np.abs(a.imag / anderson2002_extended.STEP).max()
        assert error < tolerance


def test_extended_precision_agrees_with_the_oracle():
    design = random_chain(5)
    q, v, dq, dv = random_state(design)
    exact = extended_derivatives(chain_of(design), q, v, dq.T, dv.T)
    # the oracle solves with M in double precision: its condition is at most 1e5 here, times 2e-16
    assert relative(exact.T, oracle_total_derivatives(design, q, v, dq, dv)) < 1e-11
