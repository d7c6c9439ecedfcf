"""Constraints of a model as one function φ(q), with its Jacobian, its motion, and exact derivatives of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import constraints as kernels
from kinegrad.constraints.descriptions import Constraint, Distance
from kinegrad.constraints.placing import all_of, held, names_of, place, resolved
from kinegrad.constraints.rows import Tables, tables
from kinegrad.errors import InputError, SingularError, at_state, shown
from kinegrad.kinematics import state_of
from kinegrad.model import Model
from kinegrad.model.names import find_name
from kinegrad.results import Result

__all__ = ["ConstraintDerivatives", "ConstraintSet"]

Array = NDArray[np.float64]
Axis = engine.Axis
SHORT = 1e-150  # of a rod: its square is zero


def _slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), kernels.slots(model.n)


def _by_q(name: str) -> engine.Result:
    return engine.Result(name, (Axis.POINT, Axis.PER_POSITION), zero=True, optional=True)


_CLOSURE = engine.Kernel(
    kernels.closure,
    engine.Q,
    (engine.Result("error", (Axis.POINT,), optional=True), _by_q("jacobian")),
    tables=_slots,
    with_elements=engine.indifferent,
)
MOTION = engine.Kernel(
    kernels.motion,
    engine.QVA,
    (engine.Result("velocity", (Axis.POINT,)), engine.Result("acceleration", (Axis.POINT,))),
    tables=_slots,
    with_elements=engine.indifferent,
)
_DERIVATIVES = engine.Kernel(
    kernels.derivatives,
    engine.QVA,
    (_by_q("derror_dq"), _by_q("dvelocity_dq"), _by_q("dacceleration_dq")),
    tables=_slots,
    with_elements=engine.indifferent,
)
_CURVATURE = engine.Kernel(
    kernels.curvature,
    engine.Q,
    (engine.Result("dforce_dq", (Axis.TORQUE, Axis.PER_POSITION), zero=True),),
    tables=_slots,
    with_elements=engine.indifferent,
)
_FORCE = engine.Result("force", (Axis.TORQUE,))


@dataclass(frozen=True, eq=False)
class ConstraintDerivatives(Result):
    """Derivatives of the errors φ of constraints and of their time derivatives, (..., m, n) each.

    Exactly zero where a joint does not move what a row ties.  Units of the row (m or rad, per s or s²), per rad or m.

    Attributes
    ----------
    derror_dq : ndarray
        Of φ: the Jacobian G.
    dvelocity_dq, dvelocity_dv : ndarray or None
        Of φ̇ = G v; None unless v was given.
    dacceleration_dq, dacceleration_dv, dacceleration_da : ndarray or None
        Of φ̈ = G a + Ġ v; None unless a was given.  The drift γ is −φ̈ at a = 0.
    """

    derror_dq: Array
    dvelocity_dq: Array | None = None
    dvelocity_dv: Array | None = None
    dacceleration_dq: Array | None = None
    dacceleration_dv: Array | None = None
    dacceleration_da: Array | None = None


class ConstraintSet:
    """Constraints of one model: m rows φ(q) = 0, by name.  Immutable; compares and hashes by value, and pickles.

    Parameters
    ----------
    model : Model
    constraints : iterable of Contact, Loop, Distance, Coupling or Given
        May be empty.  Those without a name are called by what they are, ``contact_foot``; names are different.

    Attributes
    ----------
    model : Model
    constraints : tuple of Constraint
        With their names, and the lengths of distances.
    names, row_names : tuple of str
        Of the constraints, and of their rows: ``contact_foot.z``.
    m : int
        Number of rows.

    Examples
    --------
    A double pendulum whose tip is held on a rod:

    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> rod = ConstraintSet(arm, [Distance("forearm", other_point=[0.8, 0.3, 0], length=0.3, name="rod")])
    >>> rod.error([0.0, 0.0]), rod.jacobian([0.0, 0.0])
    (array([0.]), array([[-0.8, -0.4]]))
    >>> rod
    ConstraintSet of 1 row for model 'two_link'
      0  rod  distance of forearm (0, 0, 0) from the world (0.8, 0.3, 0): 0.3 m
    """

    model: Model
    constraints: tuple[Constraint, ...]
    names: tuple[str, ...]
    row_names: tuple[str, ...]
    _tables: Tables

    def __init__(self, model: Model, constraints: Iterable[Constraint]) -> None:
        engine.check_model(model)
        given = all_of(constraints)
        names = names_of(given)
        found = tuple(resolved(model, one, name) for one, name in zip(given, names, strict=True))
        rows = tuple(f"{one.name}.{row}" if row else one.name for one in found for row in one.rows)
        set_field = object.__setattr__.__get__(self)
        set_field("model", model)
        set_field("constraints", found)
        set_field("names", names)
        set_field("row_names", rows)
        set_field("_tables", tables(model, found))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ConstraintSet is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a ConstraintSet is immutable; {name!r} cannot be deleted")

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """Number of rows."""
        return len(self.row_names)

    def __len__(self) -> int:
        return len(self.constraints)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str | Constraint) and (name in self.names or name in self.constraints)

    def __getitem__(self, name: str) -> Constraint:
        """The constraint called `name`."""
        return self.constraints[self._index(name)]

    def rows(self, name: str) -> slice:
        """Where the rows of the constraint called `name` are.

        >>> import kinegrad as kg
        >>> ConstraintSet(kg.samples.two_link(), [kg.Contact("forearm", directions="xy", name="tip")]).rows("tip")
        slice(0, 2, None)
        """
        k = self._index(name)
        first = sum(len(one.rows) for one in self.constraints[:k])
        return slice(first, first + len(self.constraints[k].rows))

    def constraint_of(self, row: int) -> str:
        """The name of the constraint that a row, by its number from 0, belongs to."""
        if not isinstance(row, int | np.integer) or not 0 <= row < self.m:
            raise InputError(f"`row` is {shown(row)}; expected the number of a row, from 0 to {self.m - 1}")
        counts = np.cumsum([len(one.rows) for one in self.constraints])
        return self.names[int(np.searchsorted(counts, row, side="right"))]

    def _index(self, name: str) -> int:
        try:
            return find_name("constraint", name, self.names, self.model.name)
        except InputError as error:
            raise InputError(str(error).replace("in model", "for model")) from None

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.model, self.constraints

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, ConstraintSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return ConstraintSet, (self.model, self.constraints)

    def __repr__(self) -> str:
        rows = f"{self.m} row{'' if self.m == 1 else 's'}"
        lines, first = [f"ConstraintSet of {rows} for model {self.model.name!r}"], 0
        width, digits = max(map(len, self.names), default=0), len(str(max(self.m - 1, 0)))
        for name, one in zip(self.names, self.constraints, strict=True):
            last = first + len(one.rows) - 1
            numbers = f"{first}" if last == first else f"{first}–{last}"
            lines.append(f"  {numbers:<{2 * digits + 1 if self._wide else digits}}  {name:<{width}}  {one.summary}")
            first = last + 1
        return "\n".join(lines)

    @property
    def _wide(self) -> bool:
        return any(len(one.rows) > 1 for one in self.constraints)

    # --- what it says of a state --------------------------------------------------------------------------------

    def error(self, q: ArrayLike, *, threads: int | None = None) -> Array:
        """How far the constraints are from being met, φ(q).

        Parameters
        ----------
        q : array_like, shape (..., n)
            Coordinates, rad or m.
        threads : int, optional
            See :func:`set_threads`.

        Returns
        -------
        ndarray, shape (..., m)
            m, or rad.
        """
        return self._evaluate(_CLOSURE, (q,), threads, slice(0, 1))[0]

    def jacobian(self, q: ArrayLike, *, threads: int | None = None) -> Array:
        """G = ∂φ/∂q, shape (..., m, n); arguments as of :meth:`error`."""
        return self._evaluate(_CLOSURE, (q,), threads, slice(1, 2))[0]

    def closure(self, q: ArrayLike, *, threads: int | None = None) -> tuple[Array, Array]:
        """φ and G of one sweep."""
        error, jacobian = self._evaluate(_CLOSURE, (q,), threads, slice(0, 2))
        return error, jacobian

    def velocity(self, q: ArrayLike, v: ArrayLike, *, threads: int | None = None) -> Array:
        """φ̇ = G v, shape (..., m), m/s or rad/s."""
        return self._evaluate(MOTION, self._moving(q, v), threads, slice(0, 1))[0]

    def acceleration(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, threads: int | None = None) -> Array:
        """φ̈ = G a + Ġ v, shape (..., m), m/s² or rad/s²."""
        return self._evaluate(MOTION, (q, v, a), threads, slice(1, 2))[0]

    def drift(self, q: ArrayLike, v: ArrayLike, *, threads: int | None = None) -> Array:
        """γ = −Ġ v: what G a has to be, so that the constraints stay met.

        Parameters
        ----------
        q, v : array_like, shape (..., n)
            Coordinates and speeds.
        threads : int, optional
            See :func:`set_threads`.

        Returns
        -------
        ndarray, shape (..., m)
            m/s², or rad/s².
        """
        return 0.0 - self._evaluate(MOTION, self._moving(q, v), threads, slice(1, 2))[0]

    def derivatives(
        self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, threads: int | None = None
    ) -> ConstraintDerivatives:
        """Exact derivatives of the errors, their velocities and their accelerations with respect to q, v and a.

        Parameters
        ----------
        q, v, a : array_like, shape (..., n)
            Coordinates, speeds and accelerations; v and a may be left out.
        threads : int, optional
            See :func:`set_threads`.

        Examples
        --------
        >>> import kinegrad as kg
        >>> held = ConstraintSet(kg.samples.two_link(), [kg.Contact("forearm", directions="x")])
        >>> held.derivatives([0.0, 0.0], [1.0, 0.0]).dvelocity_dq
        array([[-0.8, -0.4]])
        """
        state = state_of(q, v, a)
        if engine.mapped(self.model):
            at = engine.Expansion(self.model, dict(zip("qva", state, strict=False)))
            change = self._primitive.derivatives(*at.arguments(engine.QVA), threads=threads)
            return engine.contract_fields(at, change)
        if v is None:
            return ConstraintDerivatives(self.jacobian(q, threads=threads))
        G, dG, ddG = self._evaluate(_DERIVATIVES, state, threads, slice(0, 3))
        if a is None:
            return ConstraintDerivatives(G, dG, G.copy())
        with np.errstate(over="ignore"):
            twice = _finite(2.0 * dG)
        return ConstraintDerivatives(G, dG, G.copy(), ddG, twice, G.copy())

    def force(self, q: ArrayLike, f: ArrayLike, *, threads: int | None = None) -> Array:
        """Gᵀ f: what multipliers f, (..., m), are as torques and forces of joints, (..., n)."""
        x, weights = self._with_multipliers(q, f)
        G = self.jacobian(x, threads=threads)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite((G * weights[..., :, None]).sum(axis=-2))

    def curvature(self, q: ArrayLike, f: ArrayLike, *, threads: int | None = None) -> Array:
        """∂(Gᵀf)/∂q = Σ f ∂²φ/∂q², the curvature of the constraints weighted by multipliers.

        Parameters
        ----------
        q : array_like, shape (..., n)
            Coordinates.
        f : array_like, shape (..., m)
            Multipliers.
        threads : int, optional
            See :func:`set_threads`.

        Returns
        -------
        ndarray, shape (..., n, n)
            Symmetric, unless coordinates are quaternions.
        """
        x, weights = self._with_multipliers(q, f)
        if engine.mapped(self.model):
            at, joints = engine.Expansion(self.model, {"q": x}), self._primitive
            both = (joints.force(at.q, weights), joints.curvature(at.q, weights, threads=threads))
            return engine.contract(at, (_FORCE, *_CURVATURE.results), both)[1]
        rows = np.array(weights).reshape(math.prod(weights.shape[:-1]), self.m)
        return self._call(_CURVATURE, (x,), threads, options=[tuple(self._tables), rows], unseen={"f": rows})[0]

    def jacobian_derivatives(self, q: ArrayLike, *, threads: int | None = None) -> Array:
        """∂G/∂q, shape (..., m, n, n): the curvature of each row."""
        x = engine.check_arguments(self.model, {"q": q})[0]["q"]
        return self.curvature(x[..., None, :], np.eye(self.m), threads=threads)

    def held_at(self, q: ArrayLike) -> ConstraintSet:
        """The same set, in which contacts, and loops with the world, hold what they tie where that is at q.

        Parameters
        ----------
        q : array_like, shape (n,)
            One configuration.

        Examples
        --------
        >>> import kinegrad as kg
        >>> tip = ConstraintSet(kg.samples.two_link(), [kg.Contact("forearm", directions="xy")])
        >>> tip.error([0.0, 0.0]), tip.held_at([0.0, 0.0]).error([0.0, 0.0])
        (array([0.8, 0. ]), array([0., 0.]))
        """
        return ConstraintSet(self.model, [held(self.model, one, q) for one in self.constraints])

    # --- how it is computed -------------------------------------------------------------------------------------

    @cached_property
    def _primitive(self) -> ConstraintSet:
        """The same constraints of the model's joints."""
        return ConstraintSet(self.model.primitive, self.constraints)

    def _moving(self, q: Any, v: Any) -> tuple[Any, ...]:
        """q, v and no acceleration; where coordinates are not joints, joints may accelerate even so."""
        return (q, v, np.zeros(self.model.nv)) if engine.mapped(self.model) else (q, v)

    def _with_multipliers(self, q: Any, f: Any) -> tuple[Array, Array]:
        """Coordinates and multipliers of one batch shape."""
        x, weights = engine.real("q", q), engine.real("f", f)
        for name, array, size in (("q", x, self.model.nq), ("f", weights, self.m)):
            if array.shape[-1:] != (size,):
                raise InputError(f"`{name}` has shape {array.shape}; expected its last axis to be {size}")
        if not np.isfinite(weights).all():
            raise engine.not_finite("f", weights)
        shape = engine.broadcast("qf", [x.shape[:-1], weights.shape[:-1]])
        return np.broadcast_to(x, (*shape, self.model.nq)), np.broadcast_to(weights, (*shape, self.m))

    def _evaluate(
        self, kernel: engine.Kernel, state: Sequence[Any], threads: int | None, wanted: slice
    ) -> tuple[Array, ...]:
        return self._call(kernel, state, threads, options=[tuple(self._tables)], wanted=wanted)

    def _call(self, kernel: engine.Kernel, state: Sequence[Any], threads: int | None, **how: Any) -> tuple[Array, ...]:
        try:
            return engine.evaluate_with(kernel, self.model, state, threads=threads, points=(self.m,), **how)
        except InputError as error:
            if "overflow" in str(error):
                self.check_rods(state[0])
            raise

    def check_rods(self, q: Any) -> None:
        """Say where a rod has no length, and so no direction."""
        for one in self.constraints:
            if isinstance(one, Distance):
                gap = place(self.model, q, one.link, one.point) - place(self.model, q, one.other, one.other_point)
                at = np.argwhere((np.abs(gap) < SHORT).all(axis=-1))
                if len(at):
                    found = f"the two points of constraint {shown(one.name)} are at one place{at_state(at[0].tolist())}"
                    expected = f"expected them {one.length:g} m apart"
                    raise SingularError(f"{found}, so that their distance has no derivative; {expected}")


def _finite(x: Array) -> Array:
    if not np.isfinite(x).all():
        raise InputError("the results are not finite: they overflow float64; expected smaller numbers")
    return x
