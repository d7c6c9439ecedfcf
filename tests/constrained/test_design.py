"""Derivatives of constrained dynamics and impacts with respect to design parameters, against complex steps of the
oracle, whose model has complex constants."""

from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from tests.constrained.test_dynamics import LAW, loads_of, random_case, relative
from tests.reference import constrained as reference
from tests.reference.oracle import STEP, with_constants

EXACT = 1e-10
ROUNDING = 4e-12  # of what is differentiated: saddle matrices have conditions up to 2e4 here, numbers 2e-16


def design_and_slopes(model, seed):
    """Parameters of masses, centres of mass, springs and placements, and the model's constants moved along them all."""
    rng = np.random.default_rng([seed, 41])
    links = [model.link_names[i] for i in range(model.n) if model.mass[i]]
    names = [f"{rng.choice(links)}.mass", f"{rng.choice(links)}.com.y", f"{rng.choice(model.joint_names)}.stiffness"]
    names += [f"{joint}.placement.x" for joint in rng.choice(model.joint_names, 2, replace=False)]
    design = kg.Design(model, names)
    along = rng.normal(size=design.p)
    along[[0, 2]] = np.abs(along[[0, 2]])  # masses and stiffnesses that models may have
    there = design.at(design.values + along).model  # all of these constants are linear in their parameters
    changed = {}
    for what in ("mass", "com", "stiffness", "placement"):
        here = getattr(model, what)
        changed[what] = here + 1j * STEP * (getattr(there, what) - here)
    return design, along, with_constants(model, **changed)


def near(x, y, of):
    """To 1e-10 of the largest entry; where parameters do not matter, to the rounding of what they might change."""
    return np.abs(x - y).max() <= max(EXACT * np.abs(y).max(), ROUNDING * np.abs(of).max())


def test_random_trees():
    for seed in range(12):
        model, held, q, v, tau = random_case(seed, states=2)
        design, along, moved = design_and_slopes(model, seed)
        loads = loads_of(model, 2, seed) if seed % 2 else None
        given = [] if loads is None else [x[1] for x in (loads.force, loads.point, loads.torque)]
        found = kg.constrained_dynamics_design_derivatives(design, held, q, v, tau, loads=loads, stabilisation=LAW)
        a, f = reference.constrained_dynamics(moved, held, q[1], v[1], tau[1], *given, stabilisation=LAW)
        assert near(found.da_dp[1] @ along, a.imag / STEP, a)
        assert near(found.dforces_dp[1] @ along, f.imag / STEP, f)
        hit = kg.impact_design_derivatives(design, held, q, v, restitution=0.3)
        after, impulses = reference.impact(moved, held, q[1], v[1], 0.3)
        assert near(hit.dv_dp[1] @ along, after.imag / STEP, after)
        assert near(hit.dimpulses_dp[1] @ along, impulses.imag / STEP, impulses)


def test_what_follows_the_parameters_is_added():
    model, held, q, v, tau = random_case(3, states=2)
    design, _, _ = design_and_slopes(model, 3)
    dq, dv, dtau = np.random.default_rng(0).normal(size=(3, model.n, design.p))
    alone = kg.constrained_dynamics_design_derivatives(design, held, q, v, tau)
    total = kg.constrained_dynamics_design_derivatives(design, held, q, v, tau, dq_dp=dq, dv_dp=dv, dtau_dp=dtau)
    by = kg.constrained_dynamics_derivatives(model, held, q, v, tau)
    np.testing.assert_allclose(total.da_dp, alone.da_dp + by.da_dq @ dq + by.da_dv @ dv + by.da_dtau @ dtau)
    change = by.dforces_dq @ dq + by.dforces_dv @ dv + by.dforces_dtau @ dtau
    np.testing.assert_allclose(total.dforces_dp, alone.dforces_dp + change)
    hit, still = (kg.impact_design_derivatives(design, held, q, v, **x) for x in ({"dq_dp": dq, "dv_dp": dv}, {}))
    by = kg.impact_derivatives(model, held, q, v)
    np.testing.assert_allclose(hit.dv_dp, still.dv_dp + by.dv_dq @ dq + by.dv_dv @ dv)
    with pytest.raises(kg.InputError, match="`dq_dp` has shape"):
        kg.constrained_dynamics_design_derivatives(design, held, q, v, tau, dq_dp=dq[:, 0])


def test_least_norm():
    # a loop said twice: the same a, and half of each force
    model, held, q, v, tau = random_case(4, states=2)
    design, _, _ = design_and_slopes(model, 4)
    twice = kg.ConstraintSet(model, [*held, *(replace(one, name=f"{one.name}_again") for one in held)])
    one = kg.constrained_dynamics_design_derivatives(design, held, q, v, tau)
    two = kg.constrained_dynamics_design_derivatives(design, twice, q, v, tau, redundant="least-squares")
    assert relative(two.da_dp, one.da_dp) < EXACT
    assert relative(two.dforces_dp[:, : held.m], one.dforces_dp / 2) < EXACT


def test_rows_that_contradict_each_other():
    # they are met as nearly as can be, which parameters change
    arm = kg.samples.two_link()
    pins = [kg.Contact("forearm", directions="xyz"), kg.Contact("upper_arm", [0.1, 0.2, 0], directions="xy")]
    held, (q, v, tau) = kg.ConstraintSet(arm, pins), np.random.default_rng(42).normal(size=(3, 2))
    design, along, moved = design_and_slopes(arm, 2)
    found = kg.constrained_dynamics_design_derivatives(
        design, held, q, v, tau, stabilisation=LAW, redundant="least-squares"
    )
    a, f = reference.constrained_dynamics(moved, held, q, v, tau, stabilisation=LAW, rank=2)
    assert near(found.da_dp @ along, a.imag / STEP, a)
    assert near(found.dforces_dp @ along, f.imag / STEP, f)
    e = np.linspace(0.0, 1.0, held.m)
    hit = kg.impact_design_derivatives(design, held, q, v, restitution=e, redundant="least-squares")
    after, impulses = reference.impact(moved, held, q, v, e, 2)
    assert near(hit.dv_dp @ along, after.imag / STEP, after)
    assert near(hit.dimpulses_dp @ along, impulses.imag / STEP, impulses)


def test_an_empty_set_is_forward_dynamics():
    model, _, q, v, tau = random_case(1, states=2)
    design, _, _ = design_and_slopes(model, 1)
    none = kg.ConstraintSet(model, [])
    found = kg.constrained_dynamics_design_derivatives(design, none, q, v, tau)
    assert relative(found.da_dp, kg.forward_dynamics_design_derivatives(design, q, v, tau)) < EXACT
    assert found.dforces_dp.shape == (2, 0, design.p)
