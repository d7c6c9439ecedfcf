"""A kernel prepared for one model: rows of states in, rows of results filled, nothing checked but by the kernel.

For loops that own their arrays and call again and again, where looking at arguments costs as much as the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.call import NO_LOADS, kernel_function, no_load
from kinegrad._engine.kernel_constants import tame
from kinegrad._engine.signature import Kernel
from kinegrad._engine.threads import NO_JOINT, effort, few, run_states, workers_of
from kinegrad._kernels.compiler.jit import narrow
from kinegrad._kernels.lanes.finite import FINE
from kinegrad.model import Model

__all__ = ["prepared"]

Array = NDArray[np.float64]


def prepared(
    kernel: Kernel, model: Model, state: Sequence[Array], result: Array
) -> Callable[[Array], bool] | None:  # fmt: skip
    """Return a function that fills the result of a kernel from arrays that stay where they are, and one that varies.

    Parameters
    ----------
    kernel : Kernel
        With one result and without tables that depend on the number of states.
    model : Model
    state : sequence of ndarray, shape (states, columns)
        All arguments but the last, C-contiguous float64.
    result : ndarray, shape (states, columns)
        To fill; shares no memory with arguments.

    Returns
    -------
    callable or None
        Of the last argument; for the thread that made it.  It returns whether all arguments are finite and of ordinary
        size, and the result is then finite; otherwise the result is undefined.  None if the model has coordinates that
        are not its joints, force elements, or constants of extreme size.
    """
    constants, states = tame(model), len(result)
    if constants is None or model.coordinates or model.elements or kernel.slots is None or len(kernel.results) != 1:
        return None
    tables, slots = kernel.needs(model)
    function, pivots = kernel_function(kernel, model, False), kernel.pivots
    before = constants, *state
    after = (*((no_load(model.n),) * 3 if kernel.loads else NO_LOADS), *tables, result)
    each = effort(slots, sum(math.prod(core) for core in kernel.cores(model)))
    if states == 1:
        small, status, room = narrow(function), NO_JOINT.copy(), few(slots)
        own = (status,) if pivots else ()

        def fill_one(last: Array) -> bool:
            found = small(*before, last, *after, *own, room, 0, 1) == FINE and status[0] < 0
            status[:] = NO_JOINT
            return bool(found)

        return fill_one

    def fill(last: Array) -> bool:
        workers = workers_of(None, states * each)
        notes = run_states(function, slots, each, states, workers, (*before, last, *after), pivots)
        return all(ok == FINE and not any(status[0] >= 0 for status in own) for _, ok, own in notes)

    return fill
