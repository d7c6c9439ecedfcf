"""Ctrl-C during long compiled calls, threads that cannot be started, forks, and the end of the interpreter.

Signals are sent to child processes.  What is judged is work, not time: how much of it had been done when the interrupt
left the call, as a part of what the whole call would have done, so that the speed of the machine does not matter.
"""

import multiprocessing
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad._engine.pool import Call
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad.simulate import KineticEnergy, Objective, adjoint_gradient, simulate_fixed
from tests.kernels.child import child

MODEL = kg.samples.spatial_chain(6)

# --- parts of a call ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(("lines", "rows"), [(1, 1), (1, 1000), (3, 5 * WIDTH + 1), (40, 3), (0, 10), (10, 0)])
def test_every_row_once_in_whole_blocks(workers, lines, rows):
    seen = []
    Call(lines, rows, 2 * WIDTH, workers).run(lambda *part: seen.append(part))
    assert all(start % WIDTH == 0 and (stop % WIDTH == 0 or stop == rows) for _, start, stop in seen)
    done = sorted((line, row) for line, start, stop in seen for row in range(start, stop))
    assert done == [(line, row) for line in range(lines) for row in range(rows)]


def test_parts_follow_the_time_they_take():
    """Slow rows in small parts, fast rows in large ones, whatever was assumed."""
    seen = []

    def slow(_, start, stop):
        seen.append(stop - start)
        time.sleep((stop - start) * 0.01)

    Call(1, 40 * WIDTH, 8 * WIDTH, 1).run(slow)
    assert max(seen[1:]) < 8 * WIDTH
    seen.clear()
    Call(1, 10_000 * WIDTH, WIDTH, 1).run(lambda _, start, stop: seen.append(stop - start))
    assert len(seen) < 50


@pytest.mark.parametrize(("workers", "paces"), [(2, (1, 1)), (2, (1, 1.2)), (3, (1, 1, 1)), (4, (1, 2, 1, 1))])
def test_parts_end_together(monkeypatch, workers, paces):
    """Threads that take so many seconds per row, by a clock of the test: each takes a part when its last one ends."""
    call, times, ends, me = Call(1, 50 * WIDTH, WIDTH, workers), dict.fromkeys(range(workers), 0.0), [], 0
    monkeypatch.setattr(engine.pool, "perf_counter", lambda: times[me])
    monkeypatch.setattr(engine.pool, "threading", SimpleNamespace(get_ident=lambda: me))
    while times:
        me = min(times, key=times.get)
        if times[me]:
            call._paces[me] = paces[me]
            call._pace, call._size, call._measured = min(call._paces.values()), 40 * WIDTH, True
        part = call._take()
        if part is None:
            ends.append(times.pop(me))
        else:
            times[me] += (part[2] - part[1]) * paces[me]
    even = 50 * WIDTH / sum(1 / pace for pace in paces)
    assert even <= max(ends) <= even + 2 * WIDTH * max(paces)


@pytest.mark.parametrize(
    ("workers", "mine", "expected"),
    [
        (2, None, 40),  # 60 rows are left, and the other has 60 of its 100: of these 120, a third for half the speed
        (2, (39.0, 500), 40),  # what this thread took before is done
        (3, None, 24),  # one more is still to come, as fast as the fastest
        (17, None, 3),  # so many are not asked
    ],
)
def test_shares_of_the_rest(monkeypatch, workers, mine, expected):
    """At time 40, of a thread that takes 2 s for a row, beside one that takes 1 s and took 100 rows at time 0."""
    call, me, other = Call(1, 1000, WIDTH, workers), threading.get_ident(), -1
    monkeypatch.setattr(engine.pool, "perf_counter", lambda: 40.0)
    call._paces, call._pace, call._taken = {me: 2.0, other: 1.0}, 1.0, {other: (0.0, 100)}
    if mine:
        call._taken[me] = mine
    assert call._share(60) == expected


@pytest.mark.parametrize("workers", [1, 2, 8, 17])
def test_parts_are_not_tiny(monkeypatch, workers):
    """Rows of 1 µs, by a clock of the test, and helpers that never come: at the end parts of 0.1 ms, not of a block."""
    call, now, parts = Call(1, 1000 * WIDTH, WIDTH, workers), [0.0], []
    monkeypatch.setattr(engine.pool, "perf_counter", lambda: now[0])

    def task(_, start, stop):
        parts.append(stop - start)
        now[0] += 1e-6 * (stop - start)

    while part := call._take():
        call._do(task, part)
        assert call._paces == pytest.approx({threading.get_ident(): 1e-6})
        assert call._taken[threading.get_ident()][1] == parts[-1]
    assert sum(parts) == 1000 * WIDTH
    assert min(parts[2:-1]) >= 100  # the first ones are small, as nothing is known of their time
    assert len(parts) <= 4 + 4 * workers


def test_after_an_error_nothing_is_left_behind():
    """The caller's part fails while a helper is at another: the error waits for it, and the rest never runs."""
    seen, began, go = [], threading.Event(), threading.Event()

    def task(_, start, stop):
        if threading.current_thread() is not threading.main_thread():
            began.set()
            assert go.wait(60)
            seen.append(start)
            return
        assert began.wait(60)
        threading.Timer(0.2, go.set).start()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Call(1, 100 * WIDTH, WIDTH, 2).run(task)
    assert len(seen) == 1, "the part that was running has ended, and no other has begun"
    time.sleep(0.2)
    assert len(seen) == 1


def test_an_error_of_a_helper_reaches_the_caller():
    began = threading.Event()

    def task(_, start, stop):
        if threading.current_thread() is threading.main_thread():
            assert began.wait(60)
        else:
            began.set()
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        Call(1, 100 * WIDTH, WIDTH, 2).run(task)


@pytest.fixture
def no_helpers(monkeypatch):
    """As in a fresh process."""
    monkeypatch.setattr(engine.pool, "_helpers", [])
    monkeypatch.setattr(engine.pool, "_queue", SimpleQueue())
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)


@pytest.mark.parametrize("possible", [0, 1, 2])
def test_where_threads_cannot_be_started_fewer_do_the_work(monkeypatch, no_helpers, possible):
    """At the process limit `start` raises; what was queued for a failed call was once done by the next one."""
    q, v, a = np.random.default_rng(0).normal(size=(3, 300, 6))
    wanted = kg.inverse_dynamics(MODEL, q, v, a, threads=1)
    start, left = threading.Thread.start, [possible]

    def limited(thread):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    out = np.zeros((300, 6))
    for _ in range(3):
        kg.inverse_dynamics(MODEL, q, v, a, threads=4, out=out)
        assert out.tobytes() == wanted.tobytes()
        out[...] = 7.0
        kg.inverse_dynamics(MODEL, q, v, a, threads=4)
        assert (out == 7.0).all(), "nobody writes into the array of an earlier call"
    assert len(engine.pool._helpers) == possible


def test_no_more_threads_than_make_sense(no_helpers, monkeypatch):
    monkeypatch.setattr(engine.pool, "_MOST", 3)
    q, v, a = np.random.default_rng(0).normal(size=(3, 300, 6))
    wanted = kg.inverse_dynamics(MODEL, q, v, a, threads=1)
    assert kg.inverse_dynamics(MODEL, q, v, a, threads=10**9).tobytes() == wanted.tobytes()
    assert len(engine.pool._helpers) == 3


def test_a_finished_call_keeps_no_arrays():
    """Helpers that were busy with another call find nothing in the queue to hold on to."""
    call = Call(1, WIDTH, WIDTH, 2)
    call.run(lambda *part: None)
    assert call._task is None


# --- the same bits however a call is cut --------------------------------------------------------------------------


@pytest.fixture(params=[1, 3])
def small_parts(request, monkeypatch):
    """Parts of a block of lanes, on one thread or three."""
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)
    before = kg.get_threads()
    kg.set_threads(request.param)

    def cut():
        monkeypatch.setattr(engine.threads, "FIRST", 1)
        monkeypatch.setattr(engine.threads, "_AT_ONCE", 1)
        monkeypatch.setattr(engine.marching, "FIRST", 1)
        monkeypatch.setattr(engine.marching, "_FEWEST", 1)
        monkeypatch.setattr(engine.pool, "PART", 1e-9)
        monkeypatch.setattr(engine.marching, "PART", 1e-9)
        monkeypatch.setattr(engine.marching_reverse, "PART", 1e-9)

    yield cut
    kg.set_threads(before)


def flat(result):
    fields = [result] if isinstance(result, np.ndarray) else vars(result).values()
    return [x.tobytes() for x in fields if isinstance(x, np.ndarray)]


DESIGN = kg.Design(MODEL, ["gravity.x", f"{MODEL.link_names[2]}.mass", f"{MODEL.joint_names[1]}.damping"])
EFFORT = Objective(end=[KineticEnergy()], integral=[KineticEnergy()])
CALLS = {
    "inverse_dynamics": lambda q, v, a: kg.inverse_dynamics(MODEL, q, v, a),
    "forward_dynamics": lambda q, v, a: kg.forward_dynamics(MODEL, q, v, a),
    "forward_dynamics_derivatives": lambda q, v, a: kg.forward_dynamics_derivatives(MODEL, q, v, a),
    "design": lambda q, v, a: kg.inverse_dynamics_design_derivatives(DESIGN, q, v, a),
    "design of accelerations": lambda q, v, a: kg.forward_dynamics_design_derivatives(DESIGN, q, v, a),
    "design of two": lambda q, v, a: kg.inverse_dynamics_design_derivatives(
        DESIGN, q[:2], v[:2], a[:2], loads=kg.Loads(force=np.arange(36.0).reshape(2, 6, 3))
    ),
    "steps": lambda q, v, a: simulate_fixed(MODEL, q, v, step=0.01, steps=12, tau=a),
    "every third": lambda q, v, a: simulate_fixed(MODEL, q, v, step=0.01, steps=12, tau=a, every=3),
    "the end": lambda q, v, a: simulate_fixed(MODEL, q, v, step=0.01, steps=12, every=12),
    "tangents": lambda q, v, a: simulate_fixed(MODEL, q, v, step=0.01, steps=12, design=DESIGN, every=4),
    "tangents of two": lambda q, v, a: simulate_fixed(MODEL, q[:2], v[:2], step=0.01, steps=5, design=DESIGN),
    "adjoint": lambda q, v, a: adjoint_gradient(MODEL, q, v, EFFORT, step=0.01, steps=12, design=DESIGN),
    "adjoint of two": lambda q, v, a: adjoint_gradient(MODEL, q[:2], v[:2], EFFORT, step=0.01, steps=5, segment=5),
    "designs": lambda q, v, a: simulate_fixed([MODEL] * 30, q[:30], v[:30], step=0.01, steps=5),
    "euler": lambda q, v, a: simulate_fixed(MODEL, q, v, step=0.01, steps=12, method="semi_implicit_euler", every=6),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_parts_do_not_matter(small_parts, call):
    q, v, a = np.random.default_rng(0).normal(size=(3, 45, 6))
    if call is CALLS["steps"] or call is CALLS["every third"]:
        a = np.broadcast_to(a, (12, 45, 6))
    whole = flat(call(q, v, a))
    small_parts()
    assert flat(call(q, v, a)) == whole


@pytest.mark.parametrize("every", [1, 4, 12])
def test_lost_states_in_parts(small_parts, every):
    """Divergence is told by the same step, state and joint, and the others go on."""
    q, v, _ = np.random.default_rng(0).normal(size=(3, 21, 6))
    tau = np.zeros((12, 21, 6))
    tau[5, 13, 2], tau[7, 2, 0] = 1e200, 1e200
    whole = simulate_fixed(MODEL, q, v, step=0.01, steps=12, tau=tau, every=every)
    all_lost = simulate_fixed(MODEL, q, v, step=0.01, steps=12, tau=tau + 1e200, every=every)
    small_parts()
    for before, more in ((whole, 0.0), (all_lost, 1e200)):
        parts = simulate_fixed(MODEL, q, v, step=0.01, steps=12, tau=tau + more, every=every)
        assert parts.message == before.message
        assert (parts.steps, parts.nfev) == (before.steps, before.nfev)
        assert flat(parts) == flat(before)


def test_free_joints_in_parts(small_parts):
    """The ball joint of a gyroscope locks when its middle hinge has turned by 90°: in some states, at their times."""
    builder = kg.ModelBuilder("gyroscope", gravity=(0, 0, 0))
    builder.add("ball", None, kg.spherical(), link="top", inertia=kg.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)))
    model = builder.build()
    v = np.zeros((21, 3))
    v[[3, 11, 18], 1] = np.pi / 2 / 0.01 / np.array([9, 7, 13])  # reached exactly, with nothing to turn it
    with pytest.raises(kg.SingularError) as whole:
        simulate_fixed(model, np.zeros(3), v, step=0.01, steps=20)
    assert "at t = 0.07 s" in str(whole.value)
    assert "state 11" in str(whole.value)
    small_parts()
    with pytest.raises(kg.SingularError) as parts:
        simulate_fixed(model, np.zeros(3), v, step=0.01, steps=20)
    assert str(parts.value) == str(whole.value)


# --- Ctrl-C -------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, threading, time, signal, os
import numpy as np
import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad.io import Markers
from kinegrad.recordings import inverse_kinematics
from kinegrad.simulate import simulate_fixed, adjoint_gradient, Objective, KineticEnergy
kg.set_threads({threads})
model = kg.samples.spatial_chain(6)
rng = np.random.default_rng(0)
design = kg.Design(model, ["gravity.x", "gravity.z"])
state = rng.normal(size=(3, 6))
chain = kg.samples.spatial_chain(30)
masses = kg.Design(chain, [name + ".mass" for name in chain.link_names[:20]])
states = rng.normal(size=(3, 60_000, 30))
seen = np.arange(60_000.0), ("bar10", "bar20", "bar30"), 5 * rng.normal(size=(60_000, 3, 3))

def call(size):
    {call}

begun = [True]
def begin():
    if not begun[0]:
        begun[0] = True
        print("begin", flush=True)
done = [0]
own = engine.pool.Call._do
def counting(self, task, part):  # how much of the call has been done
    own(self, task, part)
    done[0] += part[2] - part[1]
    begin()
engine.pool.Call._do = counting
walked = [0]
some = engine.marching._Walk._some
def stepping(self, q, v, step, end, start, stop):
    walked[0] += (end - step) * (stop - start)
    begin()
    return some(self, q, v, step, end, start, stop)
engine.marching._Walk._some = stepping

call({small})
done[0] = walked[0] = 0
begun[0] = False
try:
    call({large})
except KeyboardInterrupt:
    left = done[0], walked[0]
    time.sleep(0.5)
    assert left == (done[0], walked[0]), "something went on"
    print("interrupted", *left, flush=True)
else:
    print("ended", flush=True)
"""

LONG = {
    "lagrange": ("kg.inverse_dynamics_derivatives(chain, *states[:, :size], method='lagrange')", 10, 60_000),
    "directions": (
        "kg.hybrid_dynamics_design_derivatives(masses, *states[:, :size], states[2, :size], prescribed=[])", 10, 60_000,
    ),
    "steps": ("simulate_fixed(model, state[0], state[1], step=1e-5, steps=size, every=size)", 10, 100_000_000),
    "tangents": (
        "simulate_fixed(model, state[0], state[1], step=1e-5, steps=size, every=size, design=design)", 10, 30_000_000,
    ),
    "adjoint": (
        "adjoint_gradient(model, state[0], state[1], Objective(integral=[KineticEnergy()]), step=1e-5, steps=size, "
        "design=design)", 10, 10_000_000,
    ),
    "markers": (
        "inverse_kinematics(chain, Markers(seen[0][:size], seen[1], seen[2][:size]), tolerance=1e-30)", 10, 60_000,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c(name, threads):
    """Calls that are interrupted when they have begun leave with a small part of their work done, and do no more."""
    call, small, large = LONG[name]
    process = child(SCRIPT.format(call=call, small=small, large=large, threads=threads), KINEGRAD_QUIET="1")
    try:
        assert process.stdout.readline() == "begin\n", process.communicate()[1]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert process.returncode == 0, err
        word, rows, steps = out.split()
        assert word == "interrupted"
        whole = large * (20 if name == "directions" else 1)
        assert int(rows) < whole / 4
        assert int(steps) < whole / 4
    finally:
        process.kill()
        process.wait()


# --- the end of the interpreter, and forks ------------------------------------------------------------------------

LATE = """
import atexit, threading, time
import numpy as np
import kinegrad as kg
from kinegrad import _engine as engine
engine.threads._GRAIN = 1
model = kg.samples.spatial_chain(6)
q, v, a = np.random.default_rng(0).normal(size=(3, 500, 6))
wanted = kg.inverse_dynamics(model, q, v, a, threads=1)

def use(where):
    assert kg.inverse_dynamics(model, q, v, a, threads=3).tobytes() == wanted.tobytes()
    print(where, flush=True)

def outlive():
    threading.main_thread().join()
    use("thread")

{early}
atexit.register(use, "atexit")
threading.Thread(target=outlive).start()
"""


@pytest.mark.parametrize("early", ["", "use('main')"], ids=["no pool yet", "with a pool"])
def test_after_the_end_of_main(early):
    """Threads that outlive main, and exit handlers, run before and after the pool is closed."""
    script = LATE.format(early=early)
    before = "import atexit\natexit.register(lambda: use('last'))\n"  # handlers run in reverse: after the pool's
    process = child(before + script, KINEGRAD_QUIET="1")
    try:
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert err == ""
        assert out.split() == (["main"] if early else []) + ["thread", "atexit", "last"]
    finally:
        process.kill()
        process.wait()


def _works_in_child(queue, q, v, a, wanted):
    queue.put(kg.inverse_dynamics(MODEL, q, v, a, threads=3).tobytes() == wanted)
    queue.put(len(engine.pool._helpers))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_other_threads_calculate(monkeypatch):
    """The child has none of the parent's helpers, nor locks that they held."""
    monkeypatch.setattr(engine.threads, "_GRAIN", 1)
    q, v, a = np.random.default_rng(0).normal(size=(3, 3000, 6))
    wanted = kg.inverse_dynamics(MODEL, q, v, a, threads=3).tobytes()
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            kg.inverse_dynamics(MODEL, q, v, a, threads=3)

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_works_in_child, args=(queue, q, v, a, wanted)) for _ in range(4)]
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(busy) for _ in range(2)]
        try:
            for process in processes:
                process.start()
                assert queue.get() is True
                assert queue.get() == 2
        finally:
            stop.set()
            for process in processes:
                process.kill()
                process.join()
        for call in calls:
            call.result()
