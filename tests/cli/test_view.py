"""``kinegrad view``: pages, pictures and films from the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

import kinegrad as kg
from kinegrad.cli.program import app

RUNNER = CliRunner()


def run(*words):
    return RUNNER.invoke(app, ["view", *map(str, words)])


@pytest.fixture
def walk(tmp_path):
    """Positions alone, in degrees, as they are measured."""
    lines = [f"{k / 50},{20 * np.sin(k / 10)},{30 * np.cos(k / 10)}" for k in range(20)]
    (tmp_path / "walk.csv").write_text("\n".join(["time,shoulder [deg],elbow [deg]", *lines]))
    return tmp_path / "walk.csv"


def test_a_page_a_picture_and_a_film(tmp_path, walk):
    page, png, gif = (tmp_path / f"arm.{kind}" for kind in ("html", "png", "gif"))
    done = run("two_link", "--motion", walk, "--export", page, "--png", png, "--gif", gif)
    assert done.exit_code == 0, done.output
    assert page.stat().st_size > 100_000
    assert png.read_bytes()[1:4] == b"PNG"
    assert gif.read_bytes()[:3] == b"GIF"


def test_coordinates_that_are_not_in_the_file(tmp_path):
    (tmp_path / "part.csv").write_text("time,shoulder\n" + "\n".join(f"{k / 50},{k / 100}" for k in range(20)))
    given = "two_link", "--motion", tmp_path / "part.csv", "--png", tmp_path / "arm.png"
    done = run(*given)
    assert done.exit_code == 2
    assert "column 'q.elbow' is missing" in done.output
    assert "--missing neutral" in done.output
    assert run(*given, "--missing", "neutral").exit_code == 0


def test_meshes_that_are_not_found_are_mentioned(tmp_path):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    mesh = '<visual><geometry><mesh filename="package://nowhere/arm.stl"/></geometry></visual>'
    joint = '<joint name="a" type="continuous"><parent link="base"/><child link="arm"/></joint>'
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="r"><link name="base"/><link name="arm">{body}{mesh}</link>{joint}</robot>')
    done = run(path, "--png", tmp_path / "arm.png")
    assert done.exit_code == 0, done.output
    assert "1 × mesh not found; see kinegrad info" in done.output


def test_a_model_from_a_file(tmp_path):
    kg.save(kg.samples.puma560(), tmp_path / "puma.toml")
    done = run(tmp_path / "puma.toml", "--png", tmp_path / "puma.png")
    assert done.exit_code == 0, done.output


def test_a_film_needs_a_motion(tmp_path):
    done = run("two_link", "--gif", tmp_path / "arm.gif")
    assert done.exit_code == 2
    assert "a film needs a motion" in done.output


def test_unknown_models_are_refused():
    assert run("humam43", "--png", "x.png").exit_code == 2


@pytest.mark.parametrize("option", ["--png", "--gif", "--mp4", "--export"])
def test_a_wrong_ending_is_told_by_the_option(option, walk):
    done = run("two_link", "--motion", walk, option, "x.abc")
    assert done.exit_code == 2
    assert f"{option} is 'x.abc'; expected a name that ends in ." in " ".join(done.output.split())


def test_the_loops_of_a_file_are_closed_in_its_picture(tmp_path, monkeypatch):
    """Without its constraints a four-bar would be drawn without its last bar."""
    model, loop = kg.samples.four_bar()
    kg.save(model, tmp_path / "bar.toml", constraints=loop)
    given = {}
    monkeypatch.setattr(kg.view, "save_picture", lambda *_, **options: given.update(options) or tmp_path / "bar.png")
    assert run(tmp_path / "bar.toml", "--png", tmp_path / "bar.png").exit_code == 0
    assert given["constraints"] == loop
