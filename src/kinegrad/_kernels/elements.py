"""Force elements between two links: generalised forces Q(q, q̇), their derivatives, and energies.

An element acts on link A at p_A and reacts on link B, or on the world.  What it does depends on where A is, and how it
moves, as seen from B, and on nothing else.  So only the joints on the way from A to B count: those that both links
hang on move neither with respect to the other.  Let T_j be the motion that q̇_j = 1 gives A as seen from B, about the
place where p_A is now: S_j for joints on the side of A, −S_j for those on the side of B.  With F = (n, f) the force on
A about that place, and V = Σ T_j q̇_j = (ω, ẋ) the velocity of A as seen from B,

    Q_j = F·T_j                                                                                              (1)

Let q_k be larger by ε.  As seen from B, all that is on A's side of joint k is moved by ε T_k = ε (w, x).  So T_j
changes by T_k × T_j if joint j is on that side and not at all otherwise, and V by δV = T_k × V_k, where V_k sums
T_j q̇_j of the joints on that side; the velocity of p_A, which has moved by x, changes by δẋ = δV_lin + ω×x.  Hence

    ∂Q_j/∂q_k = T_j·δF_k − [j on A's side of k] T_j·(T_k ×* F),      δF_k = (δn + x×f, δf)                   (2)
    δf = f_x x + f_v δẋ,    δn = n_x w + n_v δω,        ∂Q_j/∂q̇_k = T_j·(n_v w, f_v x)                     (3)

with four 3×3 matrices that the kind of the element decides.

**Spring-damper** of two points, r = p_A − p_B, l = |r|, u = r/l, l̇ = u·ẋ:

    f = −s u,    s = k (l − l₀) + d l̇,    n = 0,    U = ½ k (l − l₀)²
    f_x = −(s/l) (1 − u uᵀ) − k u uᵀ − (d/l) u (ẋ − u l̇)ᵀ,    f_v = −d u uᵀ

written with s/l = k (1 − l₀/l) + d l̇/l and l = √(r·r + 1e-300), so that a spring without rest length and damper is
−k r also where its ends meet.  (Of others the direction is not defined there; the engine refuses such states.)

**Bushing** between frames with axes a_i in A and b_i in B: of each axis of B a stiffness k_i and damping d_i of the
shift b_i·r, and κ_i, δ_i of the turn.  The turn is measured by twice the vector part of its quaternion, 2 sin(θ/2) of a
turn by θ; the square of that is linear in the products a_i·b_i, so that there is no singular place,

    U = ½ Σ k_i (b_i·r)² + Σ λ_i (1 − a_i·b_i),    λ_i = ½ (κ₁ + κ₂ + κ₃) − κ_i
    f = −Σ (k_i b_i·r + d_i b_i·ẋ) b_i,    n = Σ λ_i a_i×b_i − Σ δ_i (b_i·ω) b_i
    f_x = −Σ k_i b_i b_iᵀ,   f_v = −Σ d_i b_i b_iᵀ,   n_x = Σ λ_i (a_i b_iᵀ − a_i·b_i 1),   n_v = −Σ δ_i b_i b_iᵀ

Glossary
    links     5 numbers of each element: kind, A, B (−1: the world), joints on the side of A, and of B
    way       n numbers of each element: these joints, from A to where both sides meet, and on to B
    numbers   (rows, 37 elements)  see the names below: points and axes in link frames
    R d       of joint i, as in joints.py, N slots per joint
    T V_k     12 slots of each joint of the way; then those of the element: F, V, and the four matrices
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, SHIFT, frames, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, root, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    cross,
    dot,
    gather3,
    load3,
    load9,
    load_force,
    load_motion,
    matmul,
    mul,
    put,
    row9,
    scale,
    store9,
    sub,
)  # fmt: skip

SPRING, BUSHING = 0, 1
# of an element: p_A, p_B | axes of A, of B, by rows | k₁ k₂ k₃ κ₁ κ₂ κ₃ | d₁ d₂ d₃ δ₁ δ₂ δ₃ | l₀; a spring has k₁, d₁
POINT, OTHER_POINT, AXES, OTHER_AXES, STIFFNESS, DAMPING, LENGTH, NUMBERS = 0, 3, 6, 15, 24, 30, 36, 37
N, WAY = FREE, 12
F, V, F_X, F_V, N_X, N_V, SLOTS = 0, 6, 12, 21, 30, 39, 48  # of the element
PER_JOINT = 42  # slots that suffice for each joint, and the world: N + WAY, and the element's
COINCIDE = 1e-150  # the length of a spring whose ends are at one place


@inline
def outer(a, b):
    """a bᵀ"""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2],
        a[1] * b[0], a[1] * b[1], a[1] * b[2],
        a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@inline
def plus(A, B):
    """A + B of 3×3 matrices."""
    return (
        A[0] + B[0], A[1] + B[1], A[2] + B[2],
        A[3] + B[3], A[4] + B[4], A[5] + B[5],
        A[6] + B[6], A[7] + B[7], A[8] + B[8],
    )  # fmt: skip


@inline
def times(c, A):
    """c A of a 3×3 matrix."""
    return c * A[0], c * A[1], c * A[2], c * A[3], c * A[4], c * A[5], c * A[6], c * A[7], c * A[8]


@inline
def diagonal(c):
    """c 1"""
    zero = 0.0 * c
    return c, zero, zero, zero, c, zero, zero, zero, c


@inline
def gather9(x, r, k):
    return (
        gather(x, r, k), gather(x, r, k + 1), gather(x, r, k + 2),
        gather(x, r, k + 3), gather(x, r, k + 4), gather(x, r, k + 5),
        gather(x, r, k + 6), gather(x, r, k + 7), gather(x, r, k + 8),
    )  # fmt: skip


@inline
def column(R, i):
    """Axis i of a frame, i a number of Python."""
    return R[i], R[3 + i], R[6 + i]


@inline
def axes(m, i, scratch, R):
    """World axes of a frame with axes R in link frame i."""
    return matmul(load9(scratch, (i + 1) * N + FRAME), matmul(row9(m.F, i), R))


@inline
def follow(m, e, v, links, way, numbers, r, scratch):
    """T and V_k along the way from A to B; stores V of the element, and gives r = p_A − p_B."""
    n = len(m.parent)
    first, A, B = (n + 1) * N, links[5 * e + 1], links[5 * e + 2]
    x = link_point(m, A, scratch, N, gather3(numbers, r, e * NUMBERS + POINT))
    W = Motion(scale(0.0, x), scale(0.0, x))
    for k in range(links[5 * e + 3]):
        j = way[n * e + k]
        T = subspace(m, j, scratch, (j + 1) * N).at(x)
        put(scratch, first + k * WAY, T)
        put(scratch, first + k * WAY + 6, W)
        W = W + T * gather(v, r, j)
        x = add(x, load3(scratch, (j + 1) * N + SHIFT))
    for k in range(links[5 * e + 3], links[5 * e + 3] + links[5 * e + 4]):
        j = way[n * e + k]
        x = sub(x, load3(scratch, (j + 1) * N + SHIFT))
        T = subspace(m, j, scratch, (j + 1) * N).at(x) * -1.0
        put(scratch, first + k * WAY, T)
        put(scratch, first + k * WAY + 6, W)
        W = W + T * gather(v, r, j)
    put(scratch, first + n * WAY + V, W)
    y = gather3(numbers, r, e * NUMBERS + OTHER_POINT)
    if B >= 0:
        y = link_point(m, B, scratch, N, y)
    return sub(x, y)


@inline
def spring(e, apart, numbers, r, scratch, at):
    """Stores F of a spring-damper; its length and energy."""
    k, d = gather(numbers, r, e * NUMBERS + STIFFNESS), gather(numbers, r, e * NUMBERS + DAMPING)
    rest = gather(numbers, r, e * NUMBERS + LENGTH)
    length = root(dot(apart, apart) + COINCIDE * COINCIDE)
    stretch, closer = length - rest, 1.0 / length
    rate = dot(scale(closer, apart), load_motion(scratch, at + V).v)
    pull = k * (1.0 - rest * closer) + d * rate * closer
    put(scratch, at + F, Force(scale(0.0, apart), scale(-pull, apart)))
    return length, 0.5 * k * stretch * stretch


@inline
def spring_matrices(e, apart, numbers, r, scratch, at):
    """Stores the four matrices of a spring-damper."""
    k, d = gather(numbers, r, e * NUMBERS + STIFFNESS), gather(numbers, r, e * NUMBERS + DAMPING)
    rest = gather(numbers, r, e * NUMBERS + LENGTH)
    closer = 1.0 / root(dot(apart, apart) + COINCIDE * COINCIDE)
    u, dx = scale(closer, apart), load_motion(scratch, at + V).v
    rate = dot(u, dx)
    pull = k * (1.0 - rest * closer) + d * rate * closer
    across = scale(d * closer, sub(dx, scale(rate, u)))
    along = add(scale(k - pull, u), across)
    store9(scratch, at + F_X, times(-1.0, plus(diagonal(pull), outer(u, along))))
    store9(scratch, at + F_V, times(-d, outer(u, u)))
    store9(scratch, at + N_X, diagonal(0.0 * k))
    store9(scratch, at + N_V, diagonal(0.0 * k))


@inline
def bushing_axes(m, e, links, numbers, r, scratch):
    """Axes of the two frames in the world."""
    a = axes(m, links[5 * e + 1], scratch, gather9(numbers, r, e * NUMBERS + AXES))
    b = gather9(numbers, r, e * NUMBERS + OTHER_AXES)
    if links[5 * e + 2] >= 0:
        b = axes(m, links[5 * e + 2], scratch, b)
    return a, b


@inline
def turn_numbers(e, numbers, r):
    """λ of the three axes."""
    kappa = gather3(numbers, r, e * NUMBERS + STIFFNESS + 3)
    half = 0.5 * (kappa[0] + kappa[1] + kappa[2])
    return half - kappa[0], half - kappa[1], half - kappa[2]


@inline
def bushing(m, e, links, apart, numbers, r, scratch, at):
    """Stores F of a bushing; the distance of its origins and its energy."""
    a, b = bushing_axes(m, e, links, numbers, r, scratch)
    k, d = gather3(numbers, r, e * NUMBERS + STIFFNESS), gather3(numbers, r, e * NUMBERS + DAMPING)
    turn, slow = turn_numbers(e, numbers, r), gather3(numbers, r, e * NUMBERS + DAMPING + 3)
    motion = load_motion(scratch, at + V)
    f, n, energy = scale(0.0, apart), scale(0.0, apart), 0.0 * apart[0]
    for i in range(3):
        a_i, b_i = column(a, i), column(b, i)
        shift = dot(b_i, apart)
        f = sub(f, scale(k[i] * shift + d[i] * dot(b_i, motion.v), b_i))
        n = add(n, sub(scale(turn[i], cross(a_i, b_i)), scale(slow[i] * dot(b_i, motion.w), b_i)))
        off = sub(a_i, b_i)  # 1 − a·b = ½ |a − b|², which keeps its digits where they are close
        energy = energy + 0.5 * (k[i] * shift * shift + turn[i] * dot(off, off))
    put(scratch, at + F, Force(n, f))
    return root(dot(apart, apart) + COINCIDE * COINCIDE), energy


@inline
def bushing_matrices(m, e, links, numbers, r, scratch, at):
    """Stores the four matrices of a bushing."""
    a, b = bushing_axes(m, e, links, numbers, r, scratch)
    k, d = gather3(numbers, r, e * NUMBERS + STIFFNESS), gather3(numbers, r, e * NUMBERS + DAMPING)
    turn, slow = turn_numbers(e, numbers, r), gather3(numbers, r, e * NUMBERS + DAMPING + 3)
    none = diagonal(0.0 * k[0])
    f_x, f_v, n_x, n_v = none, none, none, none
    for i in range(3):
        a_i, b_i = column(a, i), column(b, i)
        square = outer(b_i, b_i)
        f_x, f_v = plus(f_x, times(-k[i], square)), plus(f_v, times(-d[i], square))
        n_v = plus(n_v, times(-slow[i], square))
        n_x = plus(n_x, times(turn[i], plus(outer(a_i, b_i), diagonal(-dot(a_i, b_i)))))
    store9(scratch, at + F_X, f_x)
    store9(scratch, at + F_V, f_v)
    store9(scratch, at + N_X, n_x)
    store9(scratch, at + N_V, n_v)


@inline
def matrices(m, e, links, apart, numbers, r, scratch, at):
    """Stores the four matrices of an element."""
    if links[5 * e] == SPRING:
        spring_matrices(e, apart, numbers, r, scratch, at)
    else:
        bushing_matrices(m, e, links, numbers, r, scratch, at)


@inline
def increase_column(x, r, k, u):
    """x[rows, k] += u"""
    scatter(x, r, k, gather(x, r, k) + u)


@inline
def act(m, e, v, links, way, numbers, Q, length, energy, r, scratch):
    """F of element e, stored, and Q, length and energy; gives r = p_A − p_B."""
    n = len(m.parent)
    first, at = (n + 1) * N, (n + 1) * N + n * WAY
    apart = follow(m, e, v, links, way, numbers, r, scratch)
    if links[5 * e] == SPRING:
        reach, stored = spring(e, apart, numbers, r, scratch, at)
        scatter(length, r, e, reach)
        scatter(energy, r, e, stored)
    else:
        reach, stored = bushing(m, e, links, apart, numbers, r, scratch, at)
        scatter(length, r, e, reach)
        scatter(energy, r, e, stored)
    force = load_force(scratch, at + F)
    for k in range(links[5 * e + 3] + links[5 * e + 4]):
        increase_column(Q, r, way[n * e + k], load_motion(scratch, first + k * WAY).dot(force))
    return apart


@inline
def block(m, q, v, links, way, numbers, Q, length, energy, r, scratch):
    """Q, lengths and energies of the states r … r+W−1."""
    frames(m, q, r, scratch, N)
    for e in range(len(links) // 5):
        act(m, e, v, links, way, numbers, Q, length, energy, r, scratch)


@inline
def changes(k, first, at, force, scratch):
    """Of joint k of the way: δF_k, T_k ×* F, and how F changes with its speed; (2) and (3)."""
    T, beside = load_motion(scratch, first + k * WAY), load_motion(scratch, at + V)
    change = T.cross(load_motion(scratch, first + k * WAY + 6))
    rate = add(change.v, cross(beside.w, T.v))
    f_x, f_v = load9(scratch, at + F_X), load9(scratch, at + F_V)
    n_x, n_v = load9(scratch, at + N_X), load9(scratch, at + N_V)
    df, dn = add(mul(f_x, T.v), mul(f_v, rate)), add(mul(n_x, T.w), mul(n_v, change.w))
    return Force(add(dn, cross(T.v, force.f)), df), T.cross(force), Force(mul(n_v, T.w), mul(f_v, T.v))


@inline
def differentiate(m, e, links, way, Q_q, Q_v, r, scratch):
    """(2) and (3) for all pairs of joints of the way."""
    n = len(m.parent)
    first, at = (n + 1) * N, (n + 1) * N + n * WAY
    joints = links[5 * e + 3] + links[5 * e + 4]
    force = load_force(scratch, at + F)
    for k in range(joints):
        fixed, turned, damped = changes(k, first, at, force, scratch)
        carried = fixed - turned
        for i in range(joints):
            T_i, entry = load_motion(scratch, first + i * WAY), way[n * e + i] * n + way[n * e + k]
            if i < k:
                increase_column(Q_q, r, entry, T_i.dot(carried))
            else:
                increase_column(Q_q, r, entry, T_i.dot(fixed))
            increase_column(Q_v, r, entry, T_i.dot(damped))


@inline
def pull_back(m, e, y, links, way, by_q, by_v, r, scratch):
    """Add the gradient of yᵀQ: (2) and (3) with the sum over j taken first, O(joints of the way)."""
    n = len(m.parent)
    first, at = (n + 1) * N, (n + 1) * N + n * WAY
    joints, force = links[5 * e + 3] + links[5 * e + 4], load_force(scratch, at + F)
    total = load_motion(scratch, at + V) * 0.0
    side = total  # of the joints on A's side of k
    for k in range(joints):
        total = total + load_motion(scratch, first + k * WAY) * gather(y, r, way[n * e + k])
    for k in range(joints):
        joint = way[n * e + k]
        fixed, turned, damped = changes(k, first, at, force, scratch)
        increase_column(by_q, r, joint, total.dot(fixed) - side.dot(turned))
        increase_column(by_v, r, joint, total.dot(damped))
        side = side + load_motion(scratch, first + k * WAY) * gather(y, r, joint)


@inline
def gradient_block(m, q, v, y, links, way, numbers, by_q, by_v, r, scratch):
    """Gradients of yᵀQ of the states r … r+W−1, added."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    at = (n + 1) * N + n * WAY
    for e in range(len(links) // 5):
        apart = follow(m, e, v, links, way, numbers, r, scratch)
        if links[5 * e] == SPRING:
            spring(e, apart, numbers, r, scratch, at)
        else:
            bushing(m, e, links, apart, numbers, r, scratch, at)
        matrices(m, e, links, apart, numbers, r, scratch, at)
        pull_back(m, e, y, links, way, by_q, by_v, r, scratch)


@kernel
def elements(m, q, v, links, way, numbers, Q, length, energy, scratch, start, stop):
    """Q, (states, n), zero on entry; lengths and energies of all elements, (states, elements)."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, links, way, numbers, Q, length, energy, r, scratch)
    return ok


@kernel
def elements_derivatives(m, q, v, links, way, numbers, Q, length, energy, Q_q, Q_v, scratch, start, stop):
    """The same, and ∂Q/∂q, ∂Q/∂q̇, (states, n·n), zero on entry."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        at = (len(m.parent) + 1) * N + len(m.parent) * WAY
        for e in range(len(links) // 5):
            apart = act(m, e, v, links, way, numbers, Q, length, energy, r, scratch)
            matrices(m, e, links, apart, numbers, r, scratch, at)
            differentiate(m, e, links, way, Q_q, Q_v, r, scratch)
    return ok
