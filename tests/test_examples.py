"""The scripts in examples/ run as they stand, and find what they say."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import kinegrad as kg

FOLDER = Path(__file__).parents[1] / "examples"


def load(name):
    """The script as a module, not run."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_examples_are_tested_and_listed():
    scripts = sorted(path.name for path in FOLDER.glob("*.py"))
    listed = sorted(re.findall(r"python examples/(\w+\.py)", (FOLDER / "README.md").read_text(encoding="utf-8")))
    assert scripts == listed == [
        "arm_design.py", "pendulum_return.py", "predict_arm.py", "predict_human.py", "predict_lift.py", "standing.py",
        "walking_torques.py",
    ]  # fmt: skip


def test_arm_design(tmp_path, capsys):
    example = load("arm_design")
    deviation, best = example.main(str(tmp_path))
    assert deviation < 1e-11  # sixth-order differences with h = 0.2 %: their own error is about 1e-13
    assert best.success
    assert best.stationarity < 1e-4
    start = example.arm()
    assert best.value < 0.92 * example.effort_of(start.model)(start)[0]
    assert best.values[3:].sum() == pytest.approx(3.7, abs=1e-9)
    reach = example.hand_at_the_end(start)[0]
    assert (example.hand_at_the_end(best.design)[0] > reach - 1e-7).all()
    assert (np.abs(best.values / start.values - 1) < 0.2 + 1e-12).all()
    assert (tmp_path / "arm_design.png").stat().st_size > 20_000
    printed = capsys.readouterr().out
    for name in start.names:
        assert printed.count(name) == 2  # in the table of gradients, and in that of changes


@pytest.mark.slow
def test_no_arm_beside_the_best_is_better():
    """A linear program over all small changes that keep bounds, reach and mass: none makes the effort less."""
    example = load("arm_design")
    start = example.arm()
    best = example.best_arm(example.effort_of(start.model), start)
    reach, mass = example.hand_at_the_end(best.design)[1], [example.mass_of_the_arm(best.design)[1]]
    change = best.values / start.values - 1
    ways = [(0.0 if x < -0.2 + 1e-6 else -1.0, 0.0 if x > 0.2 - 1e-6 else 1.0) for x in change]
    assert (0.0, 1.0) in ways  # some bounds hold
    least = linprog(best.gradient, A_ub=-reach, b_ub=[0, 0], A_eq=mass, b_eq=[0], bounds=ways)
    assert least.success
    assert least.fun > -1e-6 * np.abs(best.gradient).max()
    without = linprog(best.gradient, A_eq=mass, b_eq=[0], bounds=ways)
    assert without.fun < -1.0  # if the hand did not have to reach the shelf, there would be


def test_pendulum_return(capsys):
    away = load("pendulum_return").main()
    assert away < 1e-6  # √(energy left), 1e-8, and the error of the two integrators
    assert "iteration" in capsys.readouterr().out


def test_standing(capsys):
    """Feet carry the weight, whatever the posture; symmetric feet carry half each; those who let go weigh less."""
    example = load("standing")
    carried = example.main()
    weight = 77.5 * 9.81
    np.testing.assert_allclose(carried["both feet"], weight / 2, rtol=1e-10)
    np.testing.assert_allclose(carried["a squat"], weight / 2, rtol=1e-10)
    np.testing.assert_allclose(carried["one foot"], weight, rtol=1e-10)
    assert 0 < carried["letting go"].sum() < weight
    assert "right foot" in capsys.readouterr().out


def test_a_squat_moves_the_legs_alone():
    example = load("standing")
    human = kg.samples.human43()
    feet = example.on_feet(human, "left", "right")
    q = example.squat(human, feet, 0.15)
    assert np.abs(feet.error(q)).max() < 1e-12
    assert q[human.joint_index("pelvis.tz")] == -0.15
    assert 0.5 < q[human.joint_index("right_knee")] < 2.0
    assert not q[human.joint_index("lumbar") :].any()


def test_walking_torques(tmp_path, capsys):
    loaded, empty = load("walking_torques").main(str(tmp_path))
    assert loaded > empty + 2 * 9.81 * 0.5 * np.sin(np.radians(20))  # more than the weight alone at half a metre
    pictures = {path.name: path.read_text() for path in tmp_path.iterdir()}
    name = "human43_walk_torques_and_derivatives"
    assert set(pictures) == {f"{name}{shape}{page}.svg" for shape in ("", "_upright") for page in ("", "_dark")}
    assert all(len(text) > 10_000 for text in pictures.values())
    assert "#000000" not in pictures[f"{name}_dark.svg"]


def test_predict_arm(capsys):
    """Without gravity, time scales as the inverse root of torque: τ ∝ 1/T² along one path."""
    times = load("predict_arm").main()
    assert times[10.0] == pytest.approx(0.39315, abs=1e-4)
    for torque, time in times.items():
        assert time == pytest.approx(times[10.0] * (10.0 / torque) ** 0.5, rel=1e-4)
    assert "T = 0.3931" in capsys.readouterr().out


@pytest.mark.slow
def test_predict_lift(tmp_path, capsys):
    solution = load("predict_lift").main(5.0, str(tmp_path))
    assert solution.success, solution.message
    assert (tmp_path / "lift.csv").exists()
    assert "up with 5 kg" in capsys.readouterr().out


@pytest.mark.slow
def test_predict_human(capsys):
    solution = load("predict_human").main("human43-lift", segments=10)
    assert solution.nonlinear.success, solution.message
    assert "A human lifts a box" in capsys.readouterr().out
