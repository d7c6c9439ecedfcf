"""The saddle-point system of constrained motion, in the range of its constraints.

Accelerations a and multipliers f of m constraints with the Jacobian G satisfy

    [M  −Gᵀ] [a]   [r]
    [G   0 ] [f] = [s]                                                                     [kudruss2019] (1)

With the factors M = LᵀDL of ``tree_solve.py``, which keep the zeros of the tree, only half a solution is needed for G:

    Y = L⁻ᵀ Gᵀ        Γ = G M⁻¹ Gᵀ = Yᵀ D⁻¹ Y        z = L⁻ᵀ r
    Γ f = s − Yᵀ D⁻¹ z                                a = L⁻¹ D⁻¹ (z + Y f)

Column c of Y is zero but at the joints on the paths from the links of constraint c to the root, its *path*, which is
short in a wide tree.  Γ = C E Cᵀ with a unit triangle C.  E_c is what remains of Γ_cc once the constraints before c are
met.  Digits are lost as of Γ_cc/E_c, the square of what orthogonal factors of Y lose: where less remains than the part
WEAK, nothing is computed, and the caller takes those, or finds that constraint c follows from those before it.

Glossary
    M       entries of M, then its factors, packed as in tree_solve.py
    whole   the diagonal of M before it is factored                             n slots
    z       r, then z, then a                                                   n
    Y       Gᵀ, then Y: n rows, `wide` slots apart                              n·wide, wide = m in whole panels
    gamma   Γ, then C below the diagonal and 1/E on it: m rows, `wide` apart    m·wide
    f       s, then f                                                           m
    paths   begin, (m + 1,), and joints, the path of constraint c from begin[c] on; over, (n + 1,), and rows, the
            constraints whose paths have joint k, from over[k] on
    reach   (n, panels) of Y, as in tree_solve.py
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.lane import load, pick, spread, store
from kinegrad._kernels.tree_solve import (
    COLUMNS,
    NOISE,
    ONE,
    PANEL,
    divide,
    factor,
    gather_up,
    less,
    load_row,
    scale_row,
    store_row,
)

WEAK = 1e-4  # of Γ_cc: four digits, of which orthogonal factors lose two


class Saddle(NamedTuple):
    """Where the slots of the glossary begin; `wide`, and the first slot after them."""

    M: Any
    whole: Any
    z: Any
    Y: Any
    gamma: Any
    f: Any
    wide: Any
    end: Any


@inline
def in_panels(count):
    """So many columns, in whole panels."""
    return (count + PANEL - 1) // PANEL * PANEL


@inline
def saddle(n, m, pairs, at):
    """Slots for n joints and m constraints, from `at` on."""
    wide = in_panels(m)
    whole = at + pairs
    z, Y = whole + n, whole + 2 * n
    gamma = Y + n * wide
    f = gamma + m * wide
    return Saddle(at, whole, z, Y, gamma, f, wide, f + m)


def slots(n: int, m: int, pairs: int) -> int:
    """How many slots they are."""
    wide = -(-m // PANEL) * PANEL
    return pairs + 2 * n + (n + m) * wide + m


@inline
def lane_below(part, remains, whole):
    """The first lane in which no more than a part remains of a whole, or −1."""
    for w in range(lane_count()):
        if not pick(remains, w) > part * pick(whole, w):
            return w
    return -1


@inline
def factor_mass_matrix(tree, s, scratch):
    """Its factors in place.  Returns a joint that nothing resists and the lane, or (−1, −1)."""
    first = tree[0]
    n = len(first)
    for k in range(n):
        store(scratch, s.whole + k, load(scratch, s.M + first[k]))
    factor(tree, s.M, scratch)
    for k in range(n - 1, -1, -1):  # from the leaves: what fails first spoils all above it
        w = lane_below(NOISE, 1.0 / load(scratch, s.M + first[k]), load(scratch, s.whole + k))
        if w >= 0:
            return k, w
    return -1, -1


@inline
def no_row(columns):
    return tuple(spread(0.0) for _ in columns)


@inline
def more(u, c, v):
    """u + c v"""
    return tuple(a + c * b for a, b in zip(u, v, strict=True))


@inline
def reduce_constraints(tree, paths, reach, s, m, scratch):
    """Y from Gᵀ, and Γ, factored.  Returns a constraint of which too little remains and the lane, or (−1, −1)."""
    first = tree[0]
    begin, joints, _, _ = paths
    for p in range(s.wide // PANEL):
        gather_up(tree, s.M, s.Y + p * PANEL, s.wide, len(first) - 1, COLUMNS, reach, p, scratch)
    for c in range(m):
        for p in range(c // PANEL + 1):
            u = no_row(COLUMNS)
            for e in range(begin[c], begin[c + 1]):
                k = joints[e]
                row = s.Y + k * s.wide
                scaled = load(scratch, row + c) * load(scratch, s.M + first[k])
                u = more(u, scaled, load_row(scratch, row + p * PANEL, COLUMNS))
            store_row(scratch, s.gamma + c * s.wide + p * PANEL, u)
    return factor_constraints(s, m, scratch)


@inline
def factor_constraints(s, m, scratch):
    """Γ = C E Cᵀ in place."""
    for c in range(m):
        row = s.gamma + c * s.wide
        whole = load(scratch, row + c)
        remains = whole
        for d in range(c):  # C E of row c
            entry = load(scratch, row + d)
            for e in range(d):
                entry = entry - load(scratch, row + e) * load(scratch, s.gamma + d * s.wide + e)
            store(scratch, row + d, entry)
        for d in range(c):
            entry = load(scratch, row + d)
            ratio = entry * load(scratch, s.gamma + d * s.wide + d)
            remains = remains - entry * ratio
            store(scratch, row + d, ratio)
        w = lane_below(WEAK, remains, whole)
        if w >= 0:
            return c, w
        store(scratch, row + c, 1.0 / remains)
    return -1, -1


@inline
def solve_constraints(s, m, F, width, columns, scratch):
    """F ← Γ⁻¹ F of some columns of m rows, `width` slots apart."""
    for c in range(m):
        u = load_row(scratch, F + c * width, columns)
        for d in range(c):
            u = less(u, load(scratch, s.gamma + c * s.wide + d), load_row(scratch, F + d * width, columns))
        store_row(scratch, F + c * width, u)
    for c in range(m - 1, -1, -1):
        u = scale_row(load(scratch, s.gamma + c * s.wide + c), load_row(scratch, F + c * width, columns))
        for d in range(c + 1, m):
            u = less(u, load(scratch, s.gamma + d * s.wide + c), load_row(scratch, F + d * width, columns))
        store_row(scratch, F + c * width, u)


@inline
def meet_constraints(tree, paths, s, m, Z, F, width, last, columns, sign, scratch):
    """F ← Γ⁻¹ (F − sign · Yᵀ D⁻¹ Z), then Z ← Z + sign · Y F of rows up to `last`, with L⁻ᵀ of right-hand sides in Z,
    n rows, and right-hand sides of constraints in F, m rows, both `width` slots apart."""
    first = tree[0]
    begin, joints, over, rows = paths
    for c in range(m):
        u = load_row(scratch, F + c * width, columns)
        for e in range(begin[c], begin[c + 1]):
            k = joints[e]
            scaled = (-sign) * load(scratch, s.Y + k * s.wide + c) * load(scratch, s.M + first[k])
            u = more(u, scaled, load_row(scratch, Z + k * width, columns))
        store_row(scratch, F + c * width, u)
    solve_constraints(s, m, F, width, columns, scratch)
    for k in range(last + 1):
        u = load_row(scratch, Z + k * width, columns)
        for e in range(over[k], over[k + 1]):
            c = rows[e]
            u = more(u, sign * load(scratch, s.Y + k * s.wide + c), load_row(scratch, F + c * width, columns))
        store_row(scratch, Z + k * width, u)


@inline
def solve_one(tree, paths, s, m, scratch):
    """a in the place of r, f in that of s, once all is factored."""
    n = len(tree[0])
    gather_up(tree, s.M, s.z, 1, n - 1, ONE, None, 0, scratch)
    meet_constraints(tree, paths, s, m, s.z, s.f, 1, n - 1, ONE, 1.0, scratch)
    divide(tree, s.M, s.z, 1, n - 1, ONE, 1.0, scratch)
