"""A long trajectory in little memory: results go where they are told to, and nothing is copied on the way.

NumPy reports its arrays to tracemalloc, so the peak says what a call allocated; pages of memory-mapped files are
not allocations, and the kernels themselves allocate nothing.
"""

import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InverseDynamicsDerivatives, samples

ARM = samples.two_link()
SHAPES = {"tau": (2,), "dtau_dq": (2, 2), "dtau_dv": (2, 2), "dtau_da": (2, 2)}
SMALL = 100_000  # bytes: Python's own objects of a call, views, futures; a copy of any array below is far larger
METHODS = ("spatial", "lagrange")


@pytest.fixture(autouse=True)
def _warm():
    """Kernels compiled and loaded, the model's constants made, scratch memory of all threads allocated."""
    q, v, a = np.zeros((3, 20_000, 2))
    for method in METHODS:
        for packed in (False, True):
            kg.inverse_dynamics_derivatives(ARM, q, v, a, method=method, packed=packed)
    kg.inverse_dynamics_jvp(ARM, q, v, a, q, v, a)
    kg.inverse_dynamics_vjp(ARM, q, v, a, q)


@contextmanager
def traced():
    """A function that says how many bytes were allocated at most since the last time it was asked."""
    tracemalloc.start()
    before = [tracemalloc.get_traced_memory()[0]]

    def peak():
        now, highest = tracemalloc.get_traced_memory()
        grown, before[0] = highest - before[0], now
        tracemalloc.reset_peak()
        return grown

    try:
        yield peak
    finally:
        tracemalloc.stop()


def anonymous_memory():
    """Bytes of this process that no file is behind (Linux), or None."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    found = [
        int(line.split()[1]) * 1024
        for line in status.read_text(encoding="utf-8").splitlines()
        if line.startswith("RssAnon")
    ]
    return found[0] if found else None


def new_files(folder, count):
    return InverseDynamicsDerivatives(
        *(np.memmap(folder / name, np.float64, "w+", shape=(count, *core)) for name, core in SHAPES.items())
    )


def part(results, block):
    return InverseDynamicsDerivatives(*(getattr(results, name)[block] for name in SHAPES))


def states(number, size):
    """Block `number` of an endless random trajectory."""
    return np.random.default_rng([31, number]).normal(size=(3, size, 2))


@pytest.mark.slow
def test_a_million_states_stream_into_files(tmp_path):
    """112 MB of results from blocks of 20 000: no call allocates anything of a block's size."""
    count, size = 1_000_000, 20_000
    files = new_files(tmp_path, count)
    start = anonymous_memory()
    grown, highest = [], 0
    with traced() as peak:
        for number in range(count // size):
            block = slice(number * size, (number + 1) * size)
            q, v, a = states(number, size)
            out = part(files, block)
            peak()
            assert kg.inverse_dynamics_derivatives(ARM, q, v, a, out=out) is out
            grown.append(peak())
            highest = max(highest, anonymous_memory() or 0)
    assert max(grown) < SMALL
    if start is not None:
        # Two blocks of inputs (1 MB) and whatever the interpreter does; the results would be 112 MB
        assert highest - start < 20e6
    for x in vars(files).values():
        x.flush()
    written = [np.memmap(tmp_path / name, np.float64, "r", shape=(count, *core)) for name, core in SHAPES.items()]
    for k in np.random.default_rng(1).integers(0, count, 50):
        alone = kg.inverse_dynamics_derivatives(ARM, *states(k // size, size)[:, k % size])
        for x, y in zip(written, vars(alone).values(), strict=True):
            assert x[k].tobytes() == y.tobytes()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_allocates_its_result_and_no_more(method, packed, threads):
    q, v, a = states(0, 20_000)
    options = {"method": method, "packed": packed, "threads": threads}
    with traced() as peak:
        peak()
        result = kg.inverse_dynamics_derivatives(ARM, q, v, a, **options)
        grown = peak()
        arrays = [getattr(x, "values", x) for x in vars(result).values()]
        size = sum(x.nbytes for x in arrays)
        assert size <= grown < size + SMALL, "the first is that NumPy reports to tracemalloc at all"
        kg.inverse_dynamics_derivatives(ARM, q, v, a, out=result, **options)
        assert peak() < SMALL


@pytest.mark.parametrize("method", METHODS)
def test_read_only_files_are_read_where_they_are(tmp_path, method):
    """As inputs: neither being memory-mapped nor being read-only costs a copy."""
    count = 20_000
    given = states(0, count)
    given.tofile(tmp_path / "states")
    q, v, a = np.memmap(tmp_path / "states", np.float64, "r", shape=given.shape)
    assert not q.flags.writeable
    out = new_files(tmp_path, count)
    with traced() as peak:
        peak()
        kg.inverse_dynamics_derivatives(ARM, q, v, a, out=out, method=method)
        assert peak() < SMALL
    for x, y in zip(
        vars(out).values(), vars(kg.inverse_dynamics_derivatives(ARM, *given, method=method)).values(), strict=True
    ):
        assert x.tobytes() == y.tobytes()


def test_products_allocate_their_results_and_no_more():
    q, v, a = states(0, 20_000)
    with traced() as peak:
        peak()
        change = kg.inverse_dynamics_jvp(ARM, q, v, a, q, v, a)
        assert peak() < change.nbytes + SMALL
        gradient = kg.inverse_dynamics_vjp(ARM, q, v, a, q)
        assert peak() < sum(x.nbytes for x in vars(gradient).values()) + SMALL
