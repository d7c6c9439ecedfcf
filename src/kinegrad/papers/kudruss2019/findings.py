"""What :mod:`kinegrad.papers.kudruss2019` has found, in sentences without markup, for page and terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinegrad.papers.kudruss2019.accuracy import Accuracy
from kinegrad.papers.kudruss2019.effort import BOUNDS, SOLVE, Effort
from kinegrad.papers.kudruss2019.figures import PAPER
from kinegrad.papers.kudruss2019.lifting import KINDS, Convergence
from kinegrad.papers.kudruss2019.systems import CARTS, MODES

if TYPE_CHECKING:
    from kinegrad.papers.kudruss2019 import Report

__all__ = ["at_worst", "disturbed_words", "effort_of", "evaluations_of", "findings", "overtaken"]

EXACT = ("tangent", "structured")


def findings(report: Report) -> Iterator[str]:
    """Sentences, the most important ones first."""
    yield _accuracy_words(report.errors)
    yield _order_words(report.errors)
    yield _upright_words(report.errors)
    yield from _effort_words(report.efforts)
    yield _solve_words(report.efforts)
    words = disturbed_words(report.efforts)
    if words:
        yield words
    yield from _convergence_words(report.convergences)


# --- figure 3 -------------------------------------------------------------------------------------------------------


def _convergence_words(rows: Sequence[Convergence]) -> Iterator[str]:
    """Iterations with exact derivatives against differences, for each kind of method."""
    for kind in KINDS:
        pairs = []
        for mass in dict.fromkeys(row.mass for row in rows):
            exact, other = (
                next((row for row in rows if (row.mass, row.method) == (mass, f"{kind}, {how}")), None)
                for how in ("exact", "differences")
            )
            if exact is not None and other is not None:
                same = abs(exact.objective - other.objective) < 1e-4 * abs(exact.objective)
                end = (
                    "" if same else f" (at another optimum, J = {other.objective:.4f} instead of {exact.objective:.4f})"
                )
                pairs.append(f"{_iterations(exact)} against {_iterations(other)} with a box of {mass:g} kg{end}")
        if pairs:
            yield (
                f"Figure 3, {kind}: iterations with exact first derivatives against forward differences: "
                f"{'; '.join(pairs)}."
            )


def _iterations(row: Convergence) -> str:
    return f"{row.iterations}" if row.status == "optimal" else f"{row.iterations} ({row.status})"


# --- figure 1 -------------------------------------------------------------------------------------------------------


def at_worst(errors: Sequence[Accuracy], modes: Sequence[str]) -> Accuracy:
    """The row of some modes with the largest mean error, over states in which the box is not near upright."""
    return max((row for row in errors if row.mode in modes), key=lambda row: row.level)


def _accuracy_words(errors: Sequence[Accuracy]) -> str:
    worst = {mode: at_worst(errors, [mode]) for mode in ("forward", "central")}
    exact = at_worst(errors, EXACT)
    orders = np.log10(worst["forward"].level / exact.level)
    return (
        f"Mean errors at worst: forward differences {worst['forward'].level:.1e} ({_where(worst['forward'])}), "
        f"central ones {worst['central'].level:.1e} ({_where(worst['central'])}), exact modes {exact.level:.1e} "
        f"({_where(exact)}). The paper says {PAPER['forward']:.0e}, {PAPER['central']:.0e} and about "
        f"{PAPER['tangent']:.0e}. Exact modes are better than forward differences by {orders:.0f} orders of "
        "magnitude here; the paper says up to 5, although its own numbers are 8 apart. Relative to the largest "
        f"derivative of a state they err by {_largest_relative(errors, EXACT):.1e} at most on average: rounding."
    )


def _where(row: Accuracy) -> str:
    return f"{row.algorithm}, {row.cart}"


def _largest_relative(errors: Sequence[Accuracy], modes: Sequence[str]) -> float:
    return max(row.relative for row in errors if row.mode in modes and row.algorithm != "FDCONT")


def _order_words(errors: Sequence[Accuracy]) -> str:
    parts = []
    for cart in CARTS:
        rows = {row.algorithm: row.level for row in errors if (row.cart, row.mode) == (cart, "structured")}
        best, worst = min(rows, key=rows.__getitem__), max(rows, key=rows.__getitem__)
        parts.append(f"{cart}: {best} best ({rows[best]:.1e}), {worst} worst ({rows[worst]:.1e})")
    return (
        f"Among the algorithms, by mean errors of ED, {'; '.join(parts)}. The paper finds CRBA best and ABA worst on "
        "both carts. It is a matter of size: accelerations are torques divided by small inertias, and so are "
        "their errors."
    )


def _upright_words(errors: Sequence[Accuracy]) -> str:
    row = next(row for row in errors if (row.algorithm, row.mode) == ("FDCONT", "structured"))
    forward = next(row for row in errors if (row.algorithm, row.mode) == ("FDCONT", "forward"))
    return (
        "Where the free box stands upright its two wheels hold it against one motion only, and forces grow without "
        f"bound nearby. The mean of FDCONT over all states says how near the nearest came: {row.mean:.1e} for ED and "
        f"{forward.mean:.1e} for FD, with medians of {row.quantiles[2]:.1e} and {forward.quantiles[2]:.1e}. Means "
        "above are of the states within 60° of level. The text of the paper does not mention such states."
    )


# --- figure 2 -------------------------------------------------------------------------------------------------------


def effort_of(efforts: Sequence[Effort], task: str, mode: str, directions: int) -> float:
    """The effort of a mode at a number of directions."""
    wanted = (task, mode, directions)
    return next(row.effort for row in efforts if (row.task, row.mode, row.directions) == wanted)


def overtaken(efforts: Sequence[Effort], task: str) -> int | None:
    """From how many directions on ED is cheaper than FD, of those measured; None if it is not at the largest.

    >>> rows = [Effort("ABA", mode, k, 1e-6 * effort, 1e-6, 9, False)
    ...         for k in (1, 2, 4) for mode, effort in (("forward", 1 + k), ("structured", 3.5))]
    >>> overtaken(rows, "ABA")
    4
    """
    counts = sorted({row.directions for row in efforts})
    ahead = [effort_of(efforts, task, "structured", k) < effort_of(efforts, task, "forward", k) for k in counts]
    if not ahead[-1]:
        return None
    return counts[len(ahead) - ahead[::-1].index(False)] if False in ahead else counts[0]


def _effort_words(efforts: Sequence[Effort]) -> Iterator[str]:
    tasks = [task for task in dict.fromkeys(row.task for row in efforts) if task != SOLVE]
    k = max(row.directions for row in efforts)
    ranges = []
    for mode, name in MODES.items():
        each = {task: effort_of(efforts, task, mode, k) for task in tasks}
        low, high = min(each, key=each.__getitem__), max(each, key=each.__getitem__)
        bound = f"where the bound is {BOUNDS[mode](k):g}"
        ranges.append(f"{name} {each[low]:.3g} ({low}) to {each[high]:.3g} ({high}), {bound}")
    yield f"Along {k} directions, in evaluations of the function: {'; '.join(ranges)}."
    yield _overhead_words(efforts, tasks, k)
    crossings = {task: overtaken(efforts, task) for task in tasks}
    never = [task for task, at in crossings.items() if at is None]
    parts = ", ".join(f"{task} from {at}" for task, at in crossings.items() if at is not None)
    yield (
        f"ED is cheaper than FD from so many directions on: {parts}"
        + (f"; not for {', '.join(never)}" if never else "")
        + ". The paper finds that it outperforms FD for all its algorithms. Here ED hardly depends on the number of "
        "directions where whole matrices of derivatives are at hand, which then are only multiplied by D."
    )
    found = {task: [effort_of(efforts, task, mode, k) for mode in ("forward", "tangent", "central")] for task in tasks}
    above = [task for task in tasks if found[task][1] > BOUNDS["tangent"](k)]
    between = [task for task in tasks if sorted(found[task]) == found[task]]
    yield (
        f"AD exceeds its bound of 1 + 1.5 k at k = {k} for {_listed(above)}, and lies between FD and FDC for "
        f"{_listed(between)}; the paper finds it above the bound for CRBA and between FD and FDC for NEFF and CRBA. "
        "A dual number carries its value along each direction anew, which the bound counts once; and batches of "
        "states make evaluations cheap, so that moving states and copying results counts for more than in the paper."
    )


def evaluations_of(efforts: Sequence[Effort], task: str, mode: str, directions: int) -> float | None:
    """Effort of the evaluations that differences take, without the rest; None of other modes."""
    wanted = (task, mode, directions)
    return next(row.evaluations for row in efforts if (row.task, row.mode, row.directions) == wanted)


def _overhead_words(efforts: Sequence[Effort], tasks: Sequence[str], k: int) -> str:
    """What differences take besides evaluations of the function."""
    whole = {task: effort_of(efforts, task, "forward", k) for task in tasks}
    alone = {task: evaluations_of(efforts, task, "forward", k) or 0.0 for task in tasks}
    listed = ", ".join(f"{task} {alone[task]:.3g} of {whole[task]:.3g}" for task in tasks)
    return (
        f"Of the effort of FD, {1 + k} evaluations of the function in one batch are: {listed}. The rest is moving "
        "states and dividing differences in NumPy, which a compiled loop over one state, as the paper’s, does not have."
    )


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["CRBA", "NEFF", "ABA"]), _listed([])
    ('CRBA, NEFF and ABA', 'none')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none"


def _solve_words(efforts: Sequence[Effort]) -> str:
    k = max(row.directions for row in efforts)
    forward, exact = (effort_of(efforts, SOLVE, mode, k) for mode in ("forward", "tangent"))
    return (
        f"The linear system (1) alone, factored once for {k} directions, takes {exact:.2g} evaluations, "
        f"{exact / forward:.2g} of the time of forward differences, which factor each perturbed matrix "
        f"({forward:.3g} evaluations). The paper: less than a quarter. Our system has 12 unknowns; the "
        "larger one is, the more is saved by keeping its factors."
    )


def disturbed_words(efforts: Sequence[Effort]) -> str:
    """What to say where the machine was disturbed; nothing if it was not."""
    count = sum(row.disturbed for row in efforts)
    if not count:
        return ""
    return (
        f"While {count} of {len(efforts)} efforts were measured, times of the same work differed so much that "
        "something else must have been at work on the machine: figure 2 is not as exact as it could be. Run it "
        "again when the machine is idle."
    )
