"""Rows of constraints against complex steps of the oracle; identities; sets by name; what is refused."""

import numpy as np
import pytest

from kinegrad.constraints import ConstraintSet
from tests.conftest import random_state, tree
from tests.constraints.sets import random_constraints
from tests.reference import constraints as reference

# A complex step has no truncation error; both sides multiply a dozen transforms of order one, and square speeds.
CLOSE = 1e-12


def assert_near(actual, desired, what):
    """By the largest entry, or by one: a derivative may be zero but for rounding."""
    assert actual.shape == desired.shape, what
    error = np.abs(actual - desired).max(initial=0.0) / max(np.abs(desired).max(initial=0.0), 1.0)
    assert error <= CLOSE, f"{what}: {error:.1e}"


@pytest.mark.parametrize("first", [0, 10, 20])
def test_random_sets_equal_complex_step(first):
    """Every kind of row on random trees: values, Jacobian, all derivatives, curvature."""
    for seed in range(first, first + 10):
        model = tree(seed, largest=7)
        held = ConstraintSet(model, random_constraints(model, seed))
        q, v, a = random_state(model, seed)
        value, (by_q, by_v, by_a) = (
            reference.motion(model, held, q, v, a),
            reference.derivatives(model, held, q, v, a),
        )
        change, second = held.derivatives(q, v, a), reference.jacobian_derivatives(model, held, q)
        f = np.random.default_rng(seed).normal(size=held.m)
        for what, (actual, desired) in {
            "error": (held.error(q), value[0]),
            "velocity": (held.velocity(q, v), value[1]),
            "acceleration": (held.acceleration(q, v, a), value[2]),
            "drift": (held.drift(q, v), -reference.motion(model, held, q, v, 0 * a)[2]),
            "jacobian": (held.jacobian(q), by_q[0]),
            "derror_dq": (change.derror_dq, by_q[0]),
            "dvelocity_dq": (change.dvelocity_dq, by_q[1]),
            "dvelocity_dv": (change.dvelocity_dv, by_v[1]),
            "dacceleration_dq": (change.dacceleration_dq, by_q[2]),
            "dacceleration_dv": (change.dacceleration_dv, by_v[2]),
            "dacceleration_da": (change.dacceleration_da, by_a[2]),
            "jacobian_derivatives": (held.jacobian_derivatives(q), second),
            "curvature": (held.curvature(q, f), np.einsum("m,mij->ij", f, second)),
            "force": (held.force(q, f), f @ by_q[0]),
        }.items():
            assert_near(actual, desired, f"seed {seed}, {what}")
