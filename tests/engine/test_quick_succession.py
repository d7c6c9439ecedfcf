"""Calls in quick succession: helpers that linger, callers that do, and when neither is to.

No test depends on how fast calls follow one another: where it matters, they are said to, or the clock is ours.
"""

import math
import os
import threading
import time

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad._engine import pool
from kinegrad._engine.pool import Call
from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.waiting import linger
from tests.kernels.child import child, output
from tests.limits import LIMIT

MODEL = kg.samples.spatial_chain(12)
compiled = pytest.mark.skipif(not JIT, reason="threads linger in compiled code only")


@pytest.fixture
def in_quick_succession(monkeypatch):
    monkeypatch.setattr(pool, "_soon", lambda: True)


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
    turns = int(LIMIT * pool._rate)
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


def test_not_with_more_threads_than_processors(monkeypatch):
    monkeypatch.setattr(pool, "_rate", 1e8)
    monkeypatch.setattr(pool, "_processors", 4)
    for helpers, turns in ((3, round(1e8 * pool.MOMENT)), (4, 0), (9, 0)):
        monkeypatch.setattr(pool, "_helpers", [threading.Thread()] * helpers)
        assert pool._turns() == turns


def test_smaller_calls_are_shared_with_helpers_that_are_awake(monkeypatch):
    threads = engine.threads
    least = 2 * threads._SLOTS * threads._GRAIN
    for awake, enough in ((False, least), (True, -(-least // threads._AT_HAND))):
        monkeypatch.setattr(threads, "at_hand", lambda awake=awake: awake)
        assert [threads.workers_of(2, work) for work in (enough - threads._SLOTS, enough)] == [1, 2]
        assert threads.workers_of(1, 10 * least) == 1


# --- calls of threads that linger ---------------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("threads", [2, 3])
def test_the_same_bits_however_calls_follow(in_quick_succession, monkeypatch, threads):
    monkeypatch.setattr(pool, "_rate", 0.0)
    rng = np.random.default_rng(5)
    for states in (1, WIDTH, 300, 2 * WIDTH + 1, 700, 301, 40):
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
    until(lambda: pool._rate > 0)  # somebody lingers


@compiled
def test_a_caller_learns_of_the_end_of_the_last_helper(in_quick_succession):
    """By the flag, also where the helper finds the next call in the queue already."""
    began = threading.Event()

    def task(_, start, stop):
        if threading.current_thread() is threading.main_thread():
            assert began.wait(LIMIT)
        else:
            began.set()

    calls = [Call(1, 10 * WIDTH, WIDTH, 2) for _ in range(3)]
    for call in calls:
        began.clear()
        call.run(task)
    until(lambda: all(call._over[0] for call in calls))


@compiled
def test_an_error_while_the_caller_lingers(in_quick_succession):
    began, go = threading.Event(), threading.Event()

    def task(_, start, stop):
        if threading.current_thread() is threading.main_thread():
            assert began.wait(LIMIT)
            threading.Timer(0.05, go.set).start()  # the caller has looked at its flag for long by then
        else:
            began.set()
            assert go.wait(LIMIT)
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        Call(1, 10 * WIDTH, WIDTH, 2).run(task)


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
