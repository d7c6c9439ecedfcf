"""dq̈/dp of :mod:`kinegrad.papers.anderson2002` in extended precision: what the rounding errors of all are taken from.

(57)–(61) with plain NumPy in ``clongdouble``, and their slopes by a complex step, f(x + i h dx) = f + i h f' + O(h²),
without (62)–(70): no formula for a derivative is shared with the methods compared.  Where a ``longdouble`` has 64 bits
behind its point (x86 under Linux and macOS), rounding is 2000 times finer than in double; where it is a double, it is
not, which :data:`EPSILON` tells.  Symbols are those of :mod:`kinegrad.papers.anderson2002.chain`; a leading axis is p.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.papers.anderson2002.chain import Array, Chain

__all__ = ["EPSILON", "WIDER", "extended_derivatives"]

Wide = NDArray[Any]  # clongdouble
EPSILON = float(np.finfo(np.longdouble).eps)
WIDER = EPSILON < 1e-18  # than a double
STEP = np.longdouble(10) ** -40  # h: its square is nothing beside 1


def extended_derivatives(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Array:
    """dq̈/dp, (p, n), rounded to double at the very end; arguments as the methods take them.

    Examples
    --------
    >>> from kinegrad.papers.anderson2002.experiment import chain_design, prepare
    >>> from kinegrad.papers.anderson2002.methods import fully_recursive
    >>> case = prepare(chain_design(3))
    >>> given = case.chain, case.q[0], case.v[0], *case.slopes
    >>> bool(np.abs(extended_derivatives(*given) - fully_recursive(*given)[1]).max() < 1e-12)
    True
    """
    a = _accelerations(*_moved(chain, q, v, dq, dv))
    return np.asarray(a.imag / STEP, dtype=np.float64)


def _moved(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Chain, Wide, Wide]:
    """Constants and states, a step along each parameter."""
    moved = chain._replace(
        s=_along(chain.s, chain.ds),
        r=_along(chain.r, chain.dr),
        m=_along(chain.m, chain.dm),
        inertia=_along(chain.inertia, chain.dinertia),
    )
    return moved, _along(q, dq), _along(v, dv)


def _along(x: Array, dx: Array) -> Wide:
    """x + i h dx for all dx, (p, ...)."""
    return x.astype(np.clongdouble) + 1j * STEP * dx


def _accelerations(chain: Chain, q: Wide, v: Wide) -> Wide:
    """q̈, (p, n), of p chains at their own states."""
    p, n = q.shape
    S, P = np.zeros((n, p, 6, 6), np.clongdouble), np.zeros((n, p, 6), np.clongdouble)
    I3, F3 = np.zeros((n, p, 6, 6), np.clongdouble), np.zeros((n, p, 6), np.clongdouble)
    w, al, a = np.zeros((3, p, 3), np.clongdouble)
    a -= chain.gravity
    for k in range(n):  # [anderson2002] (33)–(36), (42), (20)–(24)
        e, s, r, inertia = chain.e[k], chain.s[:, k], chain.r[:, k], chain.inertia[:, k]
        C = chain.C0[k] @ _turn(e, q[:, k])
        S[k, :, :3, :3] = S[k, :, 3:, 3:] = C
        S[k, :, :3, 3:] = _skew(s + _times(C, r)) @ C
        back, rate = C.transpose(0, 2, 1), v[:, k, None] * e
        a = _times(back, a + np.cross(al, s) + np.cross(w, np.cross(w, s)))
        w, al = _times(back, w), _times(back, al)
        w, al = w + rate, al + np.cross(w, rate)
        a = a + np.cross(al, r) + np.cross(w, np.cross(w, r))
        P[k, :, :3], P[k, :, 3:] = e, np.cross(e, r)
        I3[k, :, :3, :3], I3[k, :, [3, 4, 5], [3, 4, 5]] = inertia, chain.m[:, k]
        F3[k, :, :3] = -_times(inertia, al) - np.cross(w, _times(inertia, w))
        F3[k, :, 3:] = -chain.m[:, k, None] * a
    M, b = np.zeros((n, p), np.clongdouble), np.zeros((n, p, 6), np.clongdouble)
    for k in range(n - 1, -1, -1):
        b[k] = _times(I3[k], P[k])
        M[k] = (P[k] * b[k]).sum(axis=1)  # [anderson2002] (59)
        if k > 0:
            scaled = b[k] / M[k, :, None]
            rest = I3[k] - b[k, :, :, None] * scaled[:, None, :]
            I3[k - 1] += S[k] @ rest @ S[k].transpose(0, 2, 1)  # [anderson2002] (57)
            F3[k - 1] += _times(S[k], F3[k] - scaled * (P[k] * F3[k]).sum(axis=1)[:, None])  # [anderson2002] (58)
    accelerations, A = np.zeros((p, n), np.clongdouble), np.zeros((p, 6), np.clongdouble)
    for k in range(n):
        A = _times(S[k].transpose(0, 2, 1), A)
        accelerations[:, k] = ((P[k] * F3[k]).sum(axis=1) - (b[k] * A).sum(axis=1)) / M[k]  # [anderson2002] (60)
        A = A + P[k] * accelerations[:, k, None]  # [anderson2002] (61)
    return accelerations


def _times(A: Wide, x: Wide) -> Wide:
    product: Wide = (A @ x[..., None])[..., 0]
    return product


def _skew(x: Wide) -> Wide:
    """x×, (p, 3, 3)."""
    matrix = np.zeros((*x.shape, 3), x.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[:, k, j], matrix[:, j, k] = x[:, i], -x[:, i]
    return matrix


def _turn(e: Array, angle: Wide) -> Wide:
    """Rot(e, q), (p, 3, 3)."""
    E = _skew(e.astype(np.longdouble)[None])
    matrix: Wide = np.eye(3) + np.sin(angle)[:, None, None] * E + (1 - np.cos(angle))[:, None, None] * (E @ E)
    return matrix
