"""The frame of the benchmarks: families, their processes, their tables.  Nothing is timed here."""

from pathlib import Path

import benchmarks
import pytest
from benchmarks import __main__ as program
from benchmarks.report import BEGIN, END, Family, Report, environment
from benchmarks.timing import Measurement

FOLDER = Path(benchmarks.__file__).parent


def test_every_family_is_listed():
    """A family is a file that has `run`."""
    found = {path.stem for path in FOLDER.glob("*.py") if "\ndef run(repeats" in path.read_text(encoding="utf-8")}
    assert found == set(benchmarks.FAMILIES)


@pytest.mark.parametrize("name", benchmarks.FAMILIES)
def test_every_family_has_a_heading(name):
    title, _, text = program._docstring(name).partition("\n")
    assert len(title) > 10
    assert text.strip()


def test_a_family_that_fails_is_named(monkeypatch):
    """By the code of its process, and by none of its rows; so is one that does not end."""
    monkeypatch.setattr(program, "_docstring", lambda name: "A heading\n\nand a text.")
    failed = program.run_apart("no_such_family", quick=True)
    assert failed.failed == "failed, exit code 2"
    assert failed.rows == []
    monkeypatch.setattr(program, "LIMIT", 0.0)
    assert program.run_apart("startup", quick=True).failed == "ended after 0 s"


def test_tables_go_between_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    families = [
        Family("one", "One", "of a kind", [Measurement("it", 3.0, "s", 2.0), Measurement("that", 1.0, "s", 2.0)], 1.0),
        Family("two", "Two", "more", [], 2.0, "failed, exit code 1"),
    ]
    report = Report(environment(quick=True), families)
    report.write_markdown(page)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "1 of 2 targets met; missed are\n\n- it by 50%\n" in text
    assert "two failed, exit code 1." in text
    assert "| it | 3.00 s | ≤\u00a02 s | missed by 50% |" in text  # without columns that are empty in all rows
    report.write_json(tmp_path / "all.json")
    assert '"failed": {\n    "two": "failed, exit code 1"' in (tmp_path / "all.json").read_text()


def test_processes_end_where_there_are_no_groups_of_them(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(program.os, "killpg", raising=False)
    monkeypatch.setattr(program, "LIMIT", 0.0)
    assert program.run_apart("startup", quick=True).failed == "ended after 0 s"
