"""``kinegrad predict``: a page that plays a motion, and what is said on the way."""

import json
import re

import pytest
from typer.testing import CliRunner

from kinegrad import cli


def run(*arguments):
    return CliRunner().invoke(cli.app, ["predict", *map(str, arguments)])


def test_the_time_optimal_arm_becomes_a_page(tmp_path):
    result = run("two-link-time-optimal", "--out", tmp_path / "arm")
    assert result.exit_code == 0, result.output
    time = float(re.search(r"^T = (\S+) s$", result.stdout, flags=re.MULTILINE)[1])
    assert time == pytest.approx(0.39315, abs=1e-4)
    assert "iterations" in result.stdout
    folder = tmp_path / "arm"
    assert {path.name for path in folder.iterdir()} == {
        "index.html", "results.json", "motion.csv", "postures.png", "coordinates.png", "torques.png", "progress.png",
    }  # fmt: skip
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Two-link arm: least time" in page
    assert "<canvas" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["T"] == pytest.approx(time, abs=1e-5)
    assert results["success"] is True
    assert results["between"][0]["value"] < 0.02


def test_unknown_names_and_solvers_are_one_line(tmp_path):
    result = run("human-lift", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: motion 'human-lift' does not exist; did you mean 'human43-lift'")
    result = run("two-link-lifting", "--out", tmp_path, "--solver", "snopt")
    assert result.exit_code == 2
    assert "`solver`" in result.stderr
    assert not list(tmp_path.iterdir())
