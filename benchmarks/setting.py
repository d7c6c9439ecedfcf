"""What is evaluated: models, one second of motion, and the same mechanisms in Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from tests.peers.pinocchio_model import pinocchio_model

from kinegrad import Model

__all__ = ["STATES", "sinusoid", "twin"]

STATES = 301


def sinusoid(n: int, states: int = STATES) -> tuple[NDArray[np.float64], ...]:
    """q = sin 2πt of all n joints, with its derivatives v and a; each (states, n), over one second."""
    phase = np.repeat(2 * np.pi * np.linspace(0, 1, states)[:, None], n, axis=1)
    return np.sin(phase), 2 * np.pi * np.cos(phase), -((2 * np.pi) ** 2) * np.sin(phase)


def twin(model: Model) -> tuple[pin.Model, pin.Data]:
    """The same mechanism for Pinocchio, with its memory."""
    other = pinocchio_model(model)
    return other, other.createData()
