"""Directional derivatives of the algorithms of dynamics along many directions at once, in the modes of [kudruss2019].

function      directional, what it returns, and what its modes are
sweep         its arguments, checked
differences   forward and central
slopes        along directions, by duals and by products with matrices
algorithms    both exact modes of each function; those of impacts, G and γ in constrained, of hybrid dynamics and
              Jacobians in motion
"""

from kinegrad.directional.function import MODES, STEPS, Directional, directional

__all__ = ["MODES", "STEPS", "Directional", "directional"]
