"""The summary of a reproduction for a terminal: tables and paragraphs, which the command line prints as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Summary", "Table"]


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes
    ----------
    title : str
    words, numbers : sequence of str
        Headings of the columns that hold words, aligned to the left, and of those after them, aligned to the right.
    rows : sequence of sequence of str
    note : str
        A sentence below it, or nothing.
    """

    title: str
    words: Sequence[str]
    numbers: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """Tables, and paragraphs after them."""

    tables: Sequence[Table]
    paragraphs: Sequence[str]
