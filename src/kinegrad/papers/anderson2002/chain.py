"""What the methods of [anderson2002] share: a chain, its outward kinematics (33)–(38), and its slopes in any direction.

Everything of body k is in the basis of body k, about its mass centre; 6-vectors have the angular part first.  Bodies
are numbered from 0 here (from 1 in the paper); the parent of body 0 is the world.  Joints are hinges and gravity is the
only load, as in section 5 of the paper.  Compiled with Numba: scalars and plain arrays, one state at a time.

=============  ===================================================================================
e              axis of hinge k, in the basis of body k
C              direction cosines: basis k to basis k − 1;  C = C0 Rot(e, q),  ∂C/∂q = C e×
s, r           mass centre k − 1 to hinge k, basis k − 1;  hinge k to mass centre k, basis k
γ = s + C r    mass centre k − 1 to mass centre k, basis k − 1
S              the basis-consistent shifting matrix (42), S C: loads of body k to body k − 1; (6, 6)
P              partial velocities 𝒫_k of body k by its own hinge, [e; e × r]; (6,)
I1             inertia (21), diag(I, m 1); (6, 6)
w, al, a       ω, and what α and a are without the unknown q̈; the world accelerates by −gravity
F1             loads (22): [−I al − ω × I ω; −m a]; (6,)
=============  ===================================================================================

Where printed formulas differ from these, the scan or the paper errs: :mod:`kinegrad.papers.anderson2002.page` has the
list, and the tests show each.

References
----------
[anderson2002] Anderson, Hsu, analytical fully-recursive sensitivity analysis for multibody dynamic chain systems.
"""

from __future__ import annotations

from math import cos, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.model.constants import find_constant
from kinegrad.papers.report.compiled import compiled, inner

__all__ = [
    "Chain",
    "Direction",
    "Motion",
    "Slope",
    "add_product",
    "add_product_t",
    "bilinear",
    "chain_of",
    "clear",
    "dot",
    "multiply",
    "multiply_t",
    "outward",
    "outward_slope",
]

Array = NDArray[np.float64]
Vector = tuple[float, float, float]


class Chain(NamedTuple):
    """Constants of a chain of n bodies, and their slopes along p design parameters."""

    e: Array  # (n, 3)
    C0: Array  # (n, 3, 3)
    s: Array  # (n, 3)
    r: Array  # (n, 3)
    m: Array  # (n,), kg
    inertia: Array  # (n, 3, 3), about the mass centre
    gravity: Array  # (3,)
    ds: Array  # (p, n, 3)
    dr: Array  # (p, n, 3)
    dm: Array  # (p, n)
    dinertia: Array  # (p, n, 3, 3)


class Motion(NamedTuple):
    """What the outward pass leaves behind for each body."""

    C: Array  # (n, 3, 3)
    w: Array  # (n, 3)
    al: Array  # (n, 3)
    a: Array  # (n, 3)
    al_parent: Array  # (n, 3), al of the parent in the basis of the body
    a_hinge: Array  # (n, 3), a of the hinge in the basis of the body
    S: Array  # (n, 6, 6)
    P: Array  # (n, 6)
    I1: Array  # (n, 6, 6)
    F1: Array  # (n, 6)


class Direction(NamedTuple):
    """Along what to differentiate: slopes of the state and of the constants."""

    dq: Array  # (n,)
    dv: Array  # (n,)
    ds: Array  # (n, 3)
    dr: Array  # (n, 3)
    dm: Array  # (n,)
    dinertia: Array  # (n, 3, 3)


class Slope(NamedTuple):
    """Slopes of what :class:`Motion` holds."""

    S: Array  # (n, 6, 6)
    P: Array  # (n, 6)
    I1: Array  # (n, 6, 6)
    F1: Array  # (n, 6)


def chain_of(design: Design) -> Chain:
    """The chain that a design's model is, with the slopes of its constants.

    Parameters
    ----------
    design : Design
        Of lengths, masses and inertias of a chain of hinges, without springs, dampers and rotors.

    Returns
    -------
    Chain

    Examples
    --------
    >>> from kinegrad import samples
    >>> chain = chain_of(Design(samples.double_pendulum(L1=0.8), {"L1": {"P.com.z": -1, "hinge2.placement.z": -1}}))
    >>> chain.r[0], chain.dr[0, 0], chain.ds[0, 1]  # P hangs on the bar's end, where hinge 2 is, too
    (array([ 0. ,  0. , -0.8]), array([ 0.,  0., -1.]), array([0., 0., 0.]))
    """
    model, n, p = design.model, design.model.n, design.p
    name = f"model {model.name!r}"
    if list(model.parents) != list(range(-1, n - 1)) or any(joint.kind != "revolute" for joint in model.joints):
        raise InputError(f"{name} is not a chain of hinges, each on the one before; expected one")
    if (model.tip != np.eye(4)).any():
        raise InputError(f"{name} has link frames away from their joints; expected `tip` to be the identity")
    if any(getattr(model, what).any() for what in ("stiffness", "damping", "armature")):
        raise InputError(f"{name} has springs, dampers or rotors; [anderson2002] section 5 has none")
    slopes = {what: np.zeros((p, *getattr(model, what).shape)) for what in ("placement", "com", "mass", "inertia")}
    for j, spec in enumerate(design.parameters.values()):  # type: ignore[union-attr]
        for constant, coefficient in ({spec: 1.0} if isinstance(spec, str) else spec).items():
            for what, slope in find_constant(model, constant).slopes(model).items():
                if what not in slopes or (what == "placement" and slope[:, :3, :3].any()):
                    raise InputError(f"constant {constant!r} is not a length, a mass or an inertia")
                slopes[what][j] += coefficient * slope
    inward = np.vstack([np.zeros(3), model.com[:-1]])  # mass centre of the parent, from its own hinge
    dinward = np.concatenate([np.zeros((p, 1, 3)), slopes["com"][:, :-1]], axis=1)
    return Chain(
        e=np.array([joint.axis for joint in model.joints], dtype=np.float64),
        C0=np.ascontiguousarray(model.placement[:, :3, :3]),
        s=model.placement[:, :3, 3] - inward,
        r=model.com.copy(),
        m=model.mass.copy(),
        inertia=model.inertia.copy(),
        gravity=model.gravity.copy(),
        ds=slopes["placement"][:, :, :3, 3] - dinward,
        dr=slopes["com"],
        dm=slopes["mass"],
        dinertia=slopes["inertia"],
    )


# --- vectors of three, as tuples ----------------------------------------------------------------------------------


@inner
def vector(x: Array) -> Vector:
    return (x[0], x[1], x[2])


@inner
def put(y: Array, start: int, x: Vector) -> None:
    y[start], y[start + 1], y[start + 2] = x


@inner
def add(x: Vector, y: Vector) -> Vector:
    return (x[0] + y[0], x[1] + y[1], x[2] + y[2])


@inner
def scale(c: float, x: Vector) -> Vector:
    return (c * x[0], c * x[1], c * x[2])


@inner
def cross(x: Vector, y: Vector) -> Vector:
    return (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])


@inner
def turn(C: Array, x: Vector) -> Vector:
    """C x"""
    return (
        C[0, 0] * x[0] + C[0, 1] * x[1] + C[0, 2] * x[2],
        C[1, 0] * x[0] + C[1, 1] * x[1] + C[1, 2] * x[2],
        C[2, 0] * x[0] + C[2, 1] * x[1] + C[2, 2] * x[2],
    )


@inner
def turn_back(C: Array, x: Vector) -> Vector:
    """Cᵀ x"""
    return (
        C[0, 0] * x[0] + C[1, 0] * x[1] + C[2, 0] * x[2],
        C[0, 1] * x[0] + C[1, 1] * x[1] + C[2, 1] * x[2],
        C[0, 2] * x[0] + C[1, 2] * x[1] + C[2, 2] * x[2],
    )


@inner
def direction_cosines(C: Array, C0: Array, e: Vector, q: float) -> None:
    """C = C0 Rot(e, q), row by row: Rot x = x + sin q e × x + (1 − cos q) e × (e × x)."""
    for i in range(3):
        x = (C0[i, 0], C0[i, 1], C0[i, 2])
        across = cross(x, e)  # of a row: Rotᵀ
        put(C[i], 0, add(x, add(scale(sin(q), across), scale(1 - cos(q), cross(across, e)))))


# --- vectors and matrices of six, as arrays --------------------------------------------------------------------------


@inner
def clear(x: Array) -> None:
    y = x.reshape(-1)
    for i in range(y.size):
        y[i] = 0.0


@inner
def dot(x: Array, y: Array) -> float:
    total: float = x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5]
    return total


@inner
def add_product(y: Array, A: Array, x: Array) -> None:
    """y += A x"""
    for i in range(6):
        y[i] += dot(A[i], x)


@inner
def add_product_t(y: Array, A: Array, x: Array) -> None:
    """y += Aᵀ x"""
    for j in range(6):
        for i in range(6):
            y[i] += A[j, i] * x[j]


@inner
def multiply(Y: Array, A: Array, B: Array) -> None:
    """Y = A B"""
    for i in range(6):
        for j in range(6):
            Y[i, j] = 0.0
        for k in range(6):
            for j in range(6):
                Y[i, j] += A[i, k] * B[k, j]


@inner
def multiply_t(Y: Array, A: Array, B: Array) -> None:
    """Y = A Bᵀ"""
    for i in range(6):
        for j in range(6):
            Y[i, j] = dot(A[i], B[j])


@inner
def bilinear(x: Array, A: Array, y: Array) -> float:
    """xᵀ A y"""
    total = 0.0
    for i in range(6):
        total += x[i] * dot(A[i], y)
    return total


# --- the outward passes -------------------------------------------------------------------------------------------


@inner
def shifting_matrix(S: Array, C: Array, gamma: Vector) -> None:
    """S = [C, γ× C; 0, C].  [anderson2002] (38), (42)"""
    for j in range(3):
        column = (C[0, j], C[1, j], C[2, j])
        moment = cross(gamma, column)
        for i in range(3):
            S[i, j] = S[3 + i, 3 + j] = column[i]
            S[i, 3 + j] = moment[i]
            S[3 + i, j] = 0.0


@compiled
def outward(chain: Chain, q: Array, v: Array) -> Motion:
    """From the world to the last body: [anderson2002] (33), (35), (36), (42), and (20)–(24) of each body."""
    n = len(q)
    x = np.empty((6, n, 3))
    motion = Motion(
        np.empty((n, 3, 3)), x[0], x[1], x[2], x[3], x[4],
        np.empty((n, 6, 6)), np.empty((n, 6)), np.zeros((n, 6, 6)), np.empty((n, 6)),
    )  # fmt: skip
    w, al, a = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), scale(-1.0, vector(chain.gravity))
    for k in range(n):
        e, s, r, C, m = vector(chain.e[k]), vector(chain.s[k]), vector(chain.r[k]), motion.C[k], chain.m[k]
        direction_cosines(C, chain.C0[k], e, q[k])
        shifting_matrix(motion.S[k], C, add(s, turn(C, r)))  # [anderson2002] (42)
        hinge = turn_back(C, add(a, add(cross(al, s), cross(w, cross(w, s)))))
        w_parent, al_parent = turn_back(C, w), turn_back(C, al)
        w = add(w_parent, scale(v[k], e))  # [anderson2002] (33)
        al = add(al_parent, cross(w_parent, scale(v[k], e)))  # [anderson2002] (35) without q̈
        a = add(hinge, add(cross(al, r), cross(w, cross(w, r))))  # [anderson2002] (36) without q̈
        put(motion.w[k], 0, w)
        put(motion.al[k], 0, al)
        put(motion.a[k], 0, a)
        put(motion.al_parent[k], 0, al_parent)
        put(motion.a_hinge[k], 0, hinge)
        put(motion.P[k], 0, e)  # [anderson2002] (20)
        put(motion.P[k], 3, cross(e, r))
        for i in range(3):  # [anderson2002] (21)
            motion.I1[k, 3 + i, 3 + i] = m
            for j in range(3):
                motion.I1[k, i, j] = chain.inertia[k, i, j]
        torque = add(turn(chain.inertia[k], al), cross(w, turn(chain.inertia[k], w)))
        put(motion.F1[k], 0, scale(-1.0, torque))  # [anderson2002] (22), (24)
        put(motion.F1[k], 3, scale(-m, a))  # [anderson2002] (22), (23)
    return motion


@inner
def outward_slope(chain: Chain, motion: Motion, v: Array, d: Direction, first: int | np.int64, slope: Slope) -> None:
    """Slopes of :func:`outward` along `d`, for bodies from `first` on; none before may change.  O(1) a body."""
    zero = (0.0, 0.0, 0.0)
    dw, dal, da = zero, zero, zero
    for k in range(first, len(v)):
        e, s, r, C, m = vector(chain.e[k]), vector(chain.s[k]), vector(chain.r[k]), motion.C[k], chain.m[k]
        dq, dv, ds, dr = d.dq[k], d.dv[k], vector(d.ds[k]), vector(d.dr[k])
        w0, al0 = zero, zero
        if k > 0:
            w0, al0 = vector(motion.w[k - 1]), vector(motion.al[k - 1])
        w, al, a = vector(motion.w[k]), vector(motion.al[k]), vector(motion.a[k])
        turned = scale(dq, e)  # d(Cᵀx) = Cᵀdx + (Cᵀx) × e dq
        dgamma = add(ds, turn(C, add(dr, cross(turned, r))))
        shifting_matrix_slope(slope.S[k], C, add(s, turn(C, r)), turned, dgamma)
        spin = add(cross(dw, cross(w0, s)), cross(w0, add(cross(dw, s), cross(w0, ds))))
        dhinge = turn_back(C, add(da, add(add(cross(dal, s), cross(al0, ds)), spin)))
        dhinge = add(dhinge, cross(vector(motion.a_hinge[k]), turned))
        w_parent = add(w, scale(-v[k], e))
        dw_parent = add(turn_back(C, dw), cross(w_parent, turned))
        dw = add(dw_parent, scale(dv, e))  # [anderson2002] (33), differentiated
        dal = add(turn_back(C, dal), cross(vector(motion.al_parent[k]), turned))  # (35)
        dal = add(dal, add(cross(dw_parent, scale(v[k], e)), cross(w_parent, scale(dv, e))))
        spin = add(cross(dw, cross(w, r)), cross(w, add(cross(dw, r), cross(w, dr))))
        da = add(dhinge, add(add(cross(dal, r), cross(al, dr)), spin))  # (36)
        put(slope.P[k], 0, zero)
        put(slope.P[k], 3, cross(e, dr))
        inertia, dinertia = chain.inertia[k], d.dinertia[k]
        for i in range(3):  # [anderson2002] (76)
            slope.I1[k, 3 + i, 3 + i] = d.dm[k]
            for j in range(3):
                slope.I1[k, i, j] = dinertia[i, j]
        torque = add(add(turn(dinertia, al), turn(inertia, dal)), cross(dw, turn(inertia, w)))
        torque = add(torque, cross(w, add(turn(dinertia, w), turn(inertia, dw))))
        put(slope.F1[k], 0, scale(-1.0, torque))  # [anderson2002] (22)–(24), differentiated
        put(slope.F1[k], 3, add(scale(-d.dm[k], a), scale(-m, da)))


@inner
def shifting_matrix_slope(dS: Array, C: Array, gamma: Vector, turned: Vector, dgamma: Vector) -> None:
    """dS = [dC, dγ× C + γ× dC; 0, dC] with dC = C (e dq)×."""
    for j in range(3):
        unit = (1.0 * (j == 0), 1.0 * (j == 1), 1.0 * (j == 2))
        column, dcolumn = (C[0, j], C[1, j], C[2, j]), turn(C, cross(turned, unit))
        moment = add(cross(dgamma, column), cross(gamma, dcolumn))
        for i in range(3):
            dS[i, j] = dS[3 + i, 3 + j] = dcolumn[i]
            dS[i, 3 + j] = moment[i]
            dS[3 + i, j] = 0.0
