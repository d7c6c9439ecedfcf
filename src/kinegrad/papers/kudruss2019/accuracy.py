"""Figure 1 of [kudruss2019]: errors of the four modes, against derivatives in closed form.

States and directions are uniform in [−π, π], 3n directions for each state.  The closed forms are evaluated in extended
precision, so that they are exact beside what is measured.  The error of a state is that of its worst entry and
direction: as it is, and relative to the largest entry of the derivatives there.

Where the box stands upright, at |φ| = 90°, its wheels are above each other and hold it against one motion only: forces
and their derivatives grow without bound as a state comes near that, and a mean over all states says how near the
nearest came.  For comparison with the mean of the paper there is therefore one of the states within 60° of level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad.directional import STEPS, directional
from kinegrad.papers.kudruss2019.cart import EXTENDED, PHI
from kinegrad.papers.kudruss2019.systems import MODES, Algorithm, Mechanism, uniform
from kinegrad.papers.report.page import Progress

__all__ = ["QUANTILES", "Accuracy", "StepError", "accuracies", "step_errors"]

Array = NDArray[np.float64]
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
CHUNK = 1000  # states at a time
FLOOR = 1e-20  # of an error, which is zero where every rounding happened to be exact


@dataclass(frozen=True)
class Accuracy:
    """Errors of a mode over all states.

    Attributes
    ----------
    cart, algorithm, mode : str
    samples, directions : int
        States, and directions at each of them.
    mean, largest : float
        Of the errors as they are.
    quantiles : tuple of float
        The same at ``QUANTILES``.
    relative : float
        The mean of the errors relative to the largest entry of the state's derivatives.
    level : float
        The mean of the errors where the box is within 60° of level, upside down or not; always, in minimal coordinates.
    """

    cart: str
    algorithm: str
    mode: str
    samples: int
    directions: int
    mean: float
    largest: float
    quantiles: tuple[float, ...]
    relative: float
    level: float


@dataclass(frozen=True)
class StepError:
    """The median error of differences, relative to the largest entry of a state's derivatives, with a given step; of ED
    with a step of zero."""

    cart: str
    algorithm: str
    mode: str
    step: float
    relative: float


def accuracies(carts: Sequence[Mechanism], samples: int, say: Progress) -> list[Accuracy]:
    """Errors of all modes of all algorithms of both carts."""
    rows = []
    work = [(cart, algorithm) for cart in carts for algorithm in cart.algorithms]
    for done, (cart, algorithm) in enumerate(work):
        say("errors", done, len(work))
        chunks = range(-(-samples // CHUNK))
        parts = [_errors(cart, algorithm, dict.fromkeys(MODES), part, CHUNK) for part in chunks]
        level = np.concatenate([_level(cart, part, CHUNK) for part in chunks])[:samples]
        for mode in MODES:
            errors, sizes = np.concatenate([part[mode] for part in parts], axis=1)[:, :samples]
            rows.append(
                Accuracy(
                    cart.name, algorithm.name, mode, samples, 3 * cart.model.n,
                    mean=float(errors.mean()),
                    largest=float(errors.max()),
                    quantiles=tuple(np.quantile(np.maximum(errors, FLOOR), QUANTILES).tolist()),
                    relative=float((errors / np.maximum(sizes, FLOOR)).mean()),
                    level=float(errors[level].mean()),
                )
            )  # fmt: skip
    say("errors", len(work), len(work))
    return rows


def _level(cart: Mechanism, part: int, samples: int) -> NDArray[np.bool_]:
    """Where the box is within 60° of level, (samples,)."""
    assert cart.cart is not None
    if PHI not in cart.cart.coordinates:
        return np.ones(samples, dtype=bool)
    phi = _states(cart, part, samples)[0][:, cart.cart.coordinates.index(PHI)]
    return np.asarray(np.abs(np.cos(phi)) >= 0.5)


def _states(cart: Mechanism, part: int, samples: int) -> Array:
    """q, v, and a or τ, (3, samples, n)."""
    n = cart.model.n
    states: Array = uniform([2019, n, part], 3, samples, n)
    return states


def step_errors(carts: Sequence[Mechanism], steps: Sequence[float], samples: int, say: Progress) -> list[StepError]:
    """Errors of differences of accelerations, of both carts, by step; and of ED."""
    rows = []
    for done, step in enumerate((0.0, *steps)):
        say("steps", done, len(steps) + 1)
        modes: dict[str, float | None] = dict.fromkeys(STEPS, step) if step else {"structured": None}
        for cart in carts:
            algorithm = cart.algorithms[-1]
            for mode, (errors, sizes) in _errors(cart, algorithm, modes, 0, samples).items():
                rows.append(StepError(cart.name, algorithm.name, mode, step, float(np.median(errors / sizes))))
    say("steps", len(steps) + 1, len(steps) + 1)
    return rows


def _errors(
    cart: Mechanism, algorithm: Algorithm, modes: dict[str, float | None], part: int, samples: int
) -> dict[str, tuple[Array, Array]]:
    """Errors at some states, (samples,), by mode and its step, and the sizes of the derivatives there."""
    n = cart.model.n
    state = list(_states(cart, part, samples)[: algorithm.parts])
    D = list(uniform([2020, n, part], 3, samples, n, 3 * n)[: algorithm.parts])
    exact = _exact(cart, algorithm, state, D)
    axes = tuple(range(1, exact.ndim))
    sizes = np.abs(exact).max(axis=axes).astype(np.float64)
    errors = {}
    for mode, step in modes.items():
        found = directional(
            algorithm.function, cart.model, state, D, mode=mode, step=step, **cart.options(algorithm)
        ).derivative
        errors[mode] = np.abs(found - exact).max(axis=axes).astype(np.float64), sizes
    return errors


def _exact(cart: Mechanism, algorithm: Algorithm, state: Sequence[Array], D: Sequence[Array]) -> NDArray[np.longdouble]:
    """Derivatives in closed form, (samples, ..., directions)."""
    assert cart.cart is not None
    values = [x[:, None, :].astype(EXTENDED) for x in state]
    along = [np.ascontiguousarray(d.swapaxes(-1, -2)).astype(EXTENDED) for d in D]
    return np.moveaxis(getattr(cart.cart, algorithm.closed)(*values, *along), 1, -1)
