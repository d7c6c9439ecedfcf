"""What functions of constrained motion share: arguments, kernels kept with a set of constraints, the system in dense
matrices, and errors that name rows."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.constraints import ConstraintSet
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model

Array = NDArray[np.float64]
R = TypeVar("R")
REDUNDANT = ("error", "least-squares")
NAMED = 1e-6  # parts of other rows that are worth a name
CONTRADICTS = 1e-9  # part of its terms by which a row may be off without contradicting others
quietly = np.errstate(all="ignore")  # what overflows is found in the end
Compute = Callable[[tuple[Any, ...], Loads | None], tuple[Array, ...]]
Stabilisation = float | tuple[float, float] | None


# --- arguments --------------------------------------------------------------------------------------------------


def stabilisation_law(given: Any) -> tuple[float, float]:
    """α and β of φ̈ + 2α φ̇ + β² φ = 0."""
    if given is None:
        return 0.0, 0.0
    x = engine.real("stabilisation", given)
    if x.shape not in ((), (2,)) or not np.isfinite(x).all() or (x < 0).any():
        raise InputError(f"`stabilisation` is {shown(given)}; expected a rate ω or two rates (α, β), 1/s, not negative")
    alpha, beta = (float(x), float(x)) if x.ndim == 0 else (float(x[0]), float(x[1]))
    return alpha, beta


def restitution_rows(constraints: ConstraintSet, given: Any) -> Array:
    """e of each row, (m,)."""
    if type(given) is float and 0.0 <= given <= 1.0:
        return np.full(constraints.m, given)
    x, m = engine.real("restitution", given), constraints.m
    if x.shape not in ((), (m,)) or not ((x >= 0) & (x <= 1)).all():
        raise InputError(f"`restitution` is {shown(given)}; expected a number from 0 to 1, or {m} of them")
    return np.broadcast_to(x, (m,)).astype(np.float64)


# --- kernels, kept with a set -----------------------------------------------------------------------------------


def kept_model(constraints: ConstraintSet, *, moving: bool = True) -> Model:
    """The model of a set, whose calls of the set's kernels are kept with the set and not with the model; if not
    `moving`, with nothing but its inertia."""
    kept = constraints.__dict__.setdefault("_kept", {})
    if moving not in kept:
        model = copy.copy(constraints.model if moving else engine.inertial(constraints.model))
        model.__dict__.pop("without_elements", None)  # of which calls are kept, too
        model.__dict__.update(_singles={}, _cores={})
        kept[moving] = model
    found: Model = kept[moving]
    return found


def saddle_tables(constraints: ConstraintSet) -> engine.SaddleTables:
    """The structure of a set, made once."""
    kept = constraints.__dict__
    if "_saddle" not in kept:
        kept["_saddle"] = engine.SaddleTables(constraints.model.without_elements, tuple(constraints._tables))
    found: engine.SaddleTables = kept["_saddle"]
    return found


def kernel_of(
    constraints: ConstraintSet, what: str, law: tuple[float, float] | None, make: Callable[..., engine.Kernel]
) -> engine.Kernel:
    """A kernel of a set, made once; of laws of stabilisation other than none the last one is kept."""
    kept = constraints.__dict__.setdefault("_kernels", {})
    key = what, "stabilised" if law is not None and any(law) else ""
    if key not in kept or kept[key][0] != law:
        kept[key] = law, make(saddle_tables(constraints), law)
    found: engine.Kernel = kept[key][1]
    return found


def inelastic(kernel: engine.Kernel, m: int) -> engine.Kernel:
    """A kernel of impacts with m rows whose option, the restitution, is always zero."""
    tables, none = kernel.needs, np.zeros(m)

    def arguments(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
        given, slots = tables(model, loaded, stream)
        return (none, *given), slots

    return dataclasses.replace(kernel, tables=arguments)


# --- compiled, or dense where digits would be lost ---------------------------------------------------------------


def state_by_state(
    constraints: ConstraintSet, state: dict[str, Any], loads: Loads | None, compiled: Compute, dense: Compute
) -> tuple[Array, ...]:  # fmt: skip
    """Results where a compiled kernel has stopped because rows nearly depend on each other in some state.

    The kernel factors G M⁻¹ Gᵀ, and stops at a state in which little of its diagonal remains: see
    ``_kernels/saddle.py``.  Results of such states are those of dense matrices.  Each state is judged by itself, so
    that it has the same bits in any batch.

    Parameters
    ----------
    state : dict
        Arguments of shape (..., nq) or (..., nv) by name, `q` first.
    compiled, dense : callable
        Results from such arguments and loads.
    """
    model, named = constraints.model, named_loads(constraints.model, loads)
    given, shape = engine.check_arguments(model, state, named)
    flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in given.values()]
    parts = {
        name.removeprefix("loads."): np.broadcast_to(x, (*shape, *x.shape[-2:])).reshape(-1, *x.shape[-2:])
        for name, x in (named or {}).items()
    }

    def some(states: Any) -> tuple[tuple[Array, ...], Loads | None]:
        return tuple(x[states] for x in flat), Loads(
            **{name: x[states] for name, x in parts.items()}
        ) if parts else None

    G = np.broadcast_to(constraints.jacobian(given["q"]), (*shape, constraints.m, model.nv))
    M = mass_matrix(model, given["q"])
    naming_rows(constraints, given["q"], lambda: saddle.check_independent(saddle.in_masses(M, G)))
    found: list[tuple[Array, ...] | None] = []
    for k in range(len(flat[0])):
        found.append(None)
        with contextlib.suppress(engine.DependentRow):
            found[k] = compiled(*some(k))
    weak = [k for k, x in enumerate(found) if x is None]
    columns = dense(*some(weak))
    whole = [np.empty((len(found), *x.shape[1:])) for x in columns]
    for k, x in enumerate(found):
        for out, column in zip(whole, columns if x is None else x, strict=True):
            out[k] = column[weak.index(k)] if x is None else column
    return tuple(x.reshape(*shape, *x.shape[1:]) for x in whole)


# --- dense ------------------------------------------------------------------------------------------------------


def solve_dense(
    constraints: ConstraintSet, q: Any, method: str, M: Array, G: Array, r: Array, s: Array, *, least: bool,
    free: NDArray[np.int64] | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The system of dense matrices for right-hand sides (..., n, k) and (..., m, k), or an error that names rows.

    If some speeds are prescribed, `free` are the numbers of the others, (f,); M, G and r are then of these alone.
    """
    shape = np.broadcast_shapes(M.shape[:-2], G.shape[:-2], r.shape[:-2], s.shape[:-2])
    M, G, r, s = (np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (M, G, r, s))
    if free is not None:  # in one order of memory, so that a state gives the same bits in any batch
        M, G, r, s = map(np.ascontiguousarray, (M, G, r, s))
    engine.check_sums(M, G, r, s)

    def solve() -> tuple[Array, Array]:
        stuck = engine.factor_pivot(M, M.diagonal(axis1=-2, axis2=-1)) if method == "range-space" and M.size else None
        if stuck is None and not least:
            saddle.check_independent(saddle.in_masses(M, G) if method == "range-space" else G)
        if stuck is None and method != "range-space":
            stuck = saddle.unresisted(M, G)
        if stuck is not None:
            what = "coordinate" if engine.mapped(constraints.model) else "joint"
            which = stuck[0] if free is None else int(free[stuck[0]])
            raise engine.free_joint(constraints.model, which, stuck[1], shape, what)
        return saddle.solve(method, M, G, r, s, least=least)

    found = naming_rows(constraints, q, solve, free)
    engine.check_sums(*found)
    return found


def unmet(constraints: ConstraintSet, q: Any, v: Any, a: Array, law: tuple[float, float], threads: int | None) -> Array:
    """φ̈ + 2α φ̇ + β² φ, (..., m): zero at the accelerations found, unless rows contradict each other."""
    left = constraints.acceleration(q, v, a, threads=threads)
    size = _size(constraints, q, a, threads) + np.abs(constraints.drift(q, v, threads=threads))
    if any(law):
        rate, error = constraints.velocity(q, v, threads=threads), constraints.error(q, threads=threads)
        left = left + 2 * law[0] * rate + law[1] ** 2 * error
        size = size + 2 * law[0] * np.abs(rate) + law[1] ** 2 * np.abs(error)
    return _more_than_rounding(left, size)


def unstopped(constraints: ConstraintSet, q: Any, v: Any, after: Array, e: Array, threads: int | None) -> Array:
    """G v⁺ + e G v, (..., m): zero at the speeds found after an impact, unless rows contradict each other."""
    before = constraints.velocity(q, v, threads=threads)
    left = constraints.velocity(q, after, threads=threads) + e * before
    return _more_than_rounding(left, _size(constraints, q, after, threads) + np.abs(before))


def _size(constraints: ConstraintSet, q: Any, x: Array, threads: int | None) -> Array:
    """Σ |G x|, (..., m): what rounding of G x is a part of."""
    G = constraints.jacobian(q, threads=threads)
    return np.asarray((np.abs(G) * np.abs(x)[..., None, :]).sum(axis=-1))


def _more_than_rounding(left: Array, size: Array) -> Array:
    """What is left of rows that contradict each other; of a long lever, rounding is large, and so is what it bends."""
    return np.where(np.abs(left) > CONTRADICTS * size, left, 0.0)


# --- errors -----------------------------------------------------------------------------------------------------


def naming_rows(
    constraints: ConstraintSet, q: Any, solve: Callable[[], R], free: NDArray[np.int64] | None = None
) -> R:  # fmt: skip
    """What `solve` finds; where rows depend on each other, an error that names them."""
    try:
        return solve()
    except engine.DependentRow as found:
        dependent = found
    refuse_row(constraints, q, dependent, free)


def refuse_row(
    constraints: ConstraintSet, q: Any, found: engine.DependentRow, free: NDArray[np.int64] | None = None
) -> NoReturn:  # fmt: skip
    """Raise what is known of a row that follows from others, or that nothing moves; `free`: speeds not prescribed."""
    x, row = engine.real("q", q), found.row
    constraints.check_rods(x)
    states = np.broadcast_to(x, (*found.shape, x.shape[-1])).reshape(-1, x.shape[-1])
    G = constraints.jacobian(states[found.state])
    name, at = constraints.row_names[row], engine.state_text(found.state, found.shape)
    whole = np.abs(G).max(initial=0.0)
    ways = "leave it out, or, where it can be chosen, ask for redundant='least-squares'"
    if free is not None:
        ways = "prescribe fewer joints, or keep away from dead points"
        G, at = G[:, free], f"{at}, with the prescribed motion of {_listed(constraints.model, free)}"
    if not np.abs(G[row]).max(initial=0.0) > saddle.RANK * whole:
        raise SingularError(
            f"row {name!r} of the constraints is singular{at}: no joint moves what it ties in its direction; {ways}"
        )
    unit = saddle.unit_rows(G)
    others = saddle.least_norm(unit[:row].T, unit[row][:, None])[:, 0]
    rows = [constraints.row_names[k] for k in np.flatnonzero(np.abs(others) > NAMED)]
    listed = ", ".join(map(repr, rows[:6])) + (", …" if len(rows) > 6 else "")
    raise SingularError(
        f"row {name!r} of the constraints is redundant{at}: it follows from {listed or 'the others'}, or contradicts "
        f"them; {ways.replace('leave it', 'leave some')}"
    )


def _listed(model: Model, free: NDArray[np.int64]) -> str:
    """Names of speeds that are not free, the first three of them."""
    held = [shown(model.speed_names[k]) for k in range(model.nv) if k not in free]
    return ", ".join(held[:3]) + (", …" if len(held) > 3 else "")
