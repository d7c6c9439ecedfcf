"""What a rigid body takes to be moved: inertia, momentum, force; loads on it, springs and dampers of its joint.

About the reference point of its link (``joints.py``) a body has mass m, first moment h = m c and rotational inertia Ī.
Moving with S = (z, s) it has the momentum

    I S = (Ī z + h×s,  m s − h×z)                                                       [featherstone2008] 2.13

and about a point that is d before its reference point

    h + m d        Ī + 2 (g·d) 1 − g dᵀ − d gᵀ,   g = h + ½ m d

so that the bodies of a subtree add up to one.  The force that its motion takes is, with c to its centre of mass,

    f = m (a + α×c + ω×(v + ω×c))                                              [luh1980], [featherstone2008] 5.3
    n = R (I R'α + R'ω × I R'ω) + c×f              (R' = Rᵀ, I about c in the joint frame)

Glossary (world, about the reference point of link i)
    Inertia   (m, h, Ī) of a link, or of a subtree as one body                10 slots: m 1, h 3, Ī xx yy zz xy xz yz
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.joints import FRAME, SHIFT
from kinegrad._kernels.lanes.lane import load, store
from kinegrad._kernels.spatial import (
    Force,
    add,
    add3,
    congruence,
    cross,
    gather3,
    load3,
    load6,
    load9,
    mul,
    row3,
    row6,
    row9,
    scale,
    store3,
    sub,
    symmul,
    tmul,
)  # fmt: skip

INERTIA = 10  # slots of an inertia


class Inertia(NamedTuple):
    """Mass, first moment, rotational inertia of a body."""

    mass: Any
    h: Any
    I: Any

    def times(self, S):
        """I S, a force."""
        return Force(
            add(symmul(self.I, S.w), cross(self.h, S.v)),
            sub(scale(self.mass, S.v), cross(self.h, S.w)),
        )

    def before(self, d):
        """The same body about a point that is d before."""
        half = scale(0.5 * self.mass, d)
        g = add(self.h, half)
        return Inertia(self.mass, add(g, half), plus(self.I, parallel(g, d)))


@inline
def plus(A, B):
    """A + B of symmetric matrices."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5]


@inline
def parallel(g, d):
    """2 (g·d) 1 − g dᵀ − d gᵀ: the parallel axis theorem with g = h + ½ m d."""
    x, y, z = g[0] * d[0], g[1] * d[1], g[2] * d[2]
    xy, xz, yz = -(g[0] * d[1] + d[0] * g[1]), -(g[0] * d[2] + d[0] * g[2]), -(g[1] * d[2] + d[1] * g[2])
    return 2.0 * (y + z), 2.0 * (x + z), 2.0 * (x + y), xy, xz, yz


@inline
def body(m, i, scratch, at):
    """The inertia of link i alone."""
    R, mass = load9(scratch, at + FRAME), m.inertia[i, 0]
    c = mul(R, row3(m.inertia, i, 1))
    h = scale(mass, c)
    I = congruence(R, row6(m.inertia, i, 4))
    x, y, z = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    xy, xz, yz = I[3] - h[0] * c[1], I[4] - h[0] * c[2], I[5] - h[1] * c[2]
    return Inertia(mass, h, (I[0] + y + z, I[1] + x + z, I[2] + x + y, xy, xz, yz))


@inline
def load_inertia(scratch, k):
    return Inertia(load(scratch, k), load3(scratch, k + 1), load6(scratch, k + 4))


@inline
def store_sym(scratch, k, A):
    """A symmetric matrix."""
    store3(scratch, k, (A[0], A[1], A[2]))
    store3(scratch, k + 3, (A[3], A[4], A[5]))


@inline
def add_sym(scratch, k, A):
    """x[k…] += A of symmetric matrices"""
    add3(scratch, k, (A[0], A[1], A[2]))
    add3(scratch, k + 3, (A[3], A[4], A[5]))


@inline
def store_inertia(scratch, k, body):
    store(scratch, k, body.mass)
    store3(scratch, k + 1, body.h)
    store_sym(scratch, k + 4, body.I)


@inline
def hand_on_inertia(m, i, up, at, slot, scratch):
    """The inertia of subtree i, in its slots `slot` …, to that of its parent."""
    own = load_inertia(scratch, at + slot)
    if m.apart[i]:
        own = own.before(load3(scratch, at + SHIFT))
    store(scratch, up + slot, load(scratch, up + slot) + own.mass)
    add3(scratch, up + slot + 1, own.h)
    add_sym(scratch, up + slot + 4, own.I)


@inline
def inertia_force(m, i, R, V, A):
    """The force that the motion of link i takes."""
    mass, com, inertia = m.inertia[i, 0], row3(m.inertia, i, 1), row6(m.inertia, i, 4)
    c = mul(R, com)
    f = scale(mass, add(A.v, add(cross(A.w, c), cross(V.w, add(V.v, cross(V.w, c))))))
    w, dw = tmul(R, V.w), tmul(R, A.w)
    n = mul(R, add(symmul(inertia, dw), cross(w, symmul(inertia, w))))
    return Force(add(n, cross(c, f)), f)


@inline
def link_point(m, i, scratch, stride, x):
    """The point x of link frame i, from the reference point of link i."""
    in_joint = add(mul(row9(m.F, i), x), row3(m.F, i, 9))
    return mul(load9(scratch, (i + 1) * stride + FRAME), in_joint)


@inline
def load_on(m, i, r, force, point, torque, scratch, stride):
    """The load on link i: a world force at a point fixed in the link, and a world torque."""
    f = gather3(force, r, 3 * i)
    x = link_point(m, i, scratch, stride, gather3(point, r, 3 * i))
    return Force(add(gather3(torque, r, 3 * i), cross(x, f)), f)


@inline
def passive_force(m, i, q, dq, ddq):
    """What spring, damper and rotor of joint i take."""
    return m.passive[i, 0] * (q - m.passive[i, 1]) + m.passive[i, 2] * dq + m.passive[i, 3] * ddq
