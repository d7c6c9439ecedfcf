"""What :mod:`kinegrad.papers.anderson2002` has found, in sentences without markup, for page and terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from kinegrad.papers.anderson2002 import experiment as chains
from kinegrad.papers.anderson2002 import pendulum as swing
from kinegrad.papers.anderson2002.experiment import (
    FACTORED,
    INVERTED,
    LIBRARY,
    ORDERS,
    PAPER_LARGEST,
    RECURSIVE,
    Crossing,
    Exponent,
    Pair,
)
from kinegrad.papers.anderson2002.pendulum import Perturbation
from kinegrad.papers.report.disturbance import disturbed_words
from kinegrad.papers.report.page import duration

if TYPE_CHECKING:
    from kinegrad.papers.anderson2002 import Report

__all__ = [
    "agreed_until",
    "busy_words",
    "crossing_words",
    "errors_of",
    "findings",
    "largest_difference",
    "reference_words",
]

AGREED = 1e-10  # to which methods are asked to agree
NEAR = 0.3  # of an exponent to the one that is expected
CACHES = "presumably because what it works on outgrows the processor's caches"
POWERS = {1: "n", 3: "n³", 4: "n⁴"}


def findings(report: Report) -> Iterator[str]:
    """Sentences, the most important ones first."""
    calm = not busy_words(report)
    if not calm:
        yield busy_words(report)
    for fit in report.exponents:
        if fit.method != LIBRARY:
            yield _growth(fit, calm)
    yield crossing_words(report)
    common = _largest_common(report)
    base = _seconds(report, RECURSIVE, common)
    ratios = ", ".join(
        f"the {name} one {'takes ' if name == FACTORED[0] else ''}{_seconds(report, name, common) / base:.3g} times"
        + (" as long" if name == FACTORED[0] else "")
        for name in ORDERS
        if name not in (RECURSIVE, LIBRARY)
    )
    yield f"At n = {common}, compared with the fully recursive method, {ratios}."
    fit = next(fit for fit in report.exponents if fit.method == LIBRARY)
    yield (
        f"kinegrad's own kernel, the same recursion on vector registers with {chains.STATES} states in a call, takes "
        f"{duration(_seconds(report, LIBRARY, common))} a state at n = {common}, where the plain one takes "
        f"{duration(base)}; it grows as n^{fit.exponent:.2f} from n = {fit.smallest} to {fit.largest}"
        + (f", {CACHES}." if calm and fit.exponent > fit.order + NEAR else ".")
    )
    yield _agreement_words(report)
    yield _inverse_words(report)
    yield _pendulum_words(report)
    yield _difference_words(report)
    wild = report.wild
    yield (
        f"Released from the horizontal the pendulum is chaotic: dT/dL1 reaches {wild.largest_value:.2g} J/m within "
        f"20 s. Relative to that the two exact methods still agree to {wild.methods:.1g}, while forward differences "
        f"are off by up to {100 * wild.differences:.3g} %; they leave what the sensitivity has reached until then by "
        f"1 % at {wild.sound_until:.3g} s."
    )


# --- times --------------------------------------------------------------------------------------------------------


def busy_words(report: Report) -> str:
    """What to say where the machine was disturbed; nothing if it was not."""
    rows = [*report.timings, *report.small]
    return disturbed_words(sum(row.disturbed for row in rows), len(rows))


def _growth(fit: Exponent, calm: bool = True) -> str:
    """How the time of a method grows, beside what is expected; of causes only if the machine was `calm`.

    >>> _growth(Exponent("conventional", 3.65, 16, 64, 4, 3.7))
    'Conventional: time grows as n^3.65 from n = 16 to 64, the number of products as n^3.70: O(n⁴), as the paper says.'
    >>> _growth(Exponent("partially recursive", 2.6, 2, 8, 3))
    'Partially recursive: time grows as n^2.60 from n = 2 to 8; the paper says O(n³): terms of lower order still count.'
    """
    order, grown = f"O({POWERS[fit.order]})", f"n^{fit.exponent:.2f} from n = {fit.smallest} to {fit.largest}"
    expected = fit.order if fit.products is None else fit.products
    said = (
        f"; its order is {order}" if fit.method == FACTORED[1] else f"; the paper says {order}"
    )  # no frugal one there
    if fit.products is not None:
        grown += f", the number of products as n^{expected:.2f}"
        said = f": {order}, as the paper says" if abs(fit.exponent - expected) <= NEAR else said
    if fit.exponent < expected - NEAR and calm:
        said += ": terms of lower order still count"
    if fit.exponent > expected + NEAR and calm:
        said += f"; it is steeper, {CACHES}"
    return f"{fit.method[0].upper()}{fit.method[1:]}: time grows as {grown}{said}."


def crossing_words(report: Report) -> str:
    """Where others are faster on small chains, or how close they come."""
    met: Sequence[Crossing] = [row for row in report.crossings if row.at is not None]
    near = report.closest
    number = "one parameter" if near.p == 1 else f"{near.p} parameters"
    close = (
        f"closest is the {near.method} one, which takes {near.ratio:.3g} times as long at n = {near.n} with {number}"
    )
    if not met:
        return (
            "There is no crossing: in one and the same style of code the fully recursive method is the fastest from "
            "the smallest chain on (n = 1; n = 2 with four parameters), with one parameter, with four, and with two "
            f"per bar; {close}. The paper puts the crossing near n = 4."
        )
    parts = "; ".join(
        f"{row.other}, {_parameters(row.p)}: "
        + ("faster at all small sizes" if row.at == inf else f"crosses at n = {row.at:.1f}")
        for row in met
    )
    return f"Where others are faster on small chains: {parts}. The paper puts the crossing near n = 4."


def _parameters(p: int) -> str:
    return {0: "two parameters per bar", 1: "one parameter"}.get(p, f"{p} parameters")


def _largest_common(report: Report) -> int:
    """The largest size of the paper's at which all methods were timed."""
    sizes = [{row.n for row in report.timings if row.method == name} for name in ORDERS]
    return max(n for n in set.intersection(*sizes) if n <= PAPER_LARGEST)


def _seconds(report: Report, method: str, n: int) -> float:
    return next(row.seconds for row in report.timings if (row.method, row.n) == (method, n))


# --- agreement and rounding ---------------------------------------------------------------------------------------


def largest_difference(pairs: Iterable[Pair], until: int = PAPER_LARGEST, inverted: bool = False) -> float:
    """Of any two methods up to a size; with the one that inverts M, or without it."""
    return max(
        row.difference for row in pairs if row.n <= until and (inverted or INVERTED not in (row.first, row.second))
    )


def agreed_until(pairs: Sequence[Pair], inverted: bool = False) -> int:
    """The largest size up to which any two agree to 1e-10; 0 if at none.

    >>> rows = [Pair("fully recursive", "kinegrad", n, n * 1e-12) for n in (2, 50, 200)]
    >>> agreed_until(rows), agreed_until([*rows, Pair("conventional", "kinegrad", 50, 1e-3)], inverted=True)
    (50, 2)
    """
    sizes = sorted({row.n for row in pairs})
    return max((n for n in sizes if largest_difference(pairs, n, inverted) < AGREED), default=0)


def errors_of(report: Report, method: str) -> dict[int, float]:
    """Errors of rounding by size."""
    return {row.n: row.error for row in report.roundings if row.method == method}


def reference_words(report: Report) -> str:
    """What errors of rounding are taken from."""
    if report.epsilon < 1e-18:
        return "extended precision"
    return "a complex step in double precision (there is no wider type on this machine)"


def _agreement_words(report: Report) -> str:
    until, largest = agreed_until(report.pairs), max(row.n for row in report.pairs)
    words = (
        f"Any two of the methods that do not invert M, and kinegrad, agree to {AGREED:.0e} of the largest entry up to "
        f"n = {until} ({largest_difference(report.pairs, until):.1e} at most)."
        if until
        else f"Not all methods agree to {AGREED:.0e} of the largest entry."
    )
    beyond = [row for row in report.roundings if row.n > until and row.method in FACTORED]
    if beyond and max(row.error for row in beyond) > AGREED:
        worst = max(beyond, key=lambda row: row.error)
        words += (
            f" Beyond, the methods that factor M lose digits as its condition grows: {worst.error:.1e} "
            f"({worst.method}, n = {worst.n}, condition {worst.condition:.0e})."
        )
    if largest > until:
        words += (
            f" The fully recursive method is within {max(errors_of(report, RECURSIVE).values()):.1e} of "
            f"{reference_words(report)} up to n = {largest}; kinegrad's kernel, which works in the world frame and not "
            f"in the frames of the bodies, within {max(errors_of(report, LIBRARY).values()):.1e}."
        )
    return words


def _inverse_words(report: Report) -> str:
    inverted, factored = errors_of(report, INVERTED), errors_of(report, FACTORED[1])
    n = max((n for n in inverted if n in factored and n <= PAPER_LARGEST), key=inverted.__getitem__)
    until = agreed_until(report.pairs, inverted=True)
    return (
        f"With M inverted the conventional method errs by up to {inverted[n]:.1e} among the paper's sizes, at n = {n}, "
        f"where the frugal one, with M factored, errs by {factored[n]:.1e}"
        + (f"; it agrees with all others to {AGREED:.0e} up to n = {until}." if until < max(inverted) else ".")
    )


# --- the double pendulum ------------------------------------------------------------------------------------------


def _pendulum_words(report: Report) -> str:
    worst = {
        method: max(row.relative for row in report.deviations if row.method == method)
        for method in dict.fromkeys(row.method for row in report.deviations)
    }
    return (
        "Double pendulum, 20 s, largest deviation from the fully recursive sensitivities, relative to their largest "
        "value: "
        + ", ".join(f"{method} {value:.1e}" for method, value in worst.items())
        + f"; the integrator's own error is {report.integration_error:.1e}, the largest over the four parameters."
    )


def _difference_words(report: Report) -> str:
    name = report.perturbations[0].parameter
    best = {method: _best(report, name, method) for method in ("forward", "central")}
    same = {row.tolerance: row.error for row in report.perturbations if _is(row, name, "fully recursive")}
    loose = {
        row.step: row.error
        for row in report.perturbations
        if row.tolerance == swing.LOOSE and _is(row, name, "central")
    }
    paper = swing.STEPS[name]
    return (
        f"No perturbation makes differences by {name} as good: at best forward ones err by "
        f"{best['forward'].error:.1e} (at {best['forward'].step:.0e}), central ones by {best['central'].error:.1e} "
        f"(at {best['central'].step:.0e}), the fully recursive method by {same[swing.TIGHT]:.1e} with the same "
        f"integrator (by {name} alone). With a tolerance of {swing.LOOSE:.0e} central differences err by "
        f"{loose[paper]:.1e} at the paper's {paper:.0e} ({median(loose.values()):.1e} in the median over all "
        f"perturbations), the fully recursive method by {same[swing.LOOSE]:.1e}."
    )


def _is(row: Perturbation, name: str, method: str) -> bool:
    return (row.parameter, row.method) == (name, method)


def _best(report: Report, name: str, method: str) -> Perturbation:
    rows = [row for row in report.perturbations if _is(row, name, method) and row.tolerance == swing.TIGHT]
    return min(rows, key=lambda row: row.error)
