"""One call of a kernel: arguments through the gate, kernel, results in their shapes.

What a kernel takes, gives and needs is its :class:`~kinegrad._engine.signature.Kernel`; a public function checks its
own options, makes one call and puts names to the results.

Control loops call with one state at a time, and then looking at arguments costs as much as the kernel.  For each model
and kernel there is therefore one function, made on the first call, that takes such a state straight to the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.contraction import contract as contract_results
from kinegrad._engine.coordinates import map_table
from kinegrad._engine.expansion import Expansion
from kinegrad._engine.gate import FLOAT64, Batch, finish, mapped, one_result, sprung
from kinegrad._engine.kernel_constants import mechanism, only_turns, tame
from kinegrad._engine.memory import check_apart, streams
from kinegrad._engine.signature import QVA, Axis, Kernel, Shape
from kinegrad._engine.threads import NO_JOINT, effort, few, judge, run, run_states, workers_of
from kinegrad._kernels.compiler.jit import narrow
from kinegrad._kernels.compiler.width import NARROW
from kinegrad._kernels.coordinates import contract, expand
from kinegrad._kernels.lanes.finite import FINE
from kinegrad.errors import InputError, shown
from kinegrad.model import Model

Array = NDArray[np.float64]
Single = Callable[[Model, Sequence[Any], Any, "slice | None", "int | None"], "tuple[Array, ...] | None"]
_NONE: dict[Kernel, Single] = {}
ALL = slice(None)
_OF_JOINTS = {axis for axis in Axis if axis not in (Axis.LINK, Axis.POINT, Axis.PARAMETER, Axis.CONSTANT)}


def evaluate(
    kernel: Kernel,
    model: Model,
    state: Sequence[Any],
    loads: dict[str, Array] | None = None,
    out: Any = None,
    threads: int | None = None,
    columns: slice | None = None,
) -> tuple[Array, ...]:
    """The results of a kernel for the states of a batch.

    Parameters
    ----------
    kernel : Kernel
    model : Model
    state : sequence
        As given by the caller, in the order of ``kernel.state``.
    loads : dict, optional
        Force, point and torque, (..., n, 3), by name.
    out : ndarray, or dict of ndarray, optional
        To fill; by name, in the order of ``kernel.results``, if there are several.
    threads : int, optional
    columns : slice, optional
        Which entries along the last axis of the results are returned; the others may overflow.

    Returns
    -------
    tuple of ndarray
        Of the batch's shape, then that of each result.
    """
    if loads is None and type(model) is Model and (threads is None or (type(threads) is int and threads >= 1)):
        single = model.__dict__.get("_singles", _NONE).get(kernel) or _prepare(kernel, model)
        found = single(model, state, out, columns, threads)
        if found is not None:
            return found
    return evaluate_with(kernel, model, state, loads, out, threads, columns)


def evaluate_with(
    kernel: Kernel,
    model: Model,
    state: Sequence[Any],
    loads: dict[str, Array] | None = None,
    out: Any = None,
    threads: int | None = None,
    columns: slice | None = None,
    *,
    options: Sequence[Any] = (),
    points: Shape | None = None,
    wanted: slice = ALL,
    unseen: dict[str, Array] | None = None,
) -> tuple[Array, ...]:
    """The same with whatever a call may have besides.

    Parameters
    ----------
    kernel, model, state, loads, out, threads, columns
        As of :func:`evaluate`; what is missing at the end of the state is zero.
    options : sequence of ndarray
        Arguments of the kernel that are the same for all states.
    points : tuple of int, optional
        Shape of the axis of points that results have.
    wanted : slice
        Which results are returned; the others may overflow.
    unseen : dict of ndarray, optional
        Options that may make results overflow, by name: kernels look at the state and the loads only.
    """
    if sprung(model):
        extras: dict[str, Any] = {"options": options, "points": points, "wanted": wanted, "unseen": unseen}

        def run(state: Sequence[Any], out: Any = None) -> tuple[Array, ...]:
            given: tuple[Any, ...] = (kernel, model.without_elements, state, loads, out, threads, columns)
            whole = options or points is not None or wanted is not ALL or unseen is not None
            return evaluate_with(*given, **extras) if whole else evaluate(*given)

        if kernel.with_elements is None:
            names = ", ".join(result.name for result in kernel.results)
            raise InputError(
                f"model {shown(model.name)} has force elements, which are not part of {names}; expected a model without"
            )
        return tuple(kernel.with_elements(model, run, state, out, threads, options))
    if mapped(model):
        at = Expansion(model, dict(zip(kernel.state, state, strict=False)), loads)
        if kernel.in_coordinates is not None:
            contracted = kernel.in_coordinates(at, loads, threads, options)
        else:
            joints: tuple[Any, ...] = (kernel, at.primitive, at.arguments(kernel.state), loads, None, threads, columns)
            plain = not options and points is None and wanted is ALL and unseen is None
            extra: dict[str, Any] = {"options": options, "points": points, "wanted": wanted, "unseen": unseen}
            found = evaluate(*joints) if plain else evaluate_with(*joints, **extra)
            contracted = contract_results(at, kernel.results[wanted], found)
        return at.deliver([result.name for result in kernel.results[wanted]], contracted, out)
    batch, rows, load_rows = checked(kernel, model, state, loads)
    pairs = _outputs(kernel, batch, out, points, wanted)
    filled = [flat for _, flat in pairs]
    if wanted is not ALL:
        pairs, batch.results = pairs[wanted], filled[wanted]
    if columns is not None:
        batch.results = [flat[:, columns] for _, flat in pairs]
    if kernel.slots is None:
        kernel.function(batch, threads, rows, load_rows, filled)
    else:
        fill(kernel, batch, threads, (*rows, *options, *load_rows), filled, loaded=loads is not None)
    if unseen is not None:
        for name, x in unseen.items():
            batch.check_results_of(name, x)
    if columns is not None:
        return tuple([result[..., columns].copy() for result, _ in pairs])
    return tuple([finish(result, flat) for result, flat in pairs])


def checked(
    kernel: Kernel, model: Model, state: Sequence[Any], loads: dict[str, Array] | None = None
) -> tuple[Batch, list[Array], tuple[Array, ...]]:
    """The gate: the batch, its state and its loads, (states or 1, columns) each, as the kernel takes them."""
    batch = Batch(model, dict(zip(kernel.state, state, strict=False)), loads)
    rows, load_rows, given = batch.arguments, NO_LOADS, len(state)
    if loads is not None:
        rows, load_rows = rows[:given], tuple(rows[given:])
    elif kernel.loads:
        load_rows = (no_load(batch.n),) * 3
    if given < len(kernel.state):
        rows = rows + [np.zeros((1, batch.n))] * (len(kernel.state) - given)
    return batch, rows, load_rows


def fill(
    kernel: Kernel,
    batch: Batch,
    threads: int | None,
    given: Sequence[Any],
    results: Sequence[Array],
    constants: tuple[Any, ...] | None = None,
    loaded: bool = False,
) -> None:
    """Run a kernel on what is checked, ``given``, and fill the results, (states, columns) each; with constants of the
    mechanism other than the model's, if given."""
    function = kernel.function
    if constants is None:
        constants, function = mechanism(batch.model), kernel_function(kernel, batch.model, loaded)
    if kernel.tables is None:
        slots = (batch.n + 1) * kernel.slots  # type: ignore[operator]
        arguments = (constants, *given, *results)
    else:
        stream = kernel.together > 0 and streams(kernel.together * results[-1].nbytes) and batch.states > NARROW
        tables, slots = kernel.tables(batch.model, loaded, stream)
        spare = (np.empty((batch.states, batch.n)),) if kernel.spare else ()
        arguments = (constants, *given, *tables, *spare, *results)
    run(function, batch, slots, threads, arguments, kernel.pivots)


def kernel_function(kernel: Kernel, model: Model, loaded: bool) -> Callable[..., Any]:
    """The compiled function of a kernel that suits this model."""
    if kernel.turning is None or loaded or not only_turns(model):
        return kernel.function
    return kernel.turning


NO_LOADS: tuple[Array, ...] = ()
_NO_ROWS = np.empty((0, 0))  # in the place of a result that is not wanted


@cache
def no_load(n: int) -> Array:
    """What tells a kernel that there are no loads: no rows."""
    return np.empty((0, 3 * n))


def _outputs(kernel: Kernel, batch: Batch, out: Any, points: Shape | None, wanted: slice) -> list[tuple[Array, Array]]:
    """Results and the (states, columns) arrays for the kernel to fill; those left out have no rows."""
    results, cores = kernel.results, kernel.cores(batch.model, points)
    alone = len(results) - (kernel.together if out is None else 0)
    if out is None and wanted is ALL and alone == len(results):  # at once, as it mostly is
        return [batch.output(core, zero=result.zero) for core, result in zip(cores, results, strict=True)]
    by_name = type(out) is dict and len(results) > 1
    if by_name:
        check_apart(out)
    first, last, _ = wanted.indices(len(results))
    pairs = []
    for k in range(alone):
        name, given = "out", out
        if by_name:
            name, given = f"out.{results[k].name}", out[results[k].name]
        if results[k].optional and not first <= k < last:
            pairs.append((_NO_ROWS, _NO_ROWS))
        else:
            pairs.append(batch.output(cores[k], given, name, zero=results[k].zero))
    if alone < len(results):
        pairs += batch.outputs(cores[alone], kernel.together)
    return pairs


# --- one state --------------------------------------------------------------------------------------------------


def _prepare(kernel: Kernel, model: Model) -> Single:
    """The function that takes one state of a model straight to a kernel, made once for both."""
    singles: dict[Kernel, Single] = model.__dict__.setdefault("_singles", {})
    constants = tame(model)
    if model.coordinates:
        carried = _carried(kernel) and not model.elements
        single: Single = _single_in_coordinates(kernel, model) if carried else _refuse
    elif constants is None or kernel.slots is None:  # results have to be looked at, or there are several kernels
        single = _refuse
    else:
        single = _single(kernel, model, constants)
    singles[kernel] = single
    return single


def _refuse(model: Model, state: Sequence[Any], out: Any, columns: slice | None, threads: int | None) -> None:
    return None


def _single(kernel: Kernel, model: Model, constants: tuple[Any, ...]) -> Single:
    """From arrays just as kernels read them to results; None for any others, which have to go through the gate.

    It is kept with the model, and so given it by each call: what holds itself is freed late.
    """
    function, pivots, n = narrow(kernel_function(kernel, model, False)), kernel.pivots, model.n
    tables, slots = kernel.needs(model)
    after = (*((no_load(n),) * 3 if kernel.loads else ()), *tables)
    count, shape, cores, results = len(kernel.state), (n,), kernel.cores(model), _single_results(kernel, model)
    zeros, zero = [k for k, result in enumerate(kernel.results) if result.zero], np.zeros((1, n))

    several = _several_states(kernel, model, constants)

    def single(
        model: Model, state: Sequence[Any], out: Any, columns: slice | None, threads: int | None
    ) -> tuple[Array, ...] | None:
        rows: list[Any] = [constants]
        for x in state:
            if type(x) is not np.ndarray or x.dtype is not FLOAT64 or x.shape != shape or not x.flags.carray:
                return several(model, state, threads) if out is None and columns is None else None
            rows.append(x[None])
        if len(rows) <= count:
            rows += [zero] * (count + 1 - len(rows))
        if out is None:
            found, filled = results()
        else:
            found = tuple(out.values()) if type(out) is dict and len(cores) > 1 else (out,)
            given = one_result(found, cores, state)
            if given is None:
                return None
            filled = tuple(given)
            for k in zeros:
                found[k].fill(0.0)
        if not pivots:
            ok = function(*rows, *after, *filled, few(slots), 0, 1)
            if ok == FINE:
                return found if columns is None else (found[0][..., columns].copy(),)
        else:
            status = NO_JOINT.copy()
            ok = function(*rows, *after, *filled, status, few(slots), 0, 1)
            if ok == FINE and status[0] < 0:
                return found
        batch = Batch(model, dict(zip(kernel.state, state, strict=False)))
        shown = found if columns is None else (found[0][..., columns].copy(),)
        batch.results = [x.reshape(1, -1) for x in shown]
        judge(batch, [(0, ok, (status,) if pivots else ())])
        return shown

    return single


def _several_states(
    kernel: Kernel, model: Model, constants: tuple[Any, ...]
) -> Callable[[Model, Sequence[Any], int | None], tuple[Array, ...] | None]:
    """The same of a batch."""
    if kernel.pivots or kernel.spare:
        return lambda model, state, threads: None
    function, n, (tables, slots) = kernel_function(kernel, model, False), model.n, kernel.needs(model)
    after, zero = (*((no_load(n),) * 3 if kernel.loads else ()), *tables), np.zeros((1, n))
    count, cores, block = len(kernel.state), kernel.cores(model), kernel.together
    columns, apart = [math.prod(core) for core in cores], len(cores) - block
    each = effort(slots, sum(columns))
    makers = [(np.zeros if kernel.results[k].zero else np.empty, columns[k]) for k in range(apart)]
    vectors = all(len(core) == 1 for core in cores)

    def several(model: Model, state: Sequence[Any], threads: int | None) -> tuple[Array, ...] | None:
        shape, states = None, 0
        rows: list[Any] = [constants]
        for x in state:
            if type(x) is not np.ndarray or x.dtype is not FLOAT64 or not x.flags.carray:
                return None
            if shape is None:
                shape = x.shape
                if len(shape) < 2 or shape[-1] != n or not (states := x.size // n):
                    return None
                if block and streams(8 * block * states * columns[-1]):
                    return None
            elif x.shape != shape:
                return None
            rows.append(x if len(shape) == 2 else x.reshape(states, n))
        assert shape is not None
        if len(rows) <= count:
            rows += [zero] * (count + 1 - len(rows))
        found = [make((states, width)) for make, width in makers]
        if block:
            found.extend(np.empty((block, states, columns[-1])))
        notes = run_states(function, slots, each, states, workers_of(threads, states * each), (*rows, *after, *found))
        if notes:
            batch = Batch(model, dict(zip(kernel.state, state, strict=False)))
            batch.results = found
            judge(batch, notes)
        if vectors and len(shape) == 2:
            return tuple(found)
        return tuple([x.reshape(*shape[:-1], *core) for x, core in zip(found, cores, strict=True)])

    return several


def _carried(kernel: Kernel) -> bool:
    """Whether arguments of a kernel are those of a motion, and its results forces or of no joint: what the kernels of
    ``_kernels/coordinates.py`` take there and back."""
    axes = [result.axes for result in kernel.results]
    forces = all(x == (Axis.TORQUE,) or not any(axis in _OF_JOINTS for axis in x) for x in axes)
    return forces and kernel.in_coordinates is None and [*kernel.state.values()] == [*QVA.values()][: len(kernel.state)]


def _single_in_coordinates(kernel: Kernel, model: Model) -> Single:
    """The same where coordinates are not joints."""
    (table, speed), layout, primitive = map_table(model), model.layout, model.primitive
    n, zero, shapes = layout.n, np.zeros((1, layout.nv)), [(layout.nq,), (layout.nv,), (layout.nv,)]
    nv, bends, forces = layout.nv, 2 * len(layout.coupled), [result.axes == (Axis.TORQUE,) for result in kernel.results]

    def single(
        model: Model, state: Sequence[Any], out: Any, columns: slice | None, threads: int | None
    ) -> tuple[Array, ...] | None:
        if out is not None or columns is not None:
            return None
        rows = [zero, zero, zero]
        for k, x in enumerate(state):
            if type(x) is not np.ndarray or x.dtype is not FLOAT64 or x.shape != shapes[k] or not x.flags.carray:
                return None
            rows[k] = x[None]
        q, v, a, slope = joints = np.empty((4, 1, n))
        if expand(table, *rows, q, v, a, slope, np.empty((1, bends)), 0, 1) != FINE:
            return None
        found = list(evaluate(kernel, primitive, [*joints[: len(state), 0]]))
        for k, x in enumerate(found):
            if forces[k]:
                found[k] = np.empty(nv)
                if contract(speed, slope, x[None], found[k][None], 0, 1) != FINE:
                    return None
        return tuple(found)

    return single


def _single_results(kernel: Kernel, model: Model) -> Callable[[], tuple[tuple[Array, ...], tuple[Array, ...]]]:
    """What makes the results of one state: in their shapes, and as rows for the kernel."""
    cores = kernel.cores(model)
    makers = [np.zeros if result.zero else np.empty for result in kernel.results]
    core, make, flat, vector = cores[0], makers[0], (1, math.prod(cores[0])), len(cores[0]) == 1
    count, n = kernel.together, model.n

    def one() -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        x = make(core)
        return (x,), (x[None] if vector else x.reshape(flat),)

    def first_and_block() -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        x, block = np.empty(core), np.empty(rows)
        spare = (np.empty((1, n)),) if kernel.spare else ()
        return (x, *block.reshape(blocks)), (*spare, x[None], *block)

    def several() -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        found = tuple(make(core) for make, core in zip(makers, cores, strict=True))
        spare = (np.empty((1, n)),) if kernel.spare else ()
        return found, (*spare, *(x.reshape(1, -1) for x in found))

    if len(cores) == 1 and not kernel.spare:
        return one
    if count == len(cores) - 1 and vector and not any(result.zero for result in kernel.results):
        rows, blocks = (count, 1, math.prod(cores[1])), (count, *cores[1])
        return first_and_block
    return several
