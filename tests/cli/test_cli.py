"""The command line: what it prints, the files it writes, and how it ends."""

import os
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad import cli
from kinegrad.io import write_trajectory
from tests.kernels.child import child, ended

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


def test_info_shows_ranges_and_strengths():
    shown = " ".join(run("info", "human43").stdout.split())
    assert "right_knee 0° … 130° 168 N·m" in shown
    assert "limits of joints" in shown
    assert "limits of joints" not in run("info", "cart_pendulum").stdout
    assert "shoulder 10 N·m" in " ".join(run("info", "two_link").stdout.split())


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
    monkeypatch.setattr(cli.inverse_dynamics, "BLOCK", 3)
    monkeypatch.setattr(cli.inverse_dynamics.time, "perf_counter", lambda: float(next(clock)))
    result = run("inverse-dynamics", "two_link", "--trajectory", path, "--output", tmp_path / "tau.npz")
    assert result.exit_code == 0, result.stderr
    with np.load(tmp_path / "tau.npz") as file:
        np.testing.assert_array_equal(file["tau"], kg.inverse_dynamics(ARM, *qva))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--trajectory", "none.csv"], "none.csv: cannot be read"),
        (["--trajectory", "REACH", "--output", "x.txt"], "files of kind '.txt' are unknown"),
        (["--trajectory", "REACH", "--output", "REACH"], "is read, and would be written over"),
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


# --- the program itself -------------------------------------------------------------------------------------

PROGRAM = "import sys; sys.argv = ['kinegrad', *sys.argv[1:]]; from kinegrad.cli import main; main()"
C_LOCALE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def program(*arguments, **environment):
    return ended(child(PROGRAM, *arguments, **environment))


def test_the_program_itself_ends_with_2():
    code, _, err = program("info", "puma")
    assert code == 2
    assert "'puma560'" in err


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, C_LOCALE], ids=["ascii", "LC_ALL=C"])
@pytest.mark.parametrize("arguments", [["info", "human43"], ["--help"], ["inverse-dynamics", "--help"]])
def test_terminals_without_greek_letters(environment, arguments):
    code, out, err = program(*arguments, **environment)
    assert (code, err) == (0, "")
    assert out.isascii()
    if "info" in arguments:
        assert "parents Phi, first and last joints Psi" in out
        assert "`- 0-4  pelvis.tz ... pelvis.rz" in out


def test_errors_on_terminals_without_greek_letters():
    code, out, err = program("info", "Φ", PYTHONIOENCODING="ascii")
    assert (code, out) == (2, "")
    assert err.startswith("error: model 'Phi' does not exist")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_output_that_cannot_be_written_is_one_line():
    code = f"import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); {PROGRAM}"
    assert ended(child(code, "info", "human43")) == (
        1,
        "",
        "error: the output cannot be written: No space left on device\n",
    )


def test_nobody_listens_any_more():
    """As with ``kinegrad info human43 | head -1``: no word about it."""
    code = f"import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1); {PROGRAM}"
    assert ended(child(code, "info", "human43")) == (1, "", "")


@pytest.mark.parametrize("closed", [[1], [1, 2]])
def test_closed_output_is_no_error(closed):
    code = f"import os, sys; command = [sys.executable, '-c', {PROGRAM!r}, 'info', 'two_link']\n"
    code += f"for k in {closed}: os.close(k)\n"
    code += "os.execv(sys.executable, command)"
    assert ended(child(code)) == (0, "", "")


@pytest.mark.parametrize("path", ["", ".", "/", "..", "x/", "loop.csv", "folder.csv"])
def test_paths_that_are_no_files_are_one_line(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "folder.csv").mkdir()
    for options in (["--trajectory", path], ["--trajectory", "x.csv", "--output", path]):
        result = run("inverse-dynamics", "two_link", *options)
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("error: ")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder.csv", "loop.csv"]


def test_too_little_memory_is_one_line(reach, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError

    monkeypatch.setattr(kg, "inverse_dynamics", exhausted)
    result = run("inverse-dynamics", "two_link", "--trajectory", reach[0])
    assert (result.exit_code, result.stderr) == (2, "error: there is not enough memory for this\n")


def test_long_arguments_make_short_messages():
    assert len(run("info", "x" * 50_000).stderr) < 500


# --- measured positions -------------------------------------------------------------------------------------


def test_torques_from_measured_angles_alone(tmp_path):
    """What a biomechanist has: degrees, semicolons, another name of time, no speeds."""
    t = np.arange(201) / 100
    angles = np.degrees(np.outer(np.sin(3 * t), [0.5, 1]))
    rows = [";".join(f"{x:.4f}" for x in row) for row in np.c_[t, angles]]
    path = tmp_path / "reach.csv"
    path.write_text("\n".join(["Time;shoulder;elbow", *rows]))
    result = run("inverse-dynamics", "two_link", "--trajectory", path, "--units", "deg", "--lowpass", 10)
    assert result.exit_code == 0, result.stderr
    assert "zero-phase Butterworth low-pass of order 4, cut-off 10 Hz" in result.stdout
    assert "v, a: derivatives of the spline of degree 5" in result.stdout
    found = np.loadtxt(tmp_path / "reach.tau.csv", delimiter=",", skiprows=1)[:, 1:]
    w = np.array([0.5, 1.0])
    exact = kg.inverse_dynamics(
        ARM, np.outer(np.sin(3 * t), w), np.outer(3 * np.cos(3 * t), w), np.outer(-9 * np.sin(3 * t), w)
    )
    assert np.abs(found - exact)[20:-20].max() < 0.02 * np.abs(exact).max()
    plainly = run("inverse-dynamics", "two_link", "--trajectory", path, "--units", "deg")
    assert "through the positions as given, unfiltered" in plainly.stdout
    smooth = run("inverse-dynamics", "two_link", "--trajectory", path, "--units", "deg", "--smooth")
    assert "generalised cross-validation" in smooth.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lowpass", "99"), "`lowpass` is 99.0 Hz; expected less than"),
        (("--lowpass", "-1"), "`lowpass` is -1.0"),
        (("--lowpass", "4", "--smooth"), "both `lowpass` and `smoothing`"),
        (("--lowpass", "4", "--order", "3"), "`order` is 3"),
        (("--lowpass", "4", "--rate", "3"), "`rate` is 3.0, and .* has times"),
    ],
)
def test_options_of_filters_are_checked(reach, options, message):
    path, *_ = reach
    result = run("inverse-dynamics", "two_link", "--trajectory", path, *options)
    assert result.exit_code == 2
    assert re.search(message, result.stderr)


def test_info_says_what_coordinates_mean_and_ranges_in_degrees():
    text = run("info", "human43").stdout
    knee = next(line for line in text.splitlines() if line.startswith("right_knee") and "flexion" in line)
    assert knee.split() == ["right_knee", "flexion", "extension", "turns", "about", "−x", "0°", "…", "130°"]
    assert "slides along +z" in text


# --- files to try, loads, progress --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["walk.csv", "walk.npz", "walk.nc"])
def test_files_that_the_readme_names_can_be_made_and_used(tmp_path, name):
    made = run("sample-trajectory", tmp_path / name)
    assert made.exit_code == 0, made.stderr
    assert "synthetic, not measured" in made.stdout
    used = run("inverse-dynamics", "human43", "--trajectory", tmp_path / name)
    assert used.exit_code == 0, used.stderr


def test_a_measured_sample_needs_what_measurements_need(tmp_path):
    path = tmp_path / "walk.csv"
    assert "--units deg --lowpass 6" in run("sample-trajectory", path, "--measured").stdout
    result = run("inverse-dynamics", "human43", "--trajectory", path, "--units", "deg", "--lowpass", 6)
    assert result.exit_code == 0, result.stderr
    assert "filled by a cubic spline" in result.stdout
    assert "expected a .csv" in run("sample-trajectory", tmp_path / "walk.nc", "--measured").stderr


def test_a_mass_in_the_hand_is_accelerated_too(reach):
    """Not only its weight, as a force would be: with the mass attached to the link."""
    path, _, (q, v, a) = reach
    result = run("inverse-dynamics", "two_link", "--trajectory", path, "--load", "forearm=2kg")
    assert result.exit_code == 0, result.stderr
    found = np.loadtxt(path.with_name("reach.tau.csv"), delimiter=",", skiprows=1)[:, 1:]
    np.testing.assert_allclose(found, kg.inverse_dynamics(ARM.attach("forearm", 2.0), q, v, a), rtol=1e-12)
    at = run("inverse-dynamics", "two_link", "--trajectory", path, "--load", "forearm=500 g@0.1,0,0")
    assert at.exit_code == 0, at.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [("forearm", "expected LINK=MASS"), ("forearm=two", "expected LINK=MASS"), ("hand=2kg", "'hand' does not exist"),
     ("forearm=-1kg", "mass"), ("forearm=1kg@0,0", "expected LINK=MASS")],
)  # fmt: skip
def test_loads_that_cannot_be(reach, text, message):
    result = run("inverse-dynamics", "two_link", "--trajectory", reach[0], "--load", text)
    assert result.exit_code == 2
    assert message in result.stderr


def test_progress_in_a_log_is_a_line_for_each_stage(capsys):
    from kinegrad.cli.console import with_progress

    def work(show):
        for stage in ("chains", "pendulum"):
            for k in range(5):
                show(stage, k, 5)
        return "done"

    assert with_progress(work) == "done"
    assert capsys.readouterr().err == "chains: 0 of 5\npendulum: 0 of 5\n"


def test_degrees_that_nobody_spoke_of_are_a_line_on_stderr(tmp_path):
    (tmp_path / "x.csv").write_text("t,shoulder,elbow\n" + "".join(f"0.{k},0,{k * 10}\n" for k in range(10)))
    code, _, complaint = ended(child(PROGRAM, "inverse-dynamics", "two_link", "--trajectory", tmp_path / "x.csv"))
    assert code == 0, complaint
    assert "warning: " in complaint
    assert "'elbow' reaches 90 rad, which looks like degrees" in complaint
    assert "UnitsWarning" not in complaint


def test_motion_files_of_opensim_give_torques(tmp_path):
    t = np.arange(20) / 10
    table = kg.io.StorageTable(t, ("shoulder", "elbow"), np.degrees([np.sin(t), t]).T, in_degrees=True)
    kg.io.write_storage(tmp_path / "x.mot", table)
    result = run("inverse-dynamics", "two_link", "--trajectory", tmp_path / "x.mot")
    assert result.exit_code == 0, result.output
    found = np.loadtxt(tmp_path / "x.tau.csv", delimiter=",", skiprows=1)[:, 1:]
    motion = kg.recordings.read_motion(tmp_path / "x.mot", ARM)
    np.testing.assert_allclose(found, kg.inverse_dynamics(ARM, motion.q, motion.v, motion.a), rtol=1e-12)
