"""Calls whose intermediate results are many times as large as their results, block by block of states.

Second derivatives of models with coordinates that are not joints, or with force elements, are made of dense matrices of
joints, which are carried back one after the other: some fifty of them in all, where four are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.call import evaluate
from kinegrad._engine.expansion import check_shapes, deliver
from kinegrad._engine.gate import mapped, sprung
from kinegrad._engine.pool import whole_blocks
from kinegrad._engine.signature import Kernel
from kinegrad.errors import InputError, KinegradError
from kinegrad.model import Model

__all__ = ["evaluate_in_blocks"]

Array = NDArray[np.float64]
LARGEST = 2**27  # bytes of the intermediate results of a block
_MATRICES = 64  # of joints, for each state


def evaluate_in_blocks(
    kernel: Kernel,
    model: Model,
    state: Sequence[Any],
    loads: dict[str, Array] | None,
    out: Any,
    threads: int | None,
) -> tuple[Array, ...]:
    """The results of :func:`evaluate`, for a kernel of matrices."""
    if not (mapped(model) or sprung(model)):
        return evaluate(kernel, model, state, loads, out, threads)
    try:
        given, shape = check_shapes(model, dict(zip(kernel.state, state, strict=True)), loads)
    except InputError:
        return evaluate(kernel, model, state, loads, out, threads)  # which has the words for it
    states, block = math.prod(shape), whole_blocks(LARGEST // (8 * _MATRICES * model.n**2))
    if states <= block:
        return evaluate(kernel, model, state, loads, out, threads)

    def part(x: Array, core: int, where: tuple[Any, ...]) -> Array:
        """Of an argument with so many axes for one state, the states at these places of the batch."""
        return np.asarray(np.broadcast_to(x, (*shape, *x.shape[x.ndim - core :]))[where])

    found: list[Array] = []
    for start in range(0, states, block):
        stop = min(start + block, states)
        where = np.unravel_index(np.arange(start, stop), shape)
        rows = [part(x, 1, where) for x in given.values()]
        some = None if loads is None else {name: part(x, 2, where) for name, x in loads.items()}
        try:
            results = evaluate(kernel, model, rows, some, None, threads)
        except KinegradError:  # it names a state by its place in the block
            return evaluate(kernel, model, state, loads, out, threads)
        found = found or [np.empty((states, *x.shape[1:])) for x in results]
        for whole, x in zip(found, results, strict=True):
            whole[start:stop] = x
    names = [result.name for result in kernel.results]
    return deliver(names, [x.reshape(*shape, *x.shape[1:]) for x in found], out)
