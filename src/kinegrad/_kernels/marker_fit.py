"""The coordinates that bring markers nearest to where they were measured, W frames at a time.

Newton's method with Levenberg and Marquardt's damping, within limits.  With g and H of ``marker_cost.py`` at q, D the
diagonal of A where it is not small, and λ from step to step by the ratio of what a step gained to what it promised
([nielsen1999]), the step δ minimises

    gᵀδ + ½ δᵀ (H + λ D) δ          lower ≤ q + δ ≤ upper

nearly: a coordinate at a limit that g pushes against is held there, what a step would carry beyond a limit is put on
it, and the others are solved for again.  Where H + λ D is not positive definite, Gauss and Newton's A takes its place.
A frame is done when an undamped step promises to lower its cost by no more than `tolerance` of it; that step is taken,
unless it raises the cost.  At a minimum with distances left, Newton's steps converge quadratically, those of Gauss
and Newton linearly.

Lanes have no branches: each frame has its own λ and ends by itself, by choosing between old and new numbers lane by
lane, and the block ends when all of its frames have.  So a frame gives the same bits whatever its neighbours are.

Glossary (of each lane)
    q          coordinates, the best so far                 (nq)
    trial      where the cost is evaluated: slots q of marker_cost.py
    g H A      there; those of lanes whose trial was no better stay those of q
    B          H + λ D without rows and columns of what is held, then its factors
    step       δ                                            (nv)
    free       1, or 0 where held                           (nv)
    busy done  1 while a frame is worked on; 1 once it is at its minimum
    promised   by how much the quadratic model says that δ lowers the cost
    fails cut  1 where B is not positive definite; where δ would have turned a joint too far, and is a part of it
"""

import math
from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, root, scatter, select, spread, store, within
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.marker_cost import Task, derivatives, memory, prepare, residuals
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.tree_solve import ONE, divide, factor, gather_up

SLIGHT, HOPELESS = 1e-6, 1e12  # damping: hardly any; no step is small enough
LEAST_DAMPING, AGAIN = 1e-10, 1e-4  # of any step; of one after a failure
LEAST, ROUNDING, TINY = 1e-1, 1e-13, 1e-300  # of the largest entry of the diagonal; and what is not zero
NOISE = 1e-14  # a pivot below this part of the diagonal is rounding
LONGEST = 1.0  # rad of a step: beyond, a quadratic model says nothing
UNCHANGED = 1 + 1e-14  # times a cost is the same cost
ROUNDS = 6  # of putting coordinates on their limits


class Search(NamedTuple):
    """Slots of the search, after those of marker_cost.py."""

    q: Any
    squares: Any  # (k) of q
    g: Any
    diagonal: Any
    H: Any
    B: Any
    step: Any
    free: Any
    right: Any
    end: Any


@inline
def search(at, nq, nv, count, entries):
    """Slots from the end of others on."""
    q = at.end
    squares = q + nq
    g = squares + count
    diagonal = g + nv
    H = diagonal + nv
    B = H + entries
    step = B + entries
    return Search(q, squares, g, diagonal, H, B, step, step + nv, step + 2 * nv, step + 3 * nv)


def slots(n: int, nq: int, nv: int, count: int, entries: int) -> int:
    """How many slots all of it needs."""
    at = memory(n, nq, nv, count, entries)
    return int(search(at, nq, nv, count, entries).end)


# --- choices, lane by lane --------------------------------------------------------------------------------------


@inline
def less(a, b):
    """1 in lanes where a < b, else 0."""
    return select(a, b, 1.0, 0.0)


@inline
def when(flag, u, v):
    """u in lanes where the flag is 1, else v."""
    return select(0.5, flag, u, v)


@inline
def largest(a, b):
    return select(a, b, b, a)


@inline
def smallest(a, b):
    return select(a, b, a, b)


@inline
def size(u):
    return largest(u, -u)


# --- a step -----------------------------------------------------------------------------------------------------


@inline
def room(to, k, s, scratch):
    """How far speed k may carry its coordinate down and up."""
    q = load(scratch, s.q + max(to.coordinate[k], 0))
    return to.limits[k, 0] - q, to.limits[k, 1] - q


@inline
def hold(to, s, scratch):
    """Free are all but those that g pushes against a limit; 1 in lanes where there are such."""
    held = spread(0.0)
    for k in range(len(to.coordinate)):
        (down, up), g = room(to, k, s, scratch), load(scratch, s.g + k)
        low, high = (1.0 - less(down, 0.0)) * less(0.0, g), (1.0 - less(0.0, up)) * less(g, 0.0)
        free = (1.0 - low) * (1.0 - high) * less(down, up)
        store(scratch, s.free + k, free)
        store(scratch, s.step + k, 0.0)
        held = largest(held, 1.0 - free)
    return held


@inline
def damped_diagonal(to, s, damping, most, k, scratch):
    """The diagonal of H + λ D."""
    scale = largest(load(scratch, s.diagonal + k), LEAST * most) + TINY
    return load(scratch, s.H + to.tree[0][k]) + damping * scale + ROUNDING * most


@inline
def build(to, s, damping, most, loose, again, scratch):
    """B, and the right-hand side −g, less what held coordinates that have moved add to it."""
    first, above, _ = to.tree
    if loose:  # nothing is held in any lane: the same numbers, with less to do
        for e in range(len(above)):
            store(scratch, s.B + e, load(scratch, s.H + e))
        for k in range(len(first)):
            store(scratch, s.B + first[k], damped_diagonal(to, s, damping, most, k, scratch))
            store(scratch, s.right + k, -load(scratch, s.g + k))
        return
    for k in range(len(first)):
        free, begin, end = load(scratch, s.free + k), first[k], first[max(k - 1, 0)]
        held = (1.0 - free) * load(scratch, s.step + k)
        right = load(scratch, s.g + k)
        store(scratch, s.B + begin, when(free, damped_diagonal(to, s, damping, most, k, scratch), 1.0))
        for e in range(begin + 1, end):
            i, entry = above[e], load(scratch, s.H + e)
            others = load(scratch, s.free + i)
            store(scratch, s.B + e, entry * (free * others))
            if again:
                right = right + entry * ((1.0 - others) * load(scratch, s.step + i))
                store(scratch, s.right + i, load(scratch, s.right + i) - others * (entry * held))
        store(scratch, s.right + k, -(free * right))


@inline
def settle(to, s, scratch):
    """δ from the solution, what is beyond limits put on them and held; 1 in lanes where something was."""
    moved = spread(0.0)
    for k in range(len(to.coordinate)):
        (down, up), free, x = room(to, k, s, scratch), load(scratch, s.free + k), load(scratch, s.right + k)
        beyond = free * largest(less(x, down), less(up, x))
        store(scratch, s.step + k, when(free, smallest(largest(x, down), up), load(scratch, s.step + k)))
        store(scratch, s.free + k, free * (1.0 - beyond))
        moved = largest(moved, beyond)
    return moved


@inline
def solve(to, s, damping, scratch):
    """δ, and where B is not positive definite."""
    first, nv = to.tree[0], len(to.coordinate)
    most = spread(0.0)
    for k in range(nv):
        most = largest(most, load(scratch, s.diagonal + k))
    loose = within(hold(to, s, scratch), 0.5)
    fails = spread(0.0)
    for turn in range(ROUNDS):
        build(to, s, damping, most, loose, turn > 0, scratch)
        factor(to.tree, s.B, scratch)
        fails = spread(0.0)
        for k in range(nv):
            whole = when(load(scratch, s.free + k), damped_diagonal(to, s, damping, most, k, scratch), 1.0)
            pivot = 1.0 / load(scratch, s.B + first[k])
            fails = largest(fails, 1.0 - less(NOISE * size(whole), pivot))
        gather_up(to.tree, s.B, s.right, 1, nv - 1, ONE, None, 0, scratch)
        divide(to.tree, s.B, s.right, 1, nv - 1, ONE, 1.0, scratch)
        if within(settle(to, s, scratch), 0.5):
            break
        loose = False
    return fails


@inline
def shorten(to, s, fails, scratch):
    """No turn further than a quadratic model reaches, no step where it failed; 1 in lanes where a step was cut."""
    most, nv = spread(LONGEST), len(to.coordinate)
    for k in range(nv):
        if to.turns[k]:
            most = largest(most, size(load(scratch, s.step + k)))
    part = LONGEST / most
    for k in range(nv):
        store(scratch, s.step + k, when(fails, 0.0, part * load(scratch, s.step + k)))
    return less(LONGEST, most)


@inline
def promise(to, s, scratch):
    """−gᵀδ − ½ δᵀH δ"""
    first, above, _ = to.tree
    gain = spread(0.0)
    for k in range(len(first)):
        x, begin, end = load(scratch, s.step + k), first[k], first[max(k - 1, 0)]
        row = load(scratch, s.g + k) + 0.5 * load(scratch, s.H + begin) * x
        for e in range(begin + 1, end):
            row = row + load(scratch, s.H + e) * load(scratch, s.step + above[e])
        gain = gain - row * x
    return gain


@inline
def move(to, at, s, scratch):
    """The trial q ⊕ δ; what is on a limit is exactly there."""
    for k in range(len(to.coordinate)):
        c = to.coordinate[k]
        if c >= 0:
            (down, up), x = room(to, k, s, scratch), load(scratch, s.step + k)
            low, high = to.limits[k, 0], to.limits[k, 1]
            moved = smallest(largest(load(scratch, s.q + c) + x, low), high)
            store(scratch, at.q + c, select(down, x, select(x, up, moved, high), low))
    balls = to.map[2]
    for j in range(len(balls)):
        turn_ball(at.q + balls[j, 1], s.q + balls[j, 1], s.step + balls[j, 2], scratch)


@inline
def turn_ball(to, q, step, scratch):
    """A quaternion times exp(δ/2), of unit length."""
    x, y, z = load(scratch, step), load(scratch, step + 1), load(scratch, step + 2)
    square = 0.25 * (x * x + y * y + z * z)
    angle = root(square)
    sine, c = sincos(angle)
    part = 0.5 * select(square, 1e-8, 1.0 - square * (1.0 / 6.0), sine / largest(angle, TINY))
    x, y, z = part * x, part * y, part * z
    w, a, b, d = load(scratch, q), load(scratch, q + 1), load(scratch, q + 2), load(scratch, q + 3)
    turned = (
        w * c - a * x - b * y - d * z,
        w * x + a * c + b * z - d * y,
        w * y - a * z + b * c + d * x,
        w * z + a * y - b * x + d * c,
    )
    length = 1.0 / root(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2] + turned[3] * turned[3])
    for k, part_of in enumerate(turned):
        store(scratch, to + k, length * part_of)


# --- the search -------------------------------------------------------------------------------------------------


@inline
def begin(to, at, r, q0, scratch):
    """The first trial: the start, within limits."""
    for c in range(q0.shape[1]):
        store(scratch, at.q + c, gather(q0, r, c))
    for k in range(len(to.coordinate)):
        c = to.coordinate[k]
        if c >= 0:
            inside = smallest(largest(load(scratch, at.q + c), to.limits[k, 0]), to.limits[k, 1])
            store(scratch, at.q + c, inside)


@inline
def blend(flag, to, new, count, scratch):
    """Slots `to` …: those of `new` in lanes where the flag is 1."""
    for k in range(count):
        store(scratch, to + k, when(flag, load(scratch, new + k), load(scratch, to + k)))


@inline
def exchange(at, s):
    """g, A and H that were found become those of q, and their slots those of the next."""
    return (
        at._replace(gradient=s.g, diagonal=s.diagonal, hessian=s.H),
        s._replace(g=at.gradient, diagonal=at.diagonal, H=at.hessian),
    )


@inline
def block(m, to, r, q0, measured, weights, reference, how, scratch):
    """Frames r … r+W−1: `how` is tolerance, floor, damping, most steps, steps without second derivatives."""
    tolerance, floor, first_damping, most, patient = how
    n, nq, nv, count, entries = len(to.speed), q0.shape[1], len(to.coordinate), len(to.local), len(to.tree[1])
    at = memory(n, nq, nv, count, entries)
    s = search(at, nq, nv, count, entries)
    prepare(to, at, r, measured, weights, reference, scratch)
    begin(to, at, r, q0, scratch)
    damping, growth, busy, done = spread(first_damping), spread(2.0), spread(1.0), spread(0.0)
    cost, promised, fails, cut, steps = spread(0.0), spread(0.0), spread(0.0), spread(0.0), spread(0.0)
    for turn in range(most + 1):
        new = residuals(m, to, at, scratch)
        fresh = spread(1.0)
        if turn > 0:
            enough, change = tolerance * cost + floor, size(promised)
            whole = (1.0 - cut) * less(cost, math.inf)  # a step that was cut says nothing of what is left
            small = whole * less(change, enough) * less(damping, 1.001 * SLIGHT)
            # the last step may lower the cost by less than rounding shows
            better = busy * largest(less(new, cost), small * less(new, UNCHANGED * cost))
            # a step that promises nothing measurable and gains nothing is as good as done, however damped
            lost = whole * (1.0 - better) * less(change, largest(enough, 1e-13 * cost))
            finished = busy * largest(small, lost)
            x = 2.0 * (cost - new) / largest(change, TINY) - 1.0  # [nielsen1999]
            gained = largest(damping * smallest(largest(1.0 - x * x * x, 0.05), 2.0), LEAST_DAMPING)
            missed = when(fails, damping, largest(damping, AGAIN) * growth)
            damping = when(better, gained, missed)
            growth = when(better, 2.0, when(fails, growth, 2.0 * growth))
            steps, done = steps + busy, done + finished
            busy = busy * (1.0 - finished) * (1.0 - less(HOPELESS, damping))
            cost = when(better, new, cost)
            fresh = better
        else:
            cost = new
        blend(fresh, s.q, at.q, nq, scratch)
        blend(fresh, s.squares, at.squares, count, scratch)
        if turn == most or within(busy, 0.5):
            break
        derivatives(m, to, at, 1.0 - fails if turn >= patient else spread(0.0), scratch)
        fresh = largest(fresh, fails)  # where it failed, q was evaluated again
        if not within(busy * (1.0 - fresh), 0.5):  # some lane goes on from what it had
            blend(1.0 - fresh, at.gradient, s.g, 2 * nv + entries, scratch)
        blend(1.0 - busy, at.diagonal, s.diagonal, nv, scratch)
        at, s = exchange(at, s)
        fails = solve(to, s, damping, scratch)
        cut = shorten(to, s, fails, scratch)
        promised = when(fails, math.inf, promise(to, s, scratch))
        move(to, at, s, scratch)
    return cost, steps, done, s


@kernel
def fit(m, to, q0, measured, weights, reference, how, q, cost, steps, done, distance, diagonal, scratch, start, stop):
    """q, (frames, nq), with its cost, steps and whether it is at a minimum, (frames, 1) each, distances, (frames, k),
    and the diagonal of A, (frames, nv); from q0, (frames or 1, nq), with what was measured, (frames, 3 k), weights,
    (frames or 1, k), and r, (frames or 1, nv)."""
    ok = finite((q0, measured, weights, reference), start, stop)
    if not ok:
        return ok
    m, to = unpack(m), Task(*to)
    for r in range(start, stop, lane_count()):
        found, number, end, s = block(m, to, r, q0, measured, weights, reference, how, scratch)
        for k in range(q.shape[1]):
            scatter(q, r, k, load(scratch, s.q + k))
        for k in range(distance.shape[1]):
            scatter(distance, r, to.column[k], root(load(scratch, s.squares + k)))
        for k in range(diagonal.shape[1]):
            scatter(diagonal, r, k, load(scratch, s.diagonal + k))
        scatter(cost, r, 0, found)
        scatter(steps, r, 0, number)
        scatter(done, r, 0, end)
    return ok


@kernel
def cost_derivatives(m, to, q0, measured, weights, reference, exact, cost, distance, g, H, scratch, start, stop):
    """E, (frames, 1), distances, (frames, k), g, (frames, nv), and H, (frames, nv·nv), zero on entry, or A if `exact`
    is 0, at q0."""
    ok = finite((q0, measured, weights, reference), start, stop)
    if not ok:
        return ok
    m, to = unpack(m), Task(*to)
    first, above, _ = to.tree
    n, nq, nv, count, entries = len(to.speed), q0.shape[1], len(to.coordinate), len(to.local), len(above)
    at = memory(n, nq, nv, count, entries)
    for r in range(start, stop, lane_count()):
        prepare(to, at, r, measured, weights, reference, scratch)
        begin(to, at, r, q0, scratch)
        scatter(cost, r, 0, residuals(m, to, at, scratch))
        derivatives(m, to, at, spread(exact), scratch)
        for k in range(count):
            scatter(distance, r, to.column[k], root(load(scratch, at.squares + k)))
        for k in range(nv):
            scatter(g, r, k, load(scratch, at.gradient + k))
            scatter(H, r, k * nv + k, load(scratch, at.hessian + first[k]))
            for e in range(first[k] + 1, first[max(k - 1, 0)]):
                entry = load(scratch, at.hessian + e)
                scatter(H, r, k * nv + above[e], entry)
                scatter(H, r, above[e] * nv + k, entry)
    return ok
