"""Second slopes of a model's constants along design parameters: how slopes change with the parameters.

Of constants by name they are known in closed form (``declared.py``), of functions that build a model from what these
give on circles in the complex plane (``circles.py``).  From fields to the constants of kernels no difference is taken
(``_engine/kernel_constants.py``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.circles import function_second_slopes
from kinegrad.design.declared import declared_second_slopes
from kinegrad.design.function import Built
from kinegrad.design.parameters import Design, whole
from kinegrad.loads import PARTS
from kinegrad.model.elements import NUMBERS

__all__ = ["element_second_slopes", "frame_second_slopes", "kernel_second_slopes", "load_second_slopes"]

Array = NDArray[np.float64]


def second_variation(design: Design) -> dict[str, Array]:
    """Second slopes of fields of model and loads, (p, p, *shape of the field), of those that have any."""
    design = whole(design)
    found: dict[str, Array] | None = design.__dict__.get("_second_variation")
    if found is None:
        if design._function is None:
            found = declared_second_slopes(design)
        else:
            built = Built(design.model, design.loads)
            found = function_second_slopes(design._function, design._keywords, design.values, built)
        design.__dict__["_second_variation"] = found
    return found


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
