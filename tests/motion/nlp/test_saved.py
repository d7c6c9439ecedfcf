"""Solutions in files: equal when they come back, refused when they are damaged, continued after a crash."""

import os
import signal

import numpy as np
import pytest

from kinegrad import InputError
from kinegrad.motion.nlp import load_solution, save_solution, solve
from kinegrad.motion.nlp import saved as module
from tests.kernels.child import child, ended
from tests.motion.nlp.programs import hs


def test_there_and_back(tmp_path):
    program, x0, *_ = hs(71)
    for keep in (False, True):
        found = solve(program, x0, keep_iterates=keep)
        save_solution(found, tmp_path / "a.npz")
        again = load_solution(tmp_path / "a.npz")
        assert again == found
        assert again.seconds == found.seconds
        assert solve(program, warm_start=again).success


def test_a_checkpoint_is_continued(tmp_path, monkeypatch):
    """Interrupted at its tenth iteration, a solve goes on where it was: history and counters, too."""
    monkeypatch.setattr(module, "EVERY", 0.0)
    program, x0, f, _ = hs(38)
    path = tmp_path / "a.npz"

    def stop(iterate):
        if iterate.iteration == 10:
            os.kill(os.getpid(), signal.SIGINT)

    first = solve(program, x0, progress=stop, checkpoint=path)
    assert first.status == "interrupted"
    assert load_solution(path) == first
    second = solve(program, None, checkpoint=path)
    assert second.success
    assert second.f == pytest.approx(f, abs=1e-6)
    assert second.history[: len(first.history)] == first.history
    assert second.iterations > first.iterations
    assert second.evaluations.gradient > first.evaluations.gradient
    assert second.seconds > first.seconds
    program.calls.clear()
    third = solve(program, x0, checkpoint=path)
    assert third == second  # it has ended
    assert len(program.calls) <= 10  # the point is judged again, nothing is solved


def test_what_is_optimal_loosely_is_continued_to_a_sharper_tolerance(tmp_path):
    program, x0, *_ = hs(71)
    loose = solve(program, x0, checkpoint=tmp_path / "a.npz", tolerance=1e-2)
    sharp = solve(program, x0, checkpoint=tmp_path / "a.npz", tolerance=1e-8)
    assert loose.success
    assert sharp.success
    assert sharp.optimality < 1e-7
    assert sharp.iterations > loose.iterations


def test_a_crash_leaves_the_last_iterate(tmp_path):
    """The process is killed within an evaluation; what it had written is whole, and is continued."""
    script = """
import os, signal, sys
from kinegrad.motion.nlp import saved, solve
from tests.motion.nlp.programs import hs
saved.EVERY = 0.0
program, x0, *_ = hs(38)
own, calls = program.gradient, []
def gradient(x):
    calls.append(x)
    if len(calls) == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return own(x)
program.gradient = gradient
solve(program, x0, checkpoint=sys.argv[1])
"""
    path = tmp_path / "a.npz"
    code, _, error = ended(child(script, path))
    assert code == -signal.SIGKILL, error
    found = load_solution(path)
    assert (found.status, found.message) == ("interrupted", "saved during the solve")
    assert len(found.history) >= 9
    program, x0, f, _ = hs(38)
    again = solve(program, x0, checkpoint=path)
    assert again.success
    assert again.f == pytest.approx(f, abs=1e-6)
    assert again.history[: len(found.history)] == found.history


def test_files_of_other_programs_are_refused(tmp_path):
    program, x0, *_ = hs(71)
    solve(program, x0, checkpoint=tmp_path / "a.npz")
    other, y0, *_ = hs(43)
    with pytest.raises(InputError, match="has 4 variables and 2 rows; the program has 4 and 3: it is of another"):
        solve(other, y0, checkpoint=tmp_path / "a.npz")
    own = program.objective
    program.objective = lambda x: own(x) + 1e-3
    with pytest.raises(InputError, match="whose objective or constraints have other values at the saved point"):
        solve(program, x0, checkpoint=tmp_path / "a.npz")


def test_damaged_files_are_refused_by_name(tmp_path):
    """Cut or flipped anywhere, a file is refused, or is read as what it was."""
    program, x0, *_ = hs(71)
    found, path = solve(program, x0), tmp_path / "a.npz"
    save_solution(found, path)
    whole, random, texts = path.read_bytes(), np.random.default_rng(1), []
    for _ in range(60):
        damaged = bytearray(whole)
        if random.random() < 0.5:
            damaged = damaged[: random.integers(len(whole))]
        else:
            damaged[random.integers(len(whole))] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            assert load_solution(path) == found
        except InputError as refused:
            texts.append(str(refused))
    assert len(texts) > 30
    assert all(str(path) in text for text in texts)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": np.zeros(3)}, "array 'x_multipliers' has shape"),
        ({"x": np.full(4, np.nan)}, "array 'x' has numbers that are not finite"),
        ({"g": np.zeros(2, dtype=int)}, "array 'g' is int64"),
        ({"extra": np.zeros(2)}, "has arrays"),
        ({"text": np.frombuffer(b"[]", dtype=np.uint8)}, "is not of the format"),
        ({"text": np.frombuffer(b'{"format"', dtype=np.uint8)}, "is not of the format"),
    ],
)
def test_contents_that_cannot_be(tmp_path, change, text):
    program, x0, *_ = hs(71)
    path = tmp_path / "a.npz"
    save_solution(solve(program, x0), path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **arrays | change)
    with pytest.raises(InputError, match=text):
        load_solution(path)


def test_paths(tmp_path):
    program, x0, *_ = hs(71)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_solution(tmp_path / "none.npz")
    with pytest.raises(InputError, match="is a folder; expected a regular file"):
        load_solution(tmp_path)
    with pytest.raises(InputError, match="`path` is a NoneType"):
        load_solution(None)
    with pytest.raises(InputError, match="and there is no folder"):
        solve(program, x0, checkpoint=tmp_path / "none" / "a.npz")
    with pytest.raises(InputError, match="`solution` is a int"):
        save_solution(3, tmp_path / "a.npz")


def test_a_motion_problem_is_continued(tmp_path):
    """The same through MotionProblem.solve, also where segments are refined: each program has a file of its own."""
    from tests.motion.sweeps.problems import reach

    path = tmp_path / "reach.npz"
    first = reach(segments=4).solve(checkpoint=path, max_iterations=3)
    assert first.nonlinear.status == "iteration-limit"
    second = reach(segments=4).solve(checkpoint=path, refine=True)
    assert second.success
    assert sorted(each.name for each in tmp_path.iterdir()) == ["reach.npz", "reach.refined1.npz"]
    third = reach(segments=4).solve(checkpoint=path, refine=True)
    assert third.nonlinear == second.nonlinear
    with pytest.raises(InputError, match="`checkpoint` is a int"):
        reach().solve(checkpoint=3)


def test_a_disk_that_is_full_costs_no_solution(tmp_path, monkeypatch):
    program, x0, *_ = hs(71)

    def full(path, packed):
        raise InputError(f"{path}: cannot be written: No space left on device")

    monkeypatch.setattr(module, "EVERY", 0.0)
    monkeypatch.setattr(module, "_write", full)
    with pytest.warns(RuntimeWarning, match="the solution is not in its checkpoint: .*No space left"):
        found = solve(program, x0, checkpoint=tmp_path / "a.npz")
    assert found.success


def arm(tau=100.0, duration=(0.1, 2.0), **changes):
    from kinegrad import samples
    from kinegrad.motion.problem import Boundary, Limits, MotionProblem, Phase

    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    phase = Phase(duration=duration, segments=4)
    return MotionProblem(samples.two_link(gravity=(0, 0, 0)), phase, [*ends, Limits(tau=tau)], **changes)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"tau": 5.0}, r"its 'requirements\[2\].tau' is '100'; expected '5', or a new file"),
        ({"tau": 1000.0}, r"its 'requirements\[2\].tau' is '100'; expected '1000', or a new file"),
        ({"duration": (0.1, 1.9)}, r"its 'phases\[0\].duration' is '\[0.1, 2\]'; expected '\[0.1, 1.9\]'"),
    ],
)
def test_bounds_are_part_of_a_problem(tmp_path, other, text):
    """Where f and g are the same functions, and only their bounds differ."""
    path = tmp_path / "a.npz"
    found = arm().solve(checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(InputError, match=text):
        arm(**other).solve(checkpoint=path)
    assert path.read_bytes() == content
    assert arm().solve(checkpoint=path, tolerance=1e-5).nonlinear == found.nonlinear


def test_a_solve_from_another_guess_is_another_solve(tmp_path):
    """It may lead to another optimum; without a guess, the file says where it began."""
    path, problem = tmp_path / "a.npz", arm()
    guess = problem.guess(durations=0.5)
    first = problem.solve(guess, checkpoint=path, max_iterations=3)
    with pytest.raises(InputError, match=r"from another guess: variable .* of `x0` is"):
        problem.solve(problem.guess(noise=0.5), checkpoint=path)
    second = problem.solve(checkpoint=path)
    assert second.nonlinear.success
    assert second.nonlinear.history[: len(first.nonlinear.history)] == first.nonlinear.history
    assert problem.solve(guess, checkpoint=path).nonlinear == second.nonlinear


def test_the_scale_of_an_objective_may_change_on_the_way(tmp_path):
    """The second solve begins where the first ended, not at the guess that the file began with."""
    from kinegrad.motion.problem import Effort

    path, problem = tmp_path / "a.npz", arm(objective=Effort(1e12))
    found = problem.solve(checkpoint=path)
    assert found.success
    assert problem.solve(checkpoint=path).nonlinear == found.nonlinear


def test_files_that_are_no_checkpoints_are_not_replaced(tmp_path):
    program, x0, *_ = hs(71)
    path = tmp_path / "a.npz"
    save_solution(solve(program, x0), path)
    for content, text in ((path.read_bytes(), "that save_solution wrote"), (b"thesis", "not a readable NPZ archive")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=text):
            solve(program, x0, checkpoint=path)
        assert path.read_bytes() == content
    path.with_suffix(".refined1.npz").write_bytes(b"thesis")
    path.unlink()
    with pytest.raises(InputError, match=r"a.refined1.npz: is not a readable NPZ archive"):
        arm().solve(checkpoint=path, refine=True)
    assert not path.exists()  # before the solve
