"""The conditions of an optimum, by our own code: fulfilled at published optima, and at nothing else."""

import casadi
import numpy as np
import pytest

from kinegrad.motion.nlp import conditions as kkt
from kinegrad.motion.nlp.evaluation import Evaluator
from tests.motion.nlp.programs import INF, Symbolic, hs


def at(program, x):
    scaled = Evaluator(program)
    x = np.asarray(x, float) / scaled.x_scale
    return scaled, x, scaled.constraints(x), scaled.gradient(x), scaled.jacobian(x)


# problem 43 [hock1981]: ∇f + Jᵀλ = 0 at (0, 1, 2, −1) with λ = (−1, 0, −2), lower limits that hold
MULTIPLIERS = np.array([-1.0, 0.0, -2.0])


def test_fulfilled_at_an_optimum():
    program, *_, x = hs(43)
    scaled, x, g, gradient, jacobian = at(program, x)
    left = kkt.optimality_conditions(scaled, x, g, gradient, jacobian, MULTIPLIERS, np.zeros(4))
    assert left.worst <= 1e-13


@pytest.mark.parametrize(
    ("which", "change"),
    [
        ("optimality", {"rows": MULTIPLIERS * 1.1}),
        ("violation", {"x": [0.1, 1, 2, -1]}),
        ("complementarity", {"rows": [-1, -3, -2]}),
    ],
)
def test_each_is_noticed(which, change):
    program, *_, x = hs(43)
    scaled, x, g, gradient, jacobian = at(program, change.get("x", x))
    rows = np.array(change.get("rows", MULTIPLIERS), float)
    left = kkt.optimality_conditions(scaled, x, g, gradient, jacobian, rows, np.zeros(4))
    assert getattr(left, which) > 0.1


def test_a_wrong_sign_is_not_complementary():
    """A multiplier that pushes away from the limit that holds belongs to the other one, which is far, or infinite."""
    program = Symbolic(1, lambda x: x[0], x=(0, 10))
    scaled, x, g, gradient, jacobian = at(program, [0.0])
    right = kkt.optimality_conditions(scaled, x, g, gradient, jacobian, np.zeros(0), np.array([-1.0]))
    assert right.worst == 0
    wrong = kkt.optimality_conditions(scaled, x, g, -gradient, jacobian, np.zeros(0), np.array([1.0]))
    assert wrong.complementarity == pytest.approx(10)
    program.x_upper[:] = INF
    scaled, x, g, gradient, jacobian = at(program, [0.0])
    wrong = kkt.optimality_conditions(scaled, x, g, -gradient, jacobian, np.zeros(0), np.array([1.0]))
    assert wrong.optimality == 1  # the multiplier of a limit that is not there counts for nothing


def test_multipliers_can_be_estimated():
    """Least squares over the limits that hold finds those of an optimum; elsewhere something is left."""
    for number, x in ((43, [0, 1, 2, -1]), (71, None)):
        program, x0, _, published = hs(number)
        scaled, x, g, gradient, jacobian = at(program, published if x is None else x)
        rows, bounds = kkt.estimated_multipliers(scaled, x, g, gradient, jacobian, 1e-5)
        left = kkt.optimality_conditions(scaled, x, g, gradient, jacobian, rows, bounds)
        assert left.worst <= 1e-5  # published with eight digits
        if number == 43:
            np.testing.assert_allclose(rows, MULTIPLIERS, atol=1e-10)
        scaled, x, g, gradient, jacobian = at(program, np.clip(x0, 1.1, 4.9))
        rows, bounds = kkt.estimated_multipliers(scaled, x, g, gradient, jacobian, 1e-5)
        assert kkt.optimality_conditions(scaled, x, g, gradient, jacobian, rows, bounds).optimality > 1e-2


def test_scales_do_not_change_what_is_optimal():
    program, *_, x = hs(43)
    program.x_scale, program.g_scale, program.f_scale = np.array([1.0, 10, 0.1, 3]), np.array([2.0, 5, 0.3]), 7.0
    scaled, x, g, gradient, jacobian = at(program, x)
    rows = MULTIPLIERS * program.g_scale / program.f_scale
    assert kkt.optimality_conditions(scaled, x, g, gradient, jacobian, rows, np.zeros(4)).worst <= 1e-12


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (None, -2.0),  # a saddle in the plane
        (lambda x: [x[0]], -2.0),  # the other direction is left
        (lambda x: [x[1]], 4.0),  # a minimum along the x axis
        (lambda x: [x[0], x[1]], np.inf),  # a point
        (lambda x: [x[1], 2 * x[1]], 4.0),  # the same row twice
    ],
)
def test_curvature_along_what_is_left(rows, expected):
    program = Symbolic(2, lambda x: 2 * x[0] ** 2 - x[1] ** 2, rows)
    scaled, x, g, _, jacobian = at(program, [0.0, 0.0])
    hessian = scaled.hessian(x, 1.0, np.zeros(program.m))
    assert kkt.curvature(scaled, x, g, jacobian, hessian, 1e-8) == pytest.approx(expected)


def test_curvature_is_of_the_lagrangian():
    """On a circle the objective y has its least value below: the curvature there is that of the circle."""
    program = Symbolic(2, lambda x: x[1], lambda x: [casadi.dot(x, x)], limits=(1, 1))
    for y, multiplier, expected in ((-1.0, 0.5, 1.0), (1.0, -0.5, -1.0)):
        scaled, x, g, _, jacobian = at(program, [0.0, y])
        hessian = scaled.hessian(x, 1.0, np.array([multiplier]))
        assert kkt.curvature(scaled, x, g, jacobian, hessian, 1e-8) == pytest.approx(expected)
