"""Solves that go wrong: what a function raises comes out as it is, and a failure says what is violated, and when."""

import importlib.util
import re

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Boundary, Effort, MotionProblem, Phase, Time, UserTerm
from kinegrad.motion.problem.between import fine_grid
from tests.motion.problem import problems

SOLVERS = ["ipopt", "slsqp", *(["uno"] if importlib.util.find_spec("unopy") else [])]
ENDS = [Boundary("start", q=[1.32, -2.37], v=0), Boundary("end", q=[2.8, -2.37], v=0)]


def lifting(*terms, duration=(0.1, 2.0), phases=None):
    phase = Phase(duration=duration, segments=8, loads=kg.Loads(force={"forearm": [0, -10, 0]}))
    return MotionProblem(kg.samples.two_link(), phases or phase, ENDS, [Time(0.99), Effort(0.01), *terms])


@pytest.mark.parametrize("error", [ValueError("own"), TypeError("own"), StopIteration(), SystemExit(3), MemoryError()])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("at", [1, 12])
def test_what_a_term_raises_comes_out_of_the_solve(solver, error, at):
    calls = -10_000

    def term(s, q, **rest):
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        return 1e-3 * (q**2).sum(axis=1), {"q": 2e-3 * q}

    problem = lifting(UserTerm(term))
    assert problem.program.n
    calls = 0
    with pytest.raises(type(error)) as caught:
        problem.solve(solver=solver)
    assert caught.value is error


def test_a_function_that_cannot_be_called_is_refused_at_once():
    with pytest.raises(kg.InputError, match="the function of user term fails"):
        lifting(UserTerm(lambda s, wrong: None))


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_cannot_be_done_in_time_is_named_with_its_time(solver):
    """At rest to rest in 0.2 s takes more than ten times the torque; it is largest where the arm starts and stops."""
    found = lifting(duration=(0.1, 0.2)).solve(solver=solver, max_iterations=200)
    assert not found.success
    places = re.findall(r"torque of (\w+) at t = ([\d.e-]+) s \(s = ([\d.e-]+)\)", found.message)
    assert len(places) == 3
    for _, t, s in places:
        assert float(t) == pytest.approx(float(s) * found.duration, rel=1e-2, abs=1e-3)  # printed with 3 digits


def test_times_of_a_second_phase_count_from_the_start():
    phases = [Phase("one", duration=(0.05, 0.1), segments=4), Phase("two", duration=(0.05, 0.12), segments=4)]
    found = lifting(phases=phases).solve(max_iterations=200)
    assert not found.success
    program, x = found.problem.program, found.x
    rows = [i for i in range(program.m) if program.find_row(i)[1:] == ("two", 0.5)]
    assert rows
    t = found.durations[0] + 0.5 * found.durations[1]
    assert program.row_name_at(rows[0], x).endswith(f" at t = {t:.4g} s (s = 0.5 of phase 'two')")


def test_what_is_exceeded_between_nodes_is_told_with_its_time():
    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    coarse = MotionProblem(kg.samples.two_link(gravity=(0, 0, 0)), Phase(duration=(0.1, 2), segments=5, nodes=1), ends)
    found = coarse.solve(between={"torque": 0.01})
    assert found.status == "between-nodes"
    (worst,) = [one for one in found.between if not one.within]
    assert f"at t = {worst.s * found.duration:.4g} s, s = {worst.s:.3g} of 'motion'" in found.message


def test_slsqp_goes_on_until_the_conditions_of_an_optimum_hold():
    """It stops where the objective changes by less than 1e-12, which says nothing of its slope."""
    found = lifting().solve(solver="slsqp")
    assert found.nonlinear.success, found.message
    assert found.nonlinear.optimality <= 1e-5
    assert found.duration == pytest.approx(lifting().solve().duration, abs=1e-4)
    assert np.isfinite(found.x).all()


def test_kept_grids_do_not_change_while_they_are_evaluated(monkeypatch):
    """Those between nodes are kept with the program, which several threads may solve at once."""
    problem = problems.five_bar()
    grid = fine_grid(problem.program, 0)
    forces, own, seen = grid.forces, grid.parameters, []
    monkeypatch.setattr(grid, "parameters", lambda x: seen.append(grid.forces) or own(x))
    z, nodes = grid.z(problem.guess()), problem.parts.parts[0].nodes
    assert seen
    assert all(each is forces for each in seen)
    between = np.interp(grid.s, nodes, problem.guess()[forces[:, 0]])
    np.testing.assert_array_equal(z[:, grid.layout.force.start], between)
