"""What the README and the pages of docs/ show is what happens: their examples run as they stand.

A block of python with prompts is a doctest; one without is a program, and what it says in a comment is for the reader.
All blocks of a page share their names.  docs/bridges.md needs other packages: tests/bridges/test_docs.py runs it,
section by section.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.name != "bridges.md" and BLOCK.search(page.read_text(encoding="utf-8"))
]


def test_pages_with_examples_are_found():
    """The test below would pass if there were none."""
    assert {"architecture.md", "conventions.md", "simulation.md", "hessian.md"} <= {page.name for page in PAGES}


def run_blocks(text, name):
    """Run all python blocks of a page; how many prompts there were, and how many examples failed."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    names = {"__name__": name}
    for block in BLOCK.finditer(text):
        code, line = block[1], text.count("\n", 0, block.start()) + 1
        if re.search(r"^>>> ", code, flags=re.MULTILINE):
            examples = doctest.DocTestParser().get_doctest(code, names, name, name, line)
            runner.run(examples, clear_globs=False)
            names.update(examples.globs)  # a doctest works on a copy
        else:
            exec(compile("\n" * line + code, name, "exec"), names)
    return runner.tries, runner.failures


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    text = page.read_text(encoding="utf-8")
    attempted, failed = run_blocks(text, page.name)
    assert attempted == len(re.findall(r"^>>> ", text, flags=re.MULTILINE))
    assert failed == 0


def test_blocks_share_names_and_failures_count():
    blocks = ("x = 1", ">>> x + 1\n2\n>>> y = x + 2\n>>> x\n7", "assert y == 3")
    text = "".join(f"```python\n{block}\n```\n" for block in blocks)
    assert run_blocks(text, "page") == (3, 1)
    with pytest.raises(AssertionError):
        run_blocks("```python\nassert 1 == 2\n```\n", "page")


def test_first_example_of_the_readme_prints_what_stands_below_it(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```\n\s*^```\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert found, "the first python block of the README, then a block with its output"
    assert text.index("```python") == found.start(), "the first python block has no output below it"
    code, output = found.groups()
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == output


TUTORIALS = ["measured_angles.md", "robot_from_dh.md", "arm_with_two_lengths.md"]
PRINTED = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_are_short_and_use_public_names_only(name):
    """What a newcomer has to type: below 40 lines, without private knowledge."""
    text = (ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8")
    lines = []
    for block in BLOCK.finditer(text):
        prompted = ">>> " in block[1]
        lines += [
            line for line in block[1].splitlines()
            if line.strip() and (not prompted or line.startswith((">>> ", "... ")))
        ]  # fmt: skip
    assert len(lines) < 40, len(lines)
    assert not re.search(r"\b_[a-z]", "\n".join(lines).replace("_ =", "")), "private names"


def test_what_the_tutorial_prints_stands_below_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "tutorials" / "measured_angles.md").read_text(encoding="utf-8")
    names = {"__name__": "tutorial"}
    for code, output in PRINTED.findall(text):
        exec(compile(code, "measured_angles.md", "exec"), names)
        assert capsys.readouterr().out == output
