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

from tests.reference import oracle

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
    return Jet(value, np.zeros(n), np.zeros((n, n)))


def vector(derivatives: tuple[Array, Array, Array], link: int, x: ArrayLike, n: int, *, point: bool) -> list[Jet]:
    """A point, or a direction, fixed in a link (−1: the world), in the world: three jets."""
    x = np.append(x, 1.0 if point else 0.0)
    if link < 0:
        return [constant(n, value) for value in x[:3]]
    T, dT, ddT = (X[link] @ x for X in derivatives)
    return [Jet(T[k], dT[:, k], ddT[..., k]) for k in range(3)]


def dot(a: list[Jet], b: list[Jet]) -> Jet:
    x, y, z = (one * other for one, other in zip(a, b, strict=True))
    return x + y + z


def row(model: oracle.AnyModel, what: dict[str, Any], derivatives: tuple[Array, Array, Array], q: Array) -> Jet:
    """φ of one row: a dictionary with its ``kind`` and what belongs to that."""
    n, kind = model.n, what["kind"]
    if kind == "joint":
        phi = constant(n, q[what["i"]] - what["offset"])
        phi.gradient[what["i"]] = 1.0
        if what["j"] >= 0:
            phi.value = phi.value - what["ratio"] * q[what["j"]]
            phi.gradient[what["j"]] = -what["ratio"]
        return phi
    A, B = what["A"], what["B"]
    if kind == "direction":
        a = vector(derivatives, A, what["a"], n, point=False)
        return dot(a, vector(derivatives, B, what["b"], n, point=False)).times(what["sign"])
    ends = vector(derivatives, A, what["x_A"], n, point=True), vector(derivatives, B, what["x_B"], n, point=True)
    apart = [one - other for one, other in zip(*ends, strict=True)]
    if kind == "distance":
        return dot(apart, apart).sqrt() - constant(n, what["length"])
    return dot(apart, vector(derivatives, what["u_in"], what["u"], n, point=False))


def rows(model: oracle.AnyModel, whats: list[dict[str, Any]], q: ArrayLike) -> tuple[Array, Array, Array]:
    """φ (m,), G (m, n) and ∂²φ/∂q² (m, n, n) of all rows."""
    q = np.asarray(q)
    derivatives = oracle.transform_derivatives(model, q)
    jets = [row(model, what, derivatives, q) for what in whats]
    return (
        np.array([jet.value for jet in jets]),
        np.array([jet.gradient for jet in jets]),
        np.array([jet.hessian for jet in jets]),
    )


def saddle(M: Array, G: Array, r: Array, s: Array) -> tuple[Array, Array]:
    """a and f of the dense system."""
    n, m = M.shape[0], G.shape[0]
    K = np.block([[M, -G.T], [G, np.zeros((m, m))]])
    found = np.linalg.solve(K, np.concatenate([r, s]))
    return found[:n], found[n:]


def least_norm(M: Array, G: Array, r: Array, s: Array, rank: int) -> tuple[Array, Array]:
    """a and the f of least norm where only `rank` rows of G are independent.

    G = Q R of independent columns Q, (m, rank), chosen from the real part; then f = Q g, and the rows Qᵀ G a = Qᵀ s
    are independent.  A complex-safe basis: Q = G B with B real and fixed, made orthonormal by a complex-safe factor.
    """
    B = np.linalg.svd(np.real(G))[2][:rank].T
    C = G @ B
    # rows of G that span the others: f = C g has the least norm, since all f that act alike differ by null(Gᵀ) ⊥ C
    a, g = saddle(M, C.T @ G, r, C.T @ s)
    return a, C @ g


def constrained_dynamics(
    model: oracle.AnyModel,
    whats: list[dict[str, Any]],
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *loads: ArrayLike | None,
    stabilisation: tuple[float, float] = (0.0, 0.0),
    rank: int | None = None,
) -> tuple[Array, Array]:
    """a (n,) and f (m,)."""
    v, (alpha, beta) = np.asarray(v), stabilisation
    phi, G, H = rows(model, whats, q)
    h = oracle.regular_lagrangian(model, q, v, np.zeros(model.n), *loads)
    s = -np.einsum("cjk,j,k->c", H, v, v) - 2 * alpha * (G @ v) - beta**2 * phi
    M, r = oracle.mass_matrix(model, q), np.asarray(tau) - h
    return saddle(M, G, r, s) if rank is None else least_norm(M, G, r, s, rank)


def impact(
    model: oracle.AnyModel, whats: list[dict[str, Any]], q: ArrayLike, v: ArrayLike, restitution: float = 0.0
) -> tuple[Array, Array]:
    """v⁺ (n,) and impulses (m,)."""
    v = np.asarray(v)
    _, G, _ = rows(model, whats, q)
    change, impulses = saddle(oracle.mass_matrix(model, q), G, 0 * v, -(1 + restitution) * (G @ v))
    return v + change, impulses
