"""Solve M x = b with the mass matrix of a tree, whose zeros survive the factorisation.

M = LᵀDL, factored from the leaves: row k of the unit triangle L reaches only the joints above k, as row k of M does
([featherstone2008] 6.5).  Then, row operation by row operation, for any number of right-hand sides X,

    Lᵀ:  for k = n−1 … 0, for i above k:  X_i −= L_ki X_k          D:  X_k /= D_k
    L:   for k = 0 … n−1, for i above k:  X_k −= L_ki X_i

Eight right-hand sides at a time, a *panel*: their rows stay in registers, and eight sums side by side hide the latency
of each.  Row k of a right-hand side that is a column c of a matrix with M's zeros is zero, and stays so in the first of
these loops, where k and c are on no common path; `reach` tells the rows of each panel that are not.

Glossary
    M      the entries M_ki, i = k or above k, closely packed: k's begin at slot M + first[k], from k up to the root;
           after `factor` L in their place, and 1/D in that of the diagonal
    X      right-hand sides: n rows, `width` slots apart
    panel  n rows of eight slots: right-hand sides of their own
    reach  (n, panels): whether row k may be other than zero in one of the columns of a panel
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import gather, load, pick, scatter, store
from kinegrad._kernels.mechanism import unpack

# D_k is rounding noise when it is below this part of the M_kk it is what remains of.
NOISE = 1e-12
PANEL = 8  # right-hand sides at a time
EIGHT = tuple(range(PANEL))
ONE = (0,)


@inline
def factor(m, first, M, scratch):
    """LᵀDL in place."""
    for k in range(len(m.parent) - 1, -1, -1):
        row = M + first[k]
        inverse = 1.0 / load(scratch, row)
        store(scratch, row, inverse)
        i, ki = m.parent[k], row + 1
        while i >= 0:
            ratio = load(scratch, ki) * inverse
            j, kj, ij = i, ki, M + first[i]
            while j >= 0:
                store(scratch, ij, load(scratch, ij) - ratio * load(scratch, kj))
                j, kj, ij = m.parent[j], kj + 1, ij + 1
            store(scratch, ki, ratio)
            i, ki = m.parent[i], ki + 1


@inline
def load_row(x, k, columns):
    return tuple(load(x, k + c) for c in columns)


@inline
def store_row(x, k, u):
    for c, value in enumerate(u):
        store(x, k + c, value)


@inline
def less(u, c, v):
    """u − c v"""
    return tuple(a - c * b for a, b in zip(u, v, strict=True))


@inline
def gather_up(m, first, M, X, width, last, columns, reach, panel, scratch):
    """X ← L⁻ᵀ X of some columns, whose rows after `last` are zero; without `reach` any other may be there."""
    for k in range(last, -1, -1):
        if reach is None or reach[k, panel]:
            x = load_row(scratch, X + k * width, columns)
            i, ki = m.parent[k], M + first[k] + 1
            while i >= 0:
                at = X + i * width
                store_row(scratch, at, less(load_row(scratch, at, columns), load(scratch, ki), x))
                i, ki = m.parent[i], ki + 1


@inline
def divide(m, first, M, X, width, last, columns, sign, scratch):
    """X ← sign · (D L)⁻¹ X of some columns, rows up to `last`; a row depends on those before it alone."""
    for k in range(last + 1):
        inverse = sign * load(scratch, M + first[k])
        x = tuple(inverse * u for u in load_row(scratch, X + k * width, columns))
        i, ki = m.parent[k], M + first[k] + 1
        while i >= 0:
            x = less(x, load(scratch, ki), load_row(scratch, X + i * width, columns))
            i, ki = m.parent[i], ki + 1
        store_row(scratch, X + k * width, x)


@inline
def copy(scratch, to, to_width, source, width, rows, columns):
    """Rows of slots, `width` apart, to others."""
    for k in range(rows):
        for c in range(columns):
            store(scratch, to + k * to_width + c, load(scratch, source + k * width + c))


@inline
def solve(m, first, M, X, Y, reach, rest, scratch):
    """X ← −M⁻¹ X and Y ← −M⁻¹ Y, with M factored, of two matrices (n, n) with M's zeros.

    What whole panels leave of both, fewer than eight columns each, is solved for together, in the two panels `rest`.
    """
    n = len(m.parent)
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
        gather_up(m, first, M, at, width, n - 1, EIGHT, reach, panel, scratch)
        divide(m, first, M, at, width, n - 1, EIGHT, -1.0, scratch)
    copy(scratch, X + begin, n, rest, wide, n, left)
    copy(scratch, Y + begin, n, rest + left, wide, n, left)


@inline
def invert(m, first, M, X, reach, panel, scratch):
    """X ← M⁻¹, with M factored: columns of the identity solved for, each down to its diagonal; M⁻¹ is symmetric.

    (To fill the rows above the diagonal by symmetry first and go on with L alone costs less and is unstable: errors
    grow exponentially with the length of a chain.)
    """
    n = len(m.parent)
    for p in range((n + PANEL - 1) // PANEL):
        begin = p * PANEL
        last = min(begin + PANEL, n) - 1
        for k in range((last + 1) * PANEL):
            store(scratch, panel + k, 0.0)
        for c in range(begin, last + 1):
            store(scratch, panel + c * PANEL + c - begin, 1.0)
        gather_up(m, first, M, panel, PANEL, last, EIGHT, reach, p, scratch)
        divide(m, first, M, panel, PANEL, last, EIGHT, 1.0, scratch)
        for c in range(begin, last + 1):
            for k in range(c + 1):
                entry = load(scratch, panel + k * PANEL + c - begin)
                store(scratch, X + k * n + c, entry)
                store(scratch, X + c * n + k, entry)


@kernel
def tree_solve(m, pairs, M, b, x, status, scratch, start, stop):
    """x, (states, n), of M x = b with M, (states, n·n), and b, (states, n); status as in aba.

    pairs : place, (pairs, 2), columns of entries (k, i) and (i, k); first, (n,), the first of these pairs of each k.
    """
    m = unpack(m)
    place, first = pairs
    n = len(m.parent)
    rhs = len(place)
    for r in range(start, stop, WIDTH):
        for k in range(rhs):
            store(scratch, k, gather(M, r, place[k, 0]))
        for k in range(n):
            store(scratch, rhs + k, gather(b, r, k))
        factor(m, first, 0, scratch)
        for k in range(n - 1, -1, -1):  # from the leaves: what fails first spoils all above it
            for w in range(WIDTH):
                remains = 1.0 / pick(load(scratch, first[k]), w)
                if not remains > NOISE * pick(gather(M, r, k * n + k), w):
                    status[0], status[1] = k, min(r + w, len(x) - 1)
                    return True
        gather_up(m, first, 0, rhs, 1, n - 1, ONE, None, 0, scratch)
        divide(m, first, 0, rhs, 1, n - 1, ONE, 1.0, scratch)
        for k in range(n):
            scatter(x, r, k, load(scratch, rhs + k))
    return True
