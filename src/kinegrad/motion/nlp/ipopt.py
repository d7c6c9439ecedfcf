"""The IPOPT that CasADi's wheel carries, fed by our functions.

CasADi differentiates expressions; here there are none.  ``nlpsol`` is given f, g, their first derivatives and the
Hessian of the Lagrangian as five functions (``grad_f``, ``jac_g``, ``hess_lag``), and is told to build nothing of its
own from them (``no_nlp_grad``, ``calc_lam_p``).  They exchange raw memory with it (``eval_buffer``), so that no number
passes through a Python list.  What CasADi and IPOPT make of sizes, patterns and options is kept for the next solve of
the same program: of a small one it is a tenth of the work.

[waechter2006]
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said
from kinegrad.motion.nlp.conditions import SLACK, optimality_conditions
from kinegrad.motion.nlp.evaluation import Evaluator, NotEvaluable, Stopped

__all__ = ["OPTIONS", "Ending", "run_ipopt"]

Array = NDArray[np.float64]
OPTIONS = "options of IPOPT by their names, such as {'mu_strategy': 'adaptive'}"
STATUS = {
    "Solve_Succeeded": "optimal",
    "Solved_To_Acceptable_Level": "optimal",
    "Feasible_Point_Found": "optimal",
    "Infeasible_Problem_Detected": "infeasible",
    "Search_Direction_Becomes_Too_Small": "stalled",
    "Restoration_Failed": "stalled",
    "Error_In_Step_Computation": "stalled",
    "Diverging_Iterates": "unbounded",
    "Maximum_Iterations_Exceeded": "iteration-limit",
    "Invalid_Number_Detected": "not-finite",
}


@dataclass(frozen=True)
class Ending:
    """Where a solver ended, in scaled numbers, and its own word for how."""

    x: Array
    g_multipliers: Array | None
    x_multipliers: Array | None
    status: str
    word: str
    iterations: int


def run_ipopt(
    scaled: Evaluator,
    x0: Array,
    *,
    hessian: str,
    tolerance: float,
    max_iterations: int,
    warm: tuple[Array, Array] | None,
    options: dict[str, Any],
) -> Ending:
    """Solve the scaled program from x0."""
    import casadi

    given = settings(scaled, hessian, tolerance, max_iterations)
    if warm is not None:
        given |= warm_settings(scaled, x0, *warm, tolerance)
    exact = hessian != "limited-memory"
    made = _kept(scaled, given | options, exact=exact) or _Made(casadi, scaled, given | options, exact=exact)
    found = _run(made, scaled, x0, warm)
    if not scaled.stopping:
        _keep(scaled, made)

    def again(x: Array, multipliers: tuple[Array, Array], changes: dict[str, Any]) -> Ending:
        return _run(_Made(casadi, scaled, given | changes | options, exact=exact), scaled, x, multipliers)

    return unrelaxed(scaled, found, tolerance, options, again)


def _run(made: _Made, scaled: Evaluator, x0: Array, warm: tuple[Array, Array] | None) -> Ending:
    made.functions.scaled = scaled
    try:
        return _end(made.solver, scaled, x0, warm)
    finally:
        del made.functions.scaled  # which would keep the program alive


def unrelaxed(
    scaled: Evaluator, found: Ending, tolerance: float, options: dict[str, Any], again: Callable[..., Ending]
) -> Ending:
    """The ending, solved on with bounds as they are where it shows that they were relaxed.

    IPOPT moves all bounds away by 1e-8, so that there is an inside, and puts x back at the end.  A control point that
    is put back moves accelerations by more than the tolerance where segments are short, and a large multiplier makes
    as much of the distance from its limit.  From there a step or two suffice.
    """
    left = _left(scaled, found)
    if found.status != "optimal" or "bound_relax_factor" in options or not left > SLACK * tolerance:
        return found
    assert found.g_multipliers is not None
    assert found.x_multipliers is not None
    x, multipliers = np.clip(found.x, scaled.lower, scaled.upper), (found.g_multipliers, found.x_multipliers)
    changes = {"bound_relax_factor": 0.0, **warm_settings(scaled, x, *multipliers, tolerance)}
    more = again(x, multipliers, changes)
    if more.status == "optimal" and _left(scaled, more) < left:
        return replace(more, iterations=found.iterations + more.iterations)
    return found


def _left(scaled: Evaluator, ending: Ending) -> float:
    """What is left of the conditions of an optimum where it is put back within its bounds; NaN if nothing is there."""
    if ending.g_multipliers is None or ending.x_multipliers is None or scaled.stopping:
        return np.nan
    x = np.clip(ending.x, scaled.lower, scaled.upper)
    try:
        values = scaled.constraints(x), scaled.gradient(x), scaled.jacobian(x)
    except NotEvaluable:
        return np.nan
    return optimality_conditions(scaled, x, *values, ending.g_multipliers, ending.x_multipliers).worst


def _end(solver: Any, scaled: Evaluator, x0: Array, warm: tuple[Array, Array] | None) -> Ending:
    """Run a solver."""
    limits = {"lbx": scaled.lower, "ubx": scaled.upper, "lbg": scaled.g_lower, "ubg": scaled.g_upper}
    if warm is not None:
        limits |= {"lam_g0": warm[0], "lam_x0": warm[1]}
    try:
        end = solver(x0=x0, **limits)
    except KeyboardInterrupt:  # CasADi has seen Ctrl-C before Python has
        scaled.interrupted = True
        raise Stopped from None
    except Exception as error:
        if scaled.stopping:
            raise Stopped from None
        return Ending(x0, None, None, "failed", said(error), len(scaled.history))
    word = solver.stats()["return_status"]
    x, lam_g, lam_x = (np.array(end[name]).ravel() for name in ("x", "lam_g", "lam_x"))
    return Ending(x, lam_g, lam_x, STATUS.get(word, "failed"), word, int(solver.stats()["iter_count"]))


def settings(scaled: Evaluator, hessian: str, tolerance: float, max_iterations: int) -> dict[str, Any]:
    """What is not IPOPT's default, for any interface to it.

    The program is scaled already; a point is acceptable that is optimal, and no other; bounds are relaxed by less than
    the tolerance, and x is put back within them.  MUMPS neither scales nor permutes again, and orders by approximate
    minimum degree: measured, the same iterates in two thirds of the time on chains and whole bodies.  Steps are refined
    where their residuals are large, and not in any case.  Multipliers of rows start from zero: those that fit a guess
    best in the sense of least squares say nothing of the optimum (decision 160).
    """
    relax = min(1e-8, tolerance / 10)
    found: dict[str, Any] = {
        "print_level": 0, "sb": "yes", "tol": tolerance, "max_iter": max_iterations,
        "nlp_scaling_method": "none", "acceptable_tol": tolerance, "constr_viol_tol": max(tolerance, 1e-4),
        "bound_relax_factor": relax, "honor_original_bounds": "yes",
    }  # fmt: skip
    found |= {"mumps_scaling": 0, "mumps_permuting_scaling": 0, "mumps_pivot_order": 0}
    found |= {"min_refinement_steps": 0, "constr_mult_init_max": 0.0}
    if hessian == "limited-memory":
        found["hessian_approximation"] = "limited-memory"
    return found


def warm_settings(
    scaled: Evaluator, x0: Array, g_multipliers: Array, x_multipliers: Array, tolerance: float
) -> dict[str, Any]:
    """Settings with which IPOPT stays where it starts: the barrier as large as the products at the start are."""
    products = [0.0]
    for value, low, high, z in (
        (x0, scaled.lower, scaled.upper, x_multipliers),
        (scaled.constraints(x0), scaled.g_lower, scaled.g_upper, g_multipliers),
    ):
        free = low < high
        room = np.where(z > 0, high - value, value - low)
        products.append(
            float(np.abs(z[free] * room[free], where=z[free] != 0, out=np.zeros(int(free.sum()))).max(initial=0))
        )
    barrier = float(np.clip(max(products), tolerance / 10, 0.1))
    push = {f"warm_start_{name}": 1e-9 for name in (
        "bound_push", "bound_frac", "slack_bound_push", "slack_bound_frac", "mult_bound_push",
    )}  # fmt: skip
    return {"warm_start_init_point": "yes", "mu_init": barrier, **push}


class _Made:
    """A solver of CasADi, with what it was made of."""

    def __init__(self, casadi: Any, scaled: Evaluator, options: dict[str, Any], *, exact: bool) -> None:
        self.functions, self.options, self.exact = _Functions(casadi, scaled, exact=exact), options, exact
        self.patterns = (*scaled.jacobian_pattern, *scaled.hessian_pattern)
        given: dict[str, Any] = {f"ipopt.{name}": value for name, value in options.items()}
        given |= self.functions.options
        given |= {"print_time": False, "no_nlp_grad": True, "calc_lam_p": False, "error_on_fail": False}
        given |= {"show_eval_warnings": False, "iteration_callback": self.functions.iteration}
        given |= {"calc_f": False, "calc_g": False}
        try:
            self.solver = casadi.nlpsol("solver", "ipopt", self.functions.expressions, given)
        except Exception as error:  # CasADi raises RuntimeError and NotImplementedError for options that IPOPT lacks
            raise InputError(f"`options` are refused by IPOPT: {said(error)}; expected {OPTIONS}") from None

    def fits(self, scaled: Evaluator, options: dict[str, Any], *, exact: bool) -> bool:
        """Whether it solves this program in this way."""
        patterns = (*scaled.jacobian_pattern, *scaled.hessian_pattern)
        return (
            self.exact == exact
            and self.options == options
            and (self.functions.n, self.functions.m) == (scaled.n, scaled.m)
            and all(np.array_equal(a, b) for a, b in zip(self.patterns, patterns, strict=True))
        )


_KEPT: WeakKeyDictionary[Any, _Made] = WeakKeyDictionary()  # one of each program, while nobody uses it


def _kept(scaled: Evaluator, options: dict[str, Any], *, exact: bool) -> _Made | None:
    """The solver of the last solve, if it fits; other threads make their own."""
    try:
        made = _KEPT.pop(scaled.program, None)
    except TypeError:  # a program that has no hash, or cannot be referred to weakly
        return None
    return made if made is not None and made.fits(scaled, options, exact=exact) else None


def _keep(scaled: Evaluator, made: _Made) -> None:
    with suppress(TypeError):
        _KEPT[scaled.program] = made


class _Functions:
    """The five functions and the callback, as CasADi wants them, of whatever program of these patterns is solved."""

    scaled: Evaluator

    def __init__(self, casadi: Any, scaled: Evaluator, *, exact: bool) -> None:
        self.n, self.m = n, m = scaled.n, scaled.m
        x, g = casadi.Sparsity.dense(n, 1), casadi.Sparsity.dense(m, 1)
        one, none = casadi.Sparsity.dense(1, 1), casadi.Sparsity(0, 0)
        jacobian = _sparsity(casadi, m, n, *scaled.jacobian_pattern)
        make = _callback_class(casadi)
        objective = make("nlp_f", [("x", x)], [("f", one)], self._guarded(lambda at: [self.scaled.objective(at[0])]))
        gradient = make(
            "nlp_grad_f", [("x", x), ("p", none)], [("f", one), ("grad_f_x", x)],
            self._guarded(lambda at: [lambda: self.scaled.objective(at[0]), lambda: self.scaled.gradient(at[0])]),
        )  # fmt: skip
        symbol = casadi.MX.sym("x", n)
        self.expressions = {"x": symbol, "f": objective(symbol)}
        self.options: dict[str, Any] = {"grad_f": gradient}
        self.kept = [objective, gradient]  # CasADi does not keep them alive
        if m:
            constraints = make(
                "nlp_g", [("x", x)], [("g", g)], self._guarded(lambda at: [self.scaled.constraints(at[0])])
            )
            slopes = make(
                "nlp_jac_g", [("x", x), ("p", none)], [("g", g), ("jac_g_x", jacobian)],
                self._guarded(lambda at: [lambda: self.scaled.constraints(at[0]), lambda: self.scaled.jacobian(at[0])]),
            )  # fmt: skip
            self.expressions["g"] = constraints(symbol)
            self.options["jac_g"] = slopes
            self.kept += [constraints, slopes]
        if exact:
            rows, columns = scaled.hessian_pattern
            order = np.lexsort((columns, rows))  # CasADi wants the upper triangle by columns: the lower one by rows
            upper = _sparsity(casadi, n, n, columns[order], rows[order])

            def second(at: list[Any]) -> list[Any]:
                multipliers = at[3] if m else np.zeros(0)
                return [self.scaled.hessian(at[0], float(at[2][0]), multipliers)[order]]

            inputs = [("x", x), ("p", none), ("lam_f", one), ("lam_g", g)]
            hessian = make("nlp_hess_l", inputs, [("triu_hess_gamma_x_x", upper)], self._guarded(second))
            self.options["hess_lag"] = hessian
            self.kept.append(hessian)
        shapes = {"x": x, "f": one, "g": g, "lam_x": x, "lam_g": g}
        names = [casadi.nlpsol_out(i) for i in range(casadi.nlpsol_n_out())]
        self.iteration = make(
            "iteration", [(name, shapes.get(name, none)) for name in names], [("stop", one)], self._iterated(names)
        )

    def _guarded(self, function: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any], list[Any]], int]:
        """A function that fills memory and tells, by a number, whether it could."""

        def fill(given: list[Any], wanted: list[Any]) -> int:
            try:
                found = function(given)
                for values, room in zip(found, wanted, strict=True):
                    if room is not None:
                        room[:] = values() if callable(values) else values
            except (NotEvaluable, Stopped):
                return 1
            except BaseException as error:  # a defect of ours, which is not to be lost either
                self.scaled.error = error
                return 1
            return 0

        return fill

    def _iterated(self, names: list[str]) -> Callable[[list[Any], list[Any]], int]:
        def fill(given: list[Any], wanted: list[Any]) -> int:
            at = dict(zip(names, given, strict=True))
            empty = np.zeros(0)
            try:
                rows = at["lam_g"] if at["lam_g"] is not None else empty
                self.scaled.record(at["x"].copy(), rows, at["lam_x"])
            except (NotEvaluable, Stopped):
                pass
            except BaseException as error:
                self.scaled.error = error
            if wanted[0] is not None:
                wanted[0][:] = float(self.scaled.stopping)
            return 0

        return fill


def _sparsity(casadi: Any, rows: int, columns: int, r: Any, c: Any) -> Any:
    """A pattern that is ordered by columns."""
    starts = np.searchsorted(c, np.arange(columns + 1))
    return casadi.Sparsity(rows, columns, starts.tolist(), r.tolist())


_CLASSES: dict[int, Any] = {}


def _callback_class(casadi: Any) -> Any:
    """A function of CasADi that exchanges memory; made once CasADi is imported, which takes a while."""
    if id(casadi) in _CLASSES:
        return _CLASSES[id(casadi)]

    class Exchange(casadi.Callback):  # type: ignore[misc]
        def __init__(self, name: str, inputs: list[Any], outputs: list[Any], fill: Callable[..., int]) -> None:
            casadi.Callback.__init__(self)
            self.inputs, self.outputs, self.fill = inputs, outputs, fill
            self.construct(name, {})

        def get_n_in(self) -> int:
            return len(self.inputs)

        def get_n_out(self) -> int:
            return len(self.outputs)

        def get_name_in(self, i: int) -> str:
            return str(self.inputs[i][0])

        def get_name_out(self, i: int) -> str:
            return str(self.outputs[i][0])

        def get_sparsity_in(self, i: int) -> Any:
            return self.inputs[i][1]

        def get_sparsity_out(self, i: int) -> Any:
            return self.outputs[i][1]

        def has_jacobian(self) -> bool:
            return False

        def has_eval_buffer(self) -> bool:
            return True

        def eval_buffer(self, given: Any, wanted: Any) -> int:
            numbers = [[None if x is None else np.frombuffer(x) for x in side] for side in (given, wanted)]
            return self.fill(*numbers)

    _CLASSES[id(casadi)] = Exchange
    return Exchange
