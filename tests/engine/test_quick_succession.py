"""Calls in quick succession: helpers that linger, callers that do, and when neither is to.

No test depends on how fast calls follow one another: where it matters, they are said to, or the clock is ours.
"""

import math
import os
import threading
import time
from queue import SimpleQueue

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad._engine import pool
from kinegrad._engine.pool import Call
from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.compiler.width import NARROW, WIDTH
from kinegrad._kernels.waiting import linger
from tests.kernels.child import child, output
from tests.limits import LIMIT

MODEL = kg.samples.spatial_chain(12)
compiled = pytest.mark.skipif(not JIT, reason="threads linger in compiled code only")


@pytest.fixture
def lingering(monkeypatch):
    """Calls in quick succession, by helpers of their own, with a processor for each; returns who has lingered, (whether
    it was the caller, turns)."""
    pool.measure()
    turns = []

    def noted(raised, awaited, count, settle):
        turns.append((threading.current_thread() is threading.main_thread(), count))
        return linger(raised, awaited, count, settle)

    queue = SimpleQueue()
    for name, value in {
        "_soon": lambda: True, "_helpers": [], "_resting": {}, "_queue": queue, "_processors": 64, "linger": noted,
    }.items():  # fmt: skip
        monkeypatch.setattr(pool, name, value)
    yield turns
    queue.put(None)
    for flag in pool._resting.values():
        flag[0] = 1
    for helper in pool._helpers:
        helper.join(LIMIT)
        assert not helper.is_alive()


@pytest.fixture
def clock(monkeypatch):
    """A clock that shows what it is set to."""
    now = [100.0]
    monkeypatch.setattr(pool, "perf_counter", lambda: now[0])
    monkeypatch.setattr(pool, "_crowded", -math.inf)
    monkeypatch.setattr(pool, "_ended", -math.inf)
    return now


def until(condition):
    """Wait for another thread."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# --- a thread that waits ------------------------------------------------------------------------------------------


@compiled
def test_a_thread_waits_for_a_flag_without_the_lock_of_python():
    raised, awaited, found = pool._flag(), pool._flag(), []
    pool.measure()
    turns = min(int(LIMIT * pool._rate), 2**62)
    thread = threading.Thread(target=lambda: found.append(linger(raised, awaited, turns, 5)), daemon=True)
    thread.start()
    until(lambda: raised[0])  # which this thread could not see if the other kept the lock
    assert not found
    awaited[0] = 1
    thread.join(LIMIT)
    assert found == [True]


def test_a_thread_does_not_wait_for_ever():
    raised, awaited = pool._flag(), pool._flag()
    assert not linger(raised, awaited, 3, 0)
    assert not linger(raised, awaited, 0, 0)
    assert raised[0] == 1
    assert awaited[0] == 0


def test_flags_share_their_memory_with_nothing():
    """Neither the line of the cache they are in, nor the next, which processors fetch with it."""
    flag = pool._flag()
    start, ends = flag.ctypes.data, flag.base.ctypes.data
    assert start - ends >= 128
    assert ends + flag.base.nbytes - start - flag.nbytes >= 128


# --- when threads linger ------------------------------------------------------------------------------------------


def test_a_call_soon_after_another_of_the_same_thread(clock):
    assert not pool._soon()
    pool.note_end()
    clock[0] += pool.MOMENT / 2
    assert pool._soon()
    found = []
    other = threading.Thread(target=lambda: found.append(pool._soon()))
    other.start()
    other.join(LIMIT)
    assert found == [False], "calls of several threads keep the processors busy by themselves"
    clock[0] += pool.MOMENT
    assert not pool._soon()


@pytest.mark.parametrize(("slower", "crowded"), [(1.5, False), (100.0, True)])
def test_not_while_others_need_the_processors(clock, slower, crowded):
    """One of two equal parts takes a hundred times as long as the other."""
    durations = iter([1e-3, slower * 1e-3])

    def task(_, start, stop):
        clock[0] += next(durations)

    Call(1, 2 * WIDTH, WIDTH, 1).run(task)
    assert pool._soon() is not crowded
    clock[0] += 2 * pool._RELIEF
    pool.note_end()
    assert pool._soon()


@compiled
@pytest.mark.parametrize("earlier", [2, 5])
def test_not_with_more_threads_than_processors(lingering, monkeypatch, earlier):
    """Than a call has, however many helpers an earlier one has left."""
    monkeypatch.setattr(pool, "_processors", 2)
    Call(1, 10 * WIDTH, WIDTH, earlier).run(lambda *part: None)
    assert [pool.can_linger(workers) for workers in (2, 3, 5)] == [True, False, False]
    assert pool.at_hand(3) is False


@compiled
def test_not_where_it_cannot_be_compiled(monkeypatch):
    """Which costs nobody but time."""

    def fails(*arguments):
        raise MemoryError

    for name, value in {"_rate": 0.0, "_processors": 2, "_soon": lambda: True, "linger": fails}.items():
        monkeypatch.setattr(pool, name, value)
    assert not pool.can_linger(2)
    assert pool._rate > 0, "it is not tried again"
    assert not pool.at_hand(2)
    call = Call(1, 10 * WIDTH, WIDTH, 2)
    call.run(lambda *part: None)
    assert not call._lingers


def test_smaller_calls_are_shared_with_helpers_that_are_awake(monkeypatch):
    threads = engine.threads
    least = 2 * threads._SLOTS * threads._GRAIN
    for awake, enough in ((False, least), (True, -(-least // threads._AT_HAND))):
        monkeypatch.setattr(threads, "at_hand", lambda workers, awake=awake: awake)
        assert [threads.workers_of(2, work) for work in (enough - threads._SLOTS, enough)] == [1, 2]
        assert threads.workers_of(1, 10 * least) == 1


# --- calls of threads that linger ---------------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("threads", [2, 3])
def test_the_same_bits_however_calls_follow(lingering, threads):
    rng = np.random.default_rng(5)
    for states in (1, WIDTH, 300, 2 * WIDTH + 1, 700, 301, 2000, 40):
        q, v, a, w = rng.normal(size=(4, states, MODEL.n))
        functions = {
            "tau": lambda count, s=(q, v, a): kg.inverse_dynamics(MODEL, *s, threads=count),
            "vjp": lambda count, s=(q, v, a, w): kg.inverse_dynamics_vjp(MODEL, *s, threads=count).dq,
            "a": lambda count, s=(q, v, a): kg.forward_dynamics(MODEL, *s, threads=count),
            "M": lambda count, s=q: kg.mass_matrix(MODEL, s, threads=count),
        }
        for name, function in functions.items():
            wanted = function(1).tobytes()
            for _ in range(5):
                assert function(threads).tobytes() == wanted, (name, states)
    until(lambda: any(not caller and turns > 0 for caller, turns in lingering))


def alone_and_helped(began, then=lambda: None):
    """A task whose first part, the caller's, lasts until a helper has begun another, which does `then`."""

    def task(_, start, stop):
        if threading.current_thread() is threading.main_thread():
            assert began.wait(LIMIT)
        else:
            began.set()
            then()

    return task


@compiled
def test_a_caller_waits_awake_for_the_last_helper(lingering, monkeypatch):
    """And learns of its end by the flag."""
    monkeypatch.setattr(pool, "MOMENT", LIMIT)
    for _ in range(3):
        began = threading.Event()
        call = Call(1, 2 * WIDTH, WIDTH, 2)
        call.run(alone_and_helped(began, lambda: until(lambda: (True, int(LIMIT * pool._rate)) in lingering)))
        assert call._over[0] == 1
        lingering.clear()


@compiled
def test_the_end_is_told_also_if_the_next_call_waits_already(lingering):
    began, calls = threading.Event(), [Call(1, 2 * WIDTH, WIDTH, 2) for _ in range(2)]
    calls[0].run(alone_and_helped(began, lambda: pool._queue.put(calls[1])))  # whose caller is not there yet
    until(lambda: calls[0]._over[0] and pool._queue.empty())


@compiled
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_error_while_the_caller_lingers(lingering, error):
    def fail():
        until(lambda: any(caller for caller, _ in lingering))
        raise error("no room")

    with pytest.raises(error, match="no room"):
        Call(1, 2 * WIDTH, WIDTH, 2).run(alone_and_helped(threading.Event(), fail))


def test_no_helper_is_woken_for_a_call_that_has_stopped(lingering):
    call = Call(1, 100 * WIDTH, WIDTH, 3)
    call.run(lambda *part: call.stop(), alone_first=True)
    assert not pool._helpers


@pytest.mark.parametrize("states", [1, NARROW, WIDTH])
def test_few_states_are_one_part_however_long_it_takes(monkeypatch, states):
    """With the kernel for few, if they are."""
    q, v, a = np.random.default_rng(5).normal(size=(3, states, MODEL.n))
    wanted, asked, fitting = kg.inverse_dynamics(MODEL, q, v, a, threads=1), [], engine.threads.fitting

    def noted(kernel, slots, count):
        asked.append(count)
        return fitting(kernel, slots, count)

    monkeypatch.setattr(engine.threads, "fitting", noted)
    monkeypatch.setattr(engine.threads, "_AT_ONCE", 1)
    for threads in (1, 2):
        assert kg.inverse_dynamics(MODEL, q, v, a, threads=threads).tobytes() == wanted.tobytes()
    assert asked == [states, states]


FORKS = """
import os
import numpy as np
import kinegrad as kg
from kinegrad._engine import pool

model = kg.samples.spatial_chain(12)
q, v, a = np.random.default_rng(0).normal(size=(3, 3000, 12))
wanted = kg.inverse_dynamics(model, q, v, a, threads=1).tobytes()
pool._soon, pool.MOMENT = lambda: True, 0.5  # so that a helper lingers at every fork, and at the end

def same():
    return all(kg.inverse_dynamics(model, q, v, a, threads=2).tobytes() == wanted for _ in range(5))

assert same()
for _ in range(5):
    process = os.fork()
    if not process:
        os._exit(0 if same() and len(pool._helpers) == 1 else 1)
    assert os.waitpid(process, 0)[1] == 0
    assert same()
print("done")
"""


@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_and_the_end_of_a_process_whose_helpers_linger():
    assert output(child(FORKS, KINEGRAD_QUIET="1")) == "done\n"
