"""Fixed steps, compiled: torques as a table that kernels read, many states or many designs in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.parameters import Design, kernel_slopes
from kinegrad.errors import InputError, SingularError
from kinegrad.loads import load_batch
from kinegrad.model import Model
from kinegrad.motion.splines import SPLINES, within
from kinegrad.simulate.law import Law

__all__ = ["Run", "check_alike", "check_free", "compiled_run", "planned"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Run(NamedTuple):
    """What a run of fixed steps leaves behind.

    Attributes
    ----------
    columns : list of ndarray
        q, v, a, τ, (kept, ..., n), and with a design their slopes, (kept, ..., n, p).
    lost : ndarray of int, shape (...)
        The step after which a state was no longer finite, or −1.
    before : ndarray, shape (..., n)
        Its speeds before that step.
    unsolved : ndarray of bool, shape (...), optional
        Whether it was lost because the equations of an implicit step were not solved.
    evaluations : int, optional
        Of the law of motion for each state, where that is not known beforehand.
    ended : dict of int to str, optional
        Why states, counted through, were lost that did not diverge.
    """

    columns: list[Array]
    lost: Integers
    before: Array
    unsolved: NDArray[np.bool_] | None = None
    evaluations: int | None = None
    ended: dict[int, str] | None = None


def together(runs: list[Run], kept: int) -> Run:
    """Runs of one state each, as one of all; those that ended early are NaN from then on."""
    columns = []
    for parts in zip(*(run.columns for run in runs), strict=True):
        full = np.full((kept, len(runs), *parts[0].shape[1:]), np.nan)
        for k, part in enumerate(parts):
            full[: len(part), k] = part
        columns.append(full)
    lost, before = (np.array([getattr(run, x) for run in runs]) for x in ("lost", "before"))
    unsolved = [run.unsolved for run in runs if run.unsolved is not None]
    evaluations = max(run.evaluations or 0 for run in runs)
    return Run(columns, lost, before, np.array(unsolved) if unsolved else None, evaluations)


def compiled_run(
    law: Law, scheme: Any, h: float, steps: int, every: int, q: Array, v: Array,
    dq: Array | None = None, dv: Array | None = None, models: Sequence[Model] | None = None,
) -> Run:  # fmt: skip
    """All steps of all states in compiled code, with slopes if those of q and v are given.

    `models`, where each state has one of its own.
    """
    n, shape = law.model.n, q.shape[:-1]
    todo, tau = planned(law, scheme, h, steps, every, q, v)
    slopes: list[Array] = []
    if law.design is not None and dq is not None and dv is not None:
        initial = [engine.kernel_array(x.reshape(-1, n, law.design.p).swapaxes(1, 2)) for x in (dq, dv)]
        found, slopes = engine.march_slopes(law.model, *kernel_slopes(law.design), todo, *initial)
    else:
        found = engine.march([law.model] if models is None else models, todo)
    check_free(models or [law.model], scheme, h, shape, found.free)
    kept = steps // every + 1  # if `every` does not divide the steps, the end is not among them
    columns = [x.reshape(kept, *q.shape) for x in (found.q, found.v, found.a)]
    columns.append(np.array(np.broadcast_to(tau[todo.when[::every, 0]], (kept, *q.shape))))
    if dq is not None and slopes:
        columns += [x.reshape(kept, *dq.shape) for x in slopes]
        columns.append(np.zeros((kept, *dq.shape)))
    return Run(columns, found.lost.reshape(shape), found.before.reshape(q.shape))


def planned(law: Law, scheme: Any, h: float, steps: int, every: int, q: Array, v: Array) -> tuple[engine.March, Array]:
    """What compiled code is to do, and the torques, (T, ..., n), to which its `when` refers."""
    tau, when = torque_table(law, scheme, h, steps, q.shape)
    loads = load_batch(law.model, law.loads, {"q0": q, "v0": v})[1]
    q0, v0 = (engine.kernel_array(x.reshape(-1, law.model.n)) for x in (q, v))
    return engine.March(q0, v0, _rows(tau, q.shape[:-1]), when, tuple(loads), tuple(scheme), h, every), tau


def torque_table(law: Law, scheme: Any, h: float, steps: int, shape: tuple[int, ...]) -> tuple[Array, Integers]:
    """Torques, (T, ..., n), and which of them each stage of each step has, (steps + 1, s)."""
    step = np.arange(steps + 1)
    if isinstance(law.given, SPLINES):
        offsets, stage = np.unique(scheme.c, return_inverse=True)
        times = (step[:, None] * h + offsets * h).ravel()
        times = np.clip(times, *within("`tau`", law.given, 0.0, steps * h))
        table = np.moveaxis(engine.real("tau", law.given(times)), law.given.axis, 0)
        if not np.isfinite(table).all():
            raise engine.not_finite("tau", table)
        when = step[:, None] * len(offsets) + stage
    else:
        given = np.zeros(law.model.n) if law.given is None else engine.real("tau", law.given)
        table = given[None] if given.ndim == 1 else given
        when = np.minimum(step, len(table) - 1)[:, None].repeat(len(scheme.b), axis=1)
    try:
        if table.shape[-1] != law.model.n or table.ndim < 2:
            raise ValueError
        np.broadcast_to(table[0], shape)
    except ValueError:
        raise InputError(f"`tau` gives shape {table.shape[1:]} at t = 0; expected {shape}, as q") from None
    padded = table.reshape(len(table), *(1,) * (len(shape) - table.ndim + 1), *table.shape[1:])
    return padded, np.ascontiguousarray(when, dtype=np.int64)


def _rows(tau: Array, shape: tuple[int, ...]) -> Array:
    """The table as kernels want it, (T, states or 1, n)."""
    own = tau.shape[1:-1]
    if all(size == 1 for size in own):
        rows = tau.reshape(len(tau), 1, tau.shape[-1])
    else:
        rows = np.broadcast_to(tau, (len(tau), *shape, tau.shape[-1])).reshape(len(tau), -1, tau.shape[-1])
    return engine.kernel_array(rows)


def check_free(models: Sequence[Model], scheme: Any, h: float, shape: tuple[int, ...], free: Integers) -> None:
    """Raise for the first joint, in time, that nothing resists."""
    stuck = np.flatnonzero(free[:, 0] >= 0)
    if len(stuck):
        state = stuck[np.argmin(free[stuck, 1])]
        joint, evaluation = free[state].tolist()
        k, i = divmod(evaluation, len(scheme.b))
        error = engine.free_joint(models[state if len(models) > 1 else 0], joint, int(state), shape)
        raise SingularError(f"at t = {k * h + scheme.c[i] * h:.6g} s {error}")


def check_alike(models: Sequence[Any], design: Design | None) -> tuple[Model, ...]:
    """Several models, which must differ in numbers only."""
    if design is not None:
        raise InputError(
            "`design` is given with several models: its parameters are those of one model, and so are the derivatives; "
            "expected one model, or no design"
        )
    if not len(models):
        raise InputError("`model` is an empty sequence; expected a Model, or several")
    first = models[0]
    for k, model in enumerate(models):
        if not isinstance(model, Model):
            raise InputError(f"`model[{k}]` is a {type(model).__name__}; expected a Model")
        difference = _difference(first, model)
        if difference:
            raise InputError(
                f"`model[{k}]` differs from `model[0]` in {difference}; expected models alike in structure, "
                "which differ in numbers only"
            )
    return tuple(models)


def _difference(one: Model, other: Model) -> str:
    """In what two models differ in structure, or nothing."""
    if one.coordinates != other.coordinates:
        return "its couplings or quaternions"
    if one.n != other.n:
        return f"its number of joints, {other.n} instead of {one.n}"
    for what in ("joint_names", "link_names", "parents"):
        pair = (np.array(getattr(model, what)).tolist() for model in (one, other))
        for joint, x, y in zip(one.joint_names, *pair, strict=True):
            if x != y:
                return f"`{what}`, {y!r} instead of {x!r} at joint {joint!r}"
    elements = ([(name, type(x), x.link, x.other) for name, x in model.elements.items()] for model in (one, other))
    if next(elements) != next(elements):
        return "its force elements"
    for joint, x, y in zip(one.joint_names, one.joints, other.joints, strict=True):
        if x.kind != y.kind:
            return f"the kind of joint {joint!r}, {y.kind} instead of {x.kind}"
        if x.axis != y.axis:
            return f"the axis of joint {joint!r}, {y.axis} instead of {x.axis}"
    return ""
