"""How far a mechanism is from measured markers, with gradient and Hessian.

Markers k are fixed in links at points x_k(q); measured are m_k.  With weights w_k, zero for what was not seen, and
coordinates j that should stay near r_j, the cost of a frame is

    E(q) = ½ Σ_k w_k |x_k − m_k|² + ½ Σ_j u_j (q_j − r_j)²

No Jacobian is ever formed.  With forces f_k = w_k (x_k − m_k) and places y_k of markers from the reference point of
link j, sums over all markers beyond joint j, handed on from link to link as forces are (d from the parent's),

    f = Σ f_k     Q = Σ y_k f_kᵀ → Q + d fᵀ     n = Σ y_k × f_k, the axial vector of Q
    I = the inertia of point masses w_k at the markers

give the derivatives with respect to the positions of joints,

    g_j = S_j · (n, f)        H_ij = S_i · (I S_j) + ρ_i z_i · c_j        c_j = ρ_j (Q z_j − tr(Q) z_j) + η_j z_j × f

for i on the way from j to the root: the first term of H is A = Σ w JᵀJ, all that Gauss and Newton take and the mass
matrix of these point masses (``crba.py``); the second is Σ f_k · ∂²x_k/∂q_i∂q_j, because there the second derivative is
ρ_i z_i × ∂x_k/∂q_j ((1) of ``kinematics_hessian.py``), and Σ (z × y) × f = Q z − tr(Q) z.

In coordinates (``coordinates.py``) a joint moves by q̂ = f(q), or is a hinge of a chart of a quaternion:

    g = Gᵀ ĝ          H = Gᵀ Ĥ G + diag(Σ f″ ĝ)

and, as the chart's angles are δ − ½ (δ₂δ₃, −δ₁δ₃, δ₁δ₂) + … of a turn δ, H₁₂, H₁₃, H₂₃ of a quaternion change by −½ ĝ₃,
½ ĝ₂, −½ ĝ₁.

Glossary
    R d p    of joint i, as in kinematics.py                                     world
    f Q I    of the markers of link i, then of all beyond joint i                world, at the reference point of link i
    o S      the anchor, the reference point of the last link, near all others; motion subspaces times the entries of G
             about it: so that the products of all pairs need no shifts          world
    N        slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
    to       Task: what is the same for all frames, tables and constants
    at       Memory: where the slots begin that frames need besides
"""

from typing import Any, NamedTuple

from kinegrad._kernels.bodies import INERTIA, Inertia, hand_on_inertia, load_inertia, store_inertia
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.coordinates import function, pose
from kinegrad._kernels.joints import FRAME, FREE, SHIFT, axis, frames, places, subspace
from kinegrad._kernels.lanes.lane import gather, load, spread, store
from kinegrad._kernels.lanes.slots import Slots
from kinegrad._kernels.spatial import (
    add,
    add3,
    cross,
    dot,
    load3,
    load9,
    load_motion,
    mul,
    put,
    row3,
    scale,
    store3,
    store9,
    sub,
    zero3,
)  # fmt: skip

FORCE, LEVER, BODY = FREE, FREE + 3, FREE + 12  # f | Q | I
PLACE, MOTION, N = BODY + INERTIA, BODY + INERTIA + 3, BODY + INERTIA + 9  # p | S about the anchor


class Task(NamedTuple):
    """What is the same for all frames."""

    map: Any
    """table of ``coordinates.py``"""
    speed: Any
    """(n,) that moves each joint, or −1"""
    pairs: Any
    """(pairs, 3) of joints (j, i), j = 0 … n − 1, i from j up to the root: which entry of H, or −1; how often it
    counts; whether both joints have one speed"""
    begin: Any
    """(n,) the first pair of each joint"""
    tree: Any
    """of speeds, as in ``tree_solve.py``: H is packed so"""
    beyond: Any
    """(n + 1,) first marker of each link; they are ordered by links"""
    local: Any
    """(markers, 3) places in the joint frames of their links"""
    column: Any
    """(markers,) of results"""
    coordinate: Any
    """(nv,) of each speed, or −1 for those of quaternions"""
    limits: Any
    """(nv, 2) of its coordinate"""
    turns: Any
    """(nv,) 0 where it slides alone"""
    pull: Any
    """(nv,) u"""


class Memory(NamedTuple):
    """Where slots begin."""

    joints: Any  # q̂, (n); then g, (n), the entries of G; then f″, (n)
    q: Any  # of the trial, (nq)
    markers: Any  # measured, (3 k)
    weights: Any  # (k)
    reference: Any  # r, (nv)
    squares: Any  # |x − m|², (k)
    gradient: Any  # (nv)
    diagonal: Any  # of A, (nv)
    hessian: Any  # (entries)
    end: Any


@inline
def memory(n, nq, nv, count, entries):
    """Of n joints, nq coordinates, nv speeds, so many markers and entries of H."""
    joints = (n + 1) * N
    q = joints + 3 * n
    markers = q + nq
    weights = markers + 3 * count
    reference = weights + count
    squares = reference + nv
    gradient = squares + count
    diagonal = gradient + nv
    hessian = diagonal + nv
    return Memory(joints, q, markers, weights, reference, squares, gradient, diagonal, hessian, hessian + entries)


@inline
def prepare(to, at, r, measured, weights, reference, scratch):
    """What does not change while a block of frames is worked on: measured numbers, and entries of G that are one."""
    count, nv, n = len(to.local), len(to.coordinate), len(to.speed)
    for k in range(3 * count):
        store(scratch, at.markers + k, gather(measured, r, k))
    for k in range(count):
        store(scratch, at.weights + k, gather(weights, r, k))
    for k in range(nv):
        store(scratch, at.reference + k, gather(reference, r, k))
    for i in range(n):
        store(scratch, at.joints + i, 0.0)
        store(scratch, at.joints + n + i, 1.0)
        store(scratch, at.joints + 2 * n + i, 0.0)


@inline
def expand(to, at, scratch):
    """q̂, entries of G, and f″."""
    alone, coupled, balls, spans, pieces = to.map
    n = len(to.speed)
    for j in range(len(alone)):
        store(scratch, at.joints + alone[j, 0], load(scratch, at.q + alone[j, 1]))
    for w in range(lane_count()):  # a function has its own piece in each lane
        for j in range(len(coupled)):
            i, x = at.joints + coupled[j, 0], scratch[at.q + coupled[j, 1], w]
            f, df, ddf, _ = function(pieces, coupled[j, 3], coupled[j, 4], spans[j, 0], spans[j, 1], x)
            scratch[i, w], scratch[i + n, w], scratch[i + 2 * n, w] = f, df, ddf
        for j in range(len(balls)):
            i, k = at.joints + balls[j, 0], at.q + balls[j, 1]
            angles = pose(scratch[k, w], scratch[k + 1, w], scratch[k + 2, w], scratch[k + 3, w])
            for c, angle in enumerate(angles):
                scratch[i + c, w] = angle


@inline
def no_body():
    zero = spread(0.0)
    return Inertia(zero, zero3(), (zero, zero, zero, zero, zero, zero))


@inline
def with_point(body, w, x):
    """A body and a point mass w at x."""
    h, I = scale(w, x), body.I
    xx, yy, zz = h[0] * x[0], h[1] * x[1], h[2] * x[2]
    turned = I[0] + yy + zz, I[1] + xx + zz, I[2] + xx + yy, I[3] - h[0] * x[1], I[4] - h[0] * x[2], I[5] - h[1] * x[2]
    return Inertia(body.mass + w, add(body.h, h), turned)


@inline
def outer(x, f):
    """x fᵀ"""
    return tuple(a * b for a in x for b in f)


@inline
def add9(A, B):
    return tuple(a + b for a, b in zip(A, B, strict=True))


@inline
def no_matrix():
    zero = spread(0.0)
    return zero, zero, zero, zero, zero, zero, zero, zero, zero


@inline
def residuals(m, to, at, scratch):
    """E at the coordinates in slots q, |x − m|², and what markers are to their own links."""
    n = len(to.speed)
    expand(to, at, scratch)
    frames(m, Slots(scratch, at.joints, 1), 0, scratch, N)
    places(m, zero3(), scratch, N, PLACE)
    cost = spread(0.0)
    for i in range(n):
        own = (i + 1) * N
        R, p = load9(scratch, own + FRAME), load3(scratch, own + PLACE)
        f, Q, body = zero3(), no_matrix(), no_body()
        for k in range(to.beyond[i], to.beyond[i + 1]):
            w, x = load(scratch, at.weights + k), mul(R, row3(to.local, k, 0))
            away = sub(add(p, x), load3(scratch, at.markers + 3 * k))
            square, push = dot(away, away), scale(w, away)
            store(scratch, at.squares + k, square)
            cost = cost + w * square
            f, Q, body = add(f, push), add9(Q, outer(x, push)), with_point(body, w, x)
        store3(scratch, own + FORCE, f)
        store9(scratch, own + LEVER, Q)
        store_inertia(scratch, own + BODY, body)
    for k in range(len(to.pull)):
        if to.pull[k] > 0.0:  # of models without quaternions: coordinates are numbered as speeds
            off = load(scratch, at.q + k) - load(scratch, at.reference + k)
            cost = cost + to.pull[k] * (off * off)
    return 0.5 * cost


@inline
def increase(scratch, k, u):
    store(scratch, k, load(scratch, k) + u)


@inline
def derivatives(m, to, at, exact, scratch):
    """g, H and the diagonal of A, after `residuals`; H is A alone in lanes where `exact` is zero."""
    n, nv = len(to.speed), len(to.coordinate)
    for k in range(at.gradient, at.hessian + len(to.tree[1])):
        store(scratch, k, 0.0)
    o = load3(scratch, n * N + PLACE)
    for i in range(n):
        own = (i + 1) * N
        S = subspace(m, i, scratch, own).at(sub(o, load3(scratch, own + PLACE)))
        put(scratch, own + MOTION, S * load(scratch, at.joints + n + i))
    for j in range(n - 1, -1, -1):
        own, up = (j + 1) * N, (m.parent[j] + 1) * N
        f, Q = load3(scratch, own + FORCE), load9(scratch, own + LEVER)
        if to.speed[j] >= 0:
            z, rho, eta = axis(scratch, own), m.rate[j, 0], m.rate[j, 1]
            moment = Q[5] - Q[7], Q[6] - Q[2], Q[1] - Q[3]
            force = rho * dot(z, moment) + eta * dot(z, f)
            slope, bend = load(scratch, at.joints + n + j), load(scratch, at.joints + 2 * n + j)
            increase(scratch, at.gradient + to.speed[j], slope * force)
            increase(scratch, at.hessian + to.tree[0][to.speed[j]], exact * bend * force)
            F = load_inertia(scratch, own + BODY).times(subspace(m, j, scratch, own)) * slope
            curved = sub(mul(Q, z), scale(Q[0] + Q[4] + Q[8], z))
            c = scale(exact * slope, add(scale(rho, curved), scale(eta, cross(z, f))))
            pair(m, to, at, j, F.before(sub(load3(scratch, own + PLACE), o)), c, scratch)
        if m.parent[j] >= 0:
            hand_on_inertia(m, j, up, own, BODY, scratch)
            add3(scratch, up + FORCE, f)
            Q = add9(Q, outer(load3(scratch, own + SHIFT), f)) if m.apart[j] else Q
            store9(scratch, up + LEVER, add9(load9(scratch, up + LEVER), Q))
    turn_charts(to, at, exact, scratch)
    for k in range(nv):
        if to.pull[k] > 0.0:
            off = load(scratch, at.q + k) - load(scratch, at.reference + k)
            increase(scratch, at.gradient + k, to.pull[k] * off)
            increase(scratch, at.diagonal + k, to.pull[k])
            increase(scratch, at.hessian + to.tree[0][k], to.pull[k])


@inline
def pair(m, to, at, j, F, c, scratch):
    """Entries of H of joint j and all on its way to the root."""
    i, e, moment = j, to.begin[j], add(F.n, c)
    while i >= 0:
        place = to.pairs[e, 0]
        if place >= 0:
            S = load_motion(scratch, (i + 1) * N + MOTION)
            entry = dot(S.w, moment) + dot(S.v, F.f)
            if to.pairs[e, 2]:
                entry = to.pairs[e, 1] * entry
                increase(scratch, at.diagonal + to.speed[i], to.pairs[e, 1] * S.dot(F))
            increase(scratch, at.hessian + place, entry)
        i, e = m.parent[i], e + 1


@inline
def turn_charts(to, at, exact, scratch):
    """The curvature of charts: a turn is not the angles of three hinges."""
    balls, first = to.map[2], to.tree[0]
    half = 0.5 * exact
    for j in range(len(balls)):
        v = balls[j, 2]
        x, y, z = load3(scratch, at.gradient + v)
        increase(scratch, at.hessian + first[v + 1] + 1, -(half * z))
        increase(scratch, at.hessian + first[v + 2] + 1, -(half * x))
        increase(scratch, at.hessian + first[v + 2] + 2, half * y)
