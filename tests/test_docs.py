"""What the README and the pages of docs/ show is what happens: their examples run as they stand.

A block of python with prompts is a doctest; one without is a program, and what it says in a comment is for the reader.
All blocks of a page share their names.  docs/bridges.md needs other packages: tests/bridges/test_docs.py runs it,
section by section.  The section of docs/coming_from.md on OpenSim needs a process without CasADi:
tests/peers/test_opensim_page.py runs it.  Commands in other blocks are compared with what the command line offers.
"""

import doctest
import re
import shlex
from pathlib import Path

import pytest
import typer

from kinegrad.cli import app
from kinegrad.motion.sweeps.sweep_file import read_sweep

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.name != "bridges.md" and BLOCK.search(page.read_text(encoding="utf-8"))
]
NEEDS = {"coming_from.md": ["pinocchio", "mujoco"], "viewer.md": ["viser"], "robot_from_urdf.md": ["viser"]}
MADE = ("contributing.md", "changes.md", "examples.md")  # copies that docs/conf.py makes
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
TEXTS += [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in MADE]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_lines_of_code_fit_on_the_page(page):
    """116 letters are as wide as the text of the site in a window of 1280 pixels; longer lines have to be scrolled."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if len(line) > 116] == []


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
    for package in NEEDS.get(page.name, []):
        pytest.importorskip(package)
    text = page.read_text(encoding="utf-8")
    if page.name == "coming_from.md":
        text = text[: text.index("\n## OpenSim\n")]
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


def fences(text):
    """The words after every opening fence, and the blocks."""
    return re.findall(r"^[ >]*(?:```|~~~)([^\n`]*)\n(.*?)^[ >]*(?:```|~~~) *$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_no_block_is_left_out(page):
    """A fence that is indented, or of another spelling of its language, would be skipped silently."""
    text = page.read_text(encoding="utf-8")
    languages = [language.strip() for language, _ in fences(text)]
    assert set(languages) <= {"", "python", "toml"}
    assert languages.count("python") == len(BLOCK.findall(text)) == text.count("```python")
    assert not [
        block for language, block in fences(text) if not language and re.search(r"^(>>> |import )", block, re.M)
    ]
    if page.parent.name not in ("docs", "tutorials", "theory"):
        assert languages.count("python") == (page == ROOT / "README.md")  # and that one is run below


def commands():
    """Every command line of kinegrad that a page shows, with the page."""
    for page in TEXTS:
        for language, block in fences(page.read_text(encoding="utf-8")):
            for line in block.splitlines() if not language else ():
                if line.startswith("kinegrad "):
                    yield page.name, line


def test_commands_of_pages_exist():
    known = typer.main.get_command(app)
    found = list(commands())
    assert len(found) > 30
    for page, line in found:
        words = shlex.split(line, comments=True)[1:]
        if words[0].startswith("--"):
            assert words in (["--help"], ["--version"]), (page, line)
            continue
        assert words[0] in known.commands, (page, line)
        command = known.commands[words[0]]
        context = typer.Context(command)
        rest = command.make_parser(context).parse_args(words[1:])[1]
        assert rest == [], (page, line, rest)  # options that do not exist are errors of the parser


def test_sweep_of_the_page_can_be_read(tmp_path):
    ((_, block),) = (
        (x, y) for x, y in fences((ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")) if x == "toml"
    )
    (tmp_path / "lifting.toml").write_text(block, encoding="utf-8")
    plan = read_sweep(tmp_path / "lifting.toml")
    assert plan.problem == "two-link-lifting"


def test_equations_lead_to_files_that_are_there():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 30
    for equation, what, where in rows:
        files = re.findall(r"`((?:src|tests)/[\w/.]+)`", where)
        assert files, equation
        for name in files:
            assert (ROOT / name).is_file(), (equation, name)
        cited = "".join((ROOT / name).read_text(encoding="utf-8") for name in files)
        assert any(key in cited for key in re.findall(r"[a-z]+\d{4}", equation + what)), (equation, files)


def test_links_of_the_readme_lead_to_files():
    """The site checks those of its pages; the README is no page of it."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 15
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_of_pages_lead_to_files(page):
    """In a browser of the repository, too, where the pages that the site makes are not there."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    links = [link for link in links if not re.match("[a-z]+:", link)]
    made = [ROOT / "docs" / name for name in (*MADE, "reference")]
    for link in links:
        target = (page.parent / link).resolve()
        assert target.exists(), link
        assert not any(target.is_relative_to(name) for name in made), link


def test_readme_is_short_and_has_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    assert re.findall(r"^make \S+", text, flags=re.MULTILINE) == ["make demo", "make test"]


TUTORIALS = [
    "measured_angles.md", "robot_from_dh.md", "arm_with_two_lengths.md", "robot_from_urdf.md", "predict_a_lift.md",
]  # fmt: skip
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
