"""Children of tests end with them: one that hangs, and what it has started, is gone when the test is over."""

import os
import time

import pytest

from tests.kernels import child as children
from tests.kernels.child import child, ended, output, stopping

HANG = """
import subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100000)"])
print(inner.pid, flush=True)
time.sleep(100000)
"""


def runs(pid):
    """Whether there is such a process; one that has ended and that nobody waits for does not count."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to look for processes")
@pytest.mark.parametrize("how", ["limit", "failure"])
def test_a_hanging_child_ends_with_all_that_it_started(monkeypatch, how):
    process = child(HANG)
    with stopping(process):
        inner = int(process.stdout.readline())
        assert runs(inner)
        if how == "limit":
            monkeypatch.setattr(children, "LIMIT", 0.01)
            with pytest.raises(children.subprocess.TimeoutExpired):
                ended(process)
    assert process.returncode is not None
    while runs(inner):  # it has been sent SIGKILL, and ends as soon as the system gets to it
        time.sleep(0.01)


def test_exit_codes_and_words_of_a_child():
    assert ended(child("import sys; print(1); sys.exit('two')")) == (1, "1\n", "two\n")
    with pytest.raises(AssertionError, match="two"):
        output(child("import sys; sys.exit('two')"))
