"""Solve M x = b with the mass matrix of a tree, whose zeros survive the factorisation.

M = LᵀDL, factored from the leaves: row k of the unit triangle L reaches only the joints above k, as row k of M does
([featherstone2008] 6.5).  Then, row operation by row operation, for any number of right-hand sides X,

    Lᵀ:  for k = n−1 … 0, for i above k:  X_i −= L_ki X_k          D:  X_k /= D_k
    L:   for k = 0 … n−1, for i above k:  X_k −= L_ki X_i

Four right-hand sides at a time, so that a row of them stays in registers and a panel of them in the nearest cache.

Glossary
    M      the entries M_ki, i = k or above k, closely packed: k's begin at slot M + first[k], from k up to the root;
           after `factor` L in their place, and 1/D in that of the diagonal
    X      right-hand sides: n rows of `width` slots
"""

from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.lanes import gather, load, pick, scatter, store, within
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.width import WIDTH

# D_k is rounding noise when it is below this part of the M_kk it is what remains of.
NOISE = 1e-12


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
def load4(x, k):
    return load(x, k), load(x, k + 1), load(x, k + 2), load(x, k + 3)


@inline
def store4(x, k, u):
    store(x, k, u[0])
    store(x, k + 1, u[1])
    store(x, k + 2, u[2])
    store(x, k + 3, u[3])


@inline
def less4(u, c, v):
    """u − c v"""
    return u[0] - c * v[0], u[1] - c * v[1], u[2] - c * v[2], u[3] - c * v[3]


@inline
def zero4(u):
    return within(u[0], 0.0) and within(u[1], 0.0) and within(u[2], 0.0) and within(u[3], 0.0)


@inline
def gather_up(m, first, M, X, width, last, scratch):
    """X ← L⁻ᵀ X of four columns, whose rows after `last` are zero."""
    for k in range(last, -1, -1):
        x = load4(scratch, X + k * width)
        if zero4(x):  # most are: k and this column are on no common path
            continue
        i, ki = m.parent[k], M + first[k] + 1
        while i >= 0:
            at = X + i * width
            store4(scratch, at, less4(load4(scratch, at), load(scratch, ki), x))
            i, ki = m.parent[i], ki + 1


@inline
def divide(m, first, M, X, width, last, sign, scratch):
    """X ← sign · (D L)⁻¹ X of four columns, rows up to `last`; a row depends on those before it alone."""
    for k in range(last + 1):
        inverse = sign * load(scratch, M + first[k])
        x = load4(scratch, X + k * width)
        x = (inverse * x[0], inverse * x[1], inverse * x[2], inverse * x[3])
        i, ki = m.parent[k], M + first[k] + 1
        while i >= 0:
            x = less4(x, load(scratch, ki), load4(scratch, X + i * width))
            i, ki = m.parent[i], ki + 1
        store4(scratch, X + k * width, x)


@inline
def solve(m, first, M, X, width, sign, scratch):
    """X ← sign · M⁻¹ X, with M factored; `width` a multiple of 4."""
    last = len(m.parent) - 1
    for c in range(X, X + width, 4):
        gather_up(m, first, M, c, width, last, scratch)
        divide(m, first, M, c, width, last, sign, scratch)


@inline
def invert(m, first, M, X, width, scratch):
    """X ← M⁻¹, with M factored: columns of the identity solved for, each down to its diagonal; M⁻¹ is symmetric.

    (To fill the rows above the diagonal by symmetry first and go on with L alone costs less and is unstable: errors
    grow exponentially with the length of a chain.)
    """
    n = len(m.parent)
    for c in range(0, n, 4):
        last = min(c + 3, n - 1)
        for k in range(last + 1):
            for j in range(4):
                store(scratch, X + c + k * width + j, 1.0 if k == c + j else 0.0)
        gather_up(m, first, M, X + c, width, last, scratch)
        divide(m, first, M, X + c, width, last, 1.0, scratch)
        for k in range(c, last + 1):  # column k to row k; within the panel, the part right of the diagonal is there
            for j in range(k):
                store(scratch, X + k * width + j, load(scratch, X + j * width + k))


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
            store(scratch, rhs + 4 * k, gather(b, r, k))
            for spare in range(1, 4):
                store(scratch, rhs + 4 * k + spare, 0.0)
        factor(m, first, 0, scratch)
        for k in range(n - 1, -1, -1):  # from the leaves: what fails first spoils all above it
            for w in range(WIDTH):
                remains = 1.0 / pick(load(scratch, first[k]), w)
                if not remains > NOISE * pick(gather(M, r, k * n + k), w):
                    status[0], status[1] = k, min(r + w, len(x) - 1)
                    return True
        solve(m, first, 0, rhs, 4, 1.0, scratch)
        for k in range(n):
            scatter(x, r, k, load(scratch, rhs + 4 * k))
    return True
