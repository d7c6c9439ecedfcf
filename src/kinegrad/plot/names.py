"""Names of models, joints and links as matplotlib has to be given them."""

from __future__ import annotations

__all__ = ["drawn_name"]

LONGEST = 40  # characters: what is longer has no room in a figure


def drawn_name(name: str) -> str:
    r"""Return the text with which matplotlib draws a name as it is.

    Between two dollars matplotlib reads mathematics, a label that begins with an underscore is left out of legends, and
    a name as long as a figure leaves no room for curves: it is cut in its middle.

    >>> print(drawn_name(r"knee $\foo$"))
    knee \$\foo\$
    >>> len(drawn_name("x" * 1000))
    40
    """
    if len(name) > LONGEST:
        name = f"{name[: LONGEST // 2 - 1]} … {name[2 - LONGEST // 2 :]}"
    text = name.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
