"""Small programs with known optima, differentiated by CasADi's expressions: an independent source of exact derivatives.

Numbers of problems and their optima: [hock1981].
"""

from importlib.util import find_spec

import casadi
import numpy as np
import pytest

INF = np.inf
ABSENT = pytest.mark.skipif(find_spec("cyipopt") is None, reason="cyipopt is not installed, and no extra has it")
SOLVERS = ("ipopt", "uno", "slsqp", pytest.param("cyipopt", marks=ABSENT))


class Symbolic:
    """A NonlinearProgram from functions f(x) and g(x) of CasADi's expressions."""

    def __init__(self, n, f, g=None, *, x=(-INF, INF), limits=(0, 0), scale=(1.0, 1.0, 1.0)):
        symbols = casadi.SX.sym("x", n)
        objective = casadi.SX(f(symbols))
        rows = casadi.SX(casadi.vertcat(*g(symbols))) if g is not None else casadi.SX(0, 1)
        self.n, self.m = n, rows.numel()
        self.x_lower, self.x_upper = (np.broadcast_to(np.asarray(b, float), n).copy() for b in x)
        self.g_lower, self.g_upper = (np.broadcast_to(np.asarray(b, float), self.m).copy() for b in limits)
        self.x_scale = np.broadcast_to(np.asarray(scale[0], float), n).copy()
        self.g_scale = np.broadcast_to(np.asarray(scale[1], float), self.m).copy()
        self.f_scale = float(scale[2])
        sigma, multipliers = casadi.SX.sym("s"), casadi.SX.sym("l", self.m)
        jacobian = casadi.jacobian(rows, symbols)
        hessian = casadi.tril(casadi.hessian(sigma * objective + casadi.dot(multipliers, rows), symbols)[0])
        self.jacobian_pattern = self._pattern(jacobian)
        self.hessian_pattern = self._pattern(hessian)
        self._f = casadi.Function("f", [symbols], [objective])
        self._df = casadi.Function("df", [symbols], [casadi.gradient(objective, symbols)])
        self._g = casadi.Function("g", [symbols], [rows])
        self._dg = casadi.Function("dg", [symbols], [jacobian])
        self._h = casadi.Function("h", [symbols, sigma, multipliers], [hessian])
        self.calls = []

    @staticmethod
    def _pattern(matrix):
        rows, columns = matrix.sparsity().get_triplet()
        return np.array(rows, dtype=int), np.array(columns, dtype=int)

    def objective(self, x):
        self.calls.append(("objective", x.tobytes()))
        return float(self._f(x))

    def gradient(self, x):
        self.calls.append(("gradient", x.tobytes()))
        return self._df(x).full().ravel()

    def constraints(self, x):
        self.calls.append(("constraints", x.tobytes()))
        return self._g(x).full().ravel()

    def jacobian(self, x):
        self.calls.append(("jacobian", x.tobytes()))
        return np.array(self._dg(x).nonzeros())

    def hessian(self, x, sigma, multipliers):
        self.calls.append(("hessian", x.tobytes()))
        return np.array(self._h(x, sigma, multipliers).nonzeros())

    def gauss_newton(self, x, sigma, multipliers):
        return self.hessian(x, sigma, multipliers)

    def row_name(self, i):
        return f"row {i} at t = {i / 10} s"

    def variable_name(self, j):
        return f"x{j}"


def hs(number):
    """A problem of the collection: program, start, optimal objective, an optimal x."""
    return PROBLEMS[number]()


def hs006():
    program = Symbolic(2, lambda x: (1 - x[0]) ** 2, lambda x: [10 * (x[1] - x[0] ** 2)])
    return program, [-1.2, 1.0], 0.0, [1, 1]


def hs015():
    program = Symbolic(
        2,
        lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2,
        lambda x: [x[0] * x[1], x[0] + x[1] ** 2],
        x=(-INF, [0.5, INF]),
        limits=([1, 0], INF),
    )
    return program, [-2.0, 1.0], 306.5, [0.5, 2.0]


def hs026():
    """Degenerate: the Hessian of the Lagrangian is singular at the optimum."""
    program = Symbolic(
        3,
        lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        lambda x: [(1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3],
    )
    return program, [-2.6, 2.0, 2.0], 0.0, None


def hs035():
    program = Symbolic(
        3,
        lambda x: (
            9
            - 8 * x[0]
            - 6 * x[1]
            - 4 * x[2]
            + 2 * x[0] ** 2
            + 2 * x[1] ** 2
            + x[2] ** 2
            + 2 * x[0] * x[1]
            + 2 * x[0] * x[2]
        ),
        lambda x: [3 - x[0] - x[1] - 2 * x[2]],
        x=(0, INF),
        limits=(0, INF),
    )
    return program, [0.5, 0.5, 0.5], 1 / 9, [4 / 3, 7 / 9, 4 / 9]


def hs038():
    """Bounds alone: m = 0."""
    program = Symbolic(
        4,
        lambda x: (
            100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + 90 * (x[3] - x[2] ** 2) ** 2 + (1 - x[2]) ** 2
            + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2) + 19.8 * (x[1] - 1) * (x[3] - 1)
        ),
        x=(-10, 10),
    )  # fmt: skip
    return program, [-3.0, -1.0, -3.0, -1.0], 0.0, [1, 1, 1, 1]


def hs043():
    program = Symbolic(
        4,
        lambda x: x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 + x[3] ** 2 - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3],
        lambda x: [
            8 - x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - x[3] ** 2 - x[0] + x[1] - x[2] + x[3],
            10 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - 2 * x[3] ** 2 + x[0] + x[3],
            5 - 2 * x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - 2 * x[0] + x[1] + x[3],
        ],
        limits=(0, INF),
    )
    return program, [0.0, 0.0, 0.0, 0.0], -44.0, [0, 1, 2, -1]


def hs071():
    program = Symbolic(
        4,
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        lambda x: [x[0] * x[1] * x[2] * x[3], casadi.dot(x, x)],
        x=(1, 5),
        limits=([25, 40], [INF, 40]),
    )
    return program, [1.0, 5.0, 5.0, 1.0], 17.0140173, [1.0, 4.7429994, 3.8211503, 1.3794082]


def hs100():
    program = Symbolic(
        7,
        lambda x: (
            (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2 + 10 * x[4] ** 6 + 7 * x[5] ** 2
            + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6]
        ),
        lambda x: [
            127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4],
            282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
            196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
            -4 * x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[1] - 2 * x[2] ** 2 - 5 * x[5] + 11 * x[6],
        ],
        limits=(0, INF),
    )  # fmt: skip
    x = [2.330499, 1.951372, -0.4775414, 4.365726, -0.6244870, 1.038131, 1.594227]
    return program, [1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0], 680.6300573, x


PROBLEMS = {6: hs006, 15: hs015, 26: hs026, 35: hs035, 38: hs038, 43: hs043, 71: hs071, 100: hs100}
