"""Solve M x = b with the mass matrix of a tree, whose zeros survive the factorisation.

M = LᵀDL, factored from the leaves: row k of the unit triangle L reaches only the joints above k, as row k of M does
([featherstone2008] 6.5).  Then, row operation by row operation, for any number of right-hand sides X,

    Lᵀ:  for k = n−1 … 0, for i above k:  X_i −= L_ki X_k          D:  X_k /= D_k
    L:   for k = 0 … n−1, for i above k:  X_k −= L_ki X_i

Six right-hand sides at a time, a *panel*, and two rows, k and k + 1, where k is the parent of k + 1: what is above k is
above both, so that each of its rows is read once for the two, and the twelve sums stay in registers and hide each
other's latency.  Row k of a right-hand side that is a column c of a matrix with M's zeros is zero, and stays so in the
first of these loops, where k and c are on no common path; `reach` tells the rows of each panel that are not.

Glossary
    M      the entries M_ki, i = k or above k, closely packed: k's begin at slot M + first[k], from k up to the root;
           after `factor` L in their place, and 1/D in that of the diagonal
    tree   first, (n,); above, (pairs,), the joint i of each entry; steps, (steps, 4), one or two rows each, from the
           root on: k, its first[k], how many entries it has, and first[k + 1], or −1 if row k is alone
    X      right-hand sides: n rows, `width` slots apart
    panel  n rows of six slots: right-hand sides of their own
    reach  (n, panels): whether row k may be other than zero in one of the columns of a panel
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.lane import gather, load, pick, scatter, store

# D_k is rounding noise when it is below this part of the M_kk it is what remains of.
NOISE = 1e-12
PANEL = 6  # right-hand sides at a time
COLUMNS = tuple(range(PANEL))
ONE = (0,)


@inline
def factor(tree, M, scratch):
    """LᵀDL in place."""
    first, above, _ = tree
    for k in range(len(first) - 1, -1, -1):
        begin, end = first[k], first[max(k - 1, 0)]  # joint 0 is a root: there is nothing but its diagonal
        inverse = 1.0 / load(scratch, M + begin)
        store(scratch, M + begin, inverse)
        for ki in range(begin + 1, end):
            ratio = load(scratch, M + ki) * inverse
            ii = M + first[above[ki]]
            for j in range(end - ki):
                store(scratch, ii + j, load(scratch, ii + j) - ratio * load(scratch, M + ki + j))
            store(scratch, M + ki, ratio)


@inline
def load_row(x, k, columns):
    return tuple(load(x, k + c) for c in columns)


@inline
def store_row(x, k, u):
    for c, value in enumerate(u):
        store(x, k + c, value)


@inline
def scale_row(c, u):
    return tuple(c * a for a in u)


@inline
def less(u, c, v):
    """u − c v"""
    return tuple(a - c * b for a, b in zip(u, v, strict=True))


@inline
def less_row(x, k, c, u):
    """Row k of x, less c u."""
    for column, value in enumerate(u):
        store(x, k + column, load(x, k + column) - c * value)


@inline
def less_two(x, k, a, u, b, v):
    """Row k of x, less a u + b v; column by column, as registers are few."""
    for column, (one, other) in enumerate(zip(u, v, strict=True)):
        store(x, k + column, load(x, k + column) - a * one - b * other)


@inline
def two_less(u, a, v, b, x, k):
    """u − a x and v − b x of row k of x; column by column, as registers are few."""
    rows = ()
    for column, (one, other) in enumerate(zip(u, v, strict=True)):
        entry = load(x, k + column)
        rows = (*rows, (one - a * entry, other - b * entry))
    return tuple(one for one, _ in rows), tuple(other for _, other in rows)


@inline
def gather_up(tree, M, X, width, last, columns, reach, panel, scratch):
    """X ← L⁻ᵀ X of some columns, whose rows after `last` are zero; without `reach` any other may be there."""
    _, above, steps = tree
    for s in range(len(steps) - 1, -1, -1):
        k, first, count, second = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3]
        if k <= last and (reach is None or reach[k, panel]):
            at = X + k * width
            if second < 0:
                x = load_row(scratch, at, columns)
                for i in range(1, count):
                    less_row(scratch, X + above[first + i] * width, load(scratch, M + first + i), x)
            else:
                y = load_row(scratch, at + width, columns)
                x = less(load_row(scratch, at, columns), load(scratch, M + second + 1), y)
                store_row(scratch, at, x)
                for i in range(1, count):
                    a, b = load(scratch, M + first + i), load(scratch, M + second + 1 + i)
                    less_two(scratch, X + above[first + i] * width, a, x, b, y)


@inline
def divide(tree, M, X, width, last, columns, sign, scratch):
    """X ← sign · (D L)⁻¹ X of some columns, rows up to `last` and perhaps one more; a row depends on those before it
    alone.  From the root down: what is above k was computed the longer ago, the less there is to wait for."""
    _, above, steps = tree
    for s in range(len(steps)):
        k, first, count, second = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3]
        if k > last:
            break
        at = X + k * width
        x = scale_row(sign * load(scratch, M + first), load_row(scratch, at, columns))
        if second < 0:
            for i in range(count - 1, 0, -1):
                x = less(x, load(scratch, M + first + i), load_row(scratch, X + above[first + i] * width, columns))
        else:
            y = scale_row(sign * load(scratch, M + second), load_row(scratch, at + width, columns))
            for i in range(count - 1, 0, -1):
                a, b = load(scratch, M + first + i), load(scratch, M + second + 1 + i)
                x, y = two_less(x, a, y, b, scratch, X + above[first + i] * width)
            store_row(scratch, at + width, less(y, load(scratch, M + second + 1), x))
        store_row(scratch, at, x)


@inline
def copy(scratch, to, to_width, source, width, rows, columns):
    """Rows of slots, `width` apart, to others."""
    for k in range(rows):
        for c in range(columns):
            store(scratch, to + k * to_width + c, load(scratch, source + k * width + c))


@inline
def solve(tree, M, X, Y, reach, rest, scratch):
    """X ← −M⁻¹ X and Y ← −M⁻¹ Y, with M factored, of two matrices (n, n) with M's zeros.

    What whole panels leave of both, fewer than six columns each, is solved for together, in the two panels `rest`.
    """
    n = len(tree[0])
    whole = n // PANEL
    left = n - whole * PANEL
    begin, wide = whole * PANEL, 2 * PANEL
    for k in range(n * wide):
        store(scratch, rest + k, 0.0)
    copy(scratch, rest, wide, X + begin, n, n, left)
    copy(scratch, rest + left, wide, Y + begin, n, n, left)
    for p in range(2 * whole + (2 * left + PANEL - 1) // PANEL):
        at, width, panel = rest + (p - 2 * whole) * PANEL, wide, whole
        if p < whole:
            at, width, panel = X + p * PANEL, n, p
        elif p < 2 * whole:
            at, width, panel = Y + (p - whole) * PANEL, n, p - whole
        gather_up(tree, M, at, width, n - 1, COLUMNS, reach, panel, scratch)
        divide(tree, M, at, width, n - 1, COLUMNS, -1.0, scratch)
    copy(scratch, X + begin, n, rest, wide, n, left)
    copy(scratch, Y + begin, n, rest + left, wide, n, left)


@inline
def invert(tree, M, X, reach, panel, scratch):
    """X ← M⁻¹, with M factored: columns of the identity solved for, each down to its diagonal; M⁻¹ is symmetric.

    (To fill the rows above the diagonal by symmetry first and go on with L alone costs less and is unstable: errors
    grow exponentially with the length of a chain.)
    """
    n = len(tree[0])
    for p in range((n + PANEL - 1) // PANEL):
        begin = p * PANEL
        last = min(begin + PANEL, n) - 1
        for k in range(min(last + 2, n) * PANEL):  # one row more: that after `last` may be computed with it
            store(scratch, panel + k, 0.0)
        for c in range(begin, last + 1):
            store(scratch, panel + c * PANEL + c - begin, 1.0)
        gather_up(tree, M, panel, PANEL, last, COLUMNS, reach, p, scratch)
        divide(tree, M, panel, PANEL, last, COLUMNS, 1.0, scratch)
        for c in range(begin, last + 1):
            for k in range(c + 1):
                entry = load(scratch, panel + k * PANEL + c - begin)
                store(scratch, X + k * n + c, entry)
                store(scratch, X + c * n + k, entry)


@kernel
def tree_solve(pairs, M, b, x, status, scratch, start, stop):
    """x, (states, n), of M x = b with M, (states, n·n), and b, (states, n); status as in aba.

    pairs : place, (pairs, 2), columns of entries (k, i) and (i, k); tree.
    """
    place, tree = pairs
    first = tree[0]
    n = len(first)
    rhs = len(place)
    for r in range(start, stop, lane_count()):
        for k in range(rhs):
            store(scratch, k, gather(M, r, place[k, 0]))
        for k in range(n):
            store(scratch, rhs + k, gather(b, r, k))
        factor(tree, 0, scratch)
        for k in range(n - 1, -1, -1):  # from the leaves: what fails first spoils all above it
            for w in range(lane_count()):
                remains = 1.0 / pick(load(scratch, first[k]), w)
                if not remains > NOISE * pick(gather(M, r, k * n + k), w):
                    status[0], status[1] = k, min(r + w, len(x) - 1)
                    return True
        gather_up(tree, 0, rhs, 1, n - 1, ONE, None, 0, scratch)
        divide(tree, 0, rhs, 1, n - 1, ONE, 1.0, scratch)
        for k in range(n):
            scatter(x, r, k, load(scratch, rhs + k))
    return True
