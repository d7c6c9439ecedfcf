"""Force elements between two links: spring-dampers and bushings.

They belong to the model, as the springs and dampers of joints do, and are part of torques, accelerations, energies and
all their derivatives.  What they do is derived in ``_kernels/elements.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.coordinates import HINGES
from kinegrad.model.names import check_name
from kinegrad.model.numbers import LARGEST, far_from_real, real_array, real_number, too_large
from kinegrad.model.placement import check_transform, rotate
from kinegrad.results import frozen

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["Bushing", "SpringDamper"]

Array = NDArray[np.float64]
Kept = Any  # array_like as it is given, an ndarray of its own as it is read
_AXES = ("x", "y", "z")
_TURNS = ("rx", "ry", "rz")
NUMBERS = 37  # of an element, as kernels read them: see `row`


class _Element:
    """What both kinds have in common: they compare and hash by value, and pickle."""

    link: str
    other: str | None

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        # + 0 makes −0 and 0 the same bytes, as they are the same number
        return type(self), *((x + 0).tobytes() if isinstance(x, np.ndarray) else x for x in values)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, _Element) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]

    def _check_links(self) -> None:
        kind = type(self).__name__
        object.__setattr__(self, "link", check_name(f"`link` of a {kind}", self.link))
        if self.other is not None:
            object.__setattr__(self, "other", check_name(f"`other` of a {kind}", self.other))

    @property
    def _between(self) -> str:
        return f"{self.link!r} and {'the world' if self.other is None else repr(self.other)}"

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of its numbers, as ``"stiffness"``, for parameters of a :class:`Design`."""
        raise NotImplementedError

    def number(self, name: str) -> float:
        """The number of that name; 0 for a turn of a placement, which is counted from where it is."""
        field, where = self._find(name)
        return 0.0 if where == "turn" else float(np.asarray(getattr(self, field))[where])

    def changed(self, name: str, new: Callable[[float], Any]) -> Any:
        """A copy with ``new(number)`` in the place of the number of that name."""
        field, where = self._find(name)
        if where == "turn":
            return replace(self, **{field: getattr(self, field) @ rotate(name[-1], new(0.0))})  # type: ignore[type-var]
        now = np.asarray(getattr(self, field))
        value = new(now[where].item())
        moved = now.astype(np.result_type(now, value))
        moved[where] = value
        return replace(self, **{field: moved if moved.ndim else moved.item()})  # type: ignore[type-var]

    def _find(self, name: str) -> tuple[str, Any]:
        """The field and the entry of a number, or ``"turn"``."""
        field, _, part = name.partition(".")
        if not part:
            return field, ()
        if "placement" in field:
            return field, "turn" if part in _TURNS else (_AXES.index(part), 3)
        return field, ((*_AXES, *_TURNS).index(part),)


@dataclass(frozen=True, eq=False, repr=False)
class SpringDamper(_Element):
    """A straight spring with a damper between two points: it pulls both together with k (l − l₀) + d l̇.

    l is the distance of the points.  Immutable; compares and hashes by value, and pickles.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    point : array_like, shape (3,)
        Where it is attached, in the frame of that link, or in that frame, m.
    other : str, optional
        Another link, or a frame; the world without it.
    other_point : array_like, shape (3,)
        Where it is attached there, m.
    stiffness : float
        k, N/m.
    damping : float
        d, N·s/m, zero or more.
    rest_length : float
        l₀, m, zero or more.  Where the two points coincide the direction of the force is not defined, and functions
        raise :class:`SingularError`, unless rest length and damping are zero: that spring pulls with k times the vector
        from one point to the other, everywhere.

    Examples
    --------
    A strap from the hand of an arm to the wall, 0.3 m above its shoulder:

    >>> from kinegrad import inverse_dynamics, samples
    >>> arm = samples.two_link(gravity=(0, 0, 0))
    >>> strap = SpringDamper("forearm", [0, 0, 0], None, [0, 0.3, 0], stiffness=100.0)
    >>> inverse_dynamics(arm.replace(elements={"strap": strap}), [0, 0], [0, 0], [0, 0])
    array([-24., -12.])
    """

    link: str
    point: Kept = (0.0, 0.0, 0.0)
    other: str | None = None
    other_point: Kept = (0.0, 0.0, 0.0)
    stiffness: float = 0.0
    damping: float = 0.0
    rest_length: float = 0.0

    def __post_init__(self) -> None:
        self._check_links()
        for what in ("point", "other_point"):
            object.__setattr__(self, what, _numbers(f"`{what}` of a SpringDamper", getattr(self, what), 3))
        for what in ("stiffness", "damping", "rest_length"):
            value = real_number(f"`{what}` of a SpringDamper", getattr(self, what))
            if what != "stiffness" and not (np.real(value) >= 0 or far_from_real()):
                raise ModelError(f"`{what}` of a SpringDamper is {value}; expected zero or more")
            object.__setattr__(self, what, value)

    @property
    def constants(self) -> tuple[str, ...]:
        points = (f"{what}.{x}" for what in ("point", "other_point") for x in _AXES)
        return ("stiffness", "damping", "rest_length", *points)

    def row(self, placement: Array | None, other_placement: Array | None) -> NDArray[Any]:
        """Its numbers as kernels read them, (37,): see :meth:`Bushing.row`."""
        ends = [_within(self.point, placement), _within(self.other_point, other_placement), np.zeros(18)]
        none = np.zeros(5)
        return np.concatenate([*ends, [self.stiffness], none, [self.damping], none, [self.rest_length]])

    def __repr__(self) -> str:
        numbers = f"stiffness {self.stiffness:g}, damping {self.damping:g}, rest length {self.rest_length:g}"
        return f"SpringDamper(between {self._between}: {numbers})"


@dataclass(frozen=True, eq=False, repr=False)
class Bushing(_Element):
    """A spring and damper of all six motions between two frames.

    With x the origin of the frame in `link` in coordinates of the frame in `other`, and ω, ẋ the velocity of the one as
    seen from the other, the force on `link` is −kᵢ xᵢ − dᵢ ẋᵢ along axis i of the frame in `other`, at the origin of
    the frame in `link`.  The torque is that of the energy ½ Σ κᵢ φᵢ², where φ = 2 sin(θ/2) n of a turn by the angle θ
    about the axis n, less δᵢ ωᵢ: for small turns −κᵢ φᵢ − δᵢ ωᵢ, and of a turn about one axis −κ sin θ.  It is smooth
    everywhere.  Immutable; compares and hashes by value, and pickles.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    placement : array_like, shape (4, 4) or (3,)
        The frame in that link, or in that frame; three numbers are a shift, m.
    other : str, optional
        Another link, or a frame; the world without it.
    other_placement : array_like, shape (4, 4) or (3,)
        The frame there.
    stiffness : array_like, shape (6,)
        k of shifts along x, y, z, N/m, and κ of turns about x, y, z, N·m/rad.
    damping : array_like, shape (6,)
        d, N·s/m, and δ, N·m·s/rad, zero or more.

    Examples
    --------
    >>> from kinegrad import inverse_dynamics, samples
    >>> arm = samples.two_link(gravity=(0, 0, 0))
    >>> mount = Bushing("forearm", [0, 0, 0], None, [0.8, 0, 0], stiffness=[0, 100, 0, 0, 0, 5])
    >>> mounted = arm.replace(elements={"mount": mount})
    >>> inverse_dynamics(mounted, [0.1, 0.0], [0, 0], [0, 0]).round(4)
    array([6.8566, 3.6779])
    """

    link: str
    placement: Kept = (0.0, 0.0, 0.0)
    other: str | None = None
    other_placement: Kept = (0.0, 0.0, 0.0)
    stiffness: Kept = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    damping: Kept = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        self._check_links()
        for what in ("placement", "other_placement"):
            T = check_transform(f"`{what}` of a Bushing", getattr(self, what))
            object.__setattr__(self, what, frozen(T))
        for what in ("stiffness", "damping"):
            values = _numbers(f"`{what}` of a Bushing", getattr(self, what), 6)
            if what == "damping" and not ((np.real(values) >= 0).all() or far_from_real()):
                raise ModelError(f"`damping` of a Bushing is {values.tolist()}; expected six numbers, zero or more")
            object.__setattr__(self, what, values)

    @property
    def constants(self) -> tuple[str, ...]:
        wholes = ("stiffness", "damping", "placement", "other_placement")
        return tuple(f"{what}.{x}" for what in wholes for x in (*_AXES, *_TURNS))

    def row(self, placement: Array | None, other_placement: Array | None) -> NDArray[Any]:
        """Its numbers as kernels read them, (37,), from where its frames are in links, or None for links.

        Points of both ends, 3 each, and axes of both frames, 9 each, row by row, in the frames of the links; stiffness
        and damping, 6 each; rest length.
        """
        frames = [
            T if within is None else within @ T
            for T, within in ((self.placement, placement), (self.other_placement, other_placement))
        ]
        places = [T[:3, 3] for T in frames] + [T[:3, :3].ravel() for T in frames]
        return np.concatenate([*places, self.stiffness, self.damping, [0.0]])

    def __repr__(self) -> str:
        numbers = (", ".join(f"{x:g}" for x in values) for values in (self.stiffness, self.damping))
        return "Bushing(between {}: stiffness ({}), damping ({}))".format(self._between, *numbers)


Element = SpringDamper | Bushing


def check_elements(model: Model, given: Any) -> Mapping[str, Element]:
    """An immutable copy of `elements`, whose names are no joints', links' or frames' and whose links exist."""
    if not isinstance(given, Mapping):
        found = f"`elements` is {shown(given)}"
        raise ModelError(f"{found}; expected a dictionary from names to SpringDamper and Bushing objects")
    inner = [first + k for first, _, _ in model.layout.balls for k in range(len(HINGES) - 1)] if given else []
    checked = {}
    for name, element in given.items():
        label = check_element_name(name, model.joint_names, model.link_names, tuple(model.frames))
        if not isinstance(element, Element):
            raise ModelError(f"element {shown(name)} is {shown(element)}; expected a SpringDamper or a Bushing")
        try:
            links = [i for i, _ in ends(model, element)]
        except InputError as error:
            raise ModelError(f"element {shown(name)}: {error}") from None
        if links[0] == links[1]:
            link = shown(model.link_names[links[0]])
            raise ModelError(f"element {shown(name)} acts between {link} and itself; expected two links")
        for i in links:
            if i in inner:
                found = f"element {shown(name)} acts on {shown(model.link_names[i])}, which is inside a ball joint"
                raise ModelError(f"{found} and not a body; expected links only")
        checked[label] = element
    return MappingProxyType(checked)


def check_element_name(name: Any, *taken: Sequence[str]) -> str:
    """The name of an element, which no joint, link or frame has, or a ModelError."""
    label = check_name("the name of an element", name)
    if not label or label == "gravity":
        raise ModelError(f"the name of an element is {shown(label)}; expected text that is not 'gravity'")
    for what, names in zip(("joint", "link", "frame"), taken, strict=True):
        if label in names:
            raise ModelError(f"element {shown(label)} has the name of a {what}; choose another name")
    return label


def ends(model: Model, element: Element) -> tuple[tuple[int, Array | None], tuple[int, Array | None]]:
    """The links of both ends by number, −1 for the world, and where frames are in them."""
    return model.locate(element.link), (-1, None) if element.other is None else model.locate(element.other)


def element_numbers(model: Model, elements: Mapping[str, Element] | None = None) -> NDArray[Any]:
    """The numbers of all elements as kernels read them, (elements, 37), frames resolved; `elements` if not its own."""
    each = model.elements if elements is None else elements
    rows = [x.row(*(placement for _, placement in ends(model, x))) for x in each.values()]
    return np.array(rows).reshape(-1, NUMBERS)


def way(parents: Sequence[int], A: int, B: int) -> tuple[list[int], list[int]]:
    """The joints that move link A with respect to link B: from A to where both meet, and from there to B."""
    above = []
    for link in (A, B):
        path = []
        while link >= 0:
            path.append(link)
            link = int(parents[link])
        above.append(path)
    both = set(above[0]) & set(above[1])
    up, down = ([j for j in path if j not in both] for path in above)
    return up, down[::-1]


def with_ways(
    model: Model, rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of a pattern, by speeds, with all pairs on the way between the two links of an element."""
    found = np.zeros((model.nv, model.nv), dtype=bool)
    found[rows, cols] = True
    for element in model.elements.values():
        up, down = way(model.parents.tolist(), *(i for i, _ in ends(model, element)))
        speeds = model.layout.speed_of[[*up, *down]]
        found[np.ix_(speeds[speeds >= 0], speeds[speeds >= 0])] = True
    rows, cols = np.nonzero(found)
    return frozen(rows), frozen(cols)


def _numbers(what: str, value: Any, count: int) -> Array:
    array = real_array(what, value, f"{count} numbers")
    if array.shape != (count,) or too_large(array):
        raise ModelError(f"{what} is {shown(value)}; expected {count} finite numbers, below {LARGEST:g}")
    return frozen(array)


def _within(point: Array, placement: Array | None) -> NDArray[Any]:
    """A point of a frame in its link."""
    return point if placement is None else placement[:3, :3] @ point + placement[:3, 3]
