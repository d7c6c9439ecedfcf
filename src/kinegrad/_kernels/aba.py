"""Forward dynamics by articulated bodies in the world frame: q̈(q, q̇, τ), O(n).

Cut all joints outboard of link i free: the force it takes to give link i the acceleration A is  I A + p, with an
articulated inertia I and bias p.  They follow inward,

    I = I_body + Σ (I − U Uᵀ/D)            U = I S     D = S·U + armature            [anderson2002] (57), (59)
    p = V×*I_body V − load + Σ (p + (I − U Uᵀ/D) c + U u/D)                           [anderson2002] (58)
    u = τ − spring − damper − S·p           c = (V×S) q̇

(sums over the children, shifted to the reference point of link i), and then outward, the world accelerating at −g,

    q̈ = (u − U·(A_p + c)) / D              A = A_p + c + S q̈                          [anderson2002] (60), (61)

with D, the pivot of (59).  A joint that nothing resists has D = 0: a massless leaf, a slender rod turned about itself,
two hinges in line.

An inertia [[Θ, Φ], [Φᵀ, Λ]] about a point d away is, about the point itself, with d× the matrix of the cross product,

    Φ' = Φ + d× Λ        Θ' = Θ − Ψ d× − (Ψ d×)ᵀ,   Ψ = Φ + ½ d× Λ                    [featherstone2008] 2.8

Glossary (world axes, about the reference point of link i of joints.py; 6-vectors are (angular, linear) pairs)
    V        velocity of link i                                  6 slots
    I        articulated inertia [[Θ, Φ], [Φᵀ, Λ]]               Θ 6, Φ 9, Λ 6
    p        articulated bias                                     6
    c, U     as above                                             6 each
    D, u     as above                                             1 each (1/D is stored)
    MASS FIRST SPREAD   mass, first moment of subtree i, trace of its inertia    1, 3, 1
    A        acceleration of link i                               6
"""

from kinegrad._kernels.bodies import body, load_on, store_sym
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FREE, SHIFT, carried, falling, frames, handed_on, rest, subspace
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, pick, scatter, spread, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Force,
    add,
    add3,
    cross,
    dot,
    increase,
    load3,
    load6,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    scale,
    store3,
    store9,
    symmul,
    tmul,
)

VELOCITY, THETA, PHI, LAMBDA, BIAS = FREE, FREE + 6, FREE + 12, FREE + 21, FREE + 27  # V | I | p
MASS, FIRST, SPREAD, DRIFT, ROD = FREE + 33, FREE + 34, FREE + 37, FREE + 38, FREE + 44  # of subtrees | c | U
PIVOT, ACTING, ACCELERATION = FREE + 50, FREE + 51, FREE + 52  # 1/D | u | A
N = FREE + 58  # slots per joint; joint i's begin at (i+1)·N, the world's at 0

# D is what remains of the inertia of the whole subtree about the joint's axis once the joints outboard have given
# way.  Below this part of it, it is rounding noise.
NOISE = 1e-12


@inline
def own_body(m, i, r, V, force, point, torque, scratch, at):
    """I and p of link i alone."""
    for k in range(THETA, DRIFT):
        store(scratch, at + k, 0.0)
    if m.massive[i]:
        own, zero = body(m, i, scratch, at), spread(0.0)
        mass, h, I = own
        store_sym(scratch, at + THETA, I)
        store9(scratch, at + PHI, (zero, -h[2], h[1], h[2], zero, -h[0], -h[1], h[0], zero))
        store3(scratch, at + LAMBDA, (spread(mass), spread(mass), spread(mass)))
        store(scratch, at + MASS, mass)
        store3(scratch, at + FIRST, h)
        store(scratch, at + SPREAD, I[0] + I[1] + I[2])
        put(scratch, at + BIAS, V.cross(own.times(V)))
    if len(force) > 0:
        p = load_force(scratch, at + BIAS) - load_on(m, i, r, force, point, torque, scratch, N)
        put(scratch, at + BIAS, p)


@inline
def articulated(scratch, at, S):
    """I S with the articulated inertia of link i."""
    theta, phi, lam = load6(scratch, at + THETA), load9(scratch, at + PHI), load6(scratch, at + LAMBDA)
    return Force(add(symmul(theta, S.w), mul(phi, S.v)), add(tmul(phi, S.w), symmul(lam, S.v)))


@inline
def outward_motion(m, q, v, force, point, torque, r, scratch):
    """Frames, velocities, drifts c, and each link's own I and p."""
    frames(m, q, r, scratch, N)
    rest(scratch, VELOCITY)
    for i in range(len(m.parent)):
        up, at, dq = (m.parent[i] + 1) * N, (i + 1) * N, gather(v, r, i)
        V, S = carried(m, i, up + VELOCITY, at, scratch), subspace(m, i, scratch, at)
        c = V.cross(S) * dq
        V = V + S * dq
        put(scratch, at + VELOCITY, V)
        own_body(m, i, r, V, force, point, torque, scratch, at)
        put(scratch, at + DRIFT, c)


@inline
def pivot(m, i, at, tau, q, dq, scratch):
    """U, 1/D and u of joint i, stored; returns D and the inertia of the whole subtree it is what remains of."""
    S = subspace(m, i, scratch, at)
    U = articulated(scratch, at, S)
    D = S.dot(U) + m.passive[i, 3]
    passive = m.passive[i, 0] * (q - m.passive[i, 1]) + m.passive[i, 2] * dq
    u = tau - passive - S.dot(load_force(scratch, at + BIAS))
    put(scratch, at + ROD, U)
    store(scratch, at + PIVOT, 1.0 / D)
    store(scratch, at + ACTING, u)
    size = load(scratch, at + SPREAD) * dot(S.w, S.w) + load(scratch, at + MASS) * dot(S.v, S.v)
    return D, size


@inline
def shifted(m, i, at, theta, phi, lam, scratch):
    """Θ and Φ of an inertia of link i about the reference point of its parent."""
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        a, b, c = (
            cross(d, (lam[0], lam[3], lam[4])),
            cross(d, (lam[3], lam[1], lam[5])),
            cross(d, (lam[4], lam[5], lam[2])),
        )
        dL = (a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])
        x = cross((phi[0] + 0.5 * dL[0], phi[1] + 0.5 * dL[1], phi[2] + 0.5 * dL[2]), d)
        y = cross((phi[3] + 0.5 * dL[3], phi[4] + 0.5 * dL[4], phi[5] + 0.5 * dL[5]), d)
        z = cross((phi[6] + 0.5 * dL[6], phi[7] + 0.5 * dL[7], phi[8] + 0.5 * dL[8]), d)
        theta = (
            theta[0] - 2.0 * x[0], theta[1] - 2.0 * y[1], theta[2] - 2.0 * z[2],
            theta[3] - x[1] - y[0], theta[4] - x[2] - z[0], theta[5] - y[2] - z[1],
        )  # fmt: skip
        phi = (
            phi[0] + dL[0], phi[1] + dL[1], phi[2] + dL[2],
            phi[3] + dL[3], phi[4] + dL[4], phi[5] + dL[5],
            phi[6] + dL[6], phi[7] + dL[7], phi[8] + dL[8],
        )  # fmt: skip
    return theta, phi


@inline
def hand_on_articulated(m, i, up, at, theta, phi, lam, p, scratch):
    """Inertia and bias p of link i to those of its parent; mass, first moment and spread of its subtree too."""
    theta, phi = shifted(m, i, at, theta, phi, lam, scratch)
    add3(scratch, up + THETA, (theta[0], theta[1], theta[2]))
    add3(scratch, up + THETA + 3, (theta[3], theta[4], theta[5]))
    add3(scratch, up + PHI, (phi[0], phi[1], phi[2]))
    add3(scratch, up + PHI + 3, (phi[3], phi[4], phi[5]))
    add3(scratch, up + PHI + 6, (phi[6], phi[7], phi[8]))
    add3(scratch, up + LAMBDA, (lam[0], lam[1], lam[2]))
    add3(scratch, up + LAMBDA + 3, (lam[3], lam[4], lam[5]))
    increase(scratch, up + BIAS, handed_on(m, i, at, p, scratch))
    mass, h, spread_ = load(scratch, at + MASS), load3(scratch, at + FIRST), load(scratch, at + SPREAD)
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        half = scale(0.5 * mass, d)
        spread_ = spread_ + 4.0 * dot(add(h, half), d)
        h = add(add(h, half), half)
    store(scratch, up + MASS, load(scratch, up + MASS) + mass)
    add3(scratch, up + FIRST, h)
    store(scratch, up + SPREAD, load(scratch, up + SPREAD) + spread_)


@inline
def hand_on(m, i, scratch):
    """I − U Uᵀ/D and p + (I − U Uᵀ/D) c + U u/D to the parent."""
    up, at = (m.parent[i] + 1) * N, (i + 1) * N
    whole, c = load_force(scratch, at + ROD), load_motion(scratch, at + DRIFT)
    inverse, u = load(scratch, at + PIVOT), load(scratch, at + ACTING)
    p = load_force(scratch, at + BIAS) + (articulated(scratch, at, c) + whole * ((u - c.dot(whole)) * inverse))
    (U, U_), (V, V_) = whole, whole * inverse
    theta, phi, lam = load6(scratch, at + THETA), load9(scratch, at + PHI), load6(scratch, at + LAMBDA)
    theta = (
        theta[0] - U[0] * V[0], theta[1] - U[1] * V[1], theta[2] - U[2] * V[2],
        theta[3] - U[0] * V[1], theta[4] - U[0] * V[2], theta[5] - U[1] * V[2],
    )  # fmt: skip
    phi = (
        phi[0] - U[0] * V_[0], phi[1] - U[0] * V_[1], phi[2] - U[0] * V_[2],
        phi[3] - U[1] * V_[0], phi[4] - U[1] * V_[1], phi[5] - U[1] * V_[2],
        phi[6] - U[2] * V_[0], phi[7] - U[2] * V_[1], phi[8] - U[2] * V_[2],
    )  # fmt: skip
    lam = (
        lam[0] - U_[0] * V_[0], lam[1] - U_[1] * V_[1], lam[2] - U_[2] * V_[2],
        lam[3] - U_[0] * V_[1], lam[4] - U_[0] * V_[2], lam[5] - U_[1] * V_[2],
    )  # fmt: skip
    hand_on_articulated(m, i, up, at, theta, phi, lam, p, scratch)


@inline
def accelerate(m, i, up, at, scratch):
    """q̈_i, and A of link i, stored."""
    A = carried(m, i, up + ACCELERATION, at, scratch) + load_motion(scratch, at + DRIFT)
    ddq = (load(scratch, at + ACTING) - A.dot(load_force(scratch, at + ROD))) * load(scratch, at + PIVOT)
    put(scratch, at + ACCELERATION, A + subspace(m, i, scratch, at) * ddq)
    return ddq


@inline
def outward_solution(m, a, r, scratch):
    """q̈ of all joints, once I and p have gone inward."""
    falling(m, scratch, ACCELERATION)
    for i in range(len(m.parent)):
        scatter(a, r, i, accelerate(m, i, (m.parent[i] + 1) * N, (i + 1) * N, scratch))


@inline
def free_lane(D, size):
    """The first lane in which D is no more than rounding noise, or −1."""
    for w in range(lane_count()):
        if not pick(D, w) > NOISE * pick(size, w):
            return w
    return -1


@inline
def block(m, q, v, tau, force, point, torque, a, r, scratch):
    """q̈ of the states r … r+W−1.  Returns a joint that nothing resists and the lane of the state, or (−1, −1)."""
    n = len(m.parent)
    outward_motion(m, q, v, force, point, torque, r, scratch)

    # inward: articulated inertia and bias
    for i in range(n - 1, -1, -1):
        D, size = pivot(m, i, (i + 1) * N, gather(tau, r, i), gather(q, r, i), gather(v, r, i), scratch)
        w = free_lane(D, size)
        if w >= 0:
            return i, w
        if m.parent[i] >= 0:
            hand_on(m, i, scratch)

    outward_solution(m, a, r, scratch)
    return -1, -1


@kernel
def aba(m, q, v, tau, force, point, torque, a, status, scratch, start, stop):
    """q̈, (states, n); loads (states or 1, 3 n), or (0, 3 n) for none.

    status, (2,): where nothing resists a joint, its number and the state's, else left alone.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        joint, w = block(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(a) - 1)
            return ok
    return with_results(ok, (a,), start, stop)
