"""Second slopes of a model's constants along design parameters: how slopes change with the parameters.

Masses, lengths, moments of inertia, forces and points are linear in their parameters.  Curved are turns, angles of
Denavit–Hartenberg rows, frames of elements, and functions that build a model.  Of these, slopes are known exactly,
by complex step, at any values; how they change is a difference of eighth order,

    ∂f′/∂p_k = Σ_j c_j (f′(p + j h e_k) − f′(p − j h e_k)) / h,        c = 4/5, −1/5, 4/105, −1/280      (1)

whose errors are h⁸/630 of the ninth derivative, and rounding divided by h: both near 10⁻¹⁴ for angles with h = 0.04.
From fields to the constants of kernels no difference is taken (``_engine/kernel_constants.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.parameters import Design, field_slopes, whole
from kinegrad.errors import InputError, KinegradError, shown
from kinegrad.loads import PARTS
from kinegrad.model.elements import NUMBERS

__all__ = ["element_second_slopes", "frame_second_slopes", "kernel_second_slopes", "load_second_slopes"]

Array = NDArray[np.float64]
_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
_ANGLE = 0.04  # step of an angle, rad
_PART = 0.01  # step of an argument of a function, by its size
_ANGLES = ("theta", "alpha")


def second_variation(design: Design) -> dict[str, Array]:
    """Second slopes of fields of model and loads, (p, p, *shape of the field), of those that have any."""
    design = whole(design)
    found: dict[str, Array] | None = design.__dict__.get("_second_variation")
    if found is None:
        found = design.__dict__["_second_variation"] = _second_variation(design)
    return found


def _second_variation(design: Design) -> dict[str, Array]:
    found: dict[str, Array] = {}
    times: dict[str, Array] = {}
    for k, step in enumerate(_steps(design)):
        if not step:
            continue
        for what, x in _change(design, k, step).items():
            total = found.setdefault(what, np.zeros((design.p, *x.shape)))
            count = times.setdefault(what, np.zeros((design.p, design.p, *(1,) * (x.ndim - 1))))
            total[k] += x
            total[:, k] += x
            count[k] += 1
            count[:, k] += 1
    return {what: x / np.maximum(times[what], 1) for what, x in found.items() if x.any()}


def _steps(design: Design) -> list[float]:
    """Of each parameter for (1); 0 where nothing is curved along it."""
    if design._function is not None:
        return [_PART * max(abs(x), 0.1) for x in design.values.tolist()]
    steps = []
    for terms in design._terms.values():
        size = 0.0
        for constant, coefficient in terms:
            held = design.model.elements and constant.what in ("frames", "length")  # elements are attached to frames
            if constant.turned(design.model) is not None or constant.what in _ANGLES or held:
                size = max(size, abs(coefficient))
        steps.append(_ANGLE / size if size else 0.0)
    return steps


def _change(design: Design, k: int, step: float) -> dict[str, Array]:
    """(1), (p, *shape) of each field."""
    base, here = design._origin or (design, design.values)
    for smaller in (1, 4, 16, 64):
        try:
            return _difference(base, np.array(here), k, step / smaller)
        except KinegradError as error:  # beyond what a model can be, such as a negative mass
            last = error
    found = f"there is no model on both sides of {shown(design.names[k])} = {here[k]:g}"
    raise InputError(f"{found}, which second derivatives need: {last}") from last


def _difference(base: Design, here: Array, k: int, step: float) -> dict[str, Array]:
    total: dict[str, Any] = {}
    for j, weight in enumerate(_WEIGHTS, 1):
        for way in (1.0, -1.0):
            values = here.copy()
            values[k] += way * j * step
            for what, x in field_slopes(base, values).items():
                total[what] = total.get(what, 0.0) + (way * weight / step) * x
    return total


def kernel_second_slopes(design: Design) -> tuple[Array, ...]:
    """Of the kernels' constants, (p, p, n·k) each."""
    found: tuple[Array, ...] | None = design.__dict__.get("_kernel_second")
    if found is None:
        bent = second_variation(design)
        found = engine.second_slopes(design.model, design._variation, bent, design.p)
        design.__dict__["_kernel_second"] = found
    return found


def load_second_slopes(design: Design) -> tuple[Array, ...]:
    """Of force, point and torque of the loads, (p, p, 3 n) each."""
    shape = design.p, design.p, 3 * design.model.n
    bent = second_variation(design)
    return tuple(bent[what].reshape(shape) if what in bent else np.zeros(shape) for what in PARTS)


def element_second_slopes(design: Design) -> Array:
    """Of the numbers of force elements, (p, p, 37 elements)."""
    bent, shape = second_variation(design), (design.p, design.p, NUMBERS * len(design.model.elements))
    return bent["elements"].reshape(shape) if "elements" in bent else np.zeros(shape)


def frame_second_slopes(design: Design) -> dict[str, Array]:
    """Of the placements of frames in their links, (p², 4, 4), of those that have any."""
    found = second_variation(design).get("frames")
    if found is None:
        return {}
    each = zip(design.model.frames, np.moveaxis(found, 2, 0), strict=True)
    return {name: x.reshape(-1, 4, 4) for name, x in each if x.any()}
