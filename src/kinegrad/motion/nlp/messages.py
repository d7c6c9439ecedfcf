"""How a solve ended, in a sentence: of a failure with the rows that are violated most, and where in time they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.nlp.conditions import SLACK, Conditions
from kinegrad.motion.nlp.solution import STATUSES

__all__ = ["explanation", "most_violated", "named"]

Array = NDArray[np.float64]
NAMED = 3  # rows in a message


def explanation(
    scaled: Any, status: str, claimed: str, word: str, left: Conditions, curvature: float, x: Array, g: Array,
    tolerance: float,
) -> str:  # fmt: skip
    """The message of a solution: its status, the one that the solver claimed, and what is left of the conditions."""
    rest = (
        f"optimality {left.optimality:.1e}, violation {left.violation:.1e}, complementarity {left.complementarity:.1e}"
    )
    if status == "optimal":
        return f"an optimum{'' if claimed == status else f', though the solver ended with {word}'}: {rest}, scaled"
    text = f"{STATUSES[status]} ({word}); {rest}, scaled"
    if claimed == "optimal" and status == "stalled":
        text = (
            f"the solver reports an optimum ({word}), but at its point the conditions of one are off by more than "
            f"{SLACK} tolerances of {tolerance:.1g}: {rest}, scaled"
        )
    if status == "saddle":
        text = f"{STATUSES[status]}: the curvature along it is {curvature:.2g}; {rest}, scaled"
    if left.violation > SLACK * tolerance:
        text += f". Violated most: {most_violated(scaled.program, x, g)}"
    if scaled.failures:
        how_many = "1 evaluation" if scaled.failures == 1 else f"{scaled.failures} evaluations"
        text += f". {how_many} failed, the last because {scaled.trouble}"
    return text


def most_violated(program: Any, x: Array, g: Array, count: int = NAMED) -> str:
    """The rows and bounds that are violated most, by their scales, with values and limits."""
    found: list[tuple[float, str]] = []
    sides = (
        (g, program.g_lower, program.g_upper, program.g_scale, "row"),
        (x, program.x_lower, program.x_upper, program.x_scale, "variable"),
    )
    for values, lower, upper, scale, kind in sides:
        excess = np.maximum(np.maximum(lower - values, values - upper), 0.0) / scale
        for k in np.argsort(-excess, kind="stable")[:count]:
            if excess[k] > 0:
                below = lower[k] > values[k]
                limit, side = (lower[k], "below") if below else (upper[k], "above")
                what = "not equal to" if lower[k] == upper[k] else side
                name = named(program, kind, int(k), x)
                found.append((float(excess[k]), f"{name} is {values[k]:.6g}, {what} {limit:.6g}"))
    found.sort(key=lambda each: -each[0])
    return "; ".join(text for _, text in found[:count])


def named(program: Any, kind: str, k: int, x: Array | None = None) -> str:
    """What a program calls a row or a variable; its number, if it fails at that: no solution is lost for a name."""
    try:
        if kind == "row" and x is not None and hasattr(program, "row_name_at"):
            return str(program.row_name_at(k, x))
        return str(getattr(program, f"{kind}_name")(k))
    except Exception:
        return f"{kind} {k}"
