"""Derivatives by numerical differentiation, to compare the exact ones with.

numerical_jacobian   forward, central, complex-step and adaptive differences behind one call
"""

from kinegrad.compare.numerical import numerical_jacobian

__all__ = ["numerical_jacobian"]
