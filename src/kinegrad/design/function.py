"""Functions that build a model, differentiated: called with numbers that carry slopes, and checked.

Complex step is exact for analytic functions and silently wrong for others (``abs`` drops the slope).  So each slope is
compared once with a finite difference: not to improve it, but to refuse functions that do not qualify.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from kinegrad._engine import variable_fields
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads, load_arrays
from kinegrad.model import Model
from kinegrad.model.elements import element_numbers
from kinegrad.model.frames import placements
from kinegrad.model.numbers import STEP, FixedError, carry_slopes, numbers, slope

Array = NDArray[np.float64]
Names = tuple[str, ...] | None


class Built(NamedTuple):
    """What a function returned."""

    model: Model
    loads: Loads | None


def check_call(function: Callable[..., Any], names: Names) -> None:
    """Refuse a function that does not take keywords of these names, or one array, as far as one can ask it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        _ = signature.bind(None) if names is None else signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        taken = "one array" if names is None else f"arguments called {shown(list(names))}"
        raise InputError(f"`function` does not take {taken}: {error}; expected `values` to be its arguments") from None


def call(function: Callable[..., Any], names: Names, values: Array) -> Built:
    """Call it with keywords, or with one array."""
    given = function(values.copy()) if names is None else function(**dict(zip(names, values.tolist(), strict=True)))
    return _built(given)


def slopes_of(function: Callable[..., Any], names: Names, values: Array, base: Built) -> dict[str, Array]:
    """Slopes of fields of model and loads along each parameter, (p, *shape of the field); those that vary at all."""
    labels = names or tuple(f"p{k}" for k in range(len(values)))
    rows = []
    for k, label in enumerate(labels):
        with carry_slopes(), warnings.catch_warnings():
            warnings.simplefilter("error", ComplexWarning)
            try:
                built = call_carrying(function, names, values, 1j * STEP * (np.arange(len(values)) == k))
                fields = built_fields(built)
            except FixedError as error:
                raise InputError(f"`function` cannot be differentiated by {shown(label)}: {error}") from error
            except Exception as error:  # it built the model from plain numbers: the slope is what it does not take
                cut = "it makes a plain number of one that carries a slope (float, math, writing into a real array)"
                reason = cut if isinstance(error, ComplexWarning) else error
                raise InputError(
                    f"`function` cannot be differentiated by {shown(label)}: {reason}; expected arithmetic and NumPy's "
                    "analytic functions throughout, see Design.from_function"
                ) from error
        check_structure(base, built, f"when {shown(label)} varies")
        rows.append({what: slope(x) for what, x in fields.items()})
    found = {what: np.array([row[what] for row in rows]) for what in rows[0]}
    return {what: x for what, x in found.items() if x.any()}


def check_slopes(
    function: Callable[..., Any], names: Names, values: Array, labels: tuple[str, ...], slopes: dict[str, Array],
    confirmed: Callable[[int], float],
) -> None:  # fmt: skip
    """Refuse a function whose slopes are not those of finite differences, or that is not the same twice.

    `confirmed` has the last word on a parameter: differences are wrong, too, where a function hardly is smooth.  It
    tells how far around the value slopes are right.  Where that is a small part of the step of the differences, or less
    than it with a slope of zero, the function is constant in steps, as if it looked models up by rounded values.
    """
    built = call(function, names, values)
    here, again = (built_fields(x) for x in (built, call(function, names, values)))
    if any(not np.array_equal(here[what], again[what]) for what in here):
        raise InputError("`function` gives different models for the same values; expected the same each time")
    for k, label in enumerate(labels):
        h = 1e-5 * max(abs(values[k]), 0.1)
        near = [_beside(function, names, values, k, way * h) for way in (-1.0, 1.0)]
        for other in near:
            if other is not None:  # slopes say nothing of axes and couplings, which may follow real parts alone
                check_structure(built, other, f"when {shown(label)} varies")
        beside = [None if other is None else built_fields(other) for other in near]
        sides = [x for x in beside if x is not None]
        if not sides:
            found = f"`function` fails on both sides of {shown(label)} = {values[k]:g}"
            raise InputError(f"{found}; expected a model near it")
        (low, high), distance = (beside, 2 * h) if len(sides) == 2 else ((here, sides[0]), h * (1 if beside[1] else -1))
        for what, x in here.items():
            difference = (high[what] - low[what]) / distance  # type: ignore[index]
            exact = slopes[what][k] if what in slopes else np.zeros_like(x)
            # of a central difference the error is about h², of a one-sided one h; and rounding divided by h
            relative = 1e-5 if len(sides) == 2 else 1e-3
            noise = 50 * np.finfo(float).eps * max(1e-3, np.abs(x).max(initial=0.0)) / h
            away = np.abs(exact - difference) - relative * np.maximum(np.abs(exact), np.abs(difference))
            if not (away > noise).any():
                continue
            reach, constant = confirmed(k), bool((exact[away > noise] == 0).any())
            if reach < 1e-3 * h or (constant and reach < h):
                where = np.unravel_index(int(np.argmax(away)), away.shape)
                raise InputError(
                    f"`function` is not analytic in {shown(label)} at {values[k]:g}: the slope of `{what}`"
                    f"{[int(i) for i in where]} is {exact[where]:.6g} by complex step, {difference[where]:.6g} by "
                    "differences; abs, np.linalg.norm and kinks do that, see Design.from_function"
                )


def call_carrying(function: Callable[..., Any], names: Names, values: Array, beside: Array) -> Built:
    """Call it `beside` the values, a complex vector; those that it leaves alone stay plain where they have names."""
    if names is None:
        return _built(function(values + beside))
    arguments: dict[str, Any] = dict(zip(names, values.tolist(), strict=True))
    arguments |= {names[k]: np.complex128(values[k] + beside[k]) for k in np.flatnonzero(beside)}
    return _built(function(**arguments))


def _built(given: Any) -> Built:
    pair = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    model, loads = pair
    if not isinstance(model, Model) or not (loads is None or isinstance(loads, Loads)):
        raise InputError(f"`function` returns a {type(given).__name__}; expected a Model, or (Model, Loads)")
    return Built(model, loads)


def built_fields(built: Built) -> dict[str, Array]:
    """What of a model and its loads may vary."""
    model, loads = built
    fields = variable_fields(model) | {"frames": placements(model.frames), "elements": element_numbers(model)}
    if loads is not None:
        fields |= load_arrays(loads, model, lambda name, value: numbers(value))
        if any(fields[what].ndim != 2 for what in ("force", "point", "torque")):
            raise InputError("`function` returns loads with batch axes; expected one load for all states")
    return fields


def _beside(function: Callable[..., Any], names: Names, values: Array, k: int, change: float) -> Built | None:
    moved = values.copy()
    moved[k] += change
    try:
        with np.errstate(all="ignore"):
            built = call(function, names, moved)
            built_fields(built)
            return built
    except Exception:  # beyond what a model can be, such as a negative mass, or what the function takes
        return None


def check_structure(base: Built, built: Built, when: str) -> None:
    """Refuse a function whose model is of another tree, or loses its loads, at other values."""
    for what in ("joint_names", "link_names", "parents"):
        if not np.array_equal(getattr(base.model, what), getattr(built.model, what)):
            raise InputError(f"`function` gives another `{what}` {when}; expected the same tree")
    frames = ([(name, x.link) for name, x in each.model.frames.items()] for each in (base, built))
    if next(frames) != next(frames):
        raise InputError(f"`function` gives another `frames` {when}; expected the same names in the same links")
    elements = ([(name, type(x), x.link, x.other) for name, x in each.model.elements.items()] for each in (base, built))
    if next(elements) != next(elements):
        raise InputError(f"`function` gives another `elements` {when}; expected the same ones between the same links")
    for one, two in zip(base.model.joints, built.model.joints, strict=True):
        if (one.kind, one.axis) != (two.kind, two.axis):
            raise InputError(f"`function` gives another joint {when}: {one}, then {two}")
    if base.model.coordinates != built.model.coordinates:
        raise InputError(
            f"`function` gives other coordinates {when}; expected the same couplings, with the same constants, and the "
            "same quaternions"
        )
    if (base.loads is None) != (built.loads is None):
        raise InputError(f"`function` returns loads only sometimes, {when}; expected them always")
