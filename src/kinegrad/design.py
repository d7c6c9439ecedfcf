"""Design parameters: how motion and torques change with masses, lengths, inertias, DH parameters, springs, gravity.

A :class:`Design` names p quantities that vary and how the model's constants follow from them.  The derivatives are
those of the recursive algorithms themselves, compiled for dual numbers: O(n) for each parameter, no matrix formed
([anderson2002] (62)–(70)).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, crba, energy, kinematics, rnea
from kinegrad._kernels import design as kernels
from kinegrad.dynamics import forward_dynamics, hybrid_dynamics, prescribed_flags, without
from kinegrad.errors import InputError, SingularError
from kinegrad.kinematics import _points, _state
from kinegrad.loads import Loads, load_batch
from kinegrad.model import Model
from kinegrad.model.constants import Constant, find_constant

__all__ = [
    "Design",
    "EnergyDesignDerivatives",
    "HybridDynamicsDesignDerivatives",
    "PointMotionDesignDerivatives",
    "energy_design_derivatives",
    "forward_dynamics_design_derivatives",
    "hybrid_dynamics_design_derivatives",
    "inverse_dynamics_design_derivatives",
    "mass_matrix_design_derivatives",
    "point_motion_design_derivatives",
    "transform_design_derivatives",
]

Array = NDArray[np.float64]
Spec = str | Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """p design parameters of a model.

    Parameters
    ----------
    model : Model
        The mechanism at the present values of the parameters.
    parameters : sequence of str, or mapping of str to str or to dict
        Constants of the model, by name; or names of your own for a constant, or for a linear combination of several
        (a dictionary from constants to coefficients: how much of each one unit of the parameter adds).

    Notes
    -----
    Constants are named

    ==================================================  ====================================================
    ``link.mass``                                       kg
    ``link.com.x``, ``.y``, ``.z``                      centre of mass in the link frame, m
    ``link.inertia.xx``, ``.yy``, ``.zz``, ``.xy``, …   about the centre of mass, kg·m²
    ``joint.placement.x``, …; ``joint.tip.x``, …        translation of P and of F, m
    ``joint.theta``, ``.d``, ``.a``, ``.alpha``         if the joint is placed by a Denavit–Hartenberg row
    ``joint.stiffness``, ``.rest``, ``.damping``        spring and damper
    ``joint.armature``, ``joint.pitch``                 rotor inertia; advance of a screw, m/rad
    ``gravity.x``, ``.y``, ``.z``                       m/s²
    ==================================================  ====================================================

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> design = Design(arm, {"L2": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "m2": "forearm.mass"})
    >>> design.names, design.values
    (('L2', 'm2'), array([0. , 0.5]))
    >>> design.at([0.1, 0.7]).model.mass
    array([0.5, 0.7])
    """

    model: Model
    parameters: Mapping[str, Spec] | Sequence[str]

    def __post_init__(self) -> None:
        engine.check_model(self.model)
        given = self.parameters
        if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
            raise InputError(f"`parameters` is {given!r}; expected a list of names, or a dictionary")
        for name in given:
            if not isinstance(name, str):
                raise InputError(f"`parameters` holds {name!r}; expected names, such as 'thigh.mass'")
        named = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
        if not named or len(named) != len(given):
            raise InputError(f"`parameters` is {given!r}; expected at least one, and no name twice")
        terms = {name: list(_terms(self.model, name, spec)) for name, spec in named.items()}
        object.__setattr__(self, "parameters", {name: _frozen_spec(spec) for name, spec in named.items()})
        object.__setattr__(self, "_terms", terms)

    _terms: dict[str, list[tuple[Constant, float]]] = field(init=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self._terms)

    @property
    def p(self) -> int:
        """Number of parameters."""
        return len(self._terms)

    @cached_property
    def values(self) -> Array:
        """Present values, shape (p,): of a constant what the model has, of a combination 0."""
        alone = {name: terms[0][0] for name, terms in self._terms.items() if isinstance(self.parameters[name], str)}  # type: ignore[call-overload]
        return np.array([alone[name].get(self.model) if name in alone else 0.0 for name in self.names])

    def at(self, values: ArrayLike) -> Design:
        """The same parameters of the model that has these values, shape (p,)."""
        target = engine.real("values", values)
        if target.shape != (self.p,):
            raise InputError(f"`values` has shape {target.shape}; this design has {self.p} parameters")
        if not np.isfinite(target).all():
            raise engine.not_finite("values", target)
        fields: dict[str, Array] = {}
        for change, terms in zip(target - self.values, self._terms.values(), strict=True):
            for constant, coefficient in terms:
                constant.shift(self.model, fields, coefficient * change)
        moved = self.model.replace(**fields)
        return Design(moved, self.parameters)

    @cached_property
    def slopes(self) -> tuple[Array, ...]:
        """Slopes of the kernels' constants along each parameter."""
        variation: dict[str, Array] = {}
        for k, terms in enumerate(self._terms.values()):
            for constant, coefficient in terms:
                for what, slope in constant.slopes(self.model).items():
                    total = variation.setdefault(what, np.zeros((self.p, *slope.shape)))
                    total[k] += coefficient * slope
        return engine.slopes(self.model, variation, self.p)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={value:g}" for name, value in zip(self.names, self.values, strict=True))
        return f"Design({self.model.name}: {pairs})"


@dataclass(frozen=True, eq=False)
class HybridDynamicsDesignDerivatives:
    """Derivatives of the accelerations and torques of all joints with respect to the parameters, (..., n, p) each.

    Those of prescribed accelerations and of given torques are what was given for them.
    """

    da_dp: Array
    dtau_dp: Array


@dataclass(frozen=True, eq=False)
class PointMotionDesignDerivatives:
    """Derivatives of the motion of points fixed in links with respect to the parameters.

    Shapes (..., 3, p) for one point, (..., k, 3, p) for k; those of velocity and acceleration are None unless v and a
    were given.
    """

    dposition_dp: Array
    dvelocity_dp: Array | None = None
    dacceleration_dp: Array | None = None


@dataclass(frozen=True, eq=False)
class EnergyDesignDerivatives:
    """Derivatives of kinetic and potential energy with respect to the parameters, shape (..., p) each, J per unit."""

    dkinetic_dp: Array
    dpotential_dp: Array


def inverse_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """∂τ/∂p at fixed motion: how the torques of :func:`inverse_dynamics` change with each parameter.

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    >>> inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0])[:, 0]
    array([6., 2.])
    """
    state = {"q": q, "v": v, "a": a}
    return _dynamics(design, kernels.inverse_dynamics, rnea.N, state, {}, loads, threads)


def forward_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """da/dp: how the accelerations of :func:`forward_dynamics` change with each parameter.

    At fixed state and torques; or, if their own derivatives are given, in all: [anderson2002] (9), fully recursive.

    Parameters
    ----------
    design : Design
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    dq_dp, dv_dp, dtau_dp : array_like, shape (..., n, p), optional
        How the state and the torques follow the parameters.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Raises
    ------
    SingularError
        If nothing resists a joint, as in :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.double_pendulum(), ["P.mass"])
    >>> forward_dynamics_design_derivatives(design, [0, 0], [0, 0], [1, 0]).round(12)[:, 0]
    array([-1.,  2.])
    """
    state = {"q": q, "v": v, "tau": tau}
    follow = {"q": dq_dp, "v": dv_dp, "tau": dtau_dp}
    try:
        return _dynamics(design, kernels.forward_dynamics, aba.N, state, follow, loads, threads)
    except SingularError:
        forward_dynamics(design.model, q, v, tau, loads=loads, threads=threads)  # which says at which joint
        raise


def hybrid_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    da_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> HybridDynamicsDesignDerivatives:
    """da/dp and dτ/dp: how all that :func:`hybrid_dynamics` returns changes with each parameter.

    Parameters
    ----------
    design : Design
    q, v, tau, a : array_like, shape (..., n)
        As in :func:`hybrid_dynamics`.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    dq_dp, dv_dp, dtau_dp, da_dp : array_like, shape (..., n, p), optional
        How the state, the torques of free joints and the accelerations of prescribed ones follow the parameters; the
        other entries are ignored.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    HybridDynamicsDesignDerivatives

    Raises
    ------
    SingularError
        If nothing resists a free joint.

    Examples
    --------
    A cart that accelerates at 2 m/s²: 2 N more for each kg of it, less for each kg of the rod, which swings back.

    >>> from kinegrad import samples
    >>> design = Design(samples.cart_pendulum(), ["cart.mass", "rod.mass"])
    >>> change = hybrid_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> change.dtau_dp[0]
    array([2.   , 0.125])
    """
    model = _checked(design)
    n, flags = model.n, prescribed_flags(model, prescribed)
    ignored = {"tau": flags == 1, "a": flags == 0}
    state = {"q": q, "v": v, "tau": without("tau", tau, ignored["tau"]), "a": without("a", a, ignored["a"])}
    batch, load_arrays = load_batch(model, loads, state)
    batch.check_finite()
    follow, pairs = {"q": dq_dp, "v": dv_dp, "tau": dtau_dp, "a": da_dp}, []
    for (name, dx), x in zip(follow.items(), batch.arguments[:4], strict=True):
        if dx is not None and name in ignored:
            dx = without(f"d{name}_dp", dx, ignored[name][:, None])
        full = np.ascontiguousarray(np.broadcast_to(x, (batch.states, n)))
        pairs.append((full, _follows(design, batch, f"d{name}_dp", dx)))
    # where lanes run over directions of one state at a time, they must see that state's loads
    apart = loads is not None and 1 < batch.states < design.p
    try:
        parts = [
            engine.run_directions(
                kernels.hybrid_dynamics, model, design.slopes,
                [(x[rows], None if dx is None else dx[rows]) for x, dx in pairs],
                [flags, *(x[rows] if len(x) == batch.states else x for x in load_arrays)], [n, n], (n + 1) * aba.N,
                threads,
            )
            for rows in ([slice(k, k + 1) for k in range(batch.states)] if apart else [slice(None)])
        ]  # fmt: skip
    except SingularError:
        names = [model.joint_names[i] for i in np.flatnonzero(flags)]
        hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads, threads=threads)  # which says which joint
        raise
    results = (np.concatenate(x).reshape(*batch.shape, design.p, n) for x in zip(*parts, strict=True))
    return HybridDynamicsDesignDerivatives(*(np.ascontiguousarray(np.swapaxes(x, -1, -2)) for x in results))


def mass_matrix_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂M/∂p, shape (..., n, n, p); arguments as in :func:`inverse_dynamics_design_derivatives`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> mass_matrix_design_derivatives(Design(samples.two_link(), ["forearm.mass"]), [0, 0])[..., 0].round(3)
    array([[0.36, 0.12],
           [0.12, 0.04]])
    """
    n = _checked(design).n
    return _quantity(design, kernels.mass_matrix, crba.N, {"q": q}, n * n, threads, (n, n))


def transform_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂T/∂p of all link frames, shape (..., n, 4, 4, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> transform_design_derivatives(design, [0, np.pi / 2])[1, :2, 3, 0].round(12)
    array([0., 1.])
    """
    n = _checked(design).n
    return _quantity(design, kernels.transforms, kinematics.N, {"q": q}, 16 * n, threads, (n, 4, 4))


def point_motion_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> PointMotionDesignDerivatives:
    """∂(position, velocity, acceleration)/∂p of points fixed in links, at fixed q, v and a.

    Parameters
    ----------
    design : Design
    q, v, a, link, point, threads
        As in :func:`point_motion`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> point_motion_design_derivatives(design, [0, 0], [1, 0], link="forearm").dvelocity_dp[:, 0]
    array([0., 1., 0.])
    """
    model = _checked(design)
    n = model.n
    batch, state = _state(model, q, v, a)
    batch.check_finite()
    links, local, core = _points(model, link, point)
    pairs = [(np.ascontiguousarray(np.broadcast_to(x, (batch.states, n))), None) for x in state]
    columns = [3 * len(links)] * 3
    slots = (n + 1) * kinematics.N
    results = engine.run_directions(
        kernels.points, model, design.slopes, pairs, [links, local], columns, slots, threads
    )
    shape = (*batch.shape, design.p, *core, 3)
    moved = (np.ascontiguousarray(np.moveaxis(x.reshape(shape), len(batch.shape), -1)) for x in results)
    wanted = 1 + (v is not None) + (a is not None)
    return PointMotionDesignDerivatives(*list(moved)[:wanted])


def energy_design_derivatives(
    design: Design, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> EnergyDesignDerivatives:
    """∂(kinetic, potential energy)/∂p at fixed state.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["forearm.mass"])
    >>> energy_design_derivatives(design, [0, 0], [1, 0]).dkinetic_dp.round(3)
    array([0.18])
    """
    sums = _quantity(design, kernels.energies, energy.N, {"q": q, "v": v}, energy.COLUMNS, threads, (energy.COLUMNS,))
    return EnergyDesignDerivatives(sums[..., 0, :].copy(), sums[..., 1, :].copy())


def _dynamics(
    design: Design,
    kernel: Any,
    slots: int,
    state: dict[str, Any],
    follow: dict[str, Any],
    loads: Loads | None,
    threads: int | None,
) -> Array:
    model = _checked(design)
    n = model.n
    batch, load_arrays = load_batch(model, loads, state)
    batch.check_finite()
    rows = max(batch.states, 1)
    slopes = [_follows(design, batch, f"d{name}_dp", follow.get(name)) for name in state]
    pairs = [
        (np.broadcast_to(x, (batch.states, n)) if len(x) != batch.states else x, dx)
        for x, dx in zip(batch.arguments[:3], slopes, strict=True)
    ]
    if loads is not None and rows > 1 and rows < design.p:
        # lanes then run over directions of one state at a time, which must see that state's loads
        parts = [
            engine.run_directions(
                kernel, model, design.slopes,
                [(np.ascontiguousarray(x[k : k + 1]), None if dx is None else dx[k : k + 1]) for x, dx in pairs],
                [x if len(x) == 1 else x[k : k + 1] for x in load_arrays], [n], (n + 1) * slots, threads,
            )[0]
            for k in range(batch.states)
        ]  # fmt: skip
        result = np.concatenate(parts)
    else:
        ready = [(np.ascontiguousarray(x), dx) for x, dx in pairs]
        (result,) = engine.run_directions(
            kernel, model, design.slopes, ready, load_arrays, [n], (n + 1) * slots, threads
        )
    return np.ascontiguousarray(np.swapaxes(result.reshape(*batch.shape, design.p, n), -1, -2))


def _quantity(
    design: Design,
    kernel: Any,
    slots: int,
    state: dict[str, Any],
    columns: int,
    threads: int | None,
    core: tuple[int, ...],
) -> Array:
    model = _checked(design)
    n = model.n
    batch = engine.Batch(model, state)
    batch.check_finite()
    pairs = [(np.ascontiguousarray(np.broadcast_to(x, (batch.states, n))), None) for x in batch.arguments]
    slots = (n + 1) * slots
    (result,) = engine.run_directions(kernel, model, design.slopes, pairs, [], [columns], slots, threads)
    return np.ascontiguousarray(np.moveaxis(result.reshape(*batch.shape, design.p, *core), len(batch.shape), -1))


def _follows(design: Design, batch: engine.Batch, name: str, value: Any) -> Array | None:
    """A derivative with respect to p, (states, p, n) for the kernel."""
    if value is None:
        return None
    x = engine.real(name, value)
    shape = (*batch.shape, batch.n, design.p)
    try:
        full = np.broadcast_to(x, shape)
    except ValueError:
        raise InputError(f"`{name}` has shape {x.shape}; expected {shape}: states, {batch.n}, {design.p}") from None
    if not np.isfinite(full).all():
        raise engine.not_finite(name, x)
    return engine.kernel_array(np.swapaxes(full, -1, -2).reshape(batch.states, design.p, batch.n))


def _checked(design: Any) -> Model:
    if not isinstance(design, Design):
        raise InputError(
            f"`design` is a {type(design).__name__}; expected a Design, such as Design(model, ['thigh.mass'])"
        )
    return design.model


def _terms(model: Model, name: str, spec: Any) -> Iterator[tuple[Constant, float]]:
    if isinstance(spec, str):
        yield find_constant(model, spec), 1.0
        return
    if not isinstance(spec, Mapping) or not spec:
        raise InputError(f"`parameters[{name!r}]` is {spec!r}; expected a constant's name, or a dictionary of them")
    for constant, coefficient in spec.items():
        factor = engine.real(f"parameters[{name!r}][{constant!r}]", coefficient)
        if factor.shape != () or not np.isfinite(factor):
            raise InputError(f"`parameters[{name!r}][{constant!r}]` is {coefficient!r}; expected a finite number")
        yield find_constant(model, constant), float(factor)


def _frozen_spec(spec: Any) -> Any:
    return spec if isinstance(spec, str) else dict(spec)
