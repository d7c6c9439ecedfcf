"""3-vectors and 3×3 matrices of lane values, as tuples: (x, y, z) and, row by row, nine numbers; 6-vectors as values.

A symmetric matrix is (xx, yy, zz, xy, xz, yz).  Names with ``row`` read constants of the mechanism.

    Motion     (w, v): angular and linear; velocities, accelerations, motion subspaces
    Force      (n, f): moment and force; momenta too

    X + Y, X − Y, X * number       of either kind
    V.cross(S)    V × S  of two motions, and  S ×* F  of a motion and a force                    [featherstone2008] 2.9
    S.dot(F)      the power of a force along a motion, S·F
    V.at(d)       the same motion about a point that is d away      [featherstone2008] 2.8
    F.before(d)   the same force about a point that is d before
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store

# --- algebra ----------------------------------------------------------------------------------------------------


@inline
def zero3():
    """The zero vector."""
    return spread(0.0), spread(0.0), spread(0.0)


@inline
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inline
def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def scale(s, a):
    return s * a[0], s * a[1], s * a[2]


@inline
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def add_cross(u, a, b):
    """u + a×b: each product is added as it is formed, one instruction for both."""
    return (
        u[0] + a[1] * b[2] - a[2] * b[1],
        u[1] + a[2] * b[0] - a[0] * b[2],
        u[2] + a[0] * b[1] - a[1] * b[0],
    )


@inline
def mul(R, a):
    """R a"""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inline
def tmul(R, a):
    """Rᵀ a"""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inline
def symmul(S, a):
    """S a, S symmetric"""
    return (
        S[0] * a[0] + S[3] * a[1] + S[4] * a[2],
        S[3] * a[0] + S[1] * a[1] + S[5] * a[2],
        S[4] * a[0] + S[5] * a[1] + S[2] * a[2],
    )


@inline
def matmul(A, B):
    """A B"""
    c0 = mul(A, (B[0], B[3], B[6]))
    c1 = mul(A, (B[1], B[4], B[7]))
    c2 = mul(A, (B[2], B[5], B[8]))
    return c0[0], c1[0], c2[0], c0[1], c1[1], c2[1], c0[2], c1[2], c2[2]


@inline
def congruence(R, S):
    """R S Rᵀ, S symmetric"""
    a = symmul(S, (R[0], R[1], R[2]))
    b = symmul(S, (R[3], R[4], R[5]))
    c = symmul(S, (R[6], R[7], R[8]))
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * b[0] + R[4] * b[1] + R[5] * b[2],
        R[6] * c[0] + R[7] * c[1] + R[8] * c[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
        R[6] * b[0] + R[7] * b[1] + R[8] * b[2],
    )


# --- 6-vectors --------------------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """A spatial motion vector: angular part w, linear part v."""

    w: Any
    v: Any

    def __add__(self, other):
        return Motion(add(self.w, other.w), add(self.v, other.v))

    def __sub__(self, other):
        return Motion(sub(self.w, other.w), sub(self.v, other.v))

    def __mul__(self, number):
        return Motion(scale(number, self.w), scale(number, self.v))

    def cross(self, other):
        """With a motion V × S, with a force S ×* F."""
        if isinstance(other, Motion):
            return Motion(cross(self.w, other.w), add_cross(cross(self.w, other.v), self.v, other.w))
        return Force(add_cross(cross(self.w, other.n), self.v, other.f), cross(self.w, other.f))

    def dot(self, force):
        return dot(self.w, force.n) + dot(self.v, force.f)

    def at(self, d):
        return Motion(self.w, add_cross(self.v, self.w, d))


class Force(NamedTuple):
    """A spatial force vector: moment n, force f."""

    n: Any
    f: Any

    def __add__(self, other):
        return Force(add(self.n, other.n), add(self.f, other.f))

    def __sub__(self, other):
        return Force(sub(self.n, other.n), sub(self.f, other.f))

    def __mul__(self, number):
        return Force(scale(number, self.n), scale(number, self.f))

    def before(self, d):
        return Force(add_cross(self.n, d, self.f), self.f)


# --- constants of the mechanism ---------------------------------------------------------------------------------


@inline
def row3(x, i, k):
    return x[i, k], x[i, k + 1], x[i, k + 2]


@inline
def row6(x, i, k):
    return x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3], x[i, k + 4], x[i, k + 5]


@inline
def row9(x, i):
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5], x[i, 6], x[i, 7], x[i, 8]


# --- scratch and states -----------------------------------------------------------------------------------------


@inline
def load3(x, k):
    return load(x, k), load(x, k + 1), load(x, k + 2)


@inline
def store3(x, k, u):
    store(x, k, u[0])
    store(x, k + 1, u[1])
    store(x, k + 2, u[2])


@inline
def add3(x, k, u):
    """x[k…] += u"""
    store3(x, k, add(load3(x, k), u))


@inline
def load_motion(x, k):
    return Motion(load3(x, k), load3(x, k + 3))


@inline
def load_force(x, k):
    return Force(load3(x, k), load3(x, k + 3))


@inline
def put(x, k, X):
    """x[k…] = X, a motion or a force"""
    store3(x, k, X[0])
    store3(x, k + 3, X[1])


@inline
def increase(x, k, X):
    """x[k…] += X, a motion or a force"""
    add3(x, k, X[0])
    add3(x, k + 3, X[1])


@inline
def load6(x, k):
    return load(x, k), load(x, k + 1), load(x, k + 2), load(x, k + 3), load(x, k + 4), load(x, k + 5)


@inline
def load9(x, k):
    return (
        load(x, k), load(x, k + 1), load(x, k + 2),
        load(x, k + 3), load(x, k + 4), load(x, k + 5),
        load(x, k + 6), load(x, k + 7), load(x, k + 8),
    )  # fmt: skip


@inline
def store9(x, k, R):
    store3(x, k, (R[0], R[1], R[2]))
    store3(x, k + 3, (R[3], R[4], R[5]))
    store3(x, k + 6, (R[6], R[7], R[8]))


@inline
def gather3(x, r, k):
    return gather(x, r, k), gather(x, r, k + 1), gather(x, r, k + 2)


@inline
def scatter3(x, r, k, u):
    scatter(x, r, k, u[0])
    scatter(x, r, k + 1, u[1])
    scatter(x, r, k + 2, u[2])
