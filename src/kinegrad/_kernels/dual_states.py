"""The algorithms, differentiated along directions of the state: duals in, duals out, constants as they are.

[kudruss2019] Algorithm 2: the chain rule through every operation, so that the derivatives of spatial transformations
(its propositions 1 and 2) are what the compiler makes of ``joints.py`` and ``bodies.py``, and its algorithm 3 what it
makes of ``crba.py``.  A row is one state along one direction; arrays of one row serve all rows.  Along directions of
the constants, too, there are the kernels of ``dual_kernels.py``, which multiply twice as much.

    q, v, …    Pair(values, slopes): (rows or 1, n) each
    results    Pair(values, slopes), and scratch likewise
"""

from kinegrad._kernels import aba, crba, rnea
from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.mechanism import unpack

_aba, _crba, _rnea = aba.block, crba.block, rnea.block


@kernel
def inverse_dynamics(m, q, v, a, force, point, torque, tau, scratch, start, stop):
    """τ, (rows, n)."""
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        _rnea(m, q, v, a, force, point, torque, tau, r, scratch)
    return True


@kernel
def forward_dynamics(m, q, v, tau, force, point, torque, a, status, scratch, start, stop):
    """q̈, (rows, n).

    status, (2,): where nothing resists a joint, its number and the row, else left alone.
    """
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        joint, w = _aba(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, stop - 1)
            return False
    return True


@kernel
def mass_matrix(m, q, M, scratch, start, stop):
    """M, (rows, n·n), zero on entry where topology says zero."""
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        _crba(m, q, M, r, scratch)
    return True
