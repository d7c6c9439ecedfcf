"""Formulas of [kudruss2019] that cannot be right as printed, or as scanned: the copy used here is a scan."""

from __future__ import annotations

from kinegrad.papers.report.misprints import Misprint

__all__ = ["MISPRINTS"]

MISPRINTS = (
    Misprint(
        "after (1)",
        "<i>γ</i> = (∂<b>g</b>(<b>q</b>)/∂<i>t</i>) <b>q̇</b>",
        "<i>γ</i> = <b>Ġ</b> <b>q̇</b>, the time derivative of the Jacobian: ∂<b>g</b>/∂<i>t</i> is zero for "
        "scleronomic constraints",
    ),
    Misprint(
        "definition 2",
        "<b>Ċ</b> = <b>ȦB</b> + <b>BĊ</b>",
        "<b>Ċ</b> = <b>ȦB</b> + <b>AḂ</b>",
    ),
    Misprint(
        "proposition 2",
        "<sup>B</sup><b>I</b> on the right",
        "<sup>A</sup><b>I</b>: the velocities are in A, and so must be what they multiply",
    ),
    Misprint(
        "algorithm 3, line 13",
        "∂<b>I</b><sup>c</sup><sub>λ</sub> += [<b>S</b>∂<i>q</i> ×*] <b>I</b><sup>c</sup> − <b>I</b><sup>c</sup> "
        "[<b>S</b>∂<i>q</i> ×], <b>S</b> in body <i>i</i>",
        "and + <b>X</b>* ∂<b>I</b><sup>c</sup><sub><i>i</i></sub> <b>X</b>, what changed further out; <b>S</b> in "
        "the frame of the parent, as <b>I</b><sup>c</sup> is",
        tested=True,
    ),
    Misprint(
        "algorithm 3, lines 20 to 23",
        "while <i>λ<sub>i</sub></i> ≠ 0, <i>j</i> = <i>λ<sub>i</sub></i>",
        "<i>λ<sub>j</sub></i> throughout: the loop goes on to the root",
    ),
    Misprint(
        "algorithm 3, line 22",
        "∂<b>F</b> = <b>X</b>* (∂<b>F</b> − [×* <b>F</b>] <b>S</b> ∂<i>q</i>)",
        "∂<b>F</b> + [×* <b>F</b>] <b>S</b> ∂<i>q</i>, with the <b>F</b> of before line 21: (6)",
        tested=True,
    ),
    Misprint(
        "algorithm 4, line 4",
        "<b>S</b><sup>T</sup> <i>λ</i><sub>c</sub> − <b>c</b>, and its derivative",
        "<b>S</b><sup>T</sup> <i>τ</i> − <b>c</b>, as in (1)",
    ),
    Misprint(
        "algorithm 4, line 5",
        "<b>x</b> = (<b>q̈</b>, <i>λ</i><sub>c</sub>)",
        "<b>x</b> = (<b>q̈</b>, −<i>λ</i><sub>c</sub>), by the signs of <b>K</b>, as in (1)",
    ),
    Misprint(
        "table 1",
        "central differences: 2 evaluations",
        "2<i>n</i> along <i>n</i> directions (section 2.1), and 1 + 2<i>n</i> with the function itself (section 4.2)",
    ),
)
