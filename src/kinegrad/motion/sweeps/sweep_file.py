"""Sweeps described in TOML files, read strictly.

    problem = "two-link-lifting"    # of ``kinegrad predict``; or "module:function", which makes a MotionProblem
    starts = 8                      # guesses for each combination; the first is the problem's own
    seed = 1                        # of the others
    spread = 0.3                    # rad or m, how far their control points are from it
    stretch = 3.0                   # and their durations, as a factor

    [vary]                          # parameters of the problem, all combinations
    load = [5.0, 10.0, 15.0]
    weight = {from = 0.001, to = 0.1, count = 5, spacing = "logarithmic"}    # or "linear", if not given

    [fixed]                         # other parameters of it
    segments = 20

    [solve]                         # how it is solved
    solver = "ipopt"
    tolerance = 1e-6
    max_iterations = 500

Only the problem and [vary] have to be there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinegrad.errors import shown
from kinegrad.io.toml.tables import Table, read_toml
from kinegrad.io.whole_file import checked_path
from kinegrad.motion.nlp.solver import GRADIENTS, HESSIANS, SOLVERS

__all__ = ["SweepPlan", "read_sweep"]

MOST = 10_000  # values of one parameter


@dataclass(frozen=True)
class SweepPlan:
    """What a file says; arguments of :func:`sweep`."""

    problem: str
    vary: dict[str, tuple[Any, ...]]
    fixed: dict[str, Any]
    starts: int
    seed: int
    spread: float
    stretch: float
    options: dict[str, Any]


def read_sweep(path: str | os.PathLike[str]) -> SweepPlan:
    """Read a sweep; a FileError with all problems of the file, by line.

    Parameters
    ----------
    path : str or pathlib.Path
        As the head of :mod:`kinegrad.motion.sweeps.sweep_file` shows.
    """
    file = read_toml(checked_path(path))
    root = file.root
    problem = root.text("problem")
    starts, seed = _whole(root, "starts", 1, least=1), _whole(root, "seed", 0, least=0)
    spread, stretch = _positive(root, "spread", 0.3), _positive(root, "stretch", 3.0, least=1.0)
    vary = {}
    if (table := root.table("vary")) is not None:
        vary = {name: _values(table, name, value) for name, value in table.entries()}
        if not vary:
            table.problem("is empty; expected parameters and their values")
    fixed = {}
    if (table := root.table("fixed", None)) is not None:
        for name, value in table.entries():
            if name in vary:
                table.problem("is in [vary], too; expected it in one of them", name)
            fixed[name] = value
    options = _options(root.table("solve", None))
    root.end()
    file.check()
    return SweepPlan(problem, vary, fixed, starts, seed, spread, stretch, options)


def _values(table: Table, name: str, value: Any) -> tuple[Any, ...]:
    """The values of a parameter: a list of them, or a grid."""
    if isinstance(value, dict):
        return _grid(Table(table.file, (*table.path, name), value))
    if not isinstance(value, list) or not value:
        table.problem(f"is {shown(value)}; expected a list of values, or {{from, to, count}}", name)
        return ()
    if len(value) > MOST:
        table.problem(f"has {len(value)} values; expected at most {MOST}", name)
    for k, one in enumerate(value):
        if isinstance(one, float) and not np.isfinite(one):
            table.problem(f"has {one} at {k}; expected finite numbers", name)
        if any(type(one) is type(other) and one == other for other in value[:k]):
            table.problem(f"has {shown(one)} twice; expected different values", name)
            break
    return tuple(value)


def _grid(table: Table) -> tuple[float, ...]:
    first, last = table.number("from"), table.number("to")
    count = _whole(table, "count", None, least=2)
    spacing = table.text("spacing", "linear", among=("linear", "logarithmic"))
    table.end()
    if first == last:
        table.problem(f"goes from {first:g} to {last:g}; expected different numbers")
    if count > MOST:
        table.problem(f"is {count}; expected at most {MOST}", "count")
        return ()
    if spacing == "linear":
        return tuple(float(x) for x in np.linspace(first, last, count))
    if not (first > 0 and last > 0):
        table.problem(f"goes from {first:g} to {last:g}; expected positive numbers for logarithmic spacing")
        return ()
    return tuple(float(x) for x in np.geomspace(first, last, count))


def _options(table: Table | None) -> dict[str, Any]:
    if table is None:
        return {}
    found: dict[str, Any] = {}
    for name, words in (("solver", SOLVERS), ("hessian", HESSIANS), ("gradient", GRADIENTS)):
        if name in table:
            found[name] = table.text(name, None, among=words)
    if "tolerance" in table:
        found["tolerance"] = _positive(table, "tolerance", 1e-6, most=1.0)
    if "max_iterations" in table:
        found["max_iterations"] = _whole(table, "max_iterations", None, least=1)
    if "refine" in table:
        found["refine"] = table.flag("refine", False)
    if (own := table.table("options", None)) is not None:
        found["options"] = dict(own.entries())
    table.end()
    return found


def _whole(table: Table, key: str, default: int | None, *, least: int) -> int:
    found = table.value(key, default) if default is not None else table.value(key)
    if type(found) is not int or found < least:
        if key in table:
            table.problem(f"is {shown(found)}; expected a whole number of at least {least}", key)
        return least
    return found


def _positive(table: Table, key: str, default: float, *, least: float = 0.0, most: float = np.inf) -> float:
    found = table.number(key, default)
    if not (np.isnan(found) or (least <= found < most and found > 0)):
        limits = f"a positive number below {most:g}" if most < np.inf else f"a number of at least {least:g}"
        table.problem(f"is {found:g}; expected {limits if least or most < np.inf else 'a positive number'}", key)
    return float(found)
