"""Which functions of kinegrad a bridge calls, and for how many states."""

import functools
import math

import numpy as np

from kinegrad.bridges import products

NAMES = ("inverse_dynamics", "inverse_dynamics_jvp", "inverse_dynamics_vjp", "inverse_dynamics_hvp")


def log_calls(monkeypatch):
    """A list to which each call adds what it computes, as ("hvp", 5): that of five states; the value is "dynamics"."""
    calls = []
    for name in NAMES:
        function = getattr(products, name)

        @functools.wraps(function)
        def logged(model, *arrays, loads=None, function=function):
            states = math.prod(np.broadcast_shapes(*(x.shape[:-1] for x in arrays)))
            calls.append((function.__name__.rpartition("_")[2], states))
            return function(model, *arrays, loads=loads)

        monkeypatch.setattr(products, name, logged)
    return calls
