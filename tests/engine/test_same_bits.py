"""The same bits whatever the batch, the threads and the company; threads, forks, scratch."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import inverse_dynamics, mass_matrix
from kinegrad._kernels.compiler.width import WIDTH
from tests.engine.batches import MODEL, N, same_bits, states
from tests.limits import LIMIT

OTHER = kg.samples.spatial_chain(9)


METHODS = ("spatial", "lagrange")


def results(model, q, v, a, threads=None):
    """One array of all that each state gives."""
    parts = [inverse_dynamics(model, q, v, a, method=method, threads=threads) for method in METHODS]
    parts.append(mass_matrix(model, q, threads=threads))
    parts.append(kg.kinetic_energy(model, q, v, threads=threads))
    parts.append(kg.forward_kinematics(model, q, v, a, threads=threads).linear_acceleration)
    return np.concatenate([x.reshape(len(q), -1) for x in parts], axis=1)


LARGE = states(97, seed=8)
WANTED = results(MODEL, *LARGE, threads=1)


@pytest.mark.parametrize("size", [1, 2, 3, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 1, 31])
def test_the_size_of_a_batch_and_the_place_in_it_do_not_matter(size):
    for start in range(0, 97 - size, 5):
        part = slice(start, start + size)
        same_bits(results(MODEL, *LARGE[:, part]), WANTED[part])


def test_wild_company_does_not_matter():
    arm = kg.samples.spatial_chain(4)
    q, v, a = states(97, n=4)
    calm = results(arm, q, v, a)
    q[::WIDTH] = 3e5
    others = np.arange(97) % WIDTH != 0
    same_bits(results(arm, q, v, a)[others], calm[others])


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 200])
@pytest.mark.parametrize("size", [1, WIDTH, WIDTH + 1, 97])
def test_the_number_of_threads_does_not_matter(small_grain, threads, size):
    same_bits(results(MODEL, *LARGE[:, :size], threads=threads), WANTED[:size])


def zeros(count):
    return engine.Batch(MODEL, {"q": np.zeros((count, N))})


def test_threads_are_used(small_grain):
    """Each block of states once, in multiples of the lane width, on as many threads as asked for."""
    seen, barrier = [], threading.Barrier(3, timeout=LIMIT)

    def kernel(scratch, start, stop):
        seen.append((start, stop, threading.get_ident()))
        barrier.wait()
        return True

    engine.run(kernel, zeros(6 * WIDTH - 1), 600, 3)
    blocks = [(0, 2 * WIDTH), (2 * WIDTH, 4 * WIDTH), (4 * WIDTH, 6 * WIDTH - 1)]
    assert sorted(block[:2] for block in seen) == blocks
    assert len({block[2] for block in seen}) == 3


def test_small_work_wakes_no_threads():
    seen = []
    engine.run(lambda scratch, start, stop: not seen.append(threading.get_ident()), zeros(20), 4, 8)
    assert seen == [threading.get_ident()]


def test_an_error_in_a_thread_is_not_lost(small_grain):
    def kernel(scratch, start, stop):
        if start > 0:
            raise IndexError("out of bounds")
        return True

    with pytest.raises(IndexError, match="out of bounds"):
        engine.run(kernel, zeros(4 * WIDTH), 600, 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_calls_from_many_threads(small_grain, threads):
    wanted_other = results(OTHER, *states(50, n=9), threads=1)

    def call(number):
        if number % 2:
            same_bits(results(OTHER, *states(50, n=9), threads=threads), wanted_other)
        else:
            same_bits(results(MODEL, *LARGE, threads=threads), WANTED)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(64)))


def test_models_interleaved():
    """Scratch memory is shared between calls: what one model left there must not matter to another."""
    x = states(5, n=9)
    wanted = results(OTHER, *x)
    for k in range(0, 90, 9):
        same_bits(results(MODEL, *LARGE[:, k : k + 3]), WANTED[k : k + 3])
        for buffer in (engine.scratch(1), engine.threads.few(1)):
            buffer[...] = np.nan
        same_bits(results(OTHER, *x), wanted)


def test_scratch_is_private_and_grows():
    buffer = engine.scratch(10)
    assert engine.scratch(5) is buffer
    assert buffer.shape[1] == WIDTH
    assert len(engine.scratch(len(buffer) + 1)) > len(buffer)
    with ThreadPoolExecutor(1) as pool:
        assert not np.shares_memory(pool.submit(engine.scratch, 10).result(), engine.scratch(10))


def _in_child(queue):
    queue.put(results(MODEL, *LARGE, threads=3).tobytes())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork(small_grain):
    """The parent's threads do not exist in the child; it must not wait for them."""
    same_bits(results(MODEL, *LARGE, threads=3), WANTED)
    assert engine.pool._helpers
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_in_child, args=(queue,), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        for _ in processes:
            assert queue.get(timeout=LIMIT) == WANTED.tobytes()
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    same_bits(results(MODEL, *LARGE, threads=3), WANTED)  # and the parent's threads still work
