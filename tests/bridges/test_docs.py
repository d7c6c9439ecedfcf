"""The examples of docs/bridges.md run as they stand, those of packages that are installed."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "bridges.md"
OPENING, *SECTIONS = PAGE.read_text(encoding="utf-8").split("\n## ")


@pytest.mark.parametrize("name", ["jax", "torch", "casadi"])
def test_examples(name):
    pytest.importorskip(name)
    (section,) = (text for text in SECTIONS if f"import {name}" in text)
    examples = doctest.DocTestParser().get_doctest(OPENING + section, {}, name, str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert runner.run(examples).attempted > 6
    assert not runner.failures
