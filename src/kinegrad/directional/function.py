"""Directional derivatives of the algorithms of dynamics along many directions at once, in four modes.

With a state x and directions D = (d_1 … d_k), one call gives f(x) and the k derivatives ∂f(x; d) of [kudruss2019]:

    forward       (f(x + h d) − f(x)) / h                its FD     1 + k evaluations, half of the digits
    central       (f(x + h d) − f(x − h d)) / 2h         its FDC    1 + 2k evaluations, two thirds of the digits
    tangent       duals through every operation          its AD     exact; work in proportion to k
    structured    topology and sparsity exploited        its ED     exact; values, and factors, shared by all directions

The first two are there to be compared with; the last is the one to use.  Of the mass matrix it is algorithm 3 of the
paper, with what does not depend on the direction taken out of its loops; of torques and accelerations, the matrices of
derivatives that topology leaves (``rnea_derivatives.py`` and its like), times D.  Constrained dynamics, impacts and
hybrid dynamics are solutions of linear systems: in both exact modes their matrices are factored once for all directions
(proposition 3, algorithm 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.directional.algorithms import ALGORITHMS
from kinegrad.directional.differences import STEPS, differences
from kinegrad.directional.sweep import Algorithm, Sweep
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["MODES", "STEPS", "Directional", "directional"]

Array = NDArray[np.float64]
MODES = ("structured", "tangent", *STEPS)


@dataclass(frozen=True, eq=False)
class Directional(Result):
    """A function at a state, and its derivatives along directions.

    Attributes
    ----------
    value : ndarray, shape (..., *r)
        What the function returns there.
    derivative : ndarray, shape (..., *r, k)
        Its derivatives; the last axis is that of the directions.
    """

    value: Array
    derivative: Array


def directional(
    function: Callable[..., Any],
    model: Model,
    state: Sequence[ArrayLike],
    D: Sequence[ArrayLike | None],
    *,
    mode: str = "structured",
    constraints: ConstraintSet | None = None,
    restitution: ArrayLike | None = None,
    prescribed: Iterable[str] | None = None,
    link: str | Sequence[str] | None = None,
    point: ArrayLike | None = None,
    loads: Loads | None = None,
    step: float | None = None,
    threads: int | None = None,
) -> Directional:
    """A function of dynamics and its derivatives along k directions of its state, in one sweep.

    Parameters
    ----------
    function : callable
        One of :func:`mass_matrix`, of (q,); :func:`bias_forces`, of (q, v); :func:`inverse_dynamics`, of (q, v, a);
        :func:`forward_dynamics`, of (q, v, tau); :func:`constrained_dynamics`, of (q, v, tau), whose value is the
        accelerations and then the forces of the constraints, (..., n + m); :func:`impact`, of (q, v): speeds and then
        impulses, (..., n + m); :func:`hybrid_dynamics`, of (q, v, tau, a): accelerations and then torques, (..., 2 n);
        :func:`jacobian`, of (q,): linear and then angular rows, (..., 6, n), or (..., k, 6, n) of k points;
        ``ConstraintSet.jacobian``, G of (q,); ``ConstraintSet.drift``, γ of (q, v).
    model : Model
    state : sequence of array_like, shape (..., n) each
        What `function` takes of the state, in its order and units.
    D : sequence of array_like, shape (..., n, k) each, or None
        The directions: for each part of the state how it changes along each of them, column by column; None for a part
        that does not change.  Changes of quaternions are turns about axes of the child, as those of :func:`integrate`.
        Batch shapes broadcast with those of the state.
    mode : {"structured", "tangent", "forward", "central"}
        ``structured`` is exact and exploits what the mechanism is like: values are computed once for all directions,
        and entries are skipped that topology makes zero.  ``tangent`` is exact, too: the chain rule through every
        operation of the algorithm, for each direction anew.  ``forward`` and ``central`` are finite differences.
        (Where coordinates are not joints, or force elements act, ``tangent`` follows the chain rule through inverse
        dynamics alone, and of constrained dynamics it is the same as ``structured``.)
    constraints : ConstraintSet, optional
        Of constrained dynamics, and of nothing else.
    loads : Loads, optional
        External forces and torques on links, held fixed; not for what does not depend on them.
    step : float, optional
        Of finite differences: how far the state is moved, its largest number relative to max(1, \\|x\\|), where \\|x\\|
        is the largest of the state's.  By default ε^(1/2) = 1.5e-8 for ``forward`` and ε^(1/3) = 6.1e-6 for
        ``central``.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    Directional
        ``value``, (..., *r), and ``derivative``, (..., *r, k).

    Raises
    ------
    SingularError
        If nothing resists a joint, or constraints depend on each other; see :func:`forward_dynamics` and
        :func:`constrained_dynamics`.

    Examples
    --------
    How the torques that hold an arm up change as both joints turn, and as the shoulder turns alone:

    >>> from kinegrad import inverse_dynamics, samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> state, D = ([np.pi / 2, 0], [0, 0], [0, 0]), ([[1, 1], [1, 0]], None, None)
    >>> directional(inverse_dynamics, arm, state, D).derivative.round(12)
    array([[-5., -4.],
           [-2., -1.]])
    """
    engine.check_model(model)
    algorithm = _algorithm(function)
    engine.one_of("mode", mode, MODES)
    size = _step(mode, step)
    options = {"restitution": restitution, "prescribed": prescribed, "link": link, "point": point}
    sweep = Sweep(algorithm, model, state, D, constraints, loads, threads, options)
    if not sweep.count:
        value = algorithm.value(sweep, sweep.x, sweep.loads)
        return Directional(value, np.zeros((*value.shape, 0)))
    if size is not None:
        found = differences(sweep, mode, size)
    else:
        found = algorithm.tangent(sweep) if mode == "tangent" else algorithm.structured(sweep)
    return Directional(found[0], sweep.finite(found[1]))


def _step(mode: str, step: Any) -> float | None:
    """How far differences go; None for exact modes."""
    if mode not in STEPS:
        if step is not None:
            raise InputError(f"`step` is {shown(step)}; mode {mode!r} takes no steps, so expected None")
        return None
    size = STEPS[mode] if step is None else engine.positive("step", step)
    if not np.isfinite(size):
        raise InputError(f"`step` is {shown(step)}; expected a finite number")
    return size


def _algorithm(function: Any) -> Algorithm:
    try:
        found = ALGORITHMS.get(function)
    except Exception:  # whatever a foreign object raises when asked for its hash
        found = None
    if found is None:
        names = ", ".join(algorithm.names[0] for algorithm in ALGORITHMS.values())
        raise InputError(f"`function` is {shown(function)}; expected one of the functions {names}")
    return found
