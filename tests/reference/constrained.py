"""Constrained motion as plainly as it can be written: φ by its second-order expansion, then one dense system.

A row φ(q) is a product of a few vectors fixed in links, whose transforms have exact first and second derivatives
(``oracle.transform_derivatives``).  :class:`Jet` carries value, gradient and Hessian through such products, so that

    G = ∂φ/∂q        φ̇ = G v        φ̈ = G a + vᵀ (∂²φ/∂q²) v

need no recursion, no spatial vectors and no differences; and all of it is complex-safe.  Then

    [M  −Gᵀ; G  0] [a; f] = [τ − h; −φ̈(a = 0) − 2 α φ̇ − β² φ]

is solved as it stands, or, where rows depend on each other, for the f of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.constraints import ConstraintSet, Contact, Coupling, Distance, Given, Loop
from tests.reference import oracle
from tests.reference.constraints import TURNS

Array = NDArray[Any]  # float64 or complex128


class Jet:
    """A number with its gradient (n,) and Hessian (n, n)."""

    def __init__(self, value: Any, gradient: Array, hessian: Array) -> None:
        self.value, self.gradient, self.hessian = value, gradient, hessian

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian)

    def __sub__(self, other: Jet) -> Jet:
        return self + other.times(-1.0)

    def times(self, c: Any) -> Jet:
        return Jet(c * self.value, c * self.gradient, c * self.hessian)

    def __mul__(self, other: Jet) -> Jet:
        a, b, across = self, other, np.outer(self.gradient, other.gradient)
        hessian = a.value * b.hessian + b.value * a.hessian + across + across.T
        return Jet(a.value * b.value, a.value * b.gradient + b.value * a.gradient, hessian)

    def sqrt(self) -> Jet:
        root = np.sqrt(self.value)
        outer = np.outer(self.gradient, self.gradient)
        return Jet(root, self.gradient / (2 * root), self.hessian / (2 * root) - outer / (4 * root**3))


def constant(n: int, value: Any) -> Jet:
    return Jet(value, np.zeros(n, np.result_type(value)), np.zeros((n, n)))


class Frames:
    """Links of a model at q, whose points and directions are jets in the world."""

    def __init__(self, model: oracle.AnyModel, names: Any, q: Array) -> None:
        self.n, self.names, self.derivatives = model.n, names, oracle.transform_derivatives(model, q)

    def vector(self, link: str | None, x: ArrayLike, fourth: float) -> list[Jet]:
        """A point (fourth = 1) or a direction (0) of a link, of a frame fixed in one, or of the world: three jets."""
        x = np.append(x, fourth)
        if link is None:
            return [constant(self.n, value) for value in x[:3]]
        if link in self.names.frames:
            frame = self.names.frames[link]
            link, x = frame.link, frame.placement @ x
        T, dT, ddT = (X[self.names.link_names.index(link)] @ x for X in self.derivatives)
        return [Jet(T[k], dT[:, k], ddT[..., k]) for k in range(3)]

    def apart(self, one: Any, point: ArrayLike, other_point: ArrayLike) -> list[Jet]:
        """From the other's point to that of the link."""
        ends = self.vector(one.link, point, 1.0), self.vector(one.other, other_point, 1.0)
        return [here - there for here, there in zip(*ends, strict=True)]


def dot(a: list[Jet], b: list[Jet]) -> Jet:
    x, y, z = (one * other for one, other in zip(a, b, strict=True))
    return x + y + z


def jets(model: oracle.AnyModel, constraints: ConstraintSet, q: Array) -> list[Jet]:
    """φ of all rows, from the descriptions alone."""
    at, n, names, found = Frames(model, constraints.model, q), model.n, constraints.model, list[Jet]()
    for one in constraints:
        if isinstance(one, Contact):
            e = at.apart(one, one.point, one.other_point)
            found += [dot(e, at.vector(None, u, 0.0)) for u in one.units]
        elif isinstance(one, Distance):
            e = at.apart(one, one.point, one.other_point)
            found.append(dot(e, e).sqrt() - constant(n, one.length))
        elif isinstance(one, Loop):
            found += _loop(at, one)
        else:
            i, offset = names.joint_names.index(one.joint), one.value if isinstance(one, Given) else one.offset
            phi = constant(n, q[i] - offset)
            phi.gradient[i] = 1.0
            if isinstance(one, Coupling):
                j = names.joint_names.index(one.other)
                phi.value, phi.gradient[j] = phi.value - one.ratio * q[j], -one.ratio
            found.append(phi)
    return found


def _loop(at: Frames, one: Loop) -> list[Jet]:
    ours, theirs = one.placement, one.other_placement
    e = at.apart(one, ours[:3, 3], theirs[:3, 3])
    locked = "".join(letter for letter in one.directions if letter.isupper())
    found = []
    for letter in one.directions:
        if letter.islower():
            found.append(dot(e, at.vector(one.other, theirs[:3, "xyz".index(letter)], 0.0)))
        else:  # an entry of the rotation of one frame in the other
            row, column, sign = TURNS[letter][locked]
            axes = at.vector(one.other, theirs[:3, row], 0.0), at.vector(one.link, ours[:3, column], 0.0)
            found.append(dot(*axes).times(sign))
    return found


def rows(model: oracle.AnyModel, constraints: ConstraintSet, q: ArrayLike) -> tuple[Array, Array, Array]:
    """φ (m,), G (m, n) and ∂²φ/∂q² (m, n, n) of all rows; `model` is that of the set, or has complex constants."""
    found = jets(model, constraints, np.asarray(q))
    return tuple(np.array([getattr(jet, what) for jet in found]) for what in ("value", "gradient", "hessian"))


def saddle(M: Array, G: Array, r: Array, s: Array) -> tuple[Array, Array]:
    """a and f of the dense system."""
    n, m = M.shape[0], G.shape[0]
    K = np.block([[M, -G.T], [G, np.zeros((m, m))]])
    found = np.linalg.solve(K, np.concatenate([r, s]))
    return found[:n], found[n:]


def least_norm(M: Array, G: Array, r: Array, s: Array, rank: int) -> tuple[Array, Array]:
    """a and the f of least norm where only `rank` rows of G are independent, also near q.

    With a fixed real B, the columns of C = G B span the range of G; f = C g has the least norm, since all f that act
    alike differ by what is orthogonal to it, and the rows Cᵀ G a = Cᵀ s are independent.
    """
    B = np.linalg.svd(np.real(G))[2][:rank].T
    C = G @ B
    K = np.block([[M, -G.T @ C], [C.T @ G, np.zeros((rank, rank))]])
    found = np.linalg.solve(K, np.concatenate([r, C.T @ s]))
    return found[: len(M)], C @ found[len(M) :]


def constrained_dynamics(
    model: oracle.AnyModel,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *loads: ArrayLike | None,
    stabilisation: tuple[float, float] = (0.0, 0.0),
    rank: int | None = None,
) -> tuple[Array, Array]:
    """a (n,) and f (m,)."""
    v, (alpha, beta) = np.asarray(v), stabilisation
    phi, G, H = rows(model, constraints, q)
    h = oracle.regular_lagrangian(model, q, v, np.zeros(model.n), *loads)
    s = -np.einsum("cjk,j,k->c", H, v, v) - 2 * alpha * (G @ v) - beta**2 * phi
    M, r = oracle.mass_matrix(model, q), np.asarray(tau) - h
    return saddle(M, G, r, s) if rank is None else least_norm(M, G, r, s, rank)


def constrained_inverse_dynamics(
    model: oracle.AnyModel,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    S: Array,
    *loads: ArrayLike | None,
) -> tuple[Array, Array]:
    """u (k,) and f (m,) of least norm with S u + Gᵀ f = M a + h.

    By a full-rank factorisation B = F H, with F = B V and a fixed real V: analytic where the rank of B stays as it is,
    which a singular value decomposition of complex numbers is not.
    """
    B = np.concatenate([S, rows(model, constraints, q)[1].T], axis=1)
    V = np.linalg.svd(np.real(B))[2][: np.linalg.matrix_rank(np.real(B), rtol=1e-9)].T
    F = B @ V
    H = np.linalg.solve(F.T @ F, F.T @ B)
    b = oracle.regular_lagrangian(model, q, v, a, *loads)
    x = H.T @ np.linalg.solve(H @ H.T, np.linalg.solve(F.T @ F, F.T @ b))
    return x[: S.shape[1]], x[S.shape[1] :]


def impact(
    model: oracle.AnyModel,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    restitution: ArrayLike = 0.0,
    rank: int | None = None,
) -> tuple[Array, Array]:
    """v⁺ (n,) and impulses (m,)."""
    v, e = np.asarray(v), np.asarray(restitution)
    _, G, _ = rows(model, constraints, q)
    system = oracle.mass_matrix(model, q), G, 0 * v, -(1 + e) * (G @ v)
    change, impulses = saddle(*system) if rank is None else least_norm(*system, rank)
    return v + change, impulses
