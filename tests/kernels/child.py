"""A fresh Python process, for what is settled at import (lane width, bounds checking, JIT, cache folder) and for what
may crash, hang, or is sent a signal.

Each has a process group of its own, which ends with the test, however the test ends.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import kinegrad
from tests.limits import LIMIT

SOURCE = Path(kinegrad.__file__).parents[1]
ROOT = Path(__file__).parents[2]
# from 3.12 on Python warns of every fork of a process with threads, which are what is tested
WARNINGS = ("-W", "error::RuntimeWarning", "-W", "ignore:This process:DeprecationWarning")


def child(script: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start `script` with the settings `environment`, and none that this process has of its own.

    Give it to :func:`output` or :func:`ended`, or, if something comes in between, use it within :func:`stopping`.
    """
    own = {k: v for k, v in os.environ.items() if not k.startswith(("KINEGRAD_", "NUMBA_"))}
    env = own | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"} | environment
    command = [sys.executable, *WARNINGS, "-c", script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, text=True, stdout=pipe, stderr=pipe, start_new_session=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for `process`: its exit code (negative for a signal), what it printed, and what it complained of."""
    with stopping(process):
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err


def output(process: subprocess.Popen[str]) -> str:
    """What `process` printed; fails with its traceback if it failed."""
    code, out, err = ended(process)
    assert code == 0, f"exit code {code}\n{err}"
    return out


@contextlib.contextmanager
def stopping(*processes: subprocess.Popen[str]):
    """At the end none of `processes` runs any more, nor what they have started."""
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdout, process.stderr):
                pipe.close()
