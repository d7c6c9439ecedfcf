"""Directional derivatives of the algorithms of dynamics along many directions at once, in four modes.

With a state x and directions D = (d_1 … d_k), one call gives f(x) and the k derivatives ∂f(x; d) of [kudruss2019]:

    forward       (f(x + h d) − f(x)) / h                its FD     1 + k evaluations, half of the digits
    central       (f(x + h d) − f(x − h d)) / 2h         its FDC    1 + 2k evaluations, two thirds of the digits
    tangent       duals through every operation          its AD     exact; work in proportion to k
    structured    topology and sparsity exploited        its ED     exact; values, and factors, shared by all directions

The first two are there to be compared with; the last is the one to use.  Of the mass matrix it is algorithm 3 of the
paper, with what does not depend on the direction taken out of its loops; of torques and accelerations, the matrices of
derivatives that topology leaves (``rnea_derivatives.py``, ``aba_derivatives.py``, ``constrained_derivatives.py``), times
D.  Constrained dynamics is the solution of a linear system: in both exact modes its matrix is factored once for all
directions (proposition 3, algorithm 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import constraint_rows, dual_states
from kinegrad.configuration import integrate
from kinegrad.constrained import check_set, constrained_dynamics
from kinegrad.constrained_derivatives import constrained_dynamics_derivatives
from kinegrad.constraints import ConstraintSet
from kinegrad.dynamics import (
    FORWARD,
    MASS_MATRIX,
    METHODS,
    bias_forces,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
)
from kinegrad.dynamics_derivatives import JVP, forward_dynamics_derivatives, inverse_dynamics_derivatives
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["Directional", "directional"]

Array = NDArray[np.float64]
Found = tuple[Array, Array]  # values, (..., *core), and derivatives, (..., *core, k)
EPSILON = float(np.finfo(np.float64).eps)
STEPS = {"forward": EPSILON ** (1 / 2), "central": EPSILON ** (1 / 3)}
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
        accelerations and then the forces of the constraints, (..., n + m).
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
        (Where coordinates are not joints, ``tangent`` follows the chain rule through inverse dynamics alone, and of
        constrained dynamics it is the same as ``structured``.)
    constraints : ConstraintSet, optional
        Of constrained dynamics, and of nothing else.
    loads : Loads, optional
        External forces and torques on links, held fixed; not for the mass matrix.
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

    >>> from kinegrad import samples
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
    sweep = _Sweep(algorithm, model, state, D, constraints, loads, threads)
    if not sweep.count:
        value = algorithm.value(sweep, sweep.x, sweep.loads)
        return Directional(value, np.zeros((*value.shape, 0)))
    if size is not None:
        found = _differences(sweep, mode, size)
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


# --- what was given -----------------------------------------------------------------------------------------------


class _Sweep:
    """Checked arguments: states x, (*shape, nq or nv) each, and directions D, (*shape, nv, k) each or None for zero."""

    def __init__(
        self, algorithm: _Algorithm, model: Model, state: Any, D: Any, constraints: Any, loads: Any, threads: int | None
    ) -> None:
        self.algorithm, self.model, self.threads, self.given_loads = algorithm, model, threads, loads
        self.constraints = algorithm.checked(model, constraints)
        if loads is not None and not algorithm.loads:
            raise InputError(f"`loads` are given; {algorithm.names[0]} does not depend on loads, so expected None")
        self.loads = named_loads(model, loads)
        names = algorithm.state
        values = {name: _state_part(model, name, x) for name, x in _parts("state", state, names)}
        changes = {name: _direction(model, name, dx) for name, dx in _parts("D", D, names) if dx is not None}
        counts = {name: dx.shape[-1] for name, dx in changes.items()}
        if not counts:
            raise InputError("`D` has no direction, None for every part; expected changes of at least one of them")
        if len(set(counts.values())) > 1:
            found = ", ".join(f"`D: {name}` {k}" for name, k in counts.items())
            raise InputError(f"numbers of directions differ: {found}; expected one")
        self.count = next(iter(counts.values()))
        shapes = {f"state: {name}": x.shape[:-1] for name, x in values.items()}
        shapes |= {f"D: {name}": dx.shape[:-2] for name, dx in changes.items()}
        shapes |= {name: x.shape[:-2] for name, x in (self.loads or {}).items()}
        self.shape = engine.broadcast(shapes, list(shapes.values()))
        self.x = [np.broadcast_to(x, (*self.shape, x.shape[-1])) for x in values.values()]
        whole = (*self.shape, model.nv, self.count)
        self.D = [np.broadcast_to(changes[name], whole) if name in changes else None for name in names]

    @cached_property
    def along(self) -> list[Array | None]:
        """Directions one after the other, (*shape, k, nv) each, or None for zero."""
        return [None if dx is None else np.ascontiguousarray(dx.swapaxes(-1, -2)) for dx in self.D]

    def along_or_zero(self, part: int) -> Array:
        """The same, with zeros that broadcast."""
        found = self.along[part] if part < len(self.along) else None
        return np.zeros((1, self.model.nv)) if found is None else found

    def abreast(self, state: Sequence[Array]) -> list[Array]:
        """A state with an axis for directions, (*shape, 1, n) each."""
        return [np.asarray(x)[..., None, :] for x in state]

    @property
    def loads_abreast(self) -> dict[str, Array] | None:
        """Loads with an axis for directions."""
        return None if self.loads is None else {name: x[..., None, :, :] for name, x in self.loads.items()}

    def directions_last(self, slopes: Array) -> Array:
        """Slopes, (*shape, k, *core), as derivatives, (*shape, *core, k)."""
        return np.moveaxis(slopes, len(self.shape), -1)

    def finite(self, x: Array) -> Array:
        """`x`, (*shape, ...), if all of it is finite."""
        if not np.isfinite(x).all():
            good = np.isfinite(x).all(axis=tuple(range(len(self.shape), x.ndim)))
            where = tuple(int(i) for i in np.argwhere(~good)[0])
            at = f" of state {where[0] if len(where) == 1 else where}" if where else ""
            raise InputError(f"the derivatives{at} are not finite: they overflow float64; expected smaller numbers")
        return x


def _parts(name: str, value: Any, names: Sequence[str]) -> list[tuple[str, Any]]:
    """A part for each argument of the function."""
    expected = f"expected a sequence of {len(names)}: {', '.join(names)}"
    if not isinstance(value, list | tuple):
        raise InputError(f"`{name}` is a {type(value).__name__}; {expected}")
    if len(value) != len(names):
        raise InputError(f"`{name}` has {len(value)} parts; {expected}")
    return list(zip(names, value, strict=True))


def _state_part(model: Model, name: str, value: Any) -> Array:
    x = engine.real(f"state: {name}", value)
    width, what = (model.nq, "coordinates") if name == "q" else (model.nv, "speeds")
    if x.shape[-1:] != (width,):
        hint = f"model {model.name!r} has {width} {what}, so its last axis must be {width}"
        raise InputError(f"`state: {name}` has shape {x.shape}; {hint}")
    if not np.isfinite(x).all():
        raise engine.not_finite(f"state: {name}", x)
    if name == "q" and model.coordinates:
        engine.check_unit(model, "state: q", x)
    return x


def _direction(model: Model, name: str, value: Any) -> Array:
    dx = engine.real(f"D: {name}", value)
    if dx.ndim < 2 or dx.shape[-2] != model.nv:
        hint = f"model {model.name!r} has {model.nv} speeds, so it must be (..., {model.nv}, directions)"
        raise InputError(f"`D: {name}` has shape {dx.shape}; {hint}")
    if not np.isfinite(dx).all():
        raise engine.not_finite(f"D: {name}", dx)
    return dx


# --- finite differences -------------------------------------------------------------------------------------------


def _differences(sweep: _Sweep, mode: str, size: float) -> Found:
    """[kudruss2019] 2.1, all points in one call."""
    value = sweep.algorithm.value(sweep, sweep.x, sweep.loads)
    h = _lengths(sweep, size)
    slopes = _moved(sweep, h)
    core = slopes.shape[h.ndim :]
    base = _moved(sweep, -h) if mode == "central" else value.reshape(*sweep.shape, 1, *core)
    width = (2.0 * h if mode == "central" else h).reshape(*h.shape, *(1,) * len(core))
    with np.errstate(all="ignore"):  # what overflows is found in the end
        slopes -= base
        slopes /= width
    return value, sweep.directions_last(slopes)


def _lengths(sweep: _Sweep, size: float) -> Array:
    """h of each state and direction, (*shape, k): the largest number of h d is `size` max(1, |x|)."""
    reach = np.max([np.abs(x).max(axis=-1, initial=1.0) for x in sweep.x], axis=0)[..., None]
    lengths = np.max([np.abs(d).max(axis=-1, initial=0.0) for d in sweep.along if d is not None], axis=0)
    with np.errstate(all="ignore"):
        h: Array = size * reach / np.where(lengths > 0.0, lengths, 1.0)
    if not (np.isfinite(h) & (h > 0.0)).all():
        found = f"from {lengths.min():.3g} to {lengths.max():.3g}, and `step` is {size:.3g}"
        raise InputError(f"`D` has directions with largest numbers {found}; expected ordinary ones")
    return h


def _moved(sweep: _Sweep, h: Array) -> Array:
    """The function at x + h d, (*shape, k, *core)."""
    parts = []
    for k, (x, d) in enumerate(zip(sweep.abreast(sweep.x), sweep.along, strict=True)):
        if d is None:
            parts.append(np.broadcast_to(x, (*sweep.shape, sweep.count, x.shape[-1])))
            continue
        with np.errstate(all="ignore"):  # what overflows is refused by name
            change = h[..., None] * d
            parts.append(integrate(sweep.model, x, change) if k == 0 and sweep.model.coordinates else x + change)
    return sweep.algorithm.value(sweep, parts, sweep.loads_abreast)


# --- the algorithms -----------------------------------------------------------------------------------------------


class _Algorithm:
    """A function of dynamics: its names, what it takes, its value, and its derivatives by both exact modes."""

    names: tuple[str, str]
    state: tuple[str, ...]
    loads = True

    def checked(self, model: Model, constraints: Any) -> Any:
        """The constraints, if there are any where there are to be some."""
        if constraints is not None:
            name = self.names[0]
            raise InputError(f"`constraints` are given; {name} does not depend on constraints, so expected None")
        return constraints

    def value(self, sweep: _Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        """The function at states of any batch shape."""
        raise NotImplementedError

    def tangent(self, sweep: _Sweep) -> Found:
        """By duals."""
        raise NotImplementedError

    def structured(self, sweep: _Sweep) -> Found:
        """With values shared by all directions."""
        raise NotImplementedError


class _MassMatrix(_Algorithm):
    names = ("mass_matrix", "CRBA")
    state: tuple[str, ...] = ("q",)
    loads = False
    dual = replace(MASS_MATRIX, function=dual_states.mass_matrix)

    def value(self, sweep: _Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        return engine.evaluate(MASS_MATRIX, sweep.model, state, threads=sweep.threads)[0]

    def tangent(self, sweep: _Sweep) -> Found:
        if sweep.model.coordinates:
            return self._by_columns(sweep)
        [(M, slopes)] = _duals(sweep, self.dual, sweep.x, sweep.along)
        return M, sweep.directions_last(slopes)

    def structured(self, sweep: _Sweep) -> Found:
        if sweep.model.coordinates:
            return self._by_columns(sweep)
        batch, [(q, dq)], _ = _pairs(sweep, MASS_MATRIX, sweep.x, sweep.along)
        assert dq is not None
        values, slopes = engine.run_mass_tangents(batch, q, dq, sweep.threads)
        batch.results = [values]
        batch.check_results()
        shape = (*sweep.shape, batch.n, batch.n)
        return values.reshape(shape), slopes.reshape(*shape, sweep.count)

    def _by_columns(self, sweep: _Sweep) -> Found:
        """Column j of M is what inverse dynamics needs at rest for an acceleration of one, less what it needs for none;
        where coordinates are not joints."""
        zero = np.zeros(sweep.model.nv)
        q, dq = sweep.x[0][..., None, None, :], sweep.along_or_zero(0)[..., :, None, :]
        a = np.vstack([zero, np.eye(sweep.model.nv)])
        (found,) = engine.evaluate(JVP, sweep.model, (q, zero, a, dq, zero, zero), threads=sweep.threads)
        return self.value(sweep, sweep.x, None), sweep.directions_last(found[..., 1:, :] - found[..., :1, :])


class _InverseDynamics(_Algorithm):
    names = ("inverse_dynamics", "RNEA")
    state: tuple[str, ...] = ("q", "v", "a")
    dual = replace(METHODS["spatial"], function=dual_states.inverse_dynamics)

    def motion(self, sweep: _Sweep, state: Sequence[Array]) -> Sequence[Array]:
        """q, v and a of a state."""
        return state

    def value(self, sweep: _Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        motion = self.motion(sweep, state)
        return engine.evaluate(METHODS["spatial"], sweep.model, motion, loads, threads=sweep.threads)[0]

    def tangent(self, sweep: _Sweep) -> Found:
        motion = self.motion(sweep, sweep.x)
        if sweep.model.coordinates:
            tau = self.value(sweep, sweep.x, sweep.loads)
            slopes = _torque_slopes(sweep, motion, [sweep.along_or_zero(k) for k in range(3)])
        else:
            [(tau, slopes)] = _duals(sweep, self.dual, motion, sweep.along)
        return tau, sweep.directions_last(slopes)

    def structured(self, sweep: _Sweep) -> Found:
        motion = self.motion(sweep, sweep.x)
        found = inverse_dynamics_derivatives(sweep.model, *motion, loads=sweep.given_loads, threads=sweep.threads)
        return found.tau, _contracted(sweep, found.dtau_dq, found.dtau_dv, found.dtau_da)


class _BiasForces(_InverseDynamics):
    names = ("bias_forces", "NEFF")
    state: tuple[str, ...] = ("q", "v")

    def motion(self, sweep: _Sweep, state: Sequence[Array]) -> Sequence[Array]:
        """q, v and no acceleration."""
        return (*state, np.zeros(sweep.model.nv))


class _ForwardDynamics(_Algorithm):
    names = ("forward_dynamics", "ABA")
    state: tuple[str, ...] = ("q", "v", "tau")
    dual = replace(FORWARD["aba"], function=dual_states.forward_dynamics)

    def value(self, sweep: _Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        return engine.evaluate(FORWARD["aba"], sweep.model, state, loads, threads=sweep.threads)[0]

    def tangent(self, sweep: _Sweep) -> Found:
        if not sweep.model.coordinates:
            [(a, slopes)] = _duals(sweep, self.dual, sweep.x, sweep.along)
            return a, sweep.directions_last(slopes)
        a = self.value(sweep, sweep.x, sweep.loads)
        changes = [sweep.along_or_zero(0), sweep.along_or_zero(1), np.zeros(sweep.model.nv)]
        M = mass_matrix(sweep.model, sweep.x[0], threads=sweep.threads)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            right = sweep.along_or_zero(2) - _torque_slopes(sweep, [*sweep.x[:2], a], changes)
            return a, np.ascontiguousarray(np.linalg.solve(M, right.swapaxes(-1, -2)))  # [kudruss2019] prop. 3

    def structured(self, sweep: _Sweep) -> Found:
        found = forward_dynamics_derivatives(sweep.model, *sweep.x, loads=sweep.given_loads, threads=sweep.threads)
        return found.a, _contracted(sweep, found.da_dq, found.da_dv, found.da_dtau)


class _ConstrainedDynamics(_Algorithm):
    names = ("constrained_dynamics", "FDCONT")
    state: tuple[str, ...] = ("q", "v", "tau")
    dual = engine.Kernel(
        dual_states.constraints,
        engine.QVA,
        (
            engine.Result("jacobian", (engine.Axis.POINT, engine.Axis.PER_POSITION)),
            engine.Result("acceleration", (engine.Axis.POINT,)),
        ),
        tables=lambda model, loaded, stream: ((), constraint_rows.slots(model.n)),
    )

    def checked(self, model: Model, constraints: Any) -> Any:
        check_set(model, constraints)
        return constraints

    def value(self, sweep: _Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        acting = None if loads is None else Loads(*loads.values())
        found = constrained_dynamics(sweep.model, sweep.constraints, *state, loads=acting, threads=sweep.threads)
        return np.concatenate([found.a, found.forces], axis=-1)

    def tangent(self, sweep: _Sweep) -> Found:
        """[kudruss2019] algorithm 4: ∂b − ∂K x are slopes of torques and of φ̈ at the solution, and of Gᵀ f."""
        model, rows = sweep.model, sweep.constraints
        if model.coordinates:
            return self.structured(sweep)
        value = self.value(sweep, sweep.x, sweep.loads)
        a, f = value[..., : model.n], value[..., model.n :]
        motion, changes = (*sweep.x[:2], a), (*sweep.along[:2], None)
        if any(d is not None for d in changes):
            [(_, dtau)] = _duals(sweep, _InverseDynamics.dual, motion, changes)
            (G, dG), (_, curve) = _duals(sweep, self.dual, motion, changes, (rows.m,), [tuple(rows._tables)])
        else:
            G, dtau, dG, curve = rows.jacobian(sweep.x[0], threads=sweep.threads), 0.0, None, 0.0
        K = _saddle(mass_matrix(model, sweep.x[0], threads=sweep.threads), G)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            right = np.zeros((*sweep.shape, sweep.count, model.n + rows.m))
            right[..., : model.n] = sweep.along_or_zero(2) - dtau
            right[..., model.n :] = -curve
            if dG is not None:
                right[..., : model.n] += (f[..., None, :, None] * dG).sum(axis=-2)
            return value, np.ascontiguousarray(np.linalg.solve(K, right.swapaxes(-1, -2)))

    def structured(self, sweep: _Sweep) -> Found:
        d = constrained_dynamics_derivatives(
            sweep.model, sweep.constraints, *sweep.x, loads=sweep.given_loads, threads=sweep.threads
        )
        by_parts = (
            _contracted(sweep, d.da_dq, d.da_dv, d.da_dtau),
            _contracted(sweep, d.dforces_dq, d.dforces_dv, d.dforces_dtau),
        )
        return np.concatenate([d.a, d.forces], axis=-1), np.concatenate(by_parts, axis=-2)


_ALGORITHMS: dict[Callable[..., Any], _Algorithm] = {
    mass_matrix: _MassMatrix(),
    inverse_dynamics: _InverseDynamics(),
    bias_forces: _BiasForces(),
    forward_dynamics: _ForwardDynamics(),
    constrained_dynamics: _ConstrainedDynamics(),
}


def _algorithm(function: Any) -> _Algorithm:
    try:
        found = _ALGORITHMS.get(function)
    except Exception:  # whatever a foreign object raises when asked for its hash
        found = None
    if found is None:
        names = ", ".join(algorithm.names[0] for algorithm in _ALGORITHMS.values())
        raise InputError(f"`function` is {shown(function)}; expected one of the functions {names}")
    return found


# --- along directions ---------------------------------------------------------------------------------------------


def _pairs(
    sweep: _Sweep, kernel: engine.Kernel, state: Sequence[Array], changes: Sequence[Array | None]
) -> tuple[engine.Batch, list[tuple[Array, Array | None]], Sequence[Array]]:
    """The batch; values, (states, n), with slopes, (states, k, n) or None; loads."""
    batch, rows, loads = engine.checked(kernel, sweep.model, state, sweep.loads if kernel.loads else None)
    batch.check_finite()
    shape = (batch.states, sweep.count, batch.n)
    slopes = [None if d is None else d.reshape(shape) for d in changes]
    slopes += [None] * (len(rows) - len(slopes))
    values = [engine.kernel_array(np.broadcast_to(x, (batch.states, batch.n))) for x in rows]
    return batch, list(zip(values, slopes, strict=True)), loads


def _duals(
    sweep: _Sweep,
    kernel: engine.Kernel,
    state: Sequence[Array],
    changes: Sequence[Array | None],
    points: engine.Shape | None = None,
    options: Sequence[Any] = (),
) -> list[tuple[Array, Array]]:
    """What a kernel of ``_kernels/dual_states.py`` finds: values, (..., *core), and slopes, (..., k, *core)."""
    batch, pairs, loads = _pairs(sweep, kernel, state, changes)
    both = engine.run_directions(kernel, batch, None, pairs, loads, sweep.threads, points, options)
    batch.results = both[0]
    batch.check_results()
    return [
        (value.reshape(*sweep.shape, *core), slope.reshape(*sweep.shape, sweep.count, *core))
        for value, slope, core in zip(*both, kernel.cores(sweep.model, points), strict=True)
    ]


def _contracted(sweep: _Sweep, *matrices: Any) -> Array:
    """Derivatives, (..., r, nv) each, times the changes of the parts of the state, (..., nv, k)."""
    with np.errstate(all="ignore"):  # what overflows is found in the end
        products = [m @ d for m, d in zip(matrices, sweep.D, strict=False) if d is not None]
        total: Array = products[0]
        for product in products[1:]:
            total += product
    return total


def _torque_slopes(sweep: _Sweep, motion: Sequence[Array], changes: Sequence[Array]) -> Array:
    """Slopes of torques, (..., k, nv), where coordinates are not joints."""
    given = (*sweep.abreast(motion), *changes)
    return engine.evaluate(JVP, sweep.model, given, sweep.loads_abreast, threads=sweep.threads)[0]


def _saddle(M: Array, G: Array) -> Array:
    """K = [M −Gᵀ; G 0]."""
    n, m = M.shape[-1], G.shape[-2]
    K = np.zeros((*M.shape[:-2], n + m, n + m))
    K[..., :n, :n], K[..., :n, n:], K[..., n:, :n] = M, -G.swapaxes(-1, -2), G
    return K
