"""Published optima are found by every solver, with every kind of derivatives, and are optima by our own word."""

import re

import casadi
import numpy as np
import pytest

from kinegrad import InputError
from kinegrad.motion.nlp import solve
from tests.motion.nlp.programs import INF, PROBLEMS, SOLVERS, Symbolic, hs


@pytest.mark.parametrize("number", PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_published_optimum(number, solver):
    """Objectives within the tolerance times the multipliers, which are up to 1750 in problem 15."""
    program, x0, f, x = hs(number)
    program.f_scale = max(1.0, abs(f))
    found = solve(program, x0, solver=solver)
    assert found.success, found.message
    assert found.f == pytest.approx(f, rel=1e-6, abs=1e-6)
    if x is not None:
        np.testing.assert_allclose(found.x, x, atol=1e-3)
    assert max(found.optimality, found.violation, found.complementarity) <= 1e-5


@pytest.mark.parametrize("gradient", ["exact", "forward", "central"])
@pytest.mark.parametrize("hessian", ["exact", "gauss-newton", "limited-memory"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_kinds_of_derivatives(solver, hessian, gradient):
    program, x0, f, _ = hs(71)
    if solver == "slsqp":
        hessian = "limited-memory"
    found = solve(program, x0, solver=solver, hessian=hessian, gradient=gradient)
    assert found.success, found.message
    assert found.f == pytest.approx(f, abs=1e-5)
    calls = found.evaluations
    assert (calls.gradient == calls.jacobian == 0) == (gradient != "exact")
    assert (calls.hessian == 0) == (hessian == "limited-memory")


@pytest.mark.parametrize("solver", SOLVERS)
def test_multipliers_are_how_the_objective_follows_limits(solver):
    """Checked by solving again with limits and bounds moved a little: f falls by the multiplier of an upper limit."""
    program, x0, *_ = hs(71)
    found = solve(program, x0, solver=solver, tolerance=1e-9)
    step = 1e-4
    for limits, multipliers in (("g", found.g_multipliers), ("x", found.x_multipliers)):
        for k in range(len(multipliers)):
            change = []
            for sign in (-1, 1):
                other, *_ = hs(71)
                lower, upper = getattr(other, f"{limits}_lower"), getattr(other, f"{limits}_upper")
                for edge in (lower, upper) if lower[k] == upper[k] else (lower,):
                    edge[k] += sign * step
                change.append(solve(other, x0, solver=solver, tolerance=1e-9).f)
            slope = (change[1] - change[0]) / (2 * step)
            assert -multipliers[k] == pytest.approx(slope, abs=1e-5), (limits, k)


@pytest.mark.parametrize("solver", SOLVERS)
def test_scales_are_scales(solver):
    """The same program in other units: the same point, and multipliers in units of f per unit of g and x.

    SLSQP ends where its merit function no longer falls by rounding: a step of √ε, and optimality of about 1e-7.
    """
    program, x0, *_ = hs(71)
    tolerance = 1e-7 if solver == "slsqp" else 1e-9
    plain = solve(program, x0, solver=solver, tolerance=tolerance)
    program.x_scale, program.g_scale, program.f_scale = np.array([1.0, 2, 4, 0.5]), np.array([10.0, 5.0]), 7.0
    scaled = solve(program, x0, solver=solver, tolerance=tolerance)
    assert scaled.success
    np.testing.assert_allclose(scaled.x, plain.x, atol=1e-5 if solver == "slsqp" else 1e-6)
    np.testing.assert_allclose(scaled.g_multipliers, plain.g_multipliers, atol=1e-5)
    np.testing.assert_allclose(scaled.x_multipliers, plain.x_multipliers, atol=1e-5)


CASES = {
    "one variable": (lambda: Symbolic(1, lambda x: (x[0] - 3) ** 2), [0.0], [3.0]),
    "one at its bound": (lambda: Symbolic(1, lambda x: (x[0] - 3) ** 2, x=(-1, 2)), [0.0], [2.0]),
    "fixed ones": (lambda: Symbolic(2, lambda x: (x[1] - x[0]) ** 2, x=([2, -INF], [2, INF])), [0.0, 0.0], [2, 2]),
    "all fixed": (lambda: Symbolic(2, lambda x: x[0] ** 2 + x[1], x=([2, 1], [2, 1])), [0.0, 0.0], [2, 1]),
    "as many equations": (
        lambda: Symbolic(2, lambda x: 0, lambda x: [casadi.dot(x, x), x[0] - x[1]], limits=([2, 0], [2, 0])),
        [3.0, 1.0], [1, 1],
    ),
    "a row without limits": (
        lambda: Symbolic(2, lambda x: x[0] ** 2 + (x[1] - 1) ** 2, lambda x: [x[0] * x[1]], limits=(-INF, INF)),
        [1.0, 2.0], [0, 1],
    ),
    "a row without variables": (
        lambda: Symbolic(2, lambda x: x[0] ** 2 + (x[1] - 1) ** 2, lambda x: [casadi.SX(1.0)], limits=(0, 2)),
        [1.0, 2.0], [0, 1],
    ),
    "not defined everywhere": (lambda: Symbolic(1, lambda x: x[0] - casadi.log(x[0])), [40.0], [1.0]),
}  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_small_and_odd(case, solver):
    make, x0, x = CASES[case]
    found = solve(make(), x0, solver=solver)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, x, atol=1e-5)


@pytest.mark.parametrize("solver", ["ipopt", "uno"])
def test_repeated_rows(solver):
    """Consistent but redundant equations: multipliers are not unique, the point is."""
    program = Symbolic(2, casadi.sumsqr, lambda x: [x[0] + x[1], 2 * x[0] + 2 * x[1]], limits=([1, 2], [1, 2]))
    found = solve(program, [5.0, 0.0], solver=solver)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("limits", "rows"),
    [
        (([1, 3], [1, 3]), lambda x: [x[0] + x[1], x[0] + x[1]]),
        (([-INF, -INF], [-1, INF]), lambda x: [x[0] ** 2 + x[1] ** 2, x[0]]),
    ],
)
def test_infeasible_names_its_rows(solver, limits, rows):
    """The sentence says which rows, where in time, and by how much."""
    found = solve(Symbolic(2, casadi.sumsqr, rows, limits=limits), [1.0, 1.0], solver=solver)
    assert not found.success
    assert found.status in ("infeasible", "stalled")
    assert found.violation >= 0.999
    assert "Violated most: row" in found.message
    assert "at t = 0." in found.message


def test_a_motion_that_is_too_fast_names_joint_and_instant():
    """Torques that the arm does not have, and where in time."""
    from kinegrad import samples
    from kinegrad.motion.problem import Boundary, MotionProblem, Phase

    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    found = MotionProblem(samples.two_link(gravity=(0, 0, 0)), Phase(duration=(0.05, 0.3), segments=8), ends).solve()
    assert found.status == "infeasible"
    assert re.search(r"Violated most: torque of shoulder at t = [\d.]+ s \(s = 0.1", found.message)


def test_more_equations_than_variables():
    program = Symbolic(1, lambda x: x[0] ** 2, lambda x: [x[0], x[0] ** 2], limits=([1, 1], [1, 1]))
    found = solve(program, [3.0])
    assert found.status == "failed"
    assert "at most as many equations as free variables; here are 2 and 1" in found.message
    assert solve(program, [3.0], solver="uno").success  # which can


@pytest.mark.parametrize("solver", SOLVERS)
def test_unbounded_is_no_success(solver):
    found = solve(Symbolic(2, lambda x: x[0] + x[1]), [0.0, 0.0], solver=solver)
    assert not found.success
    if solver != "slsqp":  # which gives up for lack of a direction
        assert found.status == "unbounded"


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_saddle_is_no_success(solver):
    """Started on the ridge, every solver here ends on it and calls that optimal."""
    found = solve(Symbolic(2, lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4), [1.0, 0.0], solver=solver)
    assert found.status == "saddle"
    assert found.curvature == pytest.approx(-2, abs=1e-3)
    assert "the curvature along it is -2" in found.message


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_saddle_beside_something_steep_is_no_success(solver):
    """Two programs in one: a curvature of −2 is not small because another one has 2e6."""
    steep = Symbolic(3, lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4 + 1e6 * x[2] ** 2, scale=(1, 1, 1))
    found = solve(steep, [1.0, 0.0, 1.0], solver=solver)
    assert found.status == "saddle"
    assert found.curvature == pytest.approx(-2, abs=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_iteration_limit(solver):
    program, x0, *_ = hs(38)
    found = solve(program, x0, solver=solver, max_iterations=3)
    assert found.status == "iteration-limit"
    assert found.iterations == 3
    assert found.f <= program.objective(np.array(x0))  # the best that was seen


@pytest.mark.parametrize("solver", ["ipopt", "uno"])
def test_warm_start_takes_few_iterations(solver):
    program, x0, *_ = hs(100)
    program.f_scale = 680.0
    cold = solve(program, x0, solver=solver, tolerance=1e-8)
    program.g_upper = program.g_upper + 0  # the same, solved again
    program.g_lower = program.g_lower + np.array([0.1, 0, 0, 0])
    again = solve(program, warm_start=cold, solver=solver, tolerance=1e-8)
    assert again.success
    assert again.iterations <= cold.iterations // 2


def test_history():
    program, x0, f, _ = hs(71)
    seen = []
    found = solve(program, x0, progress=seen.append, keep_iterates=True)
    assert seen == list(found.history)
    assert [each.iteration for each in found.history] == list(range(found.iterations + 1))
    assert found.history[-1].objective == pytest.approx(f, abs=1e-5)
    assert found.history[-1].optimality <= 1e-6
    assert found.history[0].violation > 1
    assert found.iterates.shape == (found.iterations + 1, 4)
    np.testing.assert_allclose(found.iterates[-1], found.x, atol=1e-6)
    assert solve(program, x0).iterates is None


@pytest.mark.parametrize("solver", SOLVERS)
def test_guess_outside_of_bounds_is_moved_onto_them(solver):
    program, *_ = hs(71)
    assert solve(program, [-100.0, 100, 3, 3], solver=solver).success


def test_large_programs_are_not_for_slsqp():
    program = Symbolic(301, casadi.sumsqr)
    with pytest.raises(InputError, match="at most 300 are taken: expected 'ipopt' or 'uno'"):
        solve(program, np.ones(301), solver="slsqp")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"solver": "snopt"}, "`solver` is 'snopt'; expected one of 'ipopt'"),
        ({"hessian": "bfgs"}, "`hessian` is 'bfgs'"),
        ({"gradient": "complex"}, "`gradient` is 'complex'"),
        ({"solver": "slsqp", "hessian": "exact"}, "SLSQP takes no second derivatives"),
        ({"tolerance": 0}, "`tolerance` is 0"),
        ({"tolerance": 2}, "`tolerance` is 2; expected a number between 0 and 1"),
        ({"tolerance": float("nan")}, "`tolerance` is nan"),
        ({"max_iterations": 0}, "`max_iterations` is 0"),
        ({"options": ["tol"]}, "`options` is"),
        ({"options": {"no_such_option": 1}}, "`options` are refused by IPOPT"),
        ({"solver": "uno", "options": {"no_such_option": 1}}, "is refused by Uno"),
        ({"solver": "uno", "options": {"preset": "sqp"}}, "expected one of 'filtersqp'"),
        ({"solver": "slsqp", "options": {"no_such_option": 1}}, "`options` are refused by SLSQP"),
        ({"warm_start": 3}, "`warm_start` is a int; expected a NonlinearSolution"),
        ({"progress": 3}, "`progress` is 3"),
        ({"keep_iterates": 3}, "`keep_iterates` is 3"),
        ({"x0": None}, "`x0` is None"),
        ({"x0": [1.0]}, r"`x0` has shape \(1,\); the program has 4 variables"),
        ({"x0": [1.0, np.nan, 1, 1]}, "`x0` is nan for x1"),
        ({"x0": "guess"}, "`x0` holds"),
    ],
)
def test_wrong_arguments(arguments, text):
    program, x0, *_ = hs(71)
    with pytest.raises(InputError, match=text):
        solve(program, **{"x0": x0} | arguments)


def test_warm_start_of_another_program():
    program, x0, *_ = hs(71)
    other, y0, *_ = hs(43)
    with pytest.raises(InputError, match="`warm_start` has 4 variables and 3 rows; the program has 4 and 2"):
        solve(program, x0, warm_start=solve(other, y0))


class Steep:
    """max x + y with x ≤ 1 and a row 1e5 (x − y) = 0: what moves x by 1e-8 moves the row by 1e-3."""

    n, m, f_scale = 2, 1, 1.0
    x_lower, x_upper, x_scale = np.full(2, -np.inf), np.array([1.0, np.inf]), np.ones(2)
    g_lower = g_upper = np.zeros(1)
    g_scale = np.ones(1)
    jacobian_pattern = np.array([0, 0]), np.array([0, 1])
    hessian_pattern = np.zeros(0, dtype=int), np.zeros(0, dtype=int)

    def objective(self, x):
        return -x[0] - x[1]

    def gradient(self, x):
        return -np.ones(2)

    def constraints(self, x):
        return 1e5 * (x[:1] - x[1:])

    def jacobian(self, x):
        return np.array([1e5, -1e5])

    def hessian(self, x, sigma, multipliers):
        return np.zeros(0)

    def row_name(self, i):
        return "difference"

    def variable_name(self, j):
        return "xy"[j]


@pytest.mark.parametrize("solver", ["ipopt", "uno", "slsqp"])
def test_a_solution_put_back_within_its_bounds_is_one(solver):
    """IPOPT relaxes bounds; put back, x violated steep rows by more than the tolerance that was asked for."""
    found = solve(Steep(), [0.0, 0.0], solver=solver)
    assert found.success, found.message
    assert found.x[0] <= 1
    assert found.violation < 1e-6


def test_solver_and_judgement_are_explained_together():
    """Whoever loosens the solver's tolerance reads both words in one sentence."""
    program, x0, *_ = hs(71)
    found = solve(program, x0, options={"tol": 0.1, "compl_inf_tol": 0.1})
    assert found.status == "stalled"
    assert found.message.startswith("the solver reports an optimum (Solve_Succeeded), but at its point the conditions")
    assert "10 tolerances of 1e-06: optimality" in found.message
