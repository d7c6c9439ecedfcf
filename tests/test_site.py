"""The site builds without a warning, has every public name, and asks nobody for anything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kinegrad

sphinx = pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built pages, by their names."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(folder / "html")]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    return {str(path.relative_to(folder / "html")): path.read_text(encoding="utf-8")
            for path in (folder / "html").rglob("*.html")}  # fmt: skip


def test_every_public_name_is_in_the_reference(site):
    text = "".join(page for name, page in site.items() if name.startswith("reference/"))
    missing = [name for name in kinegrad.__all__
               if callable(getattr(kinegrad, name)) and f'id="kinegrad.{name}"' not in text]  # fmt: skip
    assert missing == []


def test_nothing_is_loaded_from_elsewhere(site):
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    assert {name: loads.findall(page) for name, page in site.items() if loads.search(page)} == {}


def test_marks_of_docstrings_are_not_printed(site):
    """Words that are stressed, names in quotes, sections: all are what they mean, and examples as they are run."""
    for name, page in site.items():
        prose = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
        found = re.findall(r"\*{1,2}[A-Za-z][\w -]*\*{1,2}(?!\w)|<strong>&gt;&gt;&gt;|(?<!\w)`\w+`", prose)
        assert found == [], name
        assert '<dt class="field-odd">Type' not in page, f"{name}: a colon in the docstring of a property"
        assert r"\|" not in page, name
    assert "Bases:" not in site["reference/models.html"]
    assert "Bases:" in site["reference/errors.html"]
    assert '<ol class="loweralpha' not in "".join(site.values())  # "s." is a unit


def test_figures_have_versions_for_phones_and_dark_pages(site):
    shown = re.findall(r'<img[^>]*class="([^"]*)"[^>]*torques_and_derivatives', site["index.html"])
    shown = shown or re.findall(r'torques_and_derivatives[^>]*class="([^"]*)"', site["index.html"])
    assert {frozenset(names.split()) for names in shown} == {
        frozenset((page, shape)) for page in ("only-light", "only-dark") for shape in ("wide", "upright")
    }


def test_derivations_of_kernels_are_on_the_theory_pages(site):
    assert "Glossary" in site["theory/inverse_dynamics.html"]
    assert "[singh2022]" in site["theory/inverse_dynamics.html"]


def test_every_derivation_of_a_theory_page_is_in_place(site):
    """A link to a module that stands alone in its line becomes the docstring of that module; no other is left."""
    for page in (ROOT / "docs" / "theory").glob("*.md"):
        listed = re.findall(r"(?m)^- .*\(\.\./\.\./(src/kinegrad/[\w/]+\.py)\)", page.read_text(encoding="utf-8"))
        shown = re.sub("<wbr>", "", site[f"theory/{page.stem}.html"])
        assert [name for name in listed if f">{name}</span></code>:" not in shown] == [], page.name
