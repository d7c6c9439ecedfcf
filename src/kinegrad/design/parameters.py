"""Design parameters: the quantities of a mechanism that vary, and how its constants follow from them.

A :class:`Design` names p of them: constants of the model, linear combinations of constants, or the arguments of any
function that builds a model.  What it knows are the slopes of the model's constants; derivatives of motion and torques
are in :mod:`kinegrad.design.dynamics` and :mod:`kinegrad.design.quantities`, sensitivities through time in
:mod:`kinegrad.simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.design.circles import confirmed
from kinegrad.design.function import Built, built_fields, call, check_call, check_slopes, check_structure, slopes_of
from kinegrad.design.given import (
    check_ball_constants,
    check_balls,
    check_load_constant,
    check_loads,
    check_still_frames,
    read_terms,
    real_numbers,
)
from kinegrad.errors import InputError, shown
from kinegrad.loads import PARTS, Loads
from kinegrad.model import Model
from kinegrad.model.constants import Constant, check_apart
from kinegrad.model.elements import NUMBERS
from kinegrad.model.numbers import STEP, carry_slopes, slope
from kinegrad.results import frozen

__all__ = ["Design"]

Array = NDArray[np.float64]
Spec = str | Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """p design parameters of a model.

    Immutable; designs compare and hash by value, and pickle (one of a function if the function does).

    Parameters
    ----------
    model : Model
        The mechanism at the present values of the parameters.
    parameters : sequence of str, or mapping of str to str or to dict
        Constants of the model, by name; or names of your own for a constant, or for a linear combination of several
        (a dictionary from constants to coefficients: how much of each one unit of the parameter adds).
        A parameter that is a constant is what the model has: no other may move that constant.  Combinations, which
        count from this model, may share constants as long as no two are the same but for a factor.
        For parameters that enter in other ways see :meth:`from_function`.
    loads : Loads, optional
        Constant loads that belong to the design, so that their points, forces and torques can be parameters too.

    Notes
    -----
    Constants are named

    ==================================================  ====================================================
    ``link.mass``                                       kg
    ``link.length``                                     from its joint to the next one, or to its tip or tool, m
    ``link.com.x``, ``.y``, ``.z``                      centre of mass in the link frame, m
    ``link.inertia.xx``, ``.yy``, ``.zz``, ``.xy``, …   about the centre of mass, kg·m²
    ``joint.placement.x``, …; ``joint.tip.x``, …        translation of P and of F, m
    ``joint.placement.rx``, …; ``joint.tip.rx``, …      turn of P and of F about its own x, from where it is, rad
    ``frame.placement.x``, …; ``frame.placement.rx``    the same of a frame in its link
    ``joint.theta``, ``.d``, ``.a``, ``.alpha``         if the joint is placed by a Denavit–Hartenberg row
    ``joint.stiffness``, ``.rest``, ``.damping``        spring and damper
    ``joint.armature``, ``joint.pitch``                 rotor inertia; advance of a screw, m/rad
    ``spring.stiffness``, ``.damping``                  of a :class:`SpringDamper`, N/m, N·s/m
    ``spring.rest_length``                              m
    ``spring.point.x``, …; ``spring.other_point.x``     its ends, in the frames of their links, m
    ``bushing.stiffness.x``, …, ``.rx``, …              of a :class:`Bushing`; and ``bushing.damping.x``, …
    ``bushing.placement.x``, …, ``.rx``, …              its frames; and ``bushing.other_placement.x``, …
    ``gravity.x``, ``.y``, ``.z``                       m/s²
    ``link.load.point.x``, …                            where the load on a link acts, in the link frame, m
    ``link.load.force.x``, …; ``link.load.torque.x``    world frame, N and N·m
    ==================================================  ====================================================

    A ball, universal, planar or free joint is several joints in series, ``joint.x``, ``joint.y``, …: the first of them
    has its placement, the last its tip, and each has its own spring, damper and rotor (docs/design.md).

    What cannot vary: the tree; kinds and axes of joints (turn a joint's placement instead); constants of the map from
    coordinates to joints, which are multipliers and offsets of couplings, coefficients of polynomials, knots and values
    of splines (docs/design.md has two ways to differentiate with respect to them); what is between the hinges of a ball
    whose coordinates are a quaternion; and numbers in descriptions of constraints.

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
    loads: Loads | None = None

    def __post_init__(self) -> None:
        engine.check_model(self.model)
        if self.model.carries_slopes:
            raise InputError("`model` is made of numbers that carry slopes; expected one of plain numbers")
        check_loads(self.loads)
        given = self.parameters
        if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
            raise InputError(f"`parameters` is {shown(given)}; expected a list of names, or a dictionary")
        for name in given:
            if not isinstance(name, str):
                raise InputError(f"`parameters` holds {shown(name)}; expected names, such as 'thigh.mass'")
        named = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
        if not named or len(named) != len(given):
            raise InputError(f"`parameters` is {shown(given)}; expected at least one, and no name twice")
        terms = {name: list(read_terms(self.model, name, spec)) for name, spec in named.items()}
        for term in terms.values():
            for constant, _ in term:
                check_load_constant(constant, self.model, self.loads)
        check_ball_constants(self.model, [constant for term in terms.values() for constant, _ in term])
        touched = [key for term in terms.values() for c, _ in term for key in c.touches(self.model)]
        moved = {where[0] for what, where in touched if what == "frames"}
        check_still_frames([name for k, name in enumerate(self.model.frames) if k in moved], self.model, self.loads)
        check_apart(self.model, terms, {name for name, spec in named.items() if isinstance(spec, str)})
        specs = {name: spec if isinstance(spec, str) else _read_only(spec) for name, spec in named.items()}
        object.__setattr__(self, "parameters", _read_only(specs))
        object.__setattr__(self, "_terms", terms)

    _terms: dict[str, list[tuple[Constant, float]]] = field(init=False)
    _function: Callable[..., Any] | None = field(init=False, default=None)
    _keywords: tuple[str, ...] | None = field(init=False, default=None)
    _origin: tuple[Design, Array] | None = field(init=False, default=None)  # from which, and by which values, it came

    @classmethod
    def from_function(
        cls, function: Callable[..., Model | tuple[Model, Loads]], values: Mapping[str, float] | ArrayLike
    ) -> Design:
        """The arguments of a function that builds a model, as parameters.

        Parameters
        ----------
        function : callable
            Returns a :class:`Model`, or a model and its constant :class:`Loads`.
        values : mapping of str to float, or array_like, shape (p,)
            Present values: keyword arguments of the function by name; or one array that it takes.

        Notes
        -----
        The function is called with numbers that carry slopes (complex step), so the model's constants are
        differentiated exactly.  Any function qualifies that computes with arithmetic, NumPy's analytic functions
        (``np.sin``, ``np.sqrt``, ``np.exp``, ``@``, …) and everything here that makes models: ``samples``,
        ``ModelBuilder``, ``Model.from_dh``, ``Inertia``, ``rotate``, ``translate``, ``replace``.  Refused, with the
        reason, are functions

        - that cut the slope off: ``float(x)``, the ``math`` module, writing into a real array
          (``T = np.eye(4); T[2, 3] = x``: use ``translate``, or ``np.array([...])``);
        - that call what takes no complex numbers: ``np.arctan2``, ``np.hypot``, ``np.interp``;
        - that are not analytic: ``abs``, ``np.linalg.norm`` (use ``np.sqrt(x @ x)``), or have a kink or a jump at the
          present values: found by comparing with finite differences, wherever derivatives are asked for;
        - whose tree, joint kinds or joint axes depend on the values (turn a joint's placement instead of its axis);
        - whose couplings do: multipliers and offsets, coefficients of polynomials, knots and values of splines are
          constants of the map from coordinates to joints, which is not differentiated (docs/design.md has what to do);
        - that give different models for the same values.

        For second derivatives it is called on circles in the complex plane around the values, where its numbers form a
        Fourier series: exact to rounding for analytic functions.  Circles shrink until no kink, jump or pole is within
        reach; if the error cannot be told to be below 1e-9, the function is refused, which names the parameter.

        Examples
        --------
        >>> from kinegrad import samples
        >>> design = Design.from_function(samples.double_pendulum, {"L1": 0.8, "MQ": 2.0})
        >>> design
        Design(double_pendulum: L1=0.8, MQ=2)
        >>> design.at([1.0, 2.0]).model.placement[1, :3, 3]
        array([ 0.,  0., -1.])
        """
        if not callable(function):
            raise InputError(f"`function` is a {type(function).__name__}; expected one that returns a Model")
        names = tuple(map(str, values)) if isinstance(values, Mapping) else None
        at = real_numbers("values", list(values.values()) if isinstance(values, Mapping) else values)
        if at.ndim != 1 or not len(at) or not np.isfinite(at).all():
            raise InputError(f"`values` is {shown(values)}; expected at least one finite number, in a row or by name")
        check_call(function, names)
        design = cls._built(function, names, at)
        check_balls(design.model, design._variation)  # the latter refuses functions that do not qualify
        return design

    @classmethod
    def _built(cls, function: Callable[..., Any], names: tuple[str, ...] | None, values: Array) -> Design:
        return cls._of(call(function, names, values), function, names, values)

    @classmethod
    def _of(cls, built: Built, function: Callable[..., Any], names: tuple[str, ...] | None, values: Array) -> Design:
        design = cls.__new__(cls)
        labels = names or tuple(f"p{k}" for k in range(len(values)))
        state = {
            "model": built.model, "loads": built.loads, "parameters": _read_only(dict.fromkeys(labels, function)),
            "_terms": {}, "_function": function, "_keywords": names, "values": frozen(values), "names": labels,
        }  # fmt: skip
        design.__dict__.update(state)
        return design

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self._terms)

    @property
    def p(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @cached_property
    def values(self) -> Array:
        """Present values, shape (p,): the numbers that :meth:`at` takes.

        A constant has the value in the model.  A combination or a turn has its change from the model with which the
        design was made: 0 there.
        """
        fields = self._load_fields
        now = [terms[0][0].get(self.model, fields) if self._alone(name) else 0.0 for name, terms in self._terms.items()]
        changed = np.array(now) if self._origin is None else np.where(self._relative, self._origin[1], now)
        return frozen(changed)

    def _alone(self, name: str) -> bool:
        """Whether a parameter is a constant, rather than a combination."""
        return isinstance(self.parameters[name], str)  # type: ignore[call-overload]

    def at(self, values: ArrayLike) -> Design:
        """Return the design with these values of the parameters, shape (p,): ``design.at(x).values`` is x.

        Combinations and turns count from the model with which the design was made, also after ``at``.
        """
        target = real_numbers("values", values)
        if target.shape != (self.p,):
            raise InputError(f"`values` has shape {target.shape}; this design has {self.p} parameters")
        if not np.isfinite(target).all():
            raise engine.not_finite("values", target)
        if self._function is not None:
            moved = self._built(self._function, self._keywords, target)
            check_structure(Built(self.model, self.loads), Built(moved.model, moved.loads), f"at {target.tolist()}")
            return moved
        if self._origin is not None:
            return self._origin[0].at(target)
        built = self._with(target.tolist())
        moved = Design(built.model, self.parameters, built.loads)
        if self._relative.any():
            object.__setattr__(moved, "_origin", (self, frozen(target)))
        return moved

    def _with(self, values: Sequence[Any]) -> Built:
        """Model and loads where constants and combinations have these values, which may carry slopes."""
        fields: dict[str, Any] = self._load_fields
        for value, (name, terms) in zip(values, self._terms.items(), strict=True):
            for constant, coefficient in terms:
                new = partial(_set, value) if self._alone(name) else partial(_add, coefficient * value)
                constant.set(self.model, fields, new)
        parts = {what: fields.pop(what) for what in PARTS if what in fields}
        return Built(self.model.replace(**fields), Loads(**parts) if parts else None)

    @cached_property
    def _relative(self) -> NDArray[np.bool_]:
        """Parameters that are combinations or turns, and thus changes of the model of the first design, (p,)."""
        return np.array([not self._alone(name) or terms[0][0].turns for name, terms in self._terms.items()])

    @cached_property
    def _entangled(self) -> bool:
        """Whether one thing is turned about two axes: turns do not commute, so that slopes depend on where it began."""
        axes: dict[Any, set[Any]] = {}
        for terms in self._terms.values():
            for constant, _ in terms:
                if constant.turned(self.model) is not None:
                    thing, axis = constant.turned(self.model)  # type: ignore[misc]
                    axes.setdefault(thing, set()).add(axis)
        return any(len(found) > 1 for found in axes.values())

    @cached_property
    def _slopes(self) -> tuple[Array, ...]:
        """Slopes of the kernels' constants along each parameter."""
        return tuple(map(frozen, engine.slopes(self.model, self._variation, self.p)))

    @cached_property
    def _frame_slopes(self) -> dict[str, Array]:
        """Slopes of the placements of frames in their links, (p, 4, 4), of those that vary."""
        found = self._variation.get("frames")
        if found is None:
            return {}
        each = zip(self.model.frames, np.moveaxis(found, 1, 0), strict=True)
        return {name: frozen(x) for name, x in each if x.any()}

    @cached_property
    def _load_slopes(self) -> tuple[Array, ...] | None:
        """Slopes of force, point and torque of the loads, (p, 3 n) each; None if the loads do not vary."""
        parts = [self._variation.get(what) for what in PARTS]
        if all(x is None for x in parts):
            return None
        shape = self.p, 3 * self.model.n
        return tuple(frozen(np.zeros(shape) if x is None else x.reshape(shape)) for x in parts)

    @cached_property
    def _kernel_slopes(self) -> tuple[tuple[Array, ...], tuple[Array, ...] | None]:
        loads = None if self._load_slopes is None else tuple(map(engine.kernel_array, self._load_slopes))
        return tuple(map(engine.kernel_array, self._slopes)), loads

    @cached_property
    def _kernel_constants(self) -> tuple[Any, ...]:
        return engine.flags_if_varied(engine.mechanism(self.model), self._slopes)

    @cached_property
    def _directions(self) -> engine.Directions:
        return engine.directions(self._kernel_constants, *self._kernel_slopes, self.model.n)

    @cached_property
    def _sparse_slopes(self) -> Any:
        from scipy.sparse import csr_array  # here, because it takes longer to import than all of kinegrad

        parts = [*self._slopes, *(self._load_slopes or ())]
        if self.model.elements:  # whose share is known by parameters already
            parts.append(np.eye(self.p))
        return csr_array(np.concatenate(parts, axis=1))

    @cached_property
    def _variation(self) -> dict[str, Array]:
        """Slopes of fields of the model and of the loads along each parameter, (p, *shape of the field)."""
        if self._function is not None:
            asked = self._function, self._keywords, self.values
            built = Built(self.model, self.loads)
            slopes = slopes_of(*asked, built)
            check_slopes(*asked, self.names, slopes, lambda k: confirmed(*asked, built, k, slopes))
            return slopes
        if self._origin is not None and self._entangled:
            return field_slopes(*self._origin)
        variation: dict[str, Array] = {}
        for k, terms in enumerate(self._terms.values()):
            for constant, coefficient in terms:
                for what, x in constant.slopes(self.model).items():
                    total = variation.setdefault(what, np.zeros((self.p, *x.shape)))
                    total[k] += coefficient * x
        return variation

    @property
    def _load_fields(self) -> dict[str, Any]:
        """Force, point and torque of all links, in a dictionary of their own; nothing without loads."""
        return {} if self.loads is None else dict(self.loads.arrays(self.model))

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        specs = [(name, frozenset(x.items()) if isinstance(x, Mapping) else x) for name, x in self._specs.items()]
        present = () if self._function is None else (self._keywords, *self.values.tolist())
        origin = () if self._origin is None else (self._origin[0]._key, *self._origin[1].tolist())
        return self.model, tuple(specs), self.loads, present, origin

    @property
    def _specs(self) -> dict[str, Any]:
        """The parameters as they can be pickled."""
        given = dict(self.parameters)  # type: ignore[arg-type]  # a mapping by now
        return {name: dict(spec) if isinstance(spec, Mapping) else spec for name, spec in given.items()}

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Design) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._function is not None:
            return Design._of, (Built(self.model, self.loads), self._function, self._keywords, self.values)
        if self._origin is not None:
            return Design.at, self._origin
        return Design, (self.model, self._specs, self.loads)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={value:g}" for name, value in zip(self.names, self.values, strict=True))
        return f"Design({self.model.name}: {pairs})"


def _set(value: float, _: float) -> float:
    return value


def _add(change: float, now: float) -> float:
    return now + change


def _read_only(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(mapping))


def variant(design: Design, model: Model) -> Design:
    """The same parameters of a variant of the model whose constants are the same."""
    found = Design.__new__(Design)
    derived = ("_key", "_kernel_constants", "_directions", "_sparse_slopes", "_primitive", "_without_elements")
    kept = {name: x for name, x in vars(design).items() if name not in derived}
    found.__dict__.update(kept, model=model, _variation=design._variation, _whole=whole(design))
    return found


def whole(design: Design) -> Design:
    """The design of which this one is a variant, or itself."""
    found: Design = design.__dict__.get("_whole", design)
    return found


def field_slopes(design: Design, values: Array) -> dict[str, Array]:
    """Slopes of fields of model and loads along each parameter at other values, (p, *shape of the field)."""
    if design._function is not None:
        return slopes_of(design._function, design._keywords, values, Built(design.model, design.loads))
    rows = []
    with carry_slopes():
        for k in range(design.p):
            given: list[Any] = values.tolist()
            given[k] += 1j * STEP
            built = design._with(given)
            rows.append({what: slope(x) for what, x in built_fields(built).items()})
    found = {what: np.array([row[what] for row in rows]) for what in rows[0]}
    return {what: x for what, x in found.items() if x.any()}


def element_slopes(design: Design) -> Array:
    """Slopes of the numbers of force elements, (p, 37 elements)."""
    found = design._variation.get("elements")
    return np.zeros((design.p, NUMBERS * len(design.model.elements))) if found is None else found.reshape(design.p, -1)


def kernel_slopes(design: Design) -> tuple[tuple[Array, ...], tuple[Array, ...] | None]:
    """Slopes of a design's constants and of its loads as kernels are compiled for; kernels never write to them."""
    return design._kernel_slopes


def frame_slopes(design: Design) -> dict[str, Array]:
    """Slopes of the placements of frames in their links, (p, 4, 4), of those that vary."""
    return design._frame_slopes


def kernel_constants(design: Design) -> tuple[Any, ...]:
    """Constants of a design's model, with which kernels skip nothing that varies."""
    return design._kernel_constants


def directions(design: Design) -> engine.Directions:
    """Slopes of a design's constants and of its loads, with what they make vary."""
    return design._directions


def sparse_slopes(design: Design) -> Any:
    """Slopes of all constants and loads, (p, columns), as a sparse array: a parameter moves few of them."""
    return design._sparse_slopes
