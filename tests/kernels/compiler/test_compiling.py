"""Interrupts, forks, exits and threads while a kernel is being compiled."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import numba
import numpy as np
import pytest

from kinegrad._kernels.compiler import compiling, jit
from tests.kernels.child import SOURCE, WARNINGS
from tests.limits import LIMIT

pytestmark = [
    pytest.mark.skipif(not jit.JIT, reason="nothing is compiled without the JIT"),
    pytest.mark.skipif(os.name != "posix", reason="signals and forks as POSIX has them"),
]


@contextmanager
def program(script, **environment):
    """A process group of its own, with nothing in its cache; all of it is killed when it is not over in time."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("KINEGRAD_", "NUMBA_"))}
    env = own | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{os.getcwd()}"} | environment
    command = [sys.executable, *WARNINGS, "-X", "faulthandler", "-c", script]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, env=env, text=True, start_new_session=True, **pipes)
    end = threading.Timer(LIMIT, os.killpg, [process.pid, signal.SIGKILL])
    end.start()
    try:
        yield process
    finally:
        end.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def finished(process, code=0):
    """What the program printed; fails unless it ended with this exit code."""
    out, err = process.communicate()
    assert process.returncode == code, f"exit code {process.returncode}, printed {out!r}\n{err}"
    return out, err


# `begun` is set, or a signal sent, when Numba begins to compile `waves`; on the thread that compiles.
WHEN_COMPILING = """
import os, signal, threading
import numba.core.event as ev
from tests.kernels.waves import check, double, waves

begun, interrupting = threading.Event(), False

class Begun(ev.Listener):
    def on_start(self, event):
        if event.data["dispatcher"] is waves:
            begun.set()
            if interrupting:
                os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, event):
        pass

ev.register("numba:compile", Begun())
"""


# --- interrupts -------------------------------------------------------------------------------------------------

INTERRUPTED = """
import sys
from tests.kernels.waves import check

caught = told = 0
done = False
print("ready", flush=True)
while True:
    try:
        if told < caught:
            print(caught, done, flush=True)
            told = caught
        elif not done:
            check()
            done = True
        elif sys.stdin.readline() == "end\\n":
            break
    except KeyboardInterrupt:
        caught += 1
check()
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_interrupts_at_any_moment_are_raised_and_break_nothing(tmp_path, seed):
    """Each is raised (the child says so before the next is sent), and in the end the kernel computes what it should."""
    rng = np.random.default_rng(seed)
    with program(INTERRUPTED, KINEGRAD_CACHE_DIR=str(tmp_path), KINEGRAD_QUIET="1") as process:
        assert process.stdout.readline() == "ready\n"
        sent, done = 0, "False"
        while done == "False":
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=rng.exponential(0.05))
            process.send_signal(signal.SIGINT)
            sent += 1
            answer = process.stdout.readline().split()
            assert answer[:1] == [str(sent)], f"interrupt {sent} was lost, or the child: {answer}, {process.poll()}"
            done = answer[1]
        process.stdin.write("end\n")
        finished(process)


@pytest.mark.slow
@pytest.mark.parametrize("catching", [True, False])
def test_a_program_can_end_while_a_kernel_is_compiled(tmp_path, catching):
    """After the compilation: LLVM must not run while the process takes itself apart."""
    call = "try:\n    check()\nexcept KeyboardInterrupt:\n    raise SystemExit(3)" if catching else "check()"
    with program(WHEN_COMPILING + "interrupting = True\n" + call, KINEGRAD_CACHE_DIR=str(tmp_path)) as process:
        _, err = finished(process, 3 if catching else -signal.SIGINT)
    assert ("KeyboardInterrupt" in err) == (not catching)
    assert len(list(tmp_path.glob("*/*.kernel"))) == 1  # finished, and kept


ENDLESS = """
import time
from kinegrad._kernels.compiler import compiling
def work():
    print("ready", flush=True)
    time.sleep(10_000)
try:
    compiling.run(work)
except KeyboardInterrupt:
    print("caught", end="")  # not flushed
"""


def test_a_second_interrupt_ends_the_program_at_once():
    """Without destructors, which would meet LLVM at work; by the signal, and what was printed is not lost."""
    with program(ENDLESS) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.readline()
        assert said == "kinegrad: a compilation has to end before the program can (Ctrl-C: at once)\n"
        process.send_signal(signal.SIGINT)
        out, _ = finished(process, -signal.SIGINT)
    assert out == "caught"


def test_kernels_compile_in_late_exit_handlers_and_in_threads_that_outlive_main():
    """Handlers registered before ours run after it, when the helper works no more."""
    script = """
import atexit, threading
def late():
    from tests.kernels.waves import check, double
    check(double)
    print("late")
atexit.register(late)
import tests.kernels.waves as waves
def outlive():
    main.join()
    waves.check()
    print("outlived")
main = threading.main_thread()
threading.Thread(target=outlive).start()
"""
    with program(script) as process:
        assert finished(process)[0] == "outlived\nlate\n"


# --- forks ------------------------------------------------------------------------------------------------------

FORKED = """
compiler = threading.Thread(target=check)
compiler.start()
begun.wait()
child = os.fork()
if not child:
    check()
    check(double)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
compiler.join()
check()
"""


def test_fork_while_another_thread_compiles(tmp_path):
    with program(WHEN_COMPILING + FORKED, KINEGRAD_CACHE_DIR=str(tmp_path)) as process:
        finished(process)


def test_fork_with_a_helper_that_has_nothing_to_do(tmp_path):
    """The child has no such thread, and must start its own."""
    script = """
import os
from tests.kernels.waves import check, double
check(double)
child = os.fork()
if not child:
    check()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
check()
"""
    with program(script, KINEGRAD_CACHE_DIR=str(tmp_path)) as process:
        finished(process)


def test_an_interrupt_while_a_fork_waits_is_raised_after_it():
    """Python only prints what is raised in handlers of forks, so the interrupt has to be raised again."""
    script = """
import os, threading, time
from kinegrad._kernels.compiler import compiling
inside, go_on = threading.Event(), threading.Event()
def work():
    inside.set()
    go_on.wait()
threading.Thread(target=compiling.run, args=[work]).start()
inside.wait()
threading.Thread(target=lambda: (input(), go_on.set())).start()
try:
    print("forking", flush=True)
    child = os.fork()
    if not child:
        os._exit(7)
    os.waitpid(child, 0)
    time.sleep(10_000)
except KeyboardInterrupt:
    print("caught", flush=True)
"""
    with program(script) as process:
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)  # until the fork waits; too early, and the test is of nothing
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.stdin.write("\n")
        process.stdin.flush()
        out, err = finished(process)
    assert (out, err) == ("caught\n", "")


# --- threads ----------------------------------------------------------------------------------------------------


def test_threads_that_want_the_same_kernel_compile_it_once(tmp_path):
    script = """
from concurrent.futures import ThreadPoolExecutor
from tests.kernels.waves import check, waves
with ThreadPoolExecutor(8) as pool:
    list(pool.map(lambda k: check(), range(16)))
print(sum(waves.stats.cache_misses.values()), len(waves.signatures))
"""
    with program(script, KINEGRAD_CACHE_DIR=str(tmp_path)) as process:
        assert finished(process)[0] == "1 1\n"


def test_compiled_functions_of_others_may_call_kernels():
    """Whoever compiles them holds Numba's lock already, and must not wait for a helper that waits for the lock."""

    @jit.kernel
    def plus_one(x):
        return x + 1

    @numba.njit
    def plus_two(x):
        return plus_one(plus_one(x))

    assert plus_two(1) == 3


def test_errors_of_the_compiler_reach_the_caller():
    @jit.kernel
    def nonsense(x):
        return x.nothing

    for _ in range(2):
        with pytest.raises(numba.TypingError, match="nothing"):
            nonsense(1.0)


def test_where_no_thread_can_start_the_caller_compiles(monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("can't start new thread")

    @jit.kernel
    def minus_one(x):
        return x - 1

    monkeypatch.setattr(compiling, "_helpers", {})
    monkeypatch.setattr(compiling._thread, "start_new_thread", refuse)
    assert minus_one(1) == 0


DURING_A_FORK = """
import os, signal, time
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))  # before ours: as `logging` does
from kinegrad._kernels.compiler import compiling
for _ in range(3):
    try:
        if os.fork() == 0:
            os._exit(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
        time.sleep(10_000)
    except KeyboardInterrupt:
        print("raised", os.wait()[1], compiling.inside(), flush=True)
"""


def test_an_interrupt_during_a_fork_is_raised_after_it():
    """It comes while handlers run, of which Python prints and forgets what they raise."""
    with program(DURING_A_FORK) as process:
        out, err = finished(process)
    assert out.splitlines() == ["raised 0 False"] * 3
    assert err == ""
