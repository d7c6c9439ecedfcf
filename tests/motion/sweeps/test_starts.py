"""Multi-starts: guesses that depend on their number alone, and optima that are told apart."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kinegrad import InputError, samples
from kinegrad.motion.problem import Boundary, Limits, MotionProblem, Phase
from kinegrad.motion.sweeps import Start, multi_start
from kinegrad.motion.sweeps.starts import Guesses, distinct_optima
from tests.motion.sweeps.problems import Wells, reach

ROOTS = sorted(np.roots([4, 0, -4, 0.1]))  # of the slope: a minimum, the ridge between them, a minimum


def test_distinct_optima_and_how_often():
    """Both minima of two wells, and which guesses led to them: those on their side of the ridge, mostly."""
    found = multi_start(Wells(), 30, x0=[0.5, 0.5], spread=1.5, seed=4, tolerance=1e-8)
    assert len(found.optima) == 2
    assert [best.x[0] for best in found.optima] == pytest.approx([ROOTS[0], ROOTS[2]], abs=1e-6)
    assert found.optima[0].objective < found.optima[1].objective
    assert sum(best.count for best in found.optima) == 30
    assert sorted(k for best in found.optima for k in best.starts) == list(range(30))
    assert not found.failures
    assert "2 distinct optima from 30 guesses" in repr(found)
    assert str(found).count("\n") == 3


def test_the_same_wherever_it_runs(tmp_path):
    one = multi_start(Wells(), 12, x0=[0.5, 0.5], spread=1.0, seed=4)
    with ThreadPoolExecutor(3) as executor:
        assert multi_start(Wells(), 12, x0=[0.5, 0.5], spread=1.0, seed=4, executor=executor) == one
    record = tmp_path / "a.jsonl"
    multi_start(Wells(), 5, x0=[0.5, 0.5], spread=1.0, seed=4, record=record)
    assert multi_start(Wells(), 12, x0=[0.5, 0.5], spread=1.0, seed=4, record=record) == one  # goes on
    assert multi_start(Wells(), 12, x0=[0.5, 0.5], spread=1.0, seed=5) != one
    with pytest.raises(InputError, match="its 'seed' is 4; expected 5"):
        multi_start(Wells(), 12, x0=[0.5, 0.5], spread=1.0, seed=5, record=record)


def test_guesses_depend_on_seed_and_number_alone():
    problem, guesses = reach(), Guesses(7, 0.2, 2.0)
    np.testing.assert_array_equal(guesses.number(problem, 0), problem.guess())
    np.testing.assert_array_equal(guesses.number(problem, 3), guesses.number(reach(), 3))
    assert (guesses.number(problem, 3) != guesses.number(problem, 4)).any()
    program = problem.program
    T = np.array([program.durations(guesses.number(problem, i))[0] for i in range(40)])
    first = T[0]
    assert T.min() < 0.7 * first
    assert T.max() > 1.4 * first
    assert (first / 2 - 1e-12 <= T).all()
    assert (min(2 * first, 2.0) + 1e-12 >= T).all()
    x = np.array([guesses.number(problem, i) for i in range(40)])
    assert (x >= program.x_lower).all()
    assert (x <= program.x_upper).all()


def test_motions():
    """All guesses of a small reach lead to one optimum; its x solves to the same motion."""
    problem = reach()
    found = multi_start(problem, 5, spread=0.2, seed=1)
    assert [best.count for best in found.optima] == [5]
    again = problem.solve(found.optima[0].x)
    assert again.duration == pytest.approx(found.optima[0].duration, abs=1e-5)


def test_own_draws():
    corners = multi_start(Wells(), 6, x0=[0.0, 0.0], draw=lambda random: random.choice([-1.0, 1.0], 2))
    assert len(corners.optima) == 2


def test_errors_are_results():
    def bad(random):
        return [np.nan, 0.0]

    found = multi_start(Wells(), 3, x0=[0.5, 0.5], draw=bad)
    assert [start.status for start in found.starts] == ["optimal", "error", "error"]
    assert "`x0` is nan for x" in found.starts[1].message
    assert len(found.failures) == 2


def start(number, objective, x, success=True):
    return Start(number, "optimal", "", success, objective, 0.0, 0.0, 1.0, 1, 0.0, np.array(x, float))


def test_why_guesses_failed_is_said():
    """How many with which status, and the first error."""
    found = multi_start(Wells(), 3, x0=[0.5, 0.5], draw=lambda random: 1 / 0)
    assert "2 of 3 guesses failed (error: 2; division by zero)" in str(found)


def test_arguments_that_solve_does_not_have_are_refused():
    """At once, not by every task."""
    with pytest.raises(InputError, match="`noise` is no argument of solve; expected some of solver"):
        multi_start(Wells(), 3, x0=[0.5, 0.5], noise=1.0)


def test_what_is_the_same():
    """Near in objective and in every variable, by their scales; a failure is no optimum."""
    starts = [
        start(0, 1.0, [0, 0]),
        start(1, 1.00005, [0.005, 0]),
        start(2, 1.00005, [0.5, 0]),
        start(3, 1.1, [0, 0]),
        start(4, 0.1, [9, 9], success=False),
        start(5, 1.0, [0, 0.9]),
    ]
    found = distinct_optima(starts, np.array([1.0, 100.0]), 1.0, 1e-4, 1e-2)
    assert [best.starts for best in found] == [(0, 1, 5), (2,), (3,)]
    assert distinct_optima([], np.ones(2), 1.0, 1e-4, 1e-2) == ()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"count": 0}, "`count` is 0"),
        ({"seed": -1}, "`seed` is -1"),
        ({"spread": 0}, "`spread` is 0"),
        ({"stretch": 0.5}, "`stretch` is 0.5"),
        ({"retries": -1}, "`retries` is -1"),
        ({"same_x": np.nan}, "`same_x` is nan"),
        ({"x0": None}, "`x0` is None, and `problem` is a NonlinearProgram"),
        ({"x0": [1.0]}, r"`x0` has shape \(1,\)"),
        ({"draw": 3}, "`draw` is 3"),
        ({"progress": 3}, "`progress` is 3"),
        ({"checkpoint": "a.npz"}, "expected `record`"),
        ({"problem": 3}, "`program` is an int without `n`"),
    ],
)
def test_wrong_arguments(arguments, text):
    given = {"problem": Wells(), "count": 2, "x0": [0.5, 0.5]} | arguments
    with pytest.raises(InputError, match=text):
        multi_start(**given)


def limited(tau=100.0, *, duration=(0.1, 2.0)):
    """The arm with limits of its torques, on a coarse spline."""
    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    phase = Phase(duration=duration, segments=4)
    return MotionProblem(samples.two_link(gravity=(0, 0, 0)), phase, [*ends, Limits(tau=tau)])


def drawn(power):
    return lambda random: limited().guess(noise=0.1**power, seed=int(random.integers(9)))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"problem": limited(5.0)}, r"its 'problem.requirements\[2\].tau' is '100'; expected '5'"),
        ({"problem": limited(duration=(0.9, 2.0))}, r"its 'problem.phases\[0\].duration' is '\[0.1, 2\]'; expected"),
        ({"draw": drawn(2)}, "its 'draw' is 'function .*'; expected 'function "),
        ({"draw": None}, "its 'draw' is 'function .*'; expected 'None'"),
        ({"x0": limited().guess() + 0.01}, "its 'x0' is 'None'; expected 'ndarray "),
        ({"guess": {"durations": 0.5}}, "it has 'guess', 'dict .*'; expected none|it has no 'guess.durations'"),
        ({"tolerance": 1e-4}, "its 'options.tolerance' is '1e-06'; expected '0.0001'"),
        ({"solver": "slsqp", "hessian": None}, "its 'options.solver' is 'ipopt'|\"'ipopt'\""),
        ({"max_iterations": 7}, "its 'options.max_iterations' is '1000'; expected '7'"),
        ({"options": {"mu_init": 0.2}}, "options.options"),
    ],
)
def test_records_of_other_problems_guesses_and_options_are_refused(tmp_path, other, text):
    """Their results would be taken for those of this call; the file stays as it is."""
    record = tmp_path / "a.jsonl"
    given = {"problem": limited(), "count": 2, "draw": drawn(1), "record": record}
    first = multi_start(**given)
    assert multi_start(**given, tolerance=1e-6, progress=lambda *_: None) == first  # what is the same by default
    content = record.read_bytes()
    with pytest.raises(InputError, match=text):
        multi_start(**given | other)
    assert record.read_bytes() == content
