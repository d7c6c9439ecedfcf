"""The algorithms, differentiated along two directions of model constants at once: second derivatives by parameters.

Each kernel is its namesake compiled for the hyper-duals of ``lanes/hyper.py``.  A row is one state along one pair of
directions; arrays of one row serve all rows.

    m, dm      constants; their slopes along the first direction, the second, and both, (rows or 1, n·k) each
    q, v, …    (states, n), without slopes
    results    HyperPair, of which the slope's slope is wanted; and scratch likewise
"""

from kinegrad._kernels import constraints, elements, kinematics, rnea
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import Constraints, own_layout, unpack_constraints
from kinegrad._kernels.lanes.hyper import Change, Twice, vary_twice
from kinegrad._kernels.mechanism import unpack, unpack_slopes

_rnea, _elements, _motions = rnea.block, elements.block, kinematics.motions
_errors, _rates = constraints.errors, constraints.rates


@inline
def unpack_changes(dm):
    """Names for slopes along the first direction, the second, and both."""
    first, second, both = dm
    return Change(unpack_slopes(first), unpack_slopes(second), unpack_slopes(both))


@kernel
def torques(m, dm, q, v, a, force, point, torque, tau, scratch, start, stop):
    """τ, (rows, n)."""
    m, dm = unpack(m), unpack_changes(dm)
    for r in range(start, stop, lane_count()):
        _rnea(vary_twice(m, dm, r), q, v, a, force, point, torque, tau, r, scratch)
    return True


@kernel
def element_forces(m, dm, q, v, links, way, numbers, Q, length, energy, scratch, start, stop):
    """Q, (rows, n), zero on entry; lengths and energies, (rows, elements)."""
    m, dm = unpack(m), unpack_changes(dm)
    for r in range(start, stop, lane_count()):
        _elements(vary_twice(m, dm, r), q, v, links, way, numbers, Q, length, energy, r, scratch)
    return True


@kernel
def constraint_motion(m, dm, q, v, a, c, ends, vector, phi, dphi, ddphi, scratch, start, stop):
    """φ, φ̇ and φ̈ of constraints, (rows, m) each; of their points and directions three slopes, (rows, 6 k) each."""
    m, dm, c = unpack(m), unpack_changes(dm), unpack_constraints(c)
    at = own_layout(len(m.parent))
    for r in range(start, stop, lane_count()):
        varied = vary_twice(m, dm, r)
        points, directions = Twice(c.ends, ends, r), Twice(c.vector, vector, r)
        own = Constraints(c.pair, points, c.kind, directions, c.path, c.joint, c.ratio)
        _motions(varied, q, v, a, r, scratch)
        _errors(varied, own, q, r, phi, scratch, at)
        _rates(varied, own, v, a, r, dphi, ddphi, scratch, at)
    return True
