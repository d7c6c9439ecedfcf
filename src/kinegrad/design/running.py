"""Kernels along the directions of a design: arguments with their slopes in, derivatives out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.given import check_still_frames
from kinegrad.design.parameters import (
    Design,
    frame_slopes,
    kernel_slopes,
)
from kinegrad.errors import InputError
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model

__all__ = ["check", "followed", "loads_of", "model_of", "parameters_last", "quantity"]

Array = NDArray[np.float64]


def quantity(
    design: Design, kernel: engine.Kernel, state: Sequence[Any], threads: int | None, *, keep: int | None = None
) -> Array:
    """Derivatives of what a kernel of duals finds at a fixed state; `keep`: only so many columns are needed."""
    batch, pairs, _ = followed(design, kernel, state, [None] * len(state), None)
    _, (found,) = engine.run_directions(kernel, batch, kernel_slopes(design)[0], pairs, [], threads)
    check(batch, [found[..., :keep]])
    return parameters_last(batch, found, kernel.results[0].core(batch.model))


def followed(
    design: Design, kernel: engine.Kernel, state: Sequence[Any], follow: Sequence[Any], loads: Loads | None,
    look: bool = True,
) -> tuple[engine.Batch, list[tuple[Array, Array | None]], Sequence[Array]]:  # fmt: skip
    """The batch; values, (states, n), with slopes, (states, p, n), of its state; its loads.  `look`: whether its
    numbers are finite, which some kernels ask themselves."""
    model = model_of(design)
    given = named_loads(model, loads_of(design, loads)) if kernel.loads else None
    batch, rows, load_rows = engine.checked(kernel, model, state, given)
    if look:
        batch.check_finite()
    pairs = [
        (_of_each(batch, x), None if dx is None else _follows(design, batch, f"d{name}_dp", dx))
        for name, x, dx in zip(kernel.state, rows, follow, strict=True)
    ]
    return batch, pairs, load_rows


def parameters_last(batch: engine.Batch, found: Array, core: tuple[int, ...]) -> Array:
    """Slopes, (states, p, columns), as derivatives, (..., *core, p)."""
    return np.ascontiguousarray(found.swapaxes(1, 2)).reshape(*batch.shape, *core, found.shape[1])


def check(batch: engine.Batch, results: Sequence[Array]) -> None:
    """Refuse slopes, (states, directions, columns), that are not finite."""
    batch.results = list(results)
    batch.check_results()


def loads_of(design: Design, loads: Loads | None) -> Loads | None:
    """The loads given, or those of the design."""
    if loads is not None and design.loads is not None and loads is not design.loads and loads != design.loads:
        raise InputError("`loads` are given, and `design` has loads of its own; expected one of them")
    if loads is not None and loads is not design.loads and isinstance(loads, Loads):
        check_still_frames(frame_slopes(design), design.model, loads)
    return design.loads if loads is None else loads


def _of_each(batch: engine.Batch, x: Array) -> Array:
    """Rows of all states, where one may stand for all."""
    return x if len(x) == batch.states else engine.kernel_array(np.broadcast_to(x, (batch.states, batch.n)))


def _follows(design: Design, batch: engine.Batch, name: str, value: Any) -> Array:
    """A derivative with respect to p, (states, p, n) for the kernel."""
    x = engine.real(name, value)
    shape = (*batch.shape, batch.n, design.p)
    try:
        full = np.broadcast_to(x, shape)
    except ValueError:
        raise InputError(f"`{name}` has shape {x.shape}; expected {shape}: states, {batch.n}, {design.p}") from None
    if not np.isfinite(full).all():
        raise engine.not_finite(name, x)
    return engine.kernel_array(np.swapaxes(full, -1, -2).reshape(batch.states, design.p, batch.n))


def model_of(design: Any) -> Model:
    if not isinstance(design, Design):
        raise InputError(
            f"`design` is a {type(design).__name__}; expected a Design, such as Design(model, ['thigh.mass'])"
        )
    return design.model
