"""Formulas of [xiang2008] that cannot be right as printed, or as scanned: the copy used here is a scan."""

from __future__ import annotations

from kinegrad.papers.report.misprints import Misprint

__all__ = ["MISPRINTS"]

MISPRINTS = (
    Misprint(
        "(6)",
        "<b>τ</b> = <b>M</b><b>q̈</b> + <b>V</b> + Σ <b>J</b><sup>T</sup><i>m</i><b>g</b> + "
        "<b>J</b><sub>s</sub><sup>T</sup><b>f</b>",
        "minus both: <b>g</b> and <b>f</b> point down in (51), and (16) has the minus signs",
        tested=True,
    ),
    Misprint(
        "(9), (10)",
        "∂(<sup>0</sup><b>T</b><sub><i>i</i></sub><b>r̄</b><sub><i>i</i></sub>)/∂<i>q<sub>i</sub></i>",
        "∂<b>q</b>: all joints before link <i>i</i> move it, and (6) sums over links",
        tested=True,
    ),
    Misprint(
        "(15)",
        "<b>B</b><sub><i>j</i></sub><b>ṙ</b><sub><i>j</i></sub> and <b>C</b><sub><i>j</i></sub>"
        "<b>r̈</b><sub><i>j</i></sub>",
        "<b>B</b><sub><i>j</i></sub><b>r</b><sub><i>j</i></sub> and <b>C</b><sub><i>j</i></sub>"
        "<b>r</b><sub><i>j</i></sub>: the point is fixed in its link, <b>ṙ</b><sub><i>j</i></sub> = 0",
        tested=True,
    ),
    Misprint(
        "(23), <i>k</i> = <i>i</i>",
        "<b>A</b><sub><i>i</i>−1</sub> ∂<b>T</b><sub><i>i</i></sub>/∂<i>q̇<sub>k</sub></i>",
        "<b>A</b><sub><i>i</i>−1</sub> ∂<b>T</b><sub><i>i</i></sub>/∂<i>q<sub>k</sub></i>: <b>T</b> does not depend on "
        "<i>q̇</i>",
        tested=True,
    ),
    Misprint(
        "(26), <i>k</i> = <i>i</i>",
        "<b>A</b><sub><i>i</i>−1</sub> ∂<b>T</b><sub><i>i</i></sub>/∂<i>q̈<sub>k</sub></i>",
        "<b>A</b><sub><i>i</i>−1</sub> ∂<b>T</b><sub><i>i</i></sub>/∂<i>q<sub>k</sub></i>, for the same reason",
        tested=True,
    ),
    Misprint(
        "(61)",
        "∂<i>τ</i><sub>2</sub>/∂<i>θ̈</i><sub>2</sub> on the left",
        "∂<i>τ</i><sub>2</sub>/∂<i>θ</i><sub>2</sub>, as (78); (65) is the other one",
        tested=True,
    ),
    Misprint(
        "(75), (76)",
        "∂<i>τ</i><sub>1</sub>/∂<i>θ</i><sub>1</sub> and ∂<i>τ</i><sub>1</sub>/∂<i>θ</i><sub>2</sub> on the left",
        "∂<i>τ</i><sub>1</sub>/∂<i>θ̈</i><sub>1</sub> and ∂<i>τ</i><sub>1</sub>/∂<i>θ̈</i><sub>2</sub>: they are entries "
        "of the mass matrix, (58) and (59)",
        tested=True,
    ),
    Misprint(
        "section 6.1",
        "20 segments and 22 control points",
        "cubic splines with 20 segments have 23 control points, those with 22 have 19 segments; both are in Table 1",
    ),
    Misprint(
        "references",
        "Hollerbach (1980), IEEE Trans Syst Man Cybern 11(10)",
        "volume 10, number 11",
    ),
)
