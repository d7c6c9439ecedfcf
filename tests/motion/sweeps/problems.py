"""Small problems that workers can import."""

import numpy as np

from kinegrad import samples
from kinegrad.motion.problem import Boundary, MotionProblem, Phase


def reach(elbow: float = -1.0, *, segments: int = 6) -> MotionProblem:
    """The arm moves in the least time, with limits at the knots."""
    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, elbow], v=0)]
    phase = Phase(duration=(0.1, 2.0), segments=segments)
    return MotionProblem(samples.two_link(gravity=(0, 0, 0)), phase, ends)


class Wells:
    """(x² − 1)² + x / 10 + y²: two minima, at x near −1, the better one, and near 1."""

    n, m, f_scale = 2, 0, 1.0
    x_lower, x_upper, x_scale = np.full(2, -3.0), np.full(2, 3.0), np.ones(2)
    g_lower = g_upper = g_scale = np.zeros(0)
    jacobian_pattern = np.zeros(0, dtype=int), np.zeros(0, dtype=int)
    hessian_pattern = np.array([0, 1]), np.array([0, 1])

    def objective(self, x):
        return (x[0] ** 2 - 1) ** 2 + 0.1 * x[0] + x[1] ** 2

    def gradient(self, x):
        return np.array([4 * x[0] * (x[0] ** 2 - 1) + 0.1, 2 * x[1]])

    def constraints(self, x):
        return np.zeros(0)

    def jacobian(self, x):
        return np.zeros(0)

    def hessian(self, x, sigma, multipliers):
        return sigma * np.array([12 * x[0] ** 2 - 4, 2.0])

    def row_name(self, i):
        return "none"

    def variable_name(self, j):
        return "xy"[j]


def not_a_problem(elbow: float = 0.0) -> None:
    raise ValueError(f"no arm for {elbow}")
