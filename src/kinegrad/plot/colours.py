"""Colours that stay apart for people who see some of them alike: those of [okabe2008], its yellow darkened."""

from __future__ import annotations

from itertools import cycle, islice

__all__ = ["PALETTE", "STYLES", "branch_colours", "line_styles"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8A8A00")
STYLES = ("-", "--", ":", "-.")


def branch_colours(count: int) -> list[str]:
    """A colour for each of so many branches.

    >>> branch_colours(2)
    ['#0072B2', '#D55E00']
    """
    return list(islice(cycle(PALETTE), count))


def line_styles(count: int) -> list[tuple[str, str]]:
    """A colour and a kind of line for each of so many curves, no two the same up to 32.

    >>> line_styles(9)[-1]
    ('#0072B2', '--')
    """
    pairs = [(colour, style) for style in STYLES for colour in PALETTE]
    return list(islice(cycle(pairs), count))
