"""Directional derivatives of the algorithms of dynamics along many directions at once, in the modes of [kudruss2019].

function      directional, what it returns, and what its modes are
sweep         its arguments, checked
differences   forward and central
algorithms    both exact modes of each function
"""

from kinegrad.directional.function import MODES, STEPS, Directional, directional

__all__ = ["MODES", "STEPS", "Directional", "directional"]
