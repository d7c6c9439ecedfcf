"""Commands that take a file in the place of a sample's name."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io import read_trajectory, write_trajectory
from tests.cli.test_cli import run
from tests.io.urdf.test_refusals import ARM, LIMIT, TWO, joint, link, robot


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(robot(*TWO, joint("elbow", "base", "upper", inside=LIMIT + '<dynamics friction="1"/>')))
    return path


def test_info_of_a_file_shows_what_is_left_out(arm):
    result = run("info", arm)
    assert result.exit_code == 0
    for word in ("arm", "elbow", "upper", "URDF file, 2 parts not in the model", "joint friction", "yes"):
        assert word in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_info_of_constraints_and_loads(tmp_path):
    two_link = kg.samples.two_link()
    rod = kg.Distance("forearm", other_point=[0.8, 0.3, 0], length=0.3, name="rod")
    loads = kg.Loads(force={"forearm": [0, -10, 0]})
    kg.save(two_link, tmp_path / "a.toml", constraints=[rod], loads=loads, design=["forearm.mass"])
    result = run("info", tmp_path / "a.toml")
    assert result.exit_code == 0
    for word in (
        "constraints, beside the model",
        "rod",
        "loads, beside",
        "design, beside",
        "all of it is in the model",
    ):
        assert word in result.stdout


def test_options_of_files(arm):
    assert "7 degrees of freedom" in run("info", arm, "--root", "free", "--quaternion").stdout
    result = run("info", arm, "--root", "floating")
    assert result.exit_code == 2
    assert "`root` is 'floating'; expected 'fixed' or 'free'" in result.stderr
    assert "'root' is an option of files; 'two_link' is a sample" in run("info", "two_link", "--root", "free").stderr
    arm.write_text(ARM.replace('izz="1"', 'izz="3"'))
    assert "violate the triangle inequality" in run("info", arm).stderr
    assert "or use --project-inertia" in run("info", arm).stderr
    assert "or use kinegrad convert --project-inertia" in run("view", arm, "--png", "x.png").stderr
    assert run("info", arm, "--project-inertia").exit_code == 0
    arm.write_text(robot(link("base"), link("upper", ""), joint("a", "base", "upper")))
    assert "moves and has no mass" in run("info", arm, "--strict").stderr
    assert "or use --massless" in run("info", arm, "--strict").stderr
    assert run("info", arm, "--massless", "--strict").exit_code == 0
    assert "or --root free" in run("info", fixed(arm)).stderr


def fixed(arm):
    arm.write_text(robot(*TWO, joint("a", "base", "upper", "fixed", "")))
    return arm


def test_what_is_read_otherwise_than_stated(arm, tmp_path):
    """Commands print it once; those with the option --strict refuse it."""
    arm.write_text(robot(*TWO, link("finger", ""), joint("a", "base", "upper"), joint("b", "upper", "finger")))
    sentence = "no mass is moved by 'b': forward dynamics needs some, inverse does not"
    assert sentence in run("info", arm).stdout
    assert sentence not in run("info", arm, "--massless").stdout
    write_trajectory(tmp_path / "rest.csv", kg.io.read_model(arm).model, np.arange(5.0), *np.zeros((3, 5, 2)))
    said = run("inverse-dynamics", arm, "--trajectory", tmp_path / "rest.csv").stderr
    assert f"note: {sentence}; see kinegrad info" in said
    for command in (("info", arm), ("convert", arm, tmp_path / "a.toml")):
        assert run(*command).exit_code == 0
        assert run(*command, "--strict").exit_code == 2


def test_convert(arm, tmp_path):
    result = run("convert", arm, tmp_path / "arm.toml", "--root", "free")
    assert result.exit_code == 0
    assert "joint 'elbow' has Coulomb friction" in result.stdout
    with pytest.warns(kg.io.LeftOutWarning, match="arm.urdf: not in the model: 1 × joint friction"):
        assert kg.load(tmp_path / "arm.toml") == kg.load(arm, root="free")
    assert run("convert", "puma560", tmp_path / "puma.toml").exit_code == 0
    assert kg.load(tmp_path / "puma.toml") == kg.samples.puma560()
    assert run("convert", "puma560", tmp_path / "puma.urdf").exit_code == 2


def test_torques_of_a_file(arm, tmp_path):
    with pytest.warns(kg.io.LeftOutWarning):
        model = kg.load(arm)
    qva = np.random.default_rng(0).normal(size=(3, 5, 1))
    write_trajectory(tmp_path / "reach.csv", model, np.arange(5.0), *qva)
    result = run("inverse-dynamics", arm, "--trajectory", tmp_path / "reach.csv")
    assert result.exit_code == 0
    assert "note: not in the model: 1 × joint friction; see kinegrad info" in result.stderr
    read_trajectory(tmp_path / "reach.csv", model)
    torques = np.loadtxt(tmp_path / "reach.tau.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(torques[:, 1:], kg.inverse_dynamics(model, *qva), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("qqq", "model 'qqq' does not exist; expected one of human43"),
        ("two_lin", "did you mean 'two_link'"),
        ("none.urdf", "none.urdf: cannot be read: No such file or directory"),
        ("arm.step", "files of kind '.step' are unknown; expected one of .toml, .urdf, .osim, .xml, .mjcf"),
        ("./arm", "files of kind '' are unknown"),
    ],
)
def test_what_is_neither_is_named(name, sentence):
    result = run("info", name)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_options_of_load(arm):
    with pytest.raises(kg.InputError, match=r"option `rot` is unknown for \.urdf files; did you mean 'root'\?"):
        kg.load(arm, rot="free")
    with pytest.raises(kg.InputError, match=r"option `units` is unknown for \.urdf files; expected root, quaternion"):
        kg.load(arm, units="mm")
    for path in (None, 3, b"a", "a\0.urdf"):
        with pytest.raises(kg.InputError, match="`path`"):
            kg.load(path)


def test_xml_is_urdf_if_it_holds_a_robot(arm, tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    assert kg.load(tmp_path / "arm.xml").n == 1
