"""The algorithms, differentiated along directions of the state: duals in, duals out, constants as they are.

[kudruss2019] Algorithm 2: the chain rule through every operation, so that the derivatives of spatial transformations
(its propositions 1 and 2) are what the compiler makes of ``joints.py`` and ``bodies.py``, and its algorithm 3 what it
makes of ``crba.py``.  A row is one state along one direction; arrays of one row serve all rows.  Along directions of
the constants, too, there are the kernels of ``dual_kernels.py``, which multiply twice as much.

Of constraints it is G and φ̈ that enter algorithm 4; where ``constraints.py`` asks which kind a row is, values of one
type only may come out, so that rows go through scratch here.

    q, v, …    Pair(values, slopes): (rows or 1, n) each
    results    Pair(values, slopes), and scratch likewise
"""

from kinegrad._kernels import aba, crba, rnea
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import (
    END,
    FIRST,
    LAST,
    LINK,
    OTHER,
    OWN,
    PHI,
    column_slot,
    columns,
    coupled,
    ends,
    own_layout,
    part,
    point_rates,
    row,
    unpack_constraints,
)
from kinegrad._kernels.constraints import Entries, coupling_jacobian
from kinegrad._kernels.kinematics import motions
from kinegrad._kernels.lanes.lane import load, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import dot, load3, sub

_aba, _crba, _rnea = aba.block, crba.block, rnea.block


@kernel
def inverse_dynamics(m, q, v, a, force, point, torque, tau, scratch, start, stop):
    """τ, (rows, n)."""
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        _rnea(m, q, v, a, force, point, torque, tau, r, scratch)
    return True


@kernel
def forward_dynamics(m, q, v, tau, force, point, torque, a, status, scratch, start, stop):
    """q̈, (rows, n).

    status, (2,): where nothing resists a joint, its number and the row, else left alone.
    """
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        joint, w = _aba(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, stop - 1)
            return False
    return True


@kernel
def mass_matrix(m, q, M, scratch, start, stop):
    """M, (rows, n·n), zero on entry where topology says zero."""
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        _crba(m, q, M, r, scratch)
    return True


@inline
def _rows(m, c, p, G, ddphi, r, scratch, at):
    """G and φ̈ of the rows of pair p."""
    x, y, e = ends(m, c, p, scratch, at)
    dx, ddx = point_rates(c.pair[p, LINK], x, scratch, at)
    dy, ddy = point_rates(c.pair[p, OTHER], y, scratch, at)
    columns(m, c, p, False, scratch, at)
    for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
        row(m, c, p, k, e, sub(dx, dy), sub(ddx, ddy), scratch, at)
        w = load3(scratch, at.work)
        scatter(ddphi, r, k, load(scratch, at.work + PHI + 2))
        for j in range(c.pair[p, OWN], c.pair[p, END]):
            J = load3(scratch, column_slot(c, p, j, at) + part(c, k))
            scatter(G.x, r, k * G.row + c.path[j] * G.column, dot(w, J))


@kernel
def constraints(m, q, v, a, c, G, ddphi, scratch, start, stop):
    """G, (rows, m·n), zero on entry, and φ̈, (rows, m)."""
    m, c = unpack(m), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        motions(m, q, v, a, r, scratch)
        for p in range(len(c.pair)):
            _rows(m, c, p, Entries(G, n, 1), ddphi, r, scratch, at)
        coupling_jacobian(c, r, Entries(G, n, 1))
        for s in range(len(c.joint)):
            scatter(ddphi, r, c.joint[s, 0], coupled(c, s, a, r))
    return True
