"""Gradient of yᵀτ with respect to q, q̇, q̈ and every constant, at once, O(n): inverse dynamics, backwards.

The weights y are virtual speeds.  With the virtual velocity Y_i = Σ_{j⪯i} S_j y_j of each link, yᵀτ is the power that
the links' forces would have,  φ = Σ_i Y_i·f_i  (plus springs and dampers), so its differentials are those of one link

    f = ∂φ/∂Y    h = ∂φ/∂A = I Y    d = ∂φ/∂V    e: how φ changes as the link is displaced, V A Y held

(a displacement of the link is a small twist ξ, as a velocity is).  Summed inward over subtrees, F = Σf, H = Σh,

    D_i = Σ_{k⪰i} d_k + Σ_{k≻i} q̇_k S_k×*H_k          because A_k holds (V_parent×S_k) q̇_k
    S̄_i = y_i F_i + q̇_i D_i + q̈_i H_i − q̇_i V_parent×*H_i            the gradient by the axis S_i
    E_i = Σ_{k⪰i} (e_k + S_k×*S̄_k)                     as all of subtree i is displaced, axes too

where ξ·(S×*u) = u·(ξ×S).  Each constant then moves something of this: a joint's placement X displaces subtree i; the
pitch of a screw displaces it along the axis and changes S; a link's inertia enters f; gravity is −A of the world.  So
does the state: q_i displaces subtree i along S_i, q̇_i enters the velocities of subtree i and A_i, and q̈_i enters A_i,

    ∂φ/∂q_i = S_i·E_i + stiffness y_i         ∂φ/∂q̇_i = S_i·(D_i − V_parent×*H_i) + damping y_i
    ∂φ/∂q̈_i = S_i·H_i + armature y_i

Motions are handed on outward and forces (F H D E) inward from reference point to reference point, as in joints.py.

Glossary (world axes, about the reference point of link i; 6-vectors are (angular, linear) pairs)
    V A Y        velocity, acceleration, virtual velocity of link i       6 slots each
    F H D E      sums over subtree i, as above                             6 each
    by_q by_v by_a   ∂φ/∂q, ∂φ/∂q̇, ∂φ/∂q̈, or None if they are not wanted   (states, n)
    gradient     ∂φ by the constants, or None likewise                     (states, columns)
    c, u, b      centre of mass; its virtual velocity and acceleration     3 each
    g            ∂φ/∂c                                                     3
    N x          inertia about the centre of mass times x                  3
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, axis, carried, falling, frames, handed_on, move, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import COLUMNS, first_columns, unpack, varied_numbers
from kinegrad._kernels.spatial import (
    Force,
    add,
    cross,
    dot,
    gather3,
    increase,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    row3,
    row6,
    row9,
    scale,
    scatter3,
    store3,
    sub,
    symmul,
    tmul,
    zero3,
)  # fmt: skip

VELOCITY, ACCELERATION, VIRTUAL = FREE, FREE + 6, FREE + 12  # V | A | Y
FORCE, PUSH, DRAG, MOVED, N = FREE + 18, FREE + 24, FREE + 30, FREE + 36, FREE + 42  # F | H | D | E | slots per joint


def columns(n: int, loaded: bool) -> int:
    """How many numbers the gradient has: the constants of the mechanism, then force, point, torque of loads."""
    return varied_numbers(n) + 9 * n * loaded


@inline
def own_link(m, i, r, at, column, gradient, scratch):
    """f, h, d, e of link i, stored; and the gradient by its mass, centre of mass and inertia."""
    R = load9(scratch, at + FRAME)
    mass, inertia = m.inertia[i, 0], row6(m.inertia, i, 4)
    V, A, virtual = (load_motion(scratch, at + slot) for slot in (VELOCITY, ACCELERATION, VIRTUAL))
    w, dw, Y = V.w, A.w, virtual.w
    c = mul(R, row3(m.inertia, i, 1))
    dc = V.at(c).v
    b = add(A.v, add(cross(dw, c), cross(w, dc)))
    u = virtual.at(c).v
    k, uw = cross(Y, w), cross(u, w)
    g = scale(mass, add(cross(b, Y), add(cross(u, dw), cross(uw, w))))

    # in the joint frame, where the inertia is constant
    w_, dw_, Y__, k_ = tmul(R, w), tmul(R, dw), tmul(R, Y), tmul(R, k)
    Nw, Ndw = mul(R, symmul(inertia, w_)), mul(R, symmul(inertia, dw_))
    NY, Nk = mul(R, symmul(inertia, Y__)), mul(R, symmul(inertia, k_))
    if gradient is not None:
        scatter(gradient, r, column, dot(u, b))
        scatter3(gradient, r, column + 1, tmul(R, g))
        for x in (0, 1, 2):
            scatter(gradient, r, column + 4 + x, Y__[x] * dw_[x] + k_[x] * w_[x])
        for e, x, y in ((7, 0, 1), (8, 0, 2), (9, 1, 2)):
            scatter(gradient, r, column + e, Y__[x] * dw_[y] + Y__[y] * dw_[x] + k_[x] * w_[y] + k_[y] * w_[x])

    f, h = scale(mass, b), scale(mass, u)
    put(scratch, at + FORCE, Force(add(add(Ndw, cross(w, Nw)), cross(c, f)), f))
    put(scratch, at + PUSH, Force(add(NY, cross(c, h)), h))
    drag = add(cross(Nw, Y), add(Nk, scale(mass, add(cross(dc, u), cross(c, uw)))))
    put(scratch, at + DRAG, Force(drag, scale(mass, uw)))
    turned = add(add(cross(Ndw, Y), cross(NY, dw)), add(cross(Nw, k), cross(Nk, w)))
    put(scratch, at + MOVED, Force(add(cross(c, g), turned), g))


@inline
def own_load(m, i, r, at, force, point, torque, tip, loads, gradient, scratch):
    """What the load on link i adds to F and E; and the gradient by the link's frame, force, point and torque."""
    n = len(m.parent)
    f, t, local = gather3(force, r, 3 * i), gather3(torque, r, 3 * i), gather3(point, r, 3 * i)
    x = link_point(m, i, scratch, N, local)
    Y = load_motion(scratch, at + VIRTUAL)
    g = cross(Y.w, f)  # −f×Y
    put(scratch, at + FORCE, load_force(scratch, at + FORCE) - Force(add(t, cross(x, f)), f))
    increase(scratch, at + MOVED, Force(cross(x, g), g))
    if gradient is not None:
        g = tmul(load9(scratch, at + FRAME), g)
        for k in (0, 1, 2):
            scatter3(gradient, r, tip + 3 * k, scale(g[k], local))
        scatter3(gradient, r, tip + 9, g)
        scatter3(gradient, r, loads + 3 * i, scale(-1.0, Y.at(x).v))
        scatter3(gradient, r, loads + 3 * n + 3 * i, tmul(row9(m.F, i), g))
        scatter3(gradient, r, loads + 6 * n + 3 * i, scale(-1.0, Y.w))


@inline
def by_placement(m, i, r, up, at, column, q, E, gradient, scratch):
    """Gradient by X, 12 numbers: ½ [moment]× X for its rotation (of which only rotations can change), the force."""
    R = load9(scratch, up + FRAME)
    slid = scale(m.rate[i, 1] * q, axis(scratch, at))  # from the joint's origin before its motion
    moment, X = scale(0.5, tmul(R, E.before(slid).n)), row9(m.X, i)
    x, y, z = (X[0], X[1], X[2]), (X[3], X[4], X[5]), (X[6], X[7], X[8])
    scatter3(gradient, r, column, sub(scale(moment[1], z), scale(moment[2], y)))
    scatter3(gradient, r, column + 3, sub(scale(moment[2], x), scale(moment[0], z)))
    scatter3(gradient, r, column + 6, sub(scale(moment[0], y), scale(moment[1], x)))
    scatter3(gradient, r, column + 9, tmul(R, E.f))


@inline
def by_joint(m, i, r, up, at, column, q, dq, ddq, weight, E, by_axis, gradient, scratch):
    """Gradient by the rates, the placement, the spring, damper and rotor of joint i."""
    z, rate, passive = axis(scratch, at), column.rate + COLUMNS.rate * i, column.passive + COLUMNS.passive * i
    by_placement(m, i, r, up, at, column.X + COLUMNS.X * i, q, E, gradient, scratch)
    scatter(gradient, r, rate, q * dot(z, E.n) + dot(z, by_axis.n))
    scatter(gradient, r, rate + 1, q * dot(z, E.f) + dot(z, by_axis.f))
    scatter(gradient, r, passive, weight * (q - m.passive[i, 1]))
    scatter(gradient, r, passive + 1, -(weight * m.passive[i, 0]))
    scatter(gradient, r, passive + 2, weight * dq)
    scatter(gradient, r, passive + 3, weight * ddq)


@inline
def block(m, q, v, a, y, force, point, torque, by_q, by_v, by_a, gradient, r, scratch):
    """The gradients of the states r … r+W−1, of which the frames are there."""
    n, loaded = len(m.parent), len(force) > 0
    column = first_columns(n)
    for k in range(VELOCITY, N, 3):
        store3(scratch, k, zero3())
    falling(m, scratch, ACCELERATION)

    # outward: motion, virtual motion, and what each link has for itself
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))
        Y = carried(m, i, up + VIRTUAL, at, scratch) + subspace(m, i, scratch, at) * gather(y, r, i)
        put(scratch, at + VIRTUAL, Y)
        if m.massive[i]:
            own_link(m, i, r, at, column.inertia + COLUMNS.inertia * i, gradient, scratch)
        else:
            for k in range(FORCE, N, 3):
                store3(scratch, at + k, zero3())
        if loaded:
            tip, loads = column.F + COLUMNS.F * i, column.gravity + COLUMNS.gravity
            own_load(m, i, r, at, force, point, torque, tip, loads, gradient, scratch)

    # inward: sums over subtrees, and what each joint's coordinate and constants move
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        V, S = carried(m, i, up + VELOCITY, at, scratch), subspace(m, i, scratch, at)
        F, H, D = (load_force(scratch, at + slot) for slot in (FORCE, PUSH, DRAG))
        dq, ddq, weight = gather(v, r, i), gather(a, r, i), gather(y, r, i)
        speed = D - V.cross(H)
        by_axis = F * weight + (speed * dq + H * ddq)
        E = load_force(scratch, at + MOVED) + S.cross(by_axis)

        if by_q is not None:
            scatter(by_q, r, i, S.dot(E) + m.passive[i, 0] * weight)
        if by_v is not None:
            scatter(by_v, r, i, S.dot(speed) + m.passive[i, 2] * weight)
        if by_a is not None:
            scatter(by_a, r, i, S.dot(H) + m.passive[i, 3] * weight)
        if gradient is not None:
            by_joint(m, i, r, up, at, column, gather(q, r, i), dq, ddq, weight, E, by_axis, gradient, scratch)

        D = D + S.cross(H) * dq
        for slot, sum_ in ((FORCE, F), (PUSH, H), (DRAG, D), (MOVED, E)):
            increase(scratch, up + slot, handed_on(m, i, at, sum_, scratch))
    if gradient is not None:
        scatter3(gradient, r, column.gravity, scale(-1.0, load_force(scratch, PUSH).f))


@kernel
def by_constants(m, q, v, a, y, force, point, torque, gradient, scratch, start, stop):
    """Gradients of yᵀτ by all constants, (states, columns), zero on entry; loads (states or 1, 3 n), or (0, 3 n)."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        block(m, q, v, a, y, force, point, torque, None, None, None, gradient, r, scratch)
    return ok
