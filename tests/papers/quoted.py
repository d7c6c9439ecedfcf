"""Numbers that docs/papers.md quotes, to be looked for on the pages that runs write."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "papers.md"


def numbers_of(paper: str) -> list[str]:
    """Numbers of three digits or more in the last column of a paper's table."""
    section = DOCS.read_text(encoding="utf-8").split(f"\n## {paper}:")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [
        x for row in rows for x in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)", row.split("|")[-2]) if len(x) > 2
    ]


def missing(paper: str, html: str) -> list[str]:
    """Those that the text of a page does not say; a table must quote at least one."""
    numbers, text = numbers_of(paper), re.sub(r"<[^>]*>", "", html)
    assert numbers
    return [x for x in numbers if not re.search(rf"(?<![\d.]){re.escape(x)}(?!\d)", text)]
