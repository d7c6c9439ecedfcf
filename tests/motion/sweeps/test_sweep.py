"""Sweeps: all combinations, in files and out of them, on this machine's processes and from the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kinegrad import InputError
from kinegrad.cli.program import app
from kinegrad.errors import KinegradError
from kinegrad.motion.sweeps import read_records, sweep
from kinegrad.motion.sweeps.sweep_file import read_sweep
from kinegrad.motion.sweeps.workers import LocalWorkers
from tests.kernels.child import child, output
from tests.motion.sweeps.problems import not_a_problem, reach


def test_all_combinations(tmp_path):
    found = sweep(reach, {"segments": [6, 8], "elbow": [-1.0, -0.5]}, starts=2, spread=0.1, record=tmp_path / "a.jsonl")
    assert found.names == ("segments", "elbow")
    assert [tuple(point.parameters.values()) for point in found.points] == [(6, -1.0), (6, -0.5), (8, -1.0), (8, -0.5)]
    assert all(len(point.starts) == 2 and point.success for point in found.points)
    for point in found.points:
        alone = reach(**point.parameters).solve()
        assert point.optima[0].duration == pytest.approx(alone.duration, abs=1e-5)
    work, records = read_records(tmp_path / "a.jsonl")
    assert len(records) == 8
    assert work["problem"] == "tests.motion.sweeps.problems.reach"
    more = sweep(
        reach, {"segments": [6, 8], "elbow": [-1.0, -0.5, 0.0]}, starts=2, spread=0.1, record=tmp_path / "a.jsonl"
    )
    assert more.points[:2] == found.points[:2]
    assert len(read_records(tmp_path / "a.jsonl")[1]) == 12


def test_problems_that_cannot_be_made_are_results():
    found = sweep(not_a_problem, {"elbow": [1.0, 2.0]})
    assert [point.starts[0].message for point in found.points] == ["no arm for 1.0", "no arm for 2.0"]
    assert found.failures == found.points


@pytest.mark.slow
def test_processes(tmp_path):
    with LocalWorkers(2) as workers:
        there = sweep(reach, {"elbow": [-1.0, -0.5]}, starts=2, executor=workers)
    here = sweep(reach, {"elbow": [-1.0, -0.5]}, starts=2)
    for one, other in zip(here.points, there.points, strict=True):
        np.testing.assert_array_equal(one.optima[0].x, other.optima[0].x)  # the same bits


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"make": 3}, "`make` is 3"),
        ({"vary": {}}, r"`vary` is \{\}"),
        ({"vary": {"elbow": []}}, r"`vary\['elbow'\]` is \[\]"),
        ({"vary": {"elbow": "abc"}}, "expected a list of values"),
        ({"vary": {"knee": [1]}}, "the problem has no parameter 'knee'; expected one of elbow, segments"),
        ({"fixed": {"elbow": 1}}, "'elbow' is in `vary` and in `fixed`"),
        ({"fixed": {"knee": 1}}, "the problem has no parameter 'knee'"),
        ({"starts": 0}, "`starts` is 0"),
        ({"starts": 10**6}, "expected at most 100000 tasks"),
        ({"vary": {"elbow": [1.0, 1.0]}}, "the same combination twice"),
    ],
)
def test_wrong_arguments(arguments, text):
    with pytest.raises(InputError, match=text):
        sweep(**{"make": reach, "vary": {"elbow": [1.0]}} | arguments)


FILE = """
problem = "tests.motion.sweeps.problems:reach"
starts = 2
seed = 3
spread = 0.1

[vary]
elbow = [-1.0, -0.5]

[fixed]
segments = 6

[solve]
tolerance = 1e-6
max_iterations = 200
"""


def test_a_file(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(FILE)
    plan = read_sweep(path)
    assert plan.vary == {"elbow": (-1.0, -0.5)}
    assert (plan.starts, plan.seed, plan.spread, plan.stretch) == (2, 3, 0.1, 3.0)
    assert plan.options == {"tolerance": 1e-6, "max_iterations": 200}
    path.write_text('problem = "a"\n[vary]\nx = {from = 1, to = 100, count = 3, spacing = "logarithmic"}\n'
                    'y = {from = 0, to = 1, count = 5}\n')  # fmt: skip
    plan = read_sweep(path)
    assert plan.vary["x"] == pytest.approx((1, 10, 100))
    assert plan.vary["y"] == (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("problem", "problems", "'problem' is missing"),
        ("starts = 2", "starts = 0", "line 3: starts: is 0; expected a whole number of at least 1"),
        ("starts = 2", "starts = 2.5", "is 2.5; expected a whole number"),
        ("starts = 2", "strats = 2", "strats: is unknown; did you mean 'starts'?"),
        ("spread = 0.1", "spread = -1", "spread: is -1; expected a positive number"),
        ("spread = 0.1", 'spread = "a"', "spread: is 'a'; expected a number"),
        ("spread = 0.1", "stretch = 0.5", "stretch: is 0.5; expected a number of at least 1"),
        ("[vary]", "[vry]", "'vary' is missing"),
        ("elbow = [-1.0, -0.5]", "", "vary: is empty"),
        ("elbow = [-1.0, -0.5]", "elbow = []", r"is \[\]; expected a list of values"),
        ("elbow = [-1.0, -0.5]", "elbow = 3", "is 3; expected a list of values"),
        ("elbow = [-1.0, -0.5]", "elbow = [1.0, 1.0]", "has 1.0 twice"),
        ("elbow = [-1.0, -0.5]", "elbow = [nan]", "has nan at 0; expected finite numbers"),
        ("elbow = [-1.0, -0.5]", "elbow = {from = 1, to = 1, count = 3}", "goes from 1 to 1"),
        ("elbow = [-1.0, -0.5]", "elbow = {from = 1, to = 2}", "'count' is missing"),
        ("elbow = [-1.0, -0.5]", "elbow = {from = 1, to = 2, count = 1}", "count: is 1; expected a whole number"),
        ("elbow = [-1.0, -0.5]", "elbow = {from = 1, to = 2, count = 3, step = 1}", "step: is unknown"),
        ("elbow = [-1.0, -0.5]", 'elbow = {from = -1, to = 2, count = 3, spacing = "logarithmic"}', "positive numbers"),
        ("segments = 6", "elbow = 6", "fixed, elbow: is in .vary., too"),
        ("tolerance = 1e-6", "tolerance = 3", "tolerance: is 3; expected a positive number below 1"),
        ("tolerance = 1e-6", 'solver = "snopt"', "solver: is 'snopt'; did you mean 'ipopt'"),
        ("tolerance = 1e-6", "tolerence = 1", "tolerence: is unknown; did you mean 'tolerance'?"),
    ],
)
def test_files_are_read_strictly(tmp_path, old, new, text):
    path = tmp_path / "a.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(KinegradError, match=text):
        read_sweep(path)


def test_the_command(tmp_path, monkeypatch):
    """Its table, its file, and how it goes on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(FILE)
    run = CliRunner().invoke(app, ["sweep", "a.toml"])
    assert run.exit_code == 0, run.output
    assert "results: a.jsonl" in run.output
    assert "2 of 2" in run.output
    assert len(read_records("a.jsonl")[1]) == 4
    again = CliRunner().invoke(app, ["sweep", "a.toml"])
    assert again.exit_code == 0
    (tmp_path / "a.toml").write_text(
        FILE.replace("problems:reach", "problems:not_a_problem").replace("segments = 6", "")
    )
    run = CliRunner().invoke(app, ["sweep", "a.toml", "--record", "b.jsonl"])
    assert run.exit_code == 1
    assert "no arm for -1.0" in run.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["none.toml"], "cannot be read"),
        (["a.toml", "--workers", "-1"], "--workers is -1"),
        (["a.toml", "--workers", "1", "--scheduler", "tcp://127.0.0.1:1"], "both given"),
    ],
)
def test_wrong_commands(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(FILE)
    run = CliRunner().invoke(app, ["sweep", *arguments])
    assert run.exit_code == 2
    assert text in " ".join(run.output.split())


def test_problems_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases = {"nothing:here": "cannot be imported", "math:pi": "expected a function", "kinegrad:nope": "no attribute"}
    for problem, text in cases.items():
        (tmp_path / "a.toml").write_text(FILE.replace("tests.motion.sweeps.problems:reach", problem))
        run = CliRunner().invoke(app, ["sweep", "a.toml"])
        assert run.exit_code == 2
        assert text in " ".join(run.output.split())


SCHEDULER = """
import os, signal, subprocess, sys, time
from pathlib import Path
from distributed import LocalCluster

if __name__ == "__main__":
    os.chdir(sys.argv[1])
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **options) as cluster:
        command = [sys.executable, "-m", "kinegrad", "sweep", "a.toml", "--scheduler", cluster.scheduler_address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:  # one for each result
                if line.startswith("sweep: 3 of"):
                    worker = cluster.workers[0].process.process._process  # one of the two, whatever it does
                    os.kill(worker.pid, signal.SIGKILL)
                    break
            out, _ = process.communicate()
        print(out, process.returncode, flush=True)
        os._exit(0)  # a cluster takes a while to end
"""


@pytest.mark.slow
def test_the_command_on_a_cluster_whose_worker_is_killed(tmp_path):
    """A real scheduler on loopback: every combination has all its starts, once each."""
    (tmp_path / "a.toml").write_text(FILE.replace("starts = 2", "starts = 5"))
    script = tmp_path / "script.py"
    script.write_text(SCHEDULER)
    runner = (
        f"import runpy, sys; sys.argv[1:] = [{str(tmp_path)!r}]; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    printed = output(child(runner))
    assert printed.count("5 of 5") == 2
    assert printed.split()[-1] == "0"
    _, found = read_records(tmp_path / "a.jsonl")
    assert sorted(found) == sorted(f"elbow = {elbow}, start {k}" for elbow in (-1.0, -0.5) for k in range(5))
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 11


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="groups of processes are interrupted in another way")
def test_ctrl_c_ends_the_command_and_its_processes(tmp_path):
    """A terminal sends it to all of them: two lines, no traceback of a worker, and the results so far are there."""
    (tmp_path / "a.toml").write_text(FILE.replace("starts = 2", "starts = 400"))
    command = [sys.executable, "-m", "kinegrad", "sweep", str(tmp_path / "a.toml"), "--workers", "2"]
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]))
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, **how) as process:
        for line in process.stderr:
            if line.startswith("sweep: 3 of"):
                os.killpg(process.pid, signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    last = [line for line in err.splitlines() if not line.startswith("sweep: ")]
    assert last == ["results so far: a.jsonl; the same command continues", "interrupted"], out + err
    assert process.returncode == 130
    _, found = read_records(tmp_path / "a.jsonl")
    assert 3 <= len(found) < 800
    assert {each["status"] for each in found.values()} == {"optimal"}


def test_a_problem_that_is_made_in_another_way_is_another(tmp_path, monkeypatch):
    """Its name and its parameters are the same; what `make` makes of them is compared for each combination."""
    from tests.motion.sweeps import problems

    record = tmp_path / "a.jsonl"
    given = {"make": reach, "vary": {"elbow": [-1.0, -0.5]}, "fixed": {"segments": 4}, "record": record}
    first = sweep(**given)
    assert sweep(**given) == first
    content = record.read_bytes()
    own = problems.samples.two_link
    monkeypatch.setattr(problems.samples, "two_link", lambda **_: own(gravity=(0, -1.0, 0)))
    with pytest.raises(
        InputError,
        match=r"for 'elbow = -1.0, start 0' than `make` makes now \(what differs: model, values\)",
    ):
        sweep(**given)
    monkeypatch.undo()
    for other, text in (({"fixed": {"segments": 5}}, "its 'fixed.segments' is '4'; expected '5'"),
                        ({"tolerance": 1e-3}, "its 'options.tolerance' is '1e-06'; expected '0.001'"),
                        ({"guess": {"noise": 0.1}}, "guess.noise"),
                        ({"seed": 2}, "its 'seed' is 0; expected 2")):  # fmt: skip
        with pytest.raises(InputError, match=text):
            sweep(**given | other)
    assert record.read_bytes() == content


WRONG = {"still": True}


def sometimes(elbow):
    if WRONG["still"]:
        raise ValueError("not yet")
    return reach(elbow, segments=4)


def test_a_combination_that_could_not_be_made_is_not_taken_for_one_that_can(tmp_path, monkeypatch):
    given = {"make": sometimes, "vary": {"elbow": [-1.0]}, "record": tmp_path / "a.jsonl"}
    first = sweep(**given)
    assert first.points[0].starts[0].message == "not yet"
    assert sweep(**given) == first
    monkeypatch.setitem(WRONG, "still", False)
    with pytest.raises(InputError, match=r"of another problem for 'elbow = -1.0, start 0' .* differs: model, phases, "):
        sweep(**given)
