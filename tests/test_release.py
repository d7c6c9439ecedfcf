"""A release could be made today: versions, extras, supported systems and commands are said alike everywhere."""

import re
import tomllib
from pathlib import Path

import pytest

import kinegrad

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
DEVELOPERS = {"test", "lint", "docs", "dev"}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert kinegrad.__version__ == version
    assert re.search(r"^## \[(.+?)\]", text("CHANGELOG.md"), flags=re.MULTILINE)[1] == version
    assert re.search(r"^version: (.+)$", text("CITATION.cff"), flags=re.MULTILINE)[1] == version


def test_changes_have_a_date_once_they_are_released():
    headings = re.findall(r"^## \[(.+?)\] - (\S+)$", text("CHANGELOG.md"), flags=re.MULTILINE)
    assert headings
    assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) for _, date in headings[1:])
    assert headings[0][1] == "unreleased" or re.fullmatch(r"\d{4}-\d{2}-\d{2}", headings[0][1])


def test_every_extra_is_documented_and_no_other():
    page = text("docs/install.md")
    assert (
        set(re.findall(r"^\| `pip install 'kinegrad\[(\w+)\]'`", page, flags=re.MULTILINE)) == set(EXTRAS) - DEVELOPERS
    )
    for name in DEVELOPERS:
        assert f"`{name}`" in page


def test_commands_that_messages_give_install_extras_that_exist():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    named = {x for path in files for group in re.findall(r"kinegrad\[([\w,]+)\]", path.read_text(encoding="utf-8"))
             for x in group.split(",")}  # fmt: skip
    assert {"view", "uno", "mjcf", "c3d", "dask"} <= named <= set(EXTRAS) | {"name"}


def test_workflow_runs_targets_that_exist_on_all_supported_versions():
    workflow, makefile = text(".github/workflows/ci.yml"), text("Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    run = set(re.findall(r"run: make ([a-z-]+) PYTHON=python$", workflow, flags=re.MULTILINE))
    assert {"lint", "docs", "dist", "test", "test-slow"} == run <= targets
    versions = re.search(r"python: \[(.+)\]", workflow)[1]
    supported = [x.rpartition(" ")[2] for x in PROJECT["classifiers"] if "Python :: 3." in x]
    assert re.findall(r'"([\d.]+)"', versions) == supported
    assert PROJECT["requires-python"] == f">={supported[0]}"
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in workflow


@pytest.mark.parametrize("name", ["LICENSE", "SECURITY.md", "CONTRIBUTING.md", "CITATION.cff"])
def test_papers_of_a_release_are_there(name):
    assert len(text(name)) > 200
