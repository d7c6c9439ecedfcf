"""Where formulas of [anderson2002], as the copy used here prints them, cannot be right, and what they must be.

The copy is a scan, so that some of it may be the scan's doing.  Only what was derived is listed; what is ``tested`` is
also evaluated both ways in ``tests/papers/anderson2002/test_misprints.py``, where the printed form fails and the other
holds.
"""

from __future__ import annotations

from kinegrad.papers.report.misprints import Misprint

__all__ = ["MISPRINTS"]

MISPRINTS = (
    Misprint(
        "(19)",
        "the right-hand side of (18) again",
        "Σ<sub>k</sub> [<b>ω</b><sub>r</sub><sup>k</sup>·(<b>T</b>* + <b>T</b>) + "
        "<b>v</b><sub>r</sub><sup>k</sup>·(<b>R</b>* + <b>R</b>)] without the unknown q̈, as (22) and (26) have it: "
        "(18) has two indices, 𝒦<sub>r</sub> one",
        False,
    ),
    Misprint("(21)", "a 6×1 matrix", "6×6", False),
    Misprint(
        "(23), (24)",
        "𝒯* = −M a;  ℛ* = −I α − ω × I α",
        "exchanged, and the last factor is ω:  𝒯* = −I α − ω × I ω;  ℛ* = −M a",
        True,
    ),
    Misprint(
        "(27), (28)",
        "the middle term differentiates 𝒫<sub>r</sub> and ℐ<sub>1</sub>",
        "𝒫<sub>r</sub><sup>T</sup> ℐ<sub>1,p</sub> 𝒫<sub>i</sub>: one factor at a time",
        True,
    ),
    Misprint(
        "(27), (28), (78), (79), (83)–(85)",
        "ℳ<sub>r,p</sub>, ℛ<sub>1</sub><sup>j</sup>, ℛ<sub>2</sub><sup>j+1</sup>, ℛℛ𝒫<sub>2</sub><sup>k</sup>",
        "the index i is missing: ℳ<sub>ri,p</sub>, ℛ<sub>1i</sub><sup>j</sup> …",
        False,
    ),
    Misprint(
        "(28), (30), (31), (93)–(96)",
        "r is both the row and the coordinate: ℳ<sub>r,q<sub>r</sub></sub>, 𝒦<sub>r,q<sub>r</sub></sub>",
        "two indices: every row is differentiated with respect to every coordinate, as (9) sums them",
        False,
    ),
    Misprint(
        "(34)",
        "ω<sup>k−1</sup> × r<sup>k</sup> and (joint’s rate) × s<sup>k</sup>",
        "ω<sup>k−1</sup> × γ<sup>k</sup> and (joint’s rate) × r<sup>k</sup>, as in (36)",
        True,
    ),
    Misprint(
        "(35), (36)",
        "of prescribed motion its velocities alone",
        "also its accelerations: d<b>ω</b><sub>t</sub><sup>k</sup>/dt in (35); its cross product with "
        "r<sup>k</sup>, and d<b>v</b><sub>t</sub><sup>k+</sup>/dt, in (36)",
        True,
    ),
    Misprint(
        "(37)",
        "γ× below the diagonal of (𝒮<sup>k</sup>)<sup>T</sup>",
        "−γ×, which is the transpose of (38)",
        True,
    ),
    Misprint("(41)", "𝒫<sub>n−1</sub><sup>1</sup>", "𝒫<sub>n−1</sub><sup>n</sup>", False),
    Misprint(
        "(43), first line",
        "(𝒫<sub>n−1</sub><sup>n</sup>)<sup>T</sup> 𝒮<sup>n</sup> ℐ<sub>1</sub><sup>n</sup> "
        "𝒫<sub>i</sub><sup>n</sup>, shifted twice",
        "(𝒫<sub>n−1</sub><sup>n−1</sup>)<sup>T</sup> 𝒮<sup>n</sup> …, as in the lines below it",
        True,
    ),
    Misprint(
        "(48)",
        "𝒫<sub>n−1</sub><sup>n</sup> ℱ<sub>1</sub><sup>n</sup>; below it 𝒫<sub>1</sub><sup>n−1</sup> + 𝒮 ℱ",
        "(𝒫<sub>n−1</sub><sup>n</sup>)<sup>T</sup> ℱ<sub>1</sub><sup>n</sup>; ℱ<sub>1</sub><sup>n−1</sup> + 𝒮 ℱ",
        False,
    ),
    Misprint(
        "(49), (51)",
        "𝒮<sup>n</sup> in (49), and ℱ<sub>1</sub><sup>k+1</sup> in both",
        "𝒮<sup>k+1</sup> ℱ<sub>2</sub><sup>k+1</sup>, as in (90): otherwise only two bodies count",
        True,
    ),
    Misprint(
        "(53), first line",
        "ℐ<sub>1</sub> 𝒜<sup>n</sup> − ℱ<sub>1</sub>",
        "ℐ<sub>1</sub> <span style='text-decoration: overline'>𝒜</span><sup>n</sup> − ℱ<sub>1</sub>, as in the second "
        "line: by (22)–(24) ℱ<sub>1</sub> already holds the accelerations without q̈",
        True,
    ),
    Misprint(
        "(66), (67)",
        "ℱ<sub>1</sub><sup>1</sup>",
        "ℱ<sub>3</sub><sup>1</sup>, as the text after (59) has it",
        True,
    ),
    Misprint(
        "(72)–(74)",
        "(𝒫<sub>,x</sub>)<sup>T</sup>, and 𝒫 differentiated in both terms or twice",
        "𝒮<sub>,x</sub><sup>T</sup> 𝒫 + 𝒮<sup>T</sup> 𝒫<sub>,x</sub>; with q̇ nothing changes",
        True,
    ),
    Misprint(
        "(75)",
        "𝒫<sub>n</sub><sup>n</sup> ℐ<sub>1</sub><sup>n</sup> 𝒫<sub>s,p</sub><sup>n</sup>",
        "(𝒫<sub>n</sub><sup>n</sup>)<sup>T</sup> ℐ<sub>1</sub><sup>n</sup> 𝒫<sub>s,p</sub><sup>n</sup>",
        False,
    ),
    Misprint("(78)", "(ℳ<sub>k</sub><sup>k</sup>)<sub>,p</sub>", "(𝒫<sub>k</sub><sup>k</sup>)<sub>,p</sub>", False),
    Misprint(
        "(78), (83), (88), (92)",
        "j is both the parameter of p<sub>j</sub> and the body that is summed over",
        "two indices",
        False,
    ),
    Misprint("(84)", "𝒮 with the superscript k<sub>1</sub>", "k+1", False),
    Misprint("(86)", "𝒫<sub>r</sub><sup>k</sup>, ℱ<sub>1</sub><sup>k</sup>", "k = r = n", False),
    Misprint(
        "(88), (93), (95)",
        "the sum and its products start at k+1, and there is no k",
        "at r+1, as the sum in (92)",
        False,
    ),
    Misprint("(94), (96)", "𝒫<sub>,p</sub>", "𝒫<sub>,q</sub> and 𝒫<sub>,q̇</sub>, as in (93) and (95)", False),
)
