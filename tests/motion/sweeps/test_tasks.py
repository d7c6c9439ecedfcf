"""Tasks on any executor: each result once, whatever happens to workers."""

import os
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kinegrad import InputError, SolveError
from kinegrad.motion.sweeps.records import Records
from kinegrad.motion.sweeps.tasks import run_tasks
from kinegrad.motion.sweeps.workers import LocalWorkers, connected
from tests.kernels.child import child, output

TASKS = {f"task {k}": (k,) for k in range(8)}
SQUARES = {f"task {k}": {"square": k * k} for k in range(8)}


def square(k):
    return {"square": k * k}


def fail_at_three(k):
    if k == 3:
        raise ValueError("three")
    return {"square": k * k}


def die_once(k, folder):
    """The process that has task 3 kills itself, the first time."""
    mark = Path(folder, f"{k}")
    runs = len(mark.read_text(encoding="utf-8")) if mark.exists() else 0
    mark.write_text("x" * (runs + 1), encoding="utf-8")
    if k == 3 and runs == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": k * k}


def die(k):
    os.kill(os.getpid(), signal.SIGKILL)


def test_here():
    assert run_tasks(square, TASKS) == SQUARES


def test_threads():
    with ThreadPoolExecutor(3) as executor:
        assert run_tasks(square, TASKS, executor=executor) == SQUARES


def test_what_a_task_raises_is_its_result():
    """It would raise the same elsewhere: it is not run again."""
    for executor in (None, ThreadPoolExecutor(2)):
        found = run_tasks(fail_at_three, TASKS, executor=executor)
        assert found["task 3"] == {"status": "error", "error": "ValueError", "message": "three"}
        assert found["task 4"] == {"square": 16}


def test_progress():
    seen = []
    run_tasks(square, TASKS, finished=lambda *told: seen.append(told))
    assert [(done, total) for done, total, _ in seen] == [(k + 1, 8) for k in range(8)]


def test_records_are_not_run_again(tmp_path):
    ran = []

    def note(k):
        ran.append(k)
        return square(k)

    with Records(tmp_path / "a.jsonl", {}) as records:
        run_tasks(note, {"task 2": (2,), "task 5": (5,)}, records=records)
    with Records(tmp_path / "a.jsonl", {}) as records:
        assert run_tasks(note, TASKS, records=records) == SQUARES
    assert sorted(ran) == list(range(8))


def test_ctrl_c_keeps_what_is_done(tmp_path):
    def stop(k):
        if k == 4:
            raise KeyboardInterrupt
        return square(k)

    for executor in (None, ThreadPoolExecutor(1)):
        path = tmp_path / f"{executor is None}.jsonl"
        with pytest.raises(KeyboardInterrupt), Records(path, {}) as records:
            run_tasks(stop, TASKS, executor=executor, records=records)
        with Records(path, {}) as records:
            assert list(records.found) == [f"task {k}" for k in range(4)]
            assert run_tasks(square, TASKS, executor=executor, records=records) == SQUARES


class Unreliable:
    """An executor that loses every task `times` times, and tells the end of some twice."""

    def __init__(self, times):
        self.times, self.seen = times, {}

    def submit(self, function, *arguments):
        future, k = Future(), arguments[-1]
        self.seen[k] = self.seen.get(k, 0) + 1
        if self.seen[k] <= self.times:
            future.set_exception(OSError("the worker is gone"))
        else:
            future.set_result(function(*arguments))
        return future


def test_lost_tasks_are_sent_again():
    executor = Unreliable(3)
    assert run_tasks(square, TASKS, executor=executor, retries=3) == SQUARES
    assert set(executor.seen.values()) == {4}


def test_but_not_for_ever(tmp_path):
    class One(Unreliable):
        def submit(self, function, *arguments):
            self.times = 99 if arguments[-1] == 6 else 0
            return super().submit(function, *arguments)

    with (
        pytest.raises(SolveError, match="1 of 8 tasks were lost, 'task 6' among them: the worker is gone"),
        Records(tmp_path / "a.jsonl", {}) as records,
    ):
        run_tasks(square, TASKS, executor=One(0), records=records, retries=2)
    with Records(tmp_path / "a.jsonl", {}) as records:
        assert len(records.found) == 7
        assert run_tasks(square, TASKS, records=records) == SQUARES


@pytest.mark.slow
def test_processes_that_die_are_replaced(tmp_path):
    with LocalWorkers(2) as workers:
        tasks = {f"task {k}": (k, str(tmp_path)) for k in range(8)}
        assert run_tasks(die_once, tasks, executor=workers) == SQUARES
        assert (tmp_path / "3").read_text().startswith("xx")
        with pytest.raises(SolveError, match="1 of 1 tasks were lost"):
            run_tasks(die, {"task": (0,)}, executor=workers, retries=1)
        assert run_tasks(square, TASKS, executor=workers) == SQUARES


DASK = """
import os, signal, sys, tempfile, time
from pathlib import Path
from distributed import Client, LocalCluster
from kinegrad.motion.sweeps.records import Records, read_records
from kinegrad.motion.sweeps.tasks import run_tasks
from kinegrad.motion.sweeps.workers import connected

def work(k, folder):
    with open(Path(folder, "runs"), "a") as file:
        file.write(f"{k}\\n")
    first = not Path(folder, "go").exists()
    while first and k % 3 == 2 and not Path(folder, "go").exists():
        time.sleep(0.01)  # some tasks are in the middle of it when their worker is killed
    return {"square": k * k, "pid": os.getpid()}

if __name__ == "__main__":
    folder, killed = sys.argv[1], []
    def finished(done, total, last):
        if done == 4:
            killed.append(last["pid"])
            os.kill(last["pid"], signal.SIGKILL)
            Path(folder, "go").touch()
    options = {"n_workers": 3, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **options) as cluster, connected(cluster.scheduler_address) as client:
        tasks = {f"task {k}": (k, folder) for k in range(12)}
        with Records(Path(folder, "a.jsonl"), {}) as records:
            found = run_tasks(work, tasks, executor=client, records=records, finished=finished)
        lines = Path(folder, "a.jsonl").read_text().splitlines()
        print([found[f"task {k}"]["square"] for k in range(12)] == [k * k for k in range(12)])
        print(len(lines) - 1, len(read_records(Path(folder, "a.jsonl"))[1]), len(killed))
        os._exit(0 if sys.stdout.flush() is None else 1)  # a cluster takes a while to end
"""


@pytest.mark.slow
def test_a_dask_cluster_whose_worker_is_killed(tmp_path):
    """Real processes on loopback: nothing is lost, nothing is counted twice, though some tasks ran twice."""
    script = tmp_path / "script.py"  # processes import it
    script.write_text(DASK)
    runner = (
        f"import runpy, sys; sys.argv[1:] = [{str(tmp_path)!r}]; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    assert output(child(runner)) == "True\n12 12 1\n"


def test_wrong_executors():
    with pytest.raises(InputError, match=r"`executor` is 3; expected a concurrent.futures.Executor"):
        run_tasks(square, TASKS, executor=3)
    with pytest.raises(InputError, match="`count` is 0"):
        LocalWorkers(0)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there():
    with (
        pytest.raises(InputError, match=r"the scheduler at 'tcp://127.0.0.1:1' does not answer"),
        connected("tcp://127.0.0.1:1"),
    ):
        pass
    with pytest.raises(InputError, match="`address` is ''"), connected(""):
        pass
