"""The command line: what it prints, the files it writes, and how it ends."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad import cli
from kinegrad.io import write_trajectory

ARM = kg.samples.two_link()


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def reach(tmp_path):
    """A file with a motion of the two-link arm, and that motion."""
    t = np.linspace(0, 1, 20)
    qva = np.random.default_rng(0).normal(size=(3, 20, 2))
    write_trajectory(tmp_path / "reach.csv", ARM, t, *qva)
    return tmp_path / "reach.csv", t, qva


# --- info ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kg.samples.SAMPLES)
def test_info_shows_every_joint_within_100_columns(name):
    result = run("info", name)
    model = kg.samples.SAMPLES[name]()
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    for word in (*model.joint_names, *model.link_names, f"{model.total_mass:g} kg", "Φ", "Ψ"):
        assert word in result.stdout
    assert model.topology.draw_text() in result.stdout


def test_info_counts_what_each_description_stores():
    lines = run("info", "human43").stdout.splitlines()
    ends = [line.split()[-1] for line in lines if "matri" in line]
    assert ends == ["28", "86", "1806", "1849"]  # 4·7, 2·43, 43·42, 43²: [zhakatayev2023] section 2.2


def test_an_unknown_model_is_one_line_with_the_closest_name():
    result = run("info", "humn43")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "error: model 'humn43' does not exist; did you mean 'human43'?\n"
    assert "expected one of human43, " in run("info", "?").stderr


# --- inverse-dynamics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["spatial", "lagrange"])
def test_torques_are_those_of_inverse_dynamics(reach, method):
    path, t, qva = reach
    result = run("inverse-dynamics", "two_link", "--trajectory", path, "--method", method, "--threads", 1)
    assert result.exit_code == 0, result.stderr
    written = np.loadtxt(path.with_name("reach.tau.csv"), delimiter=",", skiprows=1)
    tau = kg.inverse_dynamics(ARM, *qva, method=method)
    np.testing.assert_array_equal(written, np.c_[t, tau])
    for i, name in enumerate(ARM.joint_names):
        assert [name, f"{np.abs(tau[:, i]).max():.4g}"] in [line.split()[:2] for line in result.stdout.splitlines()]


def test_blocks_and_their_progress_bar_change_nothing(reach, monkeypatch, tmp_path):
    path, _, qva = reach
    clock = iter(range(10_000))  # a second each time it is looked at
    monkeypatch.setattr(cli, "BLOCK", 3)
    monkeypatch.setattr(cli.time, "perf_counter", lambda: float(next(clock)))
    result = run("inverse-dynamics", "two_link", "--trajectory", path, "--output", tmp_path / "tau.npz")
    assert result.exit_code == 0, result.stderr
    with np.load(tmp_path / "tau.npz") as file:
        np.testing.assert_array_equal(file["tau"], kg.inverse_dynamics(ARM, *qva))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trajectory", "none.csv"], "none.csv: cannot be read"),
        (["--trajectory", "REACH", "--output", "x.txt"], "files of kind '.txt' are unknown"),
        (["--trajectory", "REACH", "--output", "REACH"], "the trajectory itself"),
        (["--trajectory", "REACH", "--threads", "0"], "`threads` is 0"),
        (["--trajectory", "REACH", "--method", "magic"], "magic"),
        ([], "--trajectory"),
    ],
)
def test_user_errors_end_with_2_and_write_nothing(reach, options, message):
    path, *_ = reach
    result = run("inverse-dynamics", "two_link", *(str(path) if x == "REACH" else x for x in options))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(path.parent.iterdir()) == [path]


def test_ctrl_c_ends_with_130_and_writes_nothing(reach, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(kg, "inverse_dynamics", interrupt)
    path, *_ = reach
    result = run("inverse-dynamics", "two_link", "--trajectory", path)
    assert result.exit_code == 130
    assert list(path.parent.iterdir()) == [path]


def test_markup_in_names_is_text():
    assert "[/bold]" in run("info", "[/bold]").stderr


# --- demo, version, help ------------------------------------------------------------------------------------


def test_demo_saves_its_figure(tmp_path):
    result = run("demo", "--out", tmp_path / "new" / "out")
    assert result.exit_code == 0, result.stderr
    path = tmp_path / "new" / "out" / "human43_torques.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in result.stdout
    (tmp_path / "file").touch()
    assert run("demo", "--out", tmp_path / "file").exit_code == 2


def test_version_and_help():
    assert run("--version").stdout == f"kinegrad {kg.__version__}\n"
    for command in ("info", "inverse-dynamics", "demo"):
        assert command in run("--help").stdout
        assert run(command, "--help").exit_code == 0


def test_the_program_itself_ends_with_2():
    code = "import sys; sys.argv = ['kinegrad', 'info', 'puma']; from kinegrad.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "'puma560'" in result.stderr
