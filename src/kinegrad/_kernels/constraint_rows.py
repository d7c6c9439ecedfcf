"""Pairs of points, the columns of joints that move them, and the rows of constraints between them.

A row ties a point of link A, at x, to a point of link B or of the world, at y; e = x − y.  A *pair* is such two points
with the rows that they have in common.

    POINT        φ = u·e                w = u        u fixed in the world (a contact) or in B (a loop)
    ROD          φ = |e| − length       w = e/|e|
    DIRECTION    φ = a·b                w = a×b      a fixed in A, b fixed in B

    JOINT        φ = q_i − ratio q_j − offset

With M@x the velocity of the point at x under the motion M, a joint j of A's path moves e by S_j@x and turns A by z_j,
and so on.  So each joint on a path has two columns, J and Z, common to all rows of the pair,

                          J_j                        Z_j
    A's own               S_j@x                      z_j
    B's own               −S_j@y (loops: −S_j@x)     −z_j
    of both (contacts)    z_j×e                      (no row has it)

and a row is  ∂φ/∂q_j = w·J_j (POINT, ROD)  or  w·Z_j (DIRECTION).  A loop's u turns with B, which is why the force on B
has the line of that on A; then, and for rods, joints of both paths move nothing, and are not visited: exact zeros.
Along the motion (q, v, a), with ψ̇ = Ṡ and ψ̈ = S̈ of kinematics_derivatives.py,

    J̇ = ψ̇@x + z×ẋ        J̈ = ψ̈@x + 2 ψ̇_ang×ẋ + z×ẍ

Glossary (world)
    R d V A     of each link, in slots of the kernel that calls: stride, velocity, acceleration of its Layout
    S ψ̇ ψ̈     path slots of each joint, 18, as in kinematics_derivatives.py; of V and A without gravity
    row         w 3, ẇ 3, ẅ 3, φ, φ̇, φ̈                                                          at Layout.work
    columns     of each joint on the paths of a pair: J 3, Z 3, J̇ 3, Ż 3, J̈ 3, Z̈ 3               after it
"""

from typing import Any, NamedTuple

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.joints import FRAME, SHIFT, subspace
from kinegrad._kernels.kinematics import ACCELERATION, VELOCITY, N
from kinegrad._kernels.kinematics_derivatives import PATH
from kinegrad._kernels.kinematics_derivatives import slots as motion_slots
from kinegrad._kernels.lanes.lane import gather, root, spread
from kinegrad._kernels.spatial import (
    Motion,
    add,
    cross,
    dot,
    load3,
    load9,
    load_motion,
    mul,
    row3,
    row9,
    scale,
    store3,
    sub,
    zero3,
)  # fmt: skip

POINT, ROD, DIRECTION = 0, 1, 2  # kinds of row
LINK, OTHER, CARRIER, MEET, FIRST, LAST, OWN, OTHERS, BOTH, END, PAIR = range(11)  # columns of a pair

PHI, COLUMNS, COLUMN = 9, 12, 18  # in the slots of work: φ φ̇ φ̈; the first column; slots of each


class Constraints(NamedTuple):
    """The rows of a constraint set, in the order in which kernels receive them."""

    pair: Any
    """(pairs, 10) links A and B (−1: the world), the link that u is fixed in, the last link on both paths; the first
    row, and that after the last; where in `path` A's own joints begin, B's own, those of both; and the end"""
    ends: Any
    """(pairs, 6) x in link frame A, y in link frame B or the world"""
    kind: Any
    """(rows,) POINT, ROD, DIRECTION; of JOINT, unused"""
    vector: Any
    """(rows, 6) a in link frame A; b in link frame B, or u; of ROD the length first"""
    path: Any
    """(joints,) joints of each pair, each part from the links to the root"""
    joint: Any
    """(couplings, 3) row, i, j (−1: none)"""
    ratio: Any
    """(couplings, 2) ratio, offset"""


class Layout(NamedTuple):
    """Where a kernel keeps what it knows: its stride, V and A of each link, path slots, and work of these functions."""

    stride: Any
    velocity: Any
    acceleration: Any
    path: Any
    work: Any


def work_slots(n: int) -> int:
    """Scratch slots at Layout.work for n joints."""
    return COLUMNS + COLUMN * max(n, 1)


def slots(n: int) -> int:
    """Scratch slots of the kernels of this file for n joints."""
    return motion_slots(n) + work_slots(n)


@inline
def own_layout(n):
    """Slots as in kinematics_derivatives.py, then work."""
    return Layout(N, VELOCITY, ACCELERATION, (n + 1) * N, (n + 1) * N + n * PATH)


@inline
def unpack_constraints(c):
    """Names for a plain tuple."""
    return Constraints(*c)


# --- points and directions --------------------------------------------------------------------------------------


@inline
def place(m, i, x, scratch, at):
    """The point x of link frame i, from the reference point of link i; of the world (−1), from its origin."""
    if i >= 0:
        return link_point(m, i, scratch, at.stride, x)
    return mul(load9(scratch, FRAME), x)


@inline
def heading(m, i, x, scratch, at):
    """The direction x of link frame i, or of the world."""
    R = load9(scratch, (i + 1) * at.stride + FRAME)
    return mul(R, mul(row9(m.F, i), x)) if i >= 0 else mul(R, x)


@inline
def raised(m, i, top, x, scratch, at):
    """x, from the reference point of link i, as seen from that of the link `top` above."""
    while i != top:
        x = add(x, load3(scratch, (i + 1) * at.stride + SHIFT))
        i = m.parent[i]
    return x


@inline
def ends(m, c, p, scratch, at):
    """x and y from the reference points of A and B, and e.  Far from the world's origin e keeps its digits: both are
    seen from the last link on both paths."""
    A, B, top = c.pair[p, LINK], c.pair[p, OTHER], c.pair[p, MEET]
    x, y = place(m, A, row3(c.ends, p, 0), scratch, at), place(m, B, row3(c.ends, p, 3), scratch, at)
    return x, y, sub(raised(m, A, top, x, scratch, at), raised(m, B, top, y, scratch, at))


@inline
def point_rates(i, x, scratch, at):
    """ẋ, ẍ of a point fixed in link i, or in the world."""
    slot = (i + 1) * at.stride
    V, A = load_motion(scratch, slot + at.velocity), load_motion(scratch, slot + at.acceleration)
    dx = V.at(x).v
    return dx, add(A.at(x).v, cross(V.w, dx))


@inline
def heading_rates(i, u, scratch, at):
    """u̇, ü of a direction fixed in link i, or in the world."""
    slot = (i + 1) * at.stride
    w, dw = load3(scratch, slot + at.velocity), load3(scratch, slot + at.acceleration)
    du = cross(w, u)
    return du, add(cross(dw, u), cross(w, du))


# --- columns of a pair, w of a row ------------------------------------------------------------------------------


@inline
def column_slot(c, p, k, at):
    """Slots of the column of entry k of `path`, which is one of pair p."""
    return at.work + COLUMNS + COLUMN * (k - c.pair[p, OWN])


@inline
def still_column(scratch, slot, S, x, sign):
    """J and Z of a joint that moves the point at x."""
    store3(scratch, slot, scale(sign, S.at(x).v))
    store3(scratch, slot + 3, scale(sign, S.w))


@inline
def moving_column(scratch, slot, path, x, dx, ddx, sign):
    """J, Z and their time derivatives of a joint that moves the point at x; ẋ, ẍ are the point's."""
    S, dS, ddS = load_motion(scratch, path), load_motion(scratch, path + 6), load_motion(scratch, path + 12)
    still_column(scratch, slot, S, x, sign)
    store3(scratch, slot + 6, scale(sign, add(dS.at(x).v, cross(S.w, dx))))
    store3(scratch, slot + 9, scale(sign, dS.w))
    turned = add(cross(scale(2.0, dS.w), dx), cross(S.w, ddx))
    store3(scratch, slot + 12, scale(sign, add(ddS.at(x).v, turned)))
    store3(scratch, slot + 15, scale(sign, ddS.w))


@inline
def column(m, c, p, k, x, dx, ddx, sign, moving, scratch, at):
    """The column of entry k of `path`; returns x as seen from the next joint."""
    j, slot = c.path[k], column_slot(c, p, k, at)
    if moving:
        moving_column(scratch, slot, at.path + j * PATH, x, dx, ddx, sign)
    else:
        still_column(scratch, slot, subspace(m, j, scratch, (j + 1) * at.stride), x, sign)
    return add(x, load3(scratch, (j + 1) * at.stride + SHIFT))


@inline
def columns(m, c, p, moving, scratch, at):
    """The columns of pair p, with their time derivatives if `moving`, a constant; returns e, ė, ë."""
    A, B = c.pair[p, LINK], c.pair[p, OTHER]
    x, y, e = ends(m, c, p, scratch, at)
    dx, ddx, dy, ddy = zero3(), zero3(), zero3(), zero3()
    if moving:
        dx, ddx = point_rates(A, x, scratch, at)
        dy, ddy = point_rates(B, y, scratch, at)
    de, dde = sub(dx, dy), sub(ddx, ddy)
    for k in range(c.pair[p, OWN], c.pair[p, OTHERS]):
        x = column(m, c, p, k, x, dx, ddx, 1.0, moving, scratch, at)
    if c.pair[p, CARRIER] >= 0:  # a loop: at x also on B
        y, dy, ddy = add(y, e), dx, ddx
    for k in range(c.pair[p, OTHERS], c.pair[p, BOTH]):
        y = column(m, c, p, k, y, dy, ddy, -1.0, moving, scratch, at)
    for k in range(c.pair[p, BOTH], c.pair[p, END]):
        shared_column(m, c, p, k, e, de, dde, moving, scratch, at)
    return e, de, dde


@inline
def shared_column(m, c, p, k, e, de, dde, moving, scratch, at):
    """The column of a joint that moves both points: as S = (z, 0) moves one at e."""
    j, slot = c.path[k], column_slot(c, p, k, at)
    z = subspace(m, j, scratch, (j + 1) * at.stride).w
    still_column(scratch, slot, Motion(z, zero3()), e, 1.0)
    if moving:
        dz, ddz = load3(scratch, at.path + j * PATH + 6), load3(scratch, at.path + j * PATH + 12)
        store3(scratch, slot + 6, add(cross(dz, e), cross(z, de)))
        store3(scratch, slot + 12, add(add(cross(ddz, e), cross(scale(2.0, dz), de)), cross(z, dde)))


@inline
def put_row(scratch, at, w, dw, ddw, phi, dphi, ddphi):
    """Slots of a row."""
    store3(scratch, at.work, w)
    store3(scratch, at.work + 3, dw)
    store3(scratch, at.work + 6, ddw)
    store3(scratch, at.work + PHI, (phi, dphi, ddphi))


@inline
def row(m, c, p, k, e, de, dde, scratch, at):
    """w and φ of row k of pair p, with their time derivatives (all zero if V and A are), to the slots of a row."""
    A, B, u_link = c.pair[p, LINK], c.pair[p, OTHER], c.pair[p, CARRIER]
    if c.kind[k] == POINT:
        u = heading(m, u_link, row3(c.vector, k, 3), scratch, at)
        du, ddu = heading_rates(u_link, u, scratch, at)
        rate = dot(du, e) + dot(u, de)
        put_row(scratch, at, u, du, ddu, dot(u, e), rate, dot(ddu, e) + 2.0 * dot(du, de) + dot(u, dde))
    elif c.kind[k] == ROD:
        length = root(dot(e, e))
        u = scale(1.0 / length, e)
        rate = dot(u, de)
        du = scale(1.0 / length, sub(de, scale(rate, u)))
        rate_rate = dot(du, de) + dot(u, dde)
        ddu = scale(1.0 / length, sub(dde, add(scale(rate_rate, u), scale(2.0 * rate, du))))
        put_row(scratch, at, u, du, ddu, length - c.vector[k, 0], rate, rate_rate)
    else:
        a, b = heading(m, A, row3(c.vector, k, 0), scratch, at), heading(m, B, row3(c.vector, k, 3), scratch, at)
        da, dda = heading_rates(A, a, scratch, at)
        db, ddb = heading_rates(B, b, scratch, at)
        dw, ddw = add(cross(da, b), cross(a, db)), add(cross(dda, b), cross(a, ddb))
        ddw = add(ddw, cross(scale(2.0, da), db))
        rate, rate_rate = dot(da, b) + dot(a, db), dot(dda, b) + 2.0 * dot(da, db) + dot(a, ddb)
        put_row(scratch, at, cross(a, b), dw, ddw, dot(a, b), rate, rate_rate)


@inline
def still_value(m, c, p, k, e, scratch, at):
    """w of row k of pair p, and φ; neither V nor A has to be there."""
    w, phi = zero3(), spread(0.0)
    if c.kind[k] == POINT:
        w = heading(m, c.pair[p, CARRIER], row3(c.vector, k, 3), scratch, at)
        phi = dot(w, e)
    elif c.kind[k] == ROD:
        length = root(dot(e, e))
        w, phi = scale(1.0 / length, e), length - c.vector[k, 0]
    else:
        a = heading(m, c.pair[p, LINK], row3(c.vector, k, 0), scratch, at)
        b = heading(m, c.pair[p, OTHER], row3(c.vector, k, 3), scratch, at)
        w, phi = cross(a, b), dot(a, b)
    return w, phi


@inline
def part(c, k):
    """Where in a column row k finds what it is multiplied by: J or Z."""
    return 3 if c.kind[k] == DIRECTION else 0


@inline
def coupled(c, s, q, r):
    """q_i − ratio q_j of coupling s; or of v, or a."""
    own = gather(q, r, c.joint[s, 1])
    return own - c.ratio[s, 0] * gather(q, r, c.joint[s, 2]) if c.joint[s, 2] >= 0 else own
