"""What a kernel takes, gives and needs, stated once.

Arguments are known by their kind, and results by the kinds of their axes: that is what a map between the coordinates
of a user and the joints of kernels has to know of a kernel, and all that it has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kinegrad.model import Model

Shape = tuple[int, ...]
Tables = Callable[[Model, bool, bool], tuple[tuple[Any, ...], int]]


class Kind(Enum):
    """What the numbers of an argument of shape (..., n) are."""

    POSITION = auto()  # q
    SPEED = auto()  # v
    ACCELERATION = auto()  # a
    TORQUE = auto()  # τ
    DPOSITION = auto()  # changes of q, v and a along one direction
    DSPEED = auto()
    DACCELERATION = auto()
    WEIGHT = auto()  # of torques: a virtual motion


class Axis(Enum):
    """What the entries along an axis of a result belong to; an axis that is a number has so many entries."""

    TORQUE = auto()  # the torque or force of a joint
    ACCELERATION = auto()  # the acceleration of a joint
    PER_POSITION = auto()  # the coordinate with respect to which a derivative is
    PER_SPEED = auto()
    PER_ACCELERATION = auto()
    PER_TORQUE = auto()
    LINK = auto()
    POINT = auto()  # a point that the caller names; no axis at all where that is a single one
    PARAMETER = auto()  # an inertial parameter of a link, ten for each
    CONSTANT = auto()  # a constant of the mechanism, and then one of its loads


@dataclass(frozen=True)
class Result:
    """One of the arrays that a kernel fills.

    Attributes
    ----------
    name : str
        Of the field of a public result, for errors about ``out``.
    axes : tuple of Axis or int
        Behind those of the batch.
    zero : bool
        Whether kernels leave entries alone that are to be zero.
    packed : bool
        Whether of the last two axes, two of joints, only entries are kept that topology does not make zero.
    optional : bool
        Whether the kernel leaves it out if the array has no rows.
    """

    name: str
    axes: tuple[Axis | int, ...]
    zero: bool = False
    packed: bool = False
    optional: bool = False

    def core(self, model: Model, points: Shape | None = None) -> Shape:
        """The shape behind that of the batch; `points`, the shape of the axis of points, differs from call to call."""
        n = len(model.joints)
        if self.packed:
            return (model.topology.nonzeros,)
        core: Shape = ()
        for axis in self.axes:
            if axis is Axis.POINT and points is not None:
                core += points
            elif axis is Axis.PARAMETER:
                core += (10 * n,)
            else:
                core += (axis if isinstance(axis, int) else n,)
        return core


def indifferent(model: Model, run: Callable[..., Any], state: Any, out: Any, threads: Any, options: Any) -> Any:
    """``with_elements`` of kernels whose results do not depend on forces: of kinematics, masses, impacts and loads."""
    return run(state, out)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel: ``function(constants, *state, *options, *loads, *tables, *results, …, scratch, start, stop)``.

    Attributes
    ----------
    function : callable
        Compiled; or, if `slots` is None, a routine of several kernels, called as ``function(batch, threads, state,
        loads, results)``.
    state : dict
        Names and kinds of its arguments of shape (..., n).
    results : tuple of Result
    slots : int or None
        Of scratch for each joint, and for the world.
    tables : callable, optional
        ``tables(model, loaded, stream)`` gives arguments that depend on the model alone, whether there are loads and
        whether results go past the caches, and how many slots are needed in total.
    loads : bool
        Whether it takes force, point and torque.
    pivots : bool
        Whether it divides by pivots: it takes a `status`, (2,), before the scratch, for a joint that nothing resists
        and the state.
    together : int
        How many of the last results share one block of memory.
    spare : bool
        Whether it takes an array (states, n) for its own use before the results.
    turning : callable, optional
        Compiled: the same for models none of whose joints slides, where there are no loads.
    in_coordinates : callable, optional
        ``in_coordinates(expansion, loads, threads, options)`` gives its results for models whose coordinates are not
        their joints.  Without it, arguments are expanded and results contracted as their kinds and axes say.
    with_elements : callable, optional
        ``with_elements(model, run, state, out, threads, options)`` gives its results for models with force elements,
        from those of the same model without, ``run(state, out)``; :func:`indifferent` of kernels whose results do not
        depend on forces.  Without it, models with elements are refused.
    """

    function: Callable[..., Any]
    state: Mapping[str, Kind]
    results: tuple[Result, ...]
    slots: int | None = 0
    tables: Tables | None = None
    loads: bool = False
    pivots: bool = False
    together: int = 0
    spare: bool = False
    turning: Callable[..., Any] | None = None
    in_coordinates: Callable[..., Sequence[Any]] | None = None
    with_elements: Callable[..., Sequence[Any]] | None = None

    def needs(self, model: Model, loaded: bool = False, stream: bool = False) -> tuple[tuple[Any, ...], int]:
        """Its tables for a model, and how many slots of scratch it needs."""
        if self.tables is not None:
            return self.tables(model, loaded, stream)
        return (), (len(model.joints) + 1) * (self.slots or 0)

    def cores(self, model: Model, points: Shape | None = None) -> list[Shape]:
        """Shapes of the results behind that of the batch, made once for a model."""
        known: dict[Any, list[Shape]] = model.__dict__.setdefault("_cores", {})
        key = self if points is None else (self, points)
        found = known.get(key)
        if found is None:
            found = known[key] = [result.core(model, points) for result in self.results]
        return found


Q = {"q": Kind.POSITION}
QV = Q | {"v": Kind.SPEED}
QVA = QV | {"a": Kind.ACCELERATION}
QVTAU = QV | {"tau": Kind.TORQUE}
