"""The same work in Pinocchio, where it is installed, to be timed beside ours."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from kinegrad.compare.pinocchio_model import pinocchio_model
from kinegrad.model import Model

__all__ = ["pinocchio_derivatives"]

Array = NDArray[np.float64]


def pinocchio_derivatives(model: Model, q: Array, v: Array, a: Array) -> tuple[str, Callable[[], None]] | None:
    """Pinocchio's version, and a function that takes its derivatives at all states in turn; None without it."""
    try:
        pin = import_module("pinocchio")
    except ImportError:
        return None
    twin = pinocchio_model(model)
    data = twin.createData()

    def all_states() -> None:
        for state in zip(q, v, a, strict=True):
            pin.computeRNEADerivatives(twin, data, *state)

    return str(pin.__version__), all_states
