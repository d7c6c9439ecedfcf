"""Gradient, Jacobian and Hessian of programs with every feature, against differences of exact first derivatives."""

import numpy as np
import pytest
from scipy.sparse import csc_array

import kinegrad as kg
from kinegrad.motion import Boundary, Effort, MotionProblem, Phase
from kinegrad.motion.problem.derivative_check import check_derivatives
from tests.motion.problem import problems

# Central differences of values with steps of 1e-6 are good to about 1e-9 of the largest entry, and of gradients too;
# those of a term of the user's, whose curvature is itself a difference, to 1e-7.
CASES = {
    "two phases": (problems.two_phases, 2e-8),
    "user": (problems.arm_with_a_term_of_the_user, 1e-6),
    "design": (problems.arm_and_its_design, 2e-8),
    "five-bar": (problems.five_bar, 2e-8),
    "five-bar with design": (lambda: problems.five_bar(design=True), 2e-8),
    "symmetric": (problems.crouching_pair, 2e-8),
    "belt": (problems.actuated_by_a_belt, 2e-8),
    "cart": (problems.cart_without_a_hinge_motor, 2e-8),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    make, tolerance = CASES[request.param]
    return make(), tolerance


def test_derivatives(case):
    problem, tolerance = case
    check = problem.check_derivatives()
    assert check.gradient < tolerance
    assert check.jacobian < tolerance, check.worst_row
    assert check.hessian < tolerance


def test_patterns_are_sorted_and_lower(case):
    """As the solvers' interface wants them."""
    program = case[0].program
    for (rows, columns), height in ((program.jacobian_pattern, program.m), (program.hessian_pattern, program.n)):
        assert (np.diff(columns * height + rows) > 0).all()
    rows, columns = program.hessian_pattern
    assert (rows >= columns).all()


def test_every_row_has_a_name(case):
    program = case[0].program
    names = [program.row_name(i) for i in range(program.m)]
    assert all(" at s = " in name for name in names)
    assert len([program.variable_name(j) for j in range(program.n)]) == program.n


def test_hessian_is_linear_in_weights(case):
    """σ and λ enter linearly, and without them there is nothing."""
    program = case[0].program
    rng, x = np.random.default_rng(1), case[0].guess(noise=0.01)
    a, b = rng.standard_normal((2, program.m))
    whole = program.hessian(x, 0.5, a + b)
    parts = program.hessian(x, 0.5, a) + program.hessian(x, 0.0, b)
    np.testing.assert_allclose(whole, parts, atol=1e-9 * np.abs(whole).max())
    assert not program.hessian(x, 0.0, 0 * a).any()


def test_gauss_newton_is_the_convex_part():
    """Of an objective of squares of torques, without constraints, it is positive semidefinite; T left out."""
    problem = problems.actuated_by_a_belt().replaced(objective=[problems.Effort(0.1)])
    program, x = problem.program, problem.guess(noise=0.1)
    lower = csc_array((program.gauss_newton(x, 1.0, np.zeros(program.m)), program.hessian_pattern)).toarray()
    H = (lower + np.tril(lower, -1).T)[:-1, :-1]
    assert np.linalg.eigvalsh(H).min() > -1e-9 * np.abs(H).max()


def test_evaluations_are_the_same_bits_twice(case):
    """One-point caches change nothing."""
    program, x = case[0].program, case[0].guess(noise=0.02, seed=3)
    other = case[0].guess(noise=0.02, seed=4)
    before = program.objective(x), program.gradient(x), program.constraints(x), program.jacobian(x)
    program.jacobian(other)
    after = program.objective(x), program.gradient(x), program.constraints(x), program.jacobian(x)
    for one, two in zip(before, after, strict=True):
        assert np.array_equal(one, two)


def test_designs_that_turn_a_placement_twice():
    """Away from the first design: slopes are by the parameters of the problem, though turns do not commute."""
    model = kg.samples.spatial_chain(3)
    joint = model.joint_names[1]
    design = kg.Design(model, [f"{joint}.placement.rx", f"{joint}.placement.ry", f"{joint}.placement.x"])
    problem = MotionProblem(
        model, Phase(duration=1.0, segments=4), [Boundary("start", q=0, v=0), Boundary("end", q=1, v=0)], Effort(),
        design=design, design_bounds=[(-1, 1)] * 3,
    )  # fmt: skip
    x = np.array(problem.guess())
    x[-3:] = [0.7, -0.8, 0.2]
    found = check_derivatives(problem.program, x, 0, move=False)
    assert max(found.gradient, found.hessian) < 1e-8
