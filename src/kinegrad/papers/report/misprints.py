"""What is wrong in a paper as it is printed, and the section of its page that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kinegrad.papers.report.page import Page

__all__ = ["Misprint", "misprints_section"]


class Misprint(NamedTuple):
    """Where, what is printed, what it must be, as HTML; and whether a test evaluates both."""

    place: str
    printed: str
    correct: str
    tested: bool = False


def misprints_section(page: Page, misprints: Sequence[Misprint], label: str) -> None:
    """A section with a table of them, under its label."""
    page.section("Misprints found on the way", "misprints")
    page.paragraph(
        "The copy used here is a scan; some of this may be due to it and not to the paper. Listed is what was derived "
        "anew; what is marked was also evaluated both ways in the tests, where the printed form fails and the other "
        "holds."
    )
    rows = [[each.place, each.printed, each.correct, "✓" if each.tested else ""] for each in misprints]
    page.table(["where", "as printed", "what it must be", "tested"], rows, label, "Formulas put right.", words=4)
