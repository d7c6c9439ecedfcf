"""The algorithms, differentiated along directions of states and model constants: duals in, duals out.

Each kernel is its namesake compiled for the duals of ``lanes/dual.py``.  A row is one state along one direction; since
arrays of one row serve all rows, a call may vary one state along many directions or many states along one.

    m, dm      constants, and their slopes (directions, n·k) in the order of Slopes
    q, v, …    Pair(values, slopes): (rows or 1, n) each
    results    Pair(values, slopes), and scratch likewise
"""

from kinegrad._kernels import constraints, crba, elements, energy, hybrid, kinematics, rnea_reverse
from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import Constraints, own_layout, unpack_constraints
from kinegrad._kernels.joints import frames, places
from kinegrad._kernels.kinematics import PLACE, in_world, point_acceleration, point_velocity
from kinegrad._kernels.lanes.dual import Pair, Varied, vary
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.mechanism import unpack, unpack_slopes
from kinegrad._kernels.spatial import gather3, scatter3, zero3

_crba, _elements, _energy, _hybrid = crba.block, elements.block, energy.block, hybrid.block
_errors, _rates, _jacobian, _Entries = constraints.errors, constraints.rates, constraints.jacobian, constraints.Entries
_curvature = constraints.add_curvature
_gradient, _GRADIENT, _element_gradient = rnea_reverse.block, rnea_reverse.N, elements.gradient_block
_N, _motions, _write_transforms = kinematics.N, kinematics.motions, kinematics.write_transforms


@kernel
def hybrid_dynamics(m, dm, q, v, tau, a, prescribed, force, point, torque, ddq, t, status, scratch, start, stop):
    """q̈ and τ of all joints, (rows, n) each.

    status, (2,): where nothing resists a free joint, its number and the row, else left alone.
    """
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        own = vary(m, dm, r)
        joint, w = _hybrid(own, q, v, tau, a, prescribed, force, point, torque, ddq, t, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, stop - 1)
            return False
    return True


@kernel
def mass_matrix(m, dm, q, M, scratch, start, stop):
    """M, (rows, n·n), zero on entry where topology says zero."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        _crba(vary(m, dm, r), q, M, r, scratch)
    return True


@kernel
def energies(m, dm, q, v, out, scratch, start, stop):
    """The columns of energy.py, (rows, 11)."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        _energy(vary(m, dm, r), q, v, out, r, scratch)
    return True


@kernel
def transforms(m, dm, q, T, scratch, start, stop):
    """World transforms, (rows, 16 n)."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        varied = vary(m, dm, r)
        frames(varied, q, r, scratch, _N)
        places(varied, zero3(), scratch, _N, PLACE)
        _write_transforms(varied, r, T, scratch)
    return True


@kernel
def points(m, dm, q, v, a, links, local, position, velocity, acceleration, scratch, start, stop):
    """Motion of points fixed in links, (rows, 3 k) each."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        varied = vary(m, dm, r)
        _motions(varied, q, v, a, r, scratch)
        for k in range(len(links)):
            i = links[k]
            x = link_point(varied, i, scratch, _N, gather3(local, r, 3 * k))
            dx = point_velocity(scratch, i, x)
            scatter3(position, r, 3 * k, in_world(scratch, i, x))
            scatter3(velocity, r, 3 * k, dx)
            scatter3(acceleration, r, 3 * k, point_acceleration(scratch, i, x, dx))
    return True


@kernel
def torque_gradient(m, dm, q, v, a, y, force, point, torque, by_q, by_v, by_a, scratch, start, stop):
    """Gradients of yᵀτ by q, q̇ and q̈, (rows, n) each."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        varied = vary(m, dm, r)
        frames(varied, q, r, scratch, _GRADIENT)
        _gradient(varied, q, v, a, y, force, point, torque, by_q, by_v, by_a, None, r, scratch)
    return True


@kernel
def element_gradient(m, dm, q, v, y, links, way, numbers, by_q, by_v, scratch, start, stop):
    """Gradients of yᵀQ of force elements by q and q̇, (rows, n) each, zero on entry."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        _element_gradient(vary(m, dm, r), q, v, y, links, way, numbers, by_q, by_v, r, scratch)
    return True


@kernel
def weighted_torque_gradient(
    m, q, v, a, y, dq, dv, da, force, point, torque, by_q, by_v, by_a, d_q, d_v, d_a, scratch, start, stop
):
    """Gradients of yᵀτ by the state, and their slopes along (dq, dv, da), (states, n) each; constants do not vary."""
    ok = finite((q, v, a, y, dq, dv, da, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    half = len(scratch) // 2
    own = Pair(scratch[:half], scratch[half:])
    for r in range(start, stop, lane_count()):
        frames(m, Pair(q, dq), r, own, _GRADIENT)
        _gradient(
            m, Pair(q, dq), Pair(v, dv), Pair(a, da), y, force, point, torque,
            Pair(by_q, d_q), Pair(by_v, d_v), Pair(by_a, d_a), None, r, own,
        )  # fmt: skip
    return ok


@kernel
def weighted_element_gradient(
    m, q, v, y, dq, dv, links, way, numbers, still, by_q, by_v, d_q, d_v, scratch, start, stop
):  # fmt: skip
    """Gradients of yᵀQ of force elements by q and q̇, and their slopes along (dq, dv), (states, n) each, zero on entry;
    still, of the shape of numbers: zeros, their slopes."""
    ok = finite((q, v, y, dq, dv), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    half = len(scratch) // 2
    own, to_q, to_v = Pair(scratch[:half], scratch[half:]), Pair(by_q, d_q), Pair(by_v, d_v)
    for r in range(start, stop, lane_count()):
        _element_gradient(m, Pair(q, dq), Pair(v, dv), y, links, way, Pair(numbers, still), to_q, to_v, r, own)
    return ok


@inline
def vary_constraints(c, ends, vector, r):
    """Rows of constraints whose points and directions vary, since frames in links do."""
    return Constraints(c.pair, Varied(c.ends, ends, r), c.kind, Varied(c.vector, vector, r), c.path, c.joint, c.ratio)


@kernel
def constraint_motion(m, dm, q, v, a, c, ends, vector, phi, dphi, ddphi, scratch, start, stop):
    """φ, φ̇ and φ̈ of constraints, (rows, m) each; slopes of their points and directions, (rows, 6 k) each."""
    m, dm, c = unpack(m), unpack_slopes(dm), unpack_constraints(c)
    at = own_layout(len(m.parent))
    for r in range(start, stop, lane_count()):
        varied, own = vary(m, dm, r), vary_constraints(c, ends.slope, vector.slope, r)
        _motions(varied, q, v, a, r, scratch)
        _errors(varied, own, q, r, phi, scratch, at)
        _rates(varied, own, v, a, r, dphi, ddphi, scratch, at)
    return True


@kernel
def constraint_jacobian(m, dm, q, c, ends, vector, G, scratch, start, stop):
    """G of constraints, (rows, m·n), zero on entry."""
    m, dm, c = unpack(m), unpack_slopes(dm), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        varied, own = vary(m, dm, r), vary_constraints(c, ends.slope, vector.slope, r)
        frames(varied, q, r, scratch, _N)
        _jacobian(varied, own, r, _Entries(G, n, 1), scratch, at)
    return True


@kernel
def constraint_curvature(m, dm, q, c, ends, vector, f, H, scratch, start, stop):
    """Σ f ∂²φ/∂q² of constraints, (rows, n·n), zero on entry, of multipliers f, (rows or 1, m)."""
    m, dm, c = unpack(m), unpack_slopes(dm), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        varied, own = vary(m, dm, r), vary_constraints(c, ends.slope, vector.slope, r)
        frames(varied, q, r, scratch, _N)
        _curvature(varied, own, f, r, _Entries(H, n, 1), scratch, at)
    return True


@kernel
def element_forces(m, dm, q, v, links, way, numbers, Q, length, energy, scratch, start, stop):
    """Q, (rows, n), zero on entry; lengths and energies, (rows, elements)."""
    m, dm = unpack(m), unpack_slopes(dm)
    for r in range(start, stop, lane_count()):
        _elements(vary(m, dm, r), q, v, links, way, numbers, Q, length, energy, r, scratch)
    return True
