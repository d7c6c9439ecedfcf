"""With array access checked (NUMBA_BOUNDSCHECK=1) no kernel leaves its arrays, and results stay the same."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.child import child, output
from tests.kernels.everything import everything, models

SIZES = (1, 3, 4, 17)  # with lanes of four, the last has a group of rows that are streamed, and a rest
ROOT = Path(__file__).parents[2]

CHECKED = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kinegrad._engine import call, tangents, threads
from kinegrad._engine import marching as steps
from kinegrad._engine import marching_reverse as steps_reverse
from kinegrad._kernels.compiler import jit
from kinegrad._kernels.lanes.dual import Pair
from kinegrad._kernels.compiler.width import NARROW, WIDTH
from tests.kernels.everything import everything, models

assert jit.BOUNDSCHECK
exact = lambda slots: np.zeros((slots, WIDTH))  # no slack from an earlier, larger call
for module in (call, threads, steps, steps_reverse, tangents):
    module.scratch, module.scratch_pair = exact, lambda slots: Pair(exact(slots), exact(slots))
    module.few = lambda slots: np.zeros((slots, NARROW))
results = {
    f"{i} {states} {name}": x
    for i, model in enumerate(models())
    for states in %r
    for name, x in everything(model, states).items()
}
np.savez(sys.argv[2], **results)
"""

# One slot or one column too few must be noticed, or the test above could not fail.
CAUGHT = """
import numba
import numpy as np
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.lanes.lane import gather, layer, load, scatter, store, unload
from kinegrad._kernels.compiler.width import WIDTH

@numba.njit
def load_row(x, k):
    store(x, 0, load(x, k))

@numba.njit
def store_row(x, k):
    store(x, k, 1.0)

@numba.njit
def gather_column(x, k):
    store(x, 0, gather(x, 0, k))

@numba.njit
def scatter_column(x, k):
    scatter(x, 0, k, 1.0)

@numba.njit
def unload_slots(x, slot):
    unload(np.zeros((3, WIDTH + 1)), 0, x, slot)

@inline
def element(x, k):
    return x[k, 0]

@inline
def set_element(x, k):
    x[0, k] = 1.0

@inline
def of_tuple(x, k):
    return (1.0, 2.0, 3.0)[k]

@inline
def of_layer(x, k):
    return layer(x, 1)[k]

@numba.njit
def read(x, k):
    return element(x, k)

@numba.njit
def write(x, k):
    set_element(x, k)

@numba.njit
def tuple_element(x, k):
    return of_tuple(x, k)

@numba.njit
def layer_element(x, k):
    return of_layer(x, k)

unload_slots(np.zeros((WIDTH + 3, WIDTH)), 2)
try:
    unload_slots(np.zeros((WIDTH + 3, WIDTH)), 3)
except IndexError:
    pass
else:
    raise SystemExit("unload was not caught")
limits = {
    load_row: 5, store_row: 5, gather_column: WIDTH, scatter_column: WIDTH,
    read: 5, write: WIDTH, tuple_element: 3, layer_element: WIDTH,
}
for function, limit in limits.items():
    function(np.zeros((5, WIDTH)), limit - 1)
    for outside in (limit, limit + 10**6, -1, -(10**12)):
        try:
            function(np.zeros((5, WIDTH)), outside)
        except IndexError:
            continue
        raise SystemExit(f"{function.__name__} of {outside} was not caught")
"""


@pytest.mark.slow
def test_no_kernel_leaves_its_arrays(tmp_path):
    setting = {"NUMBA_BOUNDSCHECK": "1", "KINEGRAD_STREAM": "1"}
    # which elements are accessed does not depend on optimisation, which takes three quarters of the compile time
    setting |= {"NUMBA_OPT": "0", "KINEGRAD_CACHE_DIR": str(tmp_path)}
    output(child(CHECKED % (SIZES,), ROOT, tmp_path / "checked.npz", **setting))
    checked = np.load(tmp_path / "checked.npz")
    usual = {
        f"{i} {states} {name}": x
        for i, model in enumerate(models())
        for states in SIZES
        for name, x in everything(model, states).items()
    }
    assert set(checked) == set(usual)
    for name, x in usual.items():
        # branches in between may change which sums are contracted: a few roundings
        np.testing.assert_allclose(checked[name], x, rtol=1e-13, atol=1e-13 * np.abs(x).max(), err_msg=name)


def test_access_out_of_bounds_is_caught(tmp_path):
    script = tmp_path / "caught.py"  # building blocks need a source
    script.write_text(CAUGHT)
    output(child("import runpy, sys; runpy.run_path(sys.argv[1])", script, NUMBA_BOUNDSCHECK="1"))
