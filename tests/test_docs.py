"""What the README and the pages of docs/ show is what happens: their examples run as they stand.

docs/bridges.md needs other packages: tests/bridges/test_docs.py runs it, section by section.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    page
    for page in sorted((ROOT / "docs").glob("*.md"))
    if page.name != "bridges.md" and re.search(r"^>>> ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
]


def test_pages_with_examples_are_found():
    """The test below would pass if there were none."""
    assert ROOT / "docs" / "conventions.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_pages(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    prompts = len(re.findall(r"^>>> ", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert result.attempted == prompts
    assert result.failed == 0


def test_first_example_of_the_readme_prints_what_stands_below_it(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```\n\s*^```\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert found, "the first python block of the README, then a block with its output"
    assert text.index("```python") == found.start(), "the first python block has no output below it"
    code, output = found.groups()
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == output
