"""Each function is evaluated once at each point, and nothing that goes wrong in one is lost in a solver."""

import os
import signal
import threading

import numpy as np
import pytest

from kinegrad import InputError, SingularError, SolveError
from kinegrad.motion.nlp import judgement, solve
from tests.kernels.child import child, stopping
from tests.limits import LIMIT
from tests.motion.nlp.programs import SOLVERS, Symbolic, hs

FUNCTIONS = ("objective", "gradient", "constraints", "jacobian", "hessian")


class Mishap(Exception):
    pass


def spoilt(function, at, spoil):
    """`function`, and what `spoil` makes of its value from call `at` on."""
    calls = 0

    def call(*arguments):
        nonlocal calls
        calls += 1
        value = function(*arguments)
        return spoil(value) if calls >= at else value

    return call


def fail(value):
    raise Mishap


@pytest.mark.parametrize("solver", SOLVERS)
def test_once_at_each_point(solver):
    """No function is called twice with one x during a solve, whatever a solver's interface asks for.

    After it, the point that is returned is judged by another evaluation, which is not counted.
    """
    program, x0, *_ = hs(71)
    found = solve(program, x0, solver=solver)
    counted = found.evaluations
    for name in ("objective", "gradient", "constraints", "jacobian"):
        points = [x for what, x in program.calls if what == name]
        own = points[: getattr(counted, name)]
        assert len(set(own)) == len(own), name
        assert len(points) - len(own) <= 1


def test_ipopt_asks_no_more_than_it_needs():
    """One of each derivative for an iterate; values also for steps that are tried; Hessians where steps begin."""
    program, x0, *_ = hs(43)
    found = solve(program, x0)
    counted, k = found.evaluations, found.iterations
    assert (counted.gradient, counted.jacobian, counted.hessian) == (k + 1, k + 1, k)
    assert counted.objective == counted.constraints == k + 1  # no step of this one is refused


@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_exceptions_are_raised(solver, name, at):
    """CasADi and Uno take them for failed evaluations; and no function is called after one."""
    program, x0, *_ = hs(71)
    setattr(program, name, spoilt(getattr(program, name), at, fail))
    if solver == "slsqp" and name == "hessian" and at > 1:
        return  # only asked for once, when the point is judged
    with pytest.raises(Mishap):
        solve(program, x0, solver=solver)
    assert program.calls[-1][0] == name


@pytest.mark.parametrize("solver", SOLVERS)
def test_exceptions_of_progress_are_raised(solver):
    program, x0, *_ = hs(71)
    with pytest.raises(Mishap):
        solve(program, x0, solver=solver, progress=lambda iterate: fail(0) if iterate.iteration == 2 else None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("solver", SOLVERS)
def test_so_are_wishes_to_end(solver, kind):
    program, x0, *_ = hs(71)

    def leave(value):
        raise kind

    program.objective = spoilt(program.objective, 3, leave)
    with pytest.raises(kind):
        solve(program, x0, solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_interrupt_returns_the_best_point(solver):
    """Ctrl-C during an evaluation; the handler that was there is there again."""
    program, x0, *_ = hs(71)
    sent = []

    def interrupt(value):
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))
        return value

    program.objective = spoilt(program.objective, 4, interrupt)
    found = solve(program, x0, solver=solver)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert (found.status, found.success) == ("interrupted", False)
    assert found.history
    best = min((max(each.violation, 1e-5), each.objective) for each in found.history)
    assert max(found.violation, 1e-5) == pytest.approx(best[0])
    resumed = solve(program, warm_start=found, solver=solver)
    assert resumed.success


def test_an_interrupt_while_the_result_is_judged_loses_nothing(monkeypatch):
    program, x0, *_ = hs(71)
    judge, sent = judgement._judge, []

    def interrupt(*arguments):
        sent.append(os.kill(os.getpid(), signal.SIGINT))
        return judge(*arguments)

    monkeypatch.setattr(judgement, "_judge", interrupt)
    found = solve(program, x0)
    assert sent == [None]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert found.status == "interrupted"
    assert "when the solver had ended" in found.message
    assert max(found.optimality, found.violation) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_second_interrupt_is_raised(solver):
    program, x0, *_ = hs(71)

    def interrupt(value):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return value

    program.objective = spoilt(program.objective, 4, interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(program, x0, solver=solver)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("at", [1, 4, 9])
def test_what_handlers_raise_beside_an_evaluation_is_not_lost(at, monkeypatch):
    """The handler runs in code of ours between Uno and a function, of which Uno takes exceptions for failed steps."""
    uno = pytest.importorskip("kinegrad.motion.nlp.uno")
    pytest.importorskip("unopy")
    program, x0, *_ = hs(71)
    calls, usual = [], uno._Handler.put_back

    def handler(number, frame):
        raise SystemExit(143)

    def put_back(self):
        calls.append(None)
        if len(calls) == at:
            signal.raise_signal(signal.SIGTERM)
        usual(self)

    monkeypatch.setattr(uno._Handler, "put_back", put_back)
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit):
            solve(program, x0, solver="uno")
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_that_ends_an_endless_evaluation():
    """An alarm as a time limit: it is raised in the function itself."""
    program, x0, *_ = hs(71)

    def handler(number, frame):
        raise Mishap

    def endless(x):
        signal.raise_signal(signal.SIGTERM)
        while True:
            pass

    program.objective = endless
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(Mishap):
            solve(program, x0)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_handler_of_the_program_is_left_alone(solver):
    """What it raises is raised."""
    program, x0, *_ = hs(71)

    def handler(number, frame):
        raise Mishap

    program.objective = spoilt(program.objective, 3, lambda value: os.kill(os.getpid(), signal.SIGINT) or value)
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(Mishap):
            solve(program, x0, solver=solver)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("nothing", [np.nan, np.inf, SingularError("singular"), SolveError("no answer")], ids=str)
@pytest.mark.parametrize("name", ["objective", "constraints"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_that_cannot_be_evaluated(solver, name, nothing):
    """The solver is told, takes a shorter step, and finds the optimum."""
    program, x0, f, _ = hs(71)
    calls = 0
    own = getattr(program, name)

    def sometimes(x):
        nonlocal calls
        calls += 1
        if calls == 3:
            if isinstance(nothing, Exception):
                raise nothing
            return own(x) * nothing
        return own(x)

    setattr(program, name, sometimes)
    found = solve(program, x0, solver=solver)
    assert found.success, found.message
    assert found.f == pytest.approx(f, abs=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_what_is_never_finite_is_no_success(solver, name):
    """Nothing is finite but near the guess: the solve ends within, and says what was not finite, and where."""
    program, x0, *_ = hs(71)
    own = getattr(program, name)
    setattr(program, name, lambda x, *rest: own(x, *rest) * (1 if np.abs(x - x0).max() < 0.3 else np.nan))
    if solver in ("uno", "slsqp") and name == "hessian":
        return  # SLSQP does without, and so does Uno, if it must
    found = solve(program, x0, solver=solver, max_iterations=50)
    assert not found.success
    assert "failed, the last because" in found.message
    assert "nan" in found.message
    assert np.abs(found.x - x0).max() < 0.3 or name == "hessian"


@pytest.mark.parametrize(
    ("name", "text"), [("objective", "the objective is nan"), ("constraints", "row 1 at t = 0.1 s is nan")]
)
def test_a_guess_without_values_is_refused(name, text):
    program, x0, *_ = hs(71)
    setattr(program, name, lambda x: np.nan if name == "objective" else np.array([1.0, np.nan]))
    with pytest.raises(InputError, match=f"`x0` is where the program has no finite values: {text}"):
        solve(program, x0)


def test_names_that_fail_cost_no_solution():
    program = Symbolic(2, lambda x: x[0], lambda x: [x[0] + x[1], x[0] + x[1]], limits=([1, 3], [1, 3]))
    program.row_name = lambda i: fail(0)
    found = solve(program, [0.0, 0.0])
    assert "Violated most: row " in found.message


def test_points_cannot_be_written_to():
    program, x0, *_ = hs(71)

    def careless(x):
        x[0] = 7
        return 0.0

    program.objective = careless
    with pytest.raises(ValueError, match="read-only"):
        solve(program, x0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads(solver):
    """Several solves at once give what one alone gives, and leave Ctrl-C as it was."""
    numbers = (35, 43, 71, 71)
    alone = [solve(*hs(k)[:2], solver=solver) for k in numbers]
    found = [None] * len(numbers)
    programs = [hs(k)[:2] for k in numbers]  # CasADi's expressions, of the test programs, are for one thread at a time

    def work(i):
        found[i] = solve(*programs[i], solver=solver)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(numbers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, found, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
    with pytest.raises(KeyboardInterrupt):  # whoever handles it at the operating system is Python
        _interrupt()


def _interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(LIMIT)


def test_overflow_is_no_warning():
    """Trial points may be anywhere."""
    program = Symbolic(1, lambda x: x[0] ** 2)
    program.objective = lambda x: float(np.exp(np.float64(1e4) * x[0] ** 2)) if abs(x[0]) < 3 else 0.0
    with pytest.raises(InputError, match="the objective is inf"):
        solve(program, [1.0])


INSIDE = """
import sys
import numpy as np
from kinegrad.motion.nlp import solve
from kinegrad.motion.nlp.evaluation import Evaluator

class Dense:  # whose time goes into the solver's factorisations
    n, m, f_scale = 150, 0, 1.0
    x_lower, x_upper, x_scale = np.full(n, -10.0), np.full(n, 10.0), np.ones(n)
    g_lower = g_upper = g_scale = np.zeros(0)
    jacobian_pattern = np.zeros(0, int), np.zeros(0, int)
    columns, rows = np.triu_indices(n)
    hessian_pattern = rows, columns
    random = np.random.default_rng(0).normal(size=(n, n))
    square = random @ random.T / n + 0.01 * np.eye(n)
    def objective(self, x): return 0.5 * x @ self.square @ x + np.cos(x).sum()
    def gradient(self, x): return self.square @ x - np.sin(x)
    def constraints(self, x): return np.zeros(0)
    def jacobian(self, x): return np.zeros(0)
    def hessian(self, x, sigma, multipliers):
        return sigma * (self.square - np.diag(np.cos(x)))[self.hessian_pattern]
    def row_name(self, i): return ""
    def variable_name(self, j): return ""

def told(iterate):
    if iterate.iteration == int(sys.argv[2]):
        print("now", flush=True)

while True:
    try:
        found = solve(Dense(), np.linspace(-3, 3, 150), solver=sys.argv[1], progress=told)
    except KeyboardInterrupt:  # between two solves
        continue
    if found.status == "interrupted":
        break
print(found.status, len(found.history) > 0, np.isfinite(found.x).all(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [0, 3])
@pytest.mark.parametrize("solver", ["ipopt", "uno"])
def test_an_interrupt_within_the_solver(solver, iteration):
    """A signal from outside, at some moment after an iteration: mostly the process is then in the solver's own code."""
    process = child(INSIDE, solver, iteration)
    with stopping(process):
        while (line := process.stdout.readline()) == "now\n":
            process.send_signal(signal.SIGINT)
        assert line == "interrupted True True\n", process.stderr.read()
