"""A program as solvers see it: scaled, each function evaluated once at each point, nothing lost that goes wrong.

    f̂ = f / s_f,   ∇f̂ = s ∇f / s_f,   ĝᵢ = gᵢ / sᵢ,   Ĵᵢⱼ = Jᵢⱼ sⱼ / sᵢ,   Ĥ(σ, λ̂)ⱼₖ = H(σ / s_f, λ̂ᵢ / sᵢ)ⱼₖ sⱼ sₖ

Interfaces of solvers to Python take an exception in a callback for a failed evaluation, and may then report success;
some turn Ctrl-C into a status.  So nothing passes through them: what a program raises is kept here, every later call
ends at once, and :func:`solve` raises it when the solver has returned.  Three things can happen to a call:

* it gives finite numbers;
* :class:`NotEvaluable`: there is nothing at this point, which a solver is told so that it tries a shorter step;
* :class:`Stopped`: the solve is to end, because of an error, Ctrl-C, or because the caller wants it.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, SingularError, SolveError, said
from kinegrad.motion.nlp.conditions import SLACK, matrix, signs, stationarity, violation_of
from kinegrad.motion.nlp.differences import Differences
from kinegrad.motion.nlp.messages import named
from kinegrad.motion.nlp.program import NonlinearProgram
from kinegrad.motion.nlp.solution import Evaluations, Iterate, NonlinearSolution

__all__ = ["Evaluator", "Interrupts", "NotEvaluable", "Stopped"]

Array = NDArray[np.float64]
POINTS = 2  # that are remembered: the iterate, and the step that is tried


class NotEvaluable(Exception):
    """There are no finite values at a point."""


class Stopped(Exception):
    """The solve is to end."""


class Evaluator:
    """The scaled program, what is known of it at the last points, and how the solve has gone so far.

    Parameters
    ----------
    program : NonlinearProgram
    gradient : str
        "exact", "forward" or "central".
    hessian : str
        "exact", "gauss-newton" or "limited-memory".
    told : callable of Iterate
        Is told of each iteration.
    tolerance : float
    keep : bool
        Whether to keep x of every iteration.
    """

    def __init__(
        self,
        program: NonlinearProgram,
        *,
        gradient: str = "exact",
        hessian: str = "exact",
        told: Callable[[Iterate], None] = lambda iterate: None,
        tolerance: float = 1e-6,
        keep: bool = False,
    ) -> None:
        self.program, self.told, self.tolerance = program, told, tolerance
        self.n, self.m = int(program.n), int(program.m)
        self.x_scale, self.g_scale = (np.array(x, dtype=float) for x in (program.x_scale, program.g_scale))
        self.f_scale = float(program.f_scale)
        self.lower, self.upper = (np.asarray(x, dtype=float) / self.x_scale for x in (program.x_lower, program.x_upper))
        self.g_lower, self.g_upper = (
            np.asarray(g, dtype=float) / self.g_scale for g in (program.g_lower, program.g_upper)
        )
        self._limits = np.concatenate([self.lower, self.g_lower]), np.concatenate([self.upper, self.g_upper])
        self.least, self.most = signs(*self._limits)  # that multipliers of bounds and rows can be
        self.fixed = self.lower == self.upper
        self.jacobian_pattern = _indices(program.jacobian_pattern)
        self.hessian_pattern = _indices(program.hessian_pattern)
        (rows, columns), (low, left) = self.jacobian_pattern, self.hessian_pattern
        self._jacobian_scale = self.x_scale[columns] / self.g_scale[rows]
        self._factors: dict[str, Any] = {
            "objective": 1 / self.f_scale,
            "gradient": self.x_scale / self.f_scale,
            "constraints": 1 / self.g_scale,
            "jacobian": self._jacobian_scale,
        }
        self._hessian_scale = self.x_scale[low] * self.x_scale[left]
        self._second = program.gauss_newton if hessian == "gauss-newton" else program.hessian  # type: ignore[attr-defined]
        self._jacobian: Any = None
        self._differences = None if gradient == "exact" else Differences(self, gradient)
        self._points: dict[bytes, dict[str, Any]] = {}
        self._last_key, self._last_known = b"", dict[str, Any]()
        self._counts = dict.fromkeys(("objective", "gradient", "constraints", "jacobian", "hessian"), 0)
        self.error: BaseException | None = None
        self.interrupted = self.ended = False
        self.trouble, self.failures = "", 0
        self.history: list[Iterate] = []
        self.iterates: list[Array] | None = [] if keep else None
        self.best: tuple[Array, Array, Array] | None = None  # x, λ, z, scaled
        self.last: tuple[Array, Array, Array] | None = None
        self._best_rank = (np.inf, np.inf)
        self.started, self.before = time.perf_counter(), 0.0  # s, of solves that this one continues
        self.earlier, self.iterations_before = Evaluations(), 0

    # --- values -------------------------------------------------------------------------------------------------

    def objective(self, x: Array) -> float:
        """f̂."""
        return float(self._at(x, "objective"))

    def gradient(self, x: Array) -> Any:
        """∇f̂, (n,)."""
        return self._at(x, "gradient")

    def constraints(self, x: Array) -> Any:
        """ĝ, (m,)."""
        return self._at(x, "constraints") if self.m else np.zeros(0)

    def jacobian(self, x: Array) -> Any:
        """Ĵ, the values of its pattern."""
        return self._at(x, "jacobian") if self.m else np.zeros(0)

    def hessian(self, x: Array, sigma: float, multipliers: Array) -> Array:
        """Ĥ, the values of its pattern."""
        arguments = (self.unscaled(x), float(sigma) / self.f_scale, _fixed(multipliers / self.g_scale))
        values = self._call("hessian", self._second, arguments, self._hessian_scale.shape)
        scaled: Array = values * self._hessian_scale
        return scaled

    def fresh_objective(self, x: Array) -> float:
        """f̂ at a point that is not to be remembered."""
        return float(self._fresh(x, "objective"))

    def fresh_constraints(self, x: Array) -> Any:
        """The same of ĝ."""
        return self._fresh(x, "constraints")

    def unscaled(self, x: Array) -> Array:
        """x in its own units, as programs get it."""
        return _fixed(x * self.x_scale)

    def _fresh(self, x: Array, name: str) -> Any:
        factor = self._factors[name]
        return self._call(name, getattr(self.program, name), (self.unscaled(x),), np.shape(factor)) * factor

    def _at(self, x: Array, name: str) -> Any:
        """A function of x alone, evaluated once at each point."""
        self.check()
        key = x.tobytes()
        if key != self._last_key:
            known = self._points.pop(key, None)
            if known is None:
                known = {}
                while len(self._points) >= POINTS:
                    del self._points[next(iter(self._points))]
            self._points[key] = known  # the last to be forgotten
            self._last_key, self._last_known = key, known
        known = self._last_known
        found = known.get(name)
        if found is None:
            try:
                if self._differences is not None and name in ("gradient", "jacobian"):
                    found = getattr(self._differences, name)(x)
                else:
                    found = self._fresh(x, name)
            except NotEvaluable as trouble:
                found = trouble
            known[name] = found
        if isinstance(found, NotEvaluable):
            raise found
        return found

    def _call(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
        """What a function of the program gives, if it is finite and of the right shape."""
        self.check()
        self._counts[name] += 1
        try:
            values = function(*arguments)
            if type(values) is float:
                found, finite = (), math.isfinite(values)
            else:
                values = engine.real(f"program.{name}", values)
                found, flat = values.shape, values.ravel()
                finite = math.isfinite(flat.dot(flat))  # nor if the sum overflows
            if found != shape:
                raise InputError(f"`program.{name}` gives an array of shape {found}; expected {shape}")
        except (SingularError, SolveError) as error:
            raise self._nothing(f"{name} cannot be evaluated: {said(error)}") from None
        except BaseException as error:  # Ctrl-C and a wish to exit, too: no solver may see them
            self.error = error
            raise Stopped from None
        self.check()
        if not finite and not np.isfinite(values).all():
            raise self._nothing(self._where(name, values))
        return values

    def _nothing(self, text: str) -> NotEvaluable:
        self.failures += 1
        self.trouble = text
        return NotEvaluable(text)

    def _where(self, name: str, values: Array) -> str:
        """Which of some values is not finite, in words."""
        if np.ndim(values) == 0:
            return f"the objective is {values}"
        k = int(np.argmin(np.isfinite(values)))
        row, variable = partial(named, self.program, "row"), partial(named, self.program, "variable")
        if name == "constraints":
            what = row(k)
        elif name == "gradient":
            what = f"the slope of the objective by {variable(k)}"
        elif name == "jacobian":
            i, j = (int(x[k]) for x in self.jacobian_pattern)
            what = f"the slope of {row(i)} by {variable(j)}"
        else:
            i, j = (int(x[k]) for x in self.hessian_pattern)
            what = f"the curvature by {variable(i)} and {variable(j)}"
        return f"{what} is {values[k]}"

    @property
    def evaluations(self) -> Evaluations:
        """How often the program was called."""
        return Evaluations(**self._counts) + self.earlier

    def go_on(self, solution: NonlinearSolution) -> None:
        """Count from where another solve has ended."""
        self.before, self.earlier, self.history = solution.seconds, solution.evaluations, list(solution.history)
        self.iterations_before = solution.iterations
        if self.iterates is not None and solution.iterates is not None:
            self.iterates = list(solution.iterates)
        elif self.history:
            self.iterates = None  # those before are not there

    # --- how it goes --------------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Whether the solve is to end."""
        return self.error is not None or self.interrupted or self.ended

    def check(self) -> None:
        """Raise :class:`Stopped` if the solve is to end."""
        if self.error is not None or self.interrupted or self.ended:
            raise Stopped

    def seconds(self) -> float:
        return self.before + time.perf_counter() - self.started

    def record(self, x: Array, g_multipliers: Array | None, x_multipliers: Array | None) -> None:
        """An iteration has ended at x: into the history, to whoever wants to know, and kept if it is the best."""
        f, at = self.objective(x), np.concatenate([x, self.constraints(x)])
        outside = violation_of(*self._limits, at)
        if g_multipliers is None or x_multipliers is None:
            left, given = np.nan, (np.zeros(self.m), np.zeros(self.n))
        else:
            given = (g_multipliers.copy(), x_multipliers.copy())
            left = stationarity(self, self.gradient(x), self.jacobian(x), *given)
        k = self.history[-1].iteration + 1 if self.history else 0
        iterate = Iterate(k, f * self.f_scale, outside, left, self.seconds())
        self.history.append(iterate)
        if self.iterates is not None:
            self.iterates.append(np.array(self.unscaled(x)))
        rank = (outside if outside > SLACK * self.tolerance else 0.0, f)
        self.last = (x.copy(), *given)
        if rank <= self._best_rank or self.best is None:
            self.best, self._best_rank = (x.copy(), *given), rank
        try:
            self.told(iterate)
        except BaseException as error:  # of the caller's function, Ctrl-C among them
            self.error = error
            raise Stopped from None

    def jacobian_matrix(self, values: Array) -> Any:
        """Values of the Jacobian's pattern as a sparse matrix, (m, n), until the next is asked for."""
        if self._jacobian is None:
            self._jacobian = matrix(values, self.jacobian_pattern, (self.m, self.n))
        self._jacobian.data = values
        return self._jacobian


class Signals:
    """What has come in the meantime, where no solve is running that could end."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.interrupted = False


class Interrupts:
    """Signals during a solve: of Ctrl-C the first asks it to end, the second is raised.

    Python calls handlers between any two steps of the main thread, in the code around a solver's callbacks, too, where
    what they raise would be taken for a failed evaluation, or lost.  So what a program's own handlers raise (of
    SIGTERM, of an alarm) is kept as the error that ends the solve, unless :meth:`Evaluator._call` will keep it; a
    second one is raised at once.  Only in the main thread, where Python delivers signals.
    """

    def __init__(self, evaluator: Evaluator | Signals) -> None:
        self.evaluator = evaluator
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:  # not where a handler has chosen another
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        handler, evaluator = self._handlers[number], self.evaluator
        if handler is signal.default_int_handler:
            if evaluator.interrupted:
                raise KeyboardInterrupt
            evaluator.interrupted = True
        elif evaluator.error is not None or _is_guarded(frame):
            handler(number, frame)
        else:
            try:
                handler(number, frame)
            except BaseException as error:
                evaluator.error = error


SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2")
           if hasattr(signal, name)]  # fmt: skip


def _is_guarded(frame: FrameType | None) -> bool:
    """Whether a function of the program is being evaluated, so that what is raised there is kept."""
    own = (Evaluator.check, Evaluator._nothing, Evaluator._where)
    inner = None
    while frame is not None and frame.f_code is not Evaluator._call.__code__:
        inner, frame = frame.f_code, frame.f_back
    return frame is not None and inner is not None and inner not in [function.__code__ for function in own]


def _fixed(x: Array) -> Array:
    x.flags.writeable = False
    return x


def _indices(pattern: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, columns = (np.asarray(x, dtype=np.int64) for x in pattern)
    return rows, columns
