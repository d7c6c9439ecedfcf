"""Results that are written past the caches are the same bits in the same places, wherever those are in memory."""

import itertools

import numba
import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InverseDynamicsDerivatives, samples
from kinegrad._engine import memory
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes import stream as streaming
from kinegrad._kernels.lanes.lane import load
from kinegrad._kernels.lanes.rows import Rows, lanes
from kinegrad._kernels.lanes.stream import block_rows, count_blocks, fence, skipped, step_of, stream
from tests.kernels.child import child, output

GROUP = WIDTH * WIDTH  # rows of a group, where the number of columns is odd
# 1, 9, 25, 36, 64 columns: odd, even, and a multiple of every width up to 64
MODELS = [samples.random_tree(n, seed=n).replace(armature=[1.0] * n) for n in (1, 3, 5, 6, 8)]
COUNTS = (1, WIDTH, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + WIDTH + 1)
NAMES = ("dtau_dq", "dtau_dv", "dtau_da")


@pytest.fixture(params=["0", "1"], ids=["ordinary stores", "streaming"])
def setting(request, monkeypatch):
    monkeypatch.setattr(memory, "_STREAM", request.param)


def states(model, count):
    return np.random.default_rng([count, model.n]).normal(size=(3, count, model.n))


def one_by_one(function, model, *state):
    """The results of each state alone, which are never streamed."""
    each = [vars(function(model, *one, threads=1)) for one in zip(*state, strict=True)]
    return {name: np.array([one[name] for one in each]) for name in each[0]}


def placed(shape, offset):
    """A memory of NaN, and the array of that shape which begins `offset` numbers after a cache line in it."""
    whole = np.full(int(np.prod(shape)) + 32, np.nan)
    first = -(whole.ctypes.data // 8) % 8 + 8 + offset
    return whole, whole[first : first + int(np.prod(shape))].reshape(shape)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.n} joints")
def test_torque_derivatives_are_the_same_bits(model, count, setting):
    q, v, a = states(model, count)
    expected = one_by_one(kg.inverse_dynamics_derivatives, model, q, v, a)
    found = kg.inverse_dynamics_derivatives(model, q, v, a, threads=1)
    packed = kg.inverse_dynamics_derivatives(model, q, v, a, packed=True, threads=1)
    for name in NAMES:
        assert getattr(found, name).tobytes() == expected[name].tobytes()
        # zeros of topology have no sign to compare
        np.testing.assert_array_equal(getattr(packed, name).to_dense(), expected[name])
    assert found.tau.tobytes() == packed.tau.tobytes() == expected["tau"].tobytes()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.n} joints")
def test_acceleration_derivatives_are_the_same_bits(model, count, setting):
    q, v, tau = states(model, count)
    expected = one_by_one(kg.forward_dynamics_derivatives, model, q, v, tau)
    found = kg.forward_dynamics_derivatives(model, q, v, tau, threads=1)
    for name, x in expected.items():
        assert getattr(found, name).tobytes() == x.tobytes()


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("model", MODELS[1:3], ids=lambda model: f"{model.n} joints")
def test_results_may_begin_anywhere(model, offset, setting):
    """Each matrix at an alignment of its own; nothing is written before or after it."""
    q, v, a = states(model, 2 * GROUP + 3)
    expected = kg.inverse_dynamics_derivatives(model, q, v, a)
    memories, arrays = zip(*(placed(expected.dtau_dq.shape, (offset + k) % 8) for k in range(3)), strict=True)
    out = InverseDynamicsDerivatives(np.empty_like(q), *arrays)
    assert kg.inverse_dynamics_derivatives(model, q, v, a, out=out, threads=1) is out
    for name, whole, x in zip(NAMES, memories, arrays, strict=True):
        assert x.tobytes() == getattr(expected, name).tobytes()
        assert np.isnan(whole).sum() == whole.size - x.size


def test_threads_and_files(tmp_path, setting):
    model = MODELS[2]
    q, v, a = states(model, 6000)  # enough for two threads
    shapes = {"tau": (6000, 5), **dict.fromkeys(NAMES, (6000, 5, 5))}
    files = {name: np.memmap(tmp_path / name, np.float64, "w+", shape=shape) for name, shape in shapes.items()}
    kg.inverse_dynamics_derivatives(model, q, v, a, out=InverseDynamicsDerivatives(**files), threads=2)
    expected = kg.inverse_dynamics_derivatives(model, q, v, a, threads=1)
    for name, x in files.items():
        x.flush()
        assert (tmp_path / name).read_bytes() == getattr(expected, name).tobytes()


def test_large_results_are_streamed_where_the_processor_can(monkeypatch):
    monkeypatch.setattr(memory, "_STREAM", "")
    monkeypatch.setattr(memory, "X86", True)
    assert not memory.streams(1000)
    assert memory.streams(100_000_000)
    monkeypatch.setattr(memory, "X86", False)
    assert not memory.streams(100_000_000)


def test_a_wrong_setting_is_an_error():
    script = """
import kinegrad as kg
try:
    kg.inverse_dynamics_derivatives(kg.samples.two_link(), [[0, 0]], [[0, 0]], [[0, 0]])
except kg.InputError as error:
    print(error)
"""
    found = output(child(script, KINEGRAD_STREAM="yes", NUMBA_DISABLE_JIT="1"))
    assert found == "the environment variable KINEGRAD_STREAM is 'yes'; expected 0 or 1, or unset\n"


# --- parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 12, 16, 25, 48])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("start", [0, WIDTH])
def test_blocks_have_each_row_once(columns, count, start):
    step = step_of(columns)
    assert step * columns % WIDTH == 0
    assert step == 1 or step // 2 * columns % WIDTH
    for wanted in (False, True):
        blocks, streamed = count_blocks(start, start + count, step, wanted)
        assert streamed == (count // (step * WIDTH) * step if wanted else 0)
        rows = []
        for b in range(blocks):
            first, apart = block_rows(b, start, streamed, step)
            assert apart == (step if b < streamed else 1)
            rows += [row for row in (first + apart * w for w in lanes()) if b < streamed or row < start + count]
        assert sorted(rows) == list(range(start, start + count))


@inline
def write(x, scratch, first, step):
    r = Rows(first, step)
    skip = skipped(x, r)
    stream(x, r, skip, tuple(load(scratch, 1 + w) for w in lanes()))
    stream(x, r, skip + WIDTH, (load(scratch, 0),) * WIDTH)
    fence(x)
    return skip


def write_block(x, scratch, first, step):
    return write(x, scratch, first, step)


@pytest.mark.parametrize("x86", sorted({False, streaming.X86}))
def test_stores_with_and_without_streaming(x86, monkeypatch):
    """Compiled, for this processor and as for one that has no streaming stores, and in plain Python."""
    monkeypatch.setattr(streaming, "X86", x86)
    compiled = numba.njit(write_block)
    scratch = np.random.default_rng(2).normal(size=(WIDTH + 1, WIDTH))
    for offset, row in itertools.product(range(WIDTH), {0, WIDTH - 1}):
        _, x = placed((WIDTH * WIDTH, 3 * WIDTH + 1), offset)
        skip, rows = -(x[row].ctypes.data // 8) % WIDTH, [row + WIDTH * w for w in lanes()]
        expected = np.full(x.shape, np.nan)
        expected[rows, skip : skip + WIDTH] = scratch[1:].T
        expected[rows, skip + WIDTH : skip + 2 * WIDTH] = scratch[0][:, None]
        for function in (compiled, write_block):
            x[...] = np.nan
            assert function(x, scratch, row, WIDTH) == skip
            np.testing.assert_array_equal(x, expected)
