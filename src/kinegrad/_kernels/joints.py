"""The one joint that kernels know, and what passes through it: frames outward, motions outward, forces inward.

World axes; the quantities of link i are about its own reference point, the origin of joint frame i, at rest in the
world for the duration of one evaluation.  Spatial velocity of link i: its angular velocity and the velocity of the
point of the link that is there just now.  Spatial acceleration: the time derivative of both.  With d from the
reference point of the parent link to that of link i, motion and force are handed on by a shift,

    outward  (ω, v) → (ω, v + ω×d)          inward  (n, f) → (n + d×f, f)                [featherstone2008] 2.8

and no number ever grows with the distance from some common origin, which would cost digits.  The axis z of the joint
passes through its own reference point, so that its motion subspace is just S = (ρz, ηz), and with V, A of the parent
link shifted to joint i,

    V_i = V + S q̇          A_i = A + S q̈ + (V × S) q̇                                  [featherstone2008] (5.8)

Slots.  Joint i's begin at (i+1)·stride, those of the world at 0; of each, the first are always

    FRAME   R, rotation of joint frame i; its third column is the axis z     9, world
    SHIFT   d, from the reference point of the parent to that of link i      3, world

and what a kernel keeps besides is named by its own slots, in its glossary.

    apart   (n,) of the mechanism: 0 where d is always zero, as between the hinges of a ball joint, and for roots
            (the world does not turn); then there is nothing to shift
"""

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.lanes.lane import gather, load, spread
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.spatial import (
    Motion,
    add,
    cross,
    load3,
    load9,
    load_motion,
    matmul,
    mul,
    put,
    row3,
    row9,
    scale,
    store3,
    store9,
    sub,
    zero3,
)  # fmt: skip

FRAME, SHIFT, FREE = 0, 9, 12  # R | d | the first slot that a kernel may use as it likes


# --- frames -----------------------------------------------------------------------------------------------------


@inline
def joint_frame(m, i, R, q, s, c):
    """R and d of joint i, from its parent's R, q_i, and the sine and cosine of the angle."""
    B = matmul(R, row9(m.X, i))
    x, y, z = (B[0], B[3], B[6]), (B[1], B[4], B[7]), (B[2], B[5], B[8])
    d = add(mul(R, row3(m.X, i, 9)), scale(m.rate[i, 1] * q, z))
    x, y = add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), d


@inline
def store_world(scratch):
    """R of the world."""
    one, zero = spread(1.0), spread(0.0)
    store9(scratch, FRAME, (one, zero, zero, zero, one, zero, zero, zero, one))


@inline
def store_frame(m, i, up, at, q, scratch):
    """R and d of joint i, from its parent's."""
    s, c = sincos(m.rate[i, 0] * q)
    store_turned(m, i, up, at, q, s, c, scratch)


@inline
def store_turned(m, i, up, at, q, s, c, scratch):
    """The same where sine and cosine of the angle are known."""
    R, d = joint_frame(m, i, load9(scratch, up + FRAME), q, s, c)
    store9(scratch, at + FRAME, R)
    store3(scratch, at + SHIFT, d)


@inline
def frames(m, q, r, scratch, stride):
    """R and d of all joints."""
    store_world(scratch)
    for i in range(len(m.parent)):
        store_frame(m, i, (m.parent[i] + 1) * stride, (i + 1) * stride, gather(q, r, i), scratch)


@inline
def places(m, base, scratch, stride, place):
    """p of all joints, once their frames are there, with the world's origin at `base`."""
    store3(scratch, place, base)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        store3(scratch, at + place, add(load3(scratch, up + place), load3(scratch, at + SHIFT)))


@inline
def places_from_anchor(m, scratch, stride, place):
    """p of all joints, from the reference point of the first link with mass; returns where in the world that is.

    Where a sum over all links needs one point common to all, this one keeps numbers small far from the world's origin.
    """
    anchor = 0
    while anchor < len(m.parent) - 1 and not m.massive[anchor]:
        anchor += 1
    places(m, zero3(), scratch, stride, place)
    o = load3(scratch, (anchor + 1) * stride + place)
    places(m, scale(-1.0, o), scratch, stride, place)
    return o


# --- motions and forces -----------------------------------------------------------------------------------------


@inline
def axis(scratch, at):
    """z, the third column of R."""
    return load(scratch, at + FRAME + 2), load(scratch, at + FRAME + 5), load(scratch, at + FRAME + 8)


@inline
def subspace(m, i, scratch, at):
    """S_i = (ρz, ηz)."""
    z = axis(scratch, at)
    return Motion(scale(m.rate[i, 0], z), scale(m.rate[i, 1], z))


@inline
def rest(scratch, slot):
    """A world that does not move, in its slots `slot` …"""
    put(scratch, slot, Motion(zero3(), zero3()))


@inline
def falling(m, scratch, slot):
    """The world does not turn, and accelerates at −g."""
    g = spread(m.gravity[0, 0]), spread(m.gravity[0, 1]), spread(m.gravity[0, 2])
    put(scratch, slot, Motion(zero3(), scale(-1.0, g)))


@inline
def carried(m, i, slot, at, scratch):
    """The motion of the parent link that is in its slots `slot` …, about the reference point of link i."""
    V = load_motion(scratch, slot)
    return V.at(load3(scratch, at + SHIFT)) if m.apart[i] else V


@inline
def handed_on(m, i, at, F, scratch):
    """A force on link i, about the reference point of its parent."""
    return F.before(load3(scratch, at + SHIFT)) if m.apart[i] else F


@inline
def move(m, i, up, at, scratch, velocity, acceleration, dq, ddq):
    """V and A of link i from its parent's; stores both."""
    V, A = carried(m, i, up + velocity, at, scratch), carried(m, i, up + acceleration, at, scratch)
    z = axis(scratch, at)
    turn, slide, wz = m.rate[i, 0] * dq, m.rate[i, 1] * dq, cross(V.w, z)  # V × S takes one product less so
    drift = Motion(scale(turn, wz), add(scale(slide, wz), scale(turn, cross(V.v, z))))
    A = A + (Motion(scale(m.rate[i, 0] * ddq, z), scale(m.rate[i, 1] * ddq, z)) + drift)
    V = V + Motion(scale(turn, z), scale(slide, z))
    put(scratch, at + velocity, V)
    put(scratch, at + acceleration, A)
    return V, A
