"""What links look like: solids, where they are fixed in links, and their colours.

Shapes are for drawing.  Nothing of a motion depends on them, and masses are given apart from them
(:class:`~kinegrad.Inertia`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.names import as_tuple, check_name, find_name
from kinegrad.model.numbers import flag, real_array
from kinegrad.model.placement import check_transform
from kinegrad.results import frozen

__all__ = ["Box", "Capsule", "Cylinder", "Mesh", "Shape", "Sphere"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sphere:
    """A ball about the origin of its frame; `radius` in m."""

    radius: float

    def __post_init__(self) -> None:
        _own(self, "radius")


@dataclass(frozen=True)
class Cylinder:
    """A cylinder along z with its middle at the origin of its frame; `radius` and `length` in m."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _own(self, "radius", "length")


@dataclass(frozen=True)
class Capsule:
    """A cylinder as :class:`Cylinder` with half a ball at each end, which `length` does not contain, m."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _own(self, "radius", "length")


@dataclass(frozen=True)
class Box:
    """A box along the axes with its middle at the origin of its frame; `size` is its three edges, m."""

    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        edges = _numbers("`size` of a Box", self.size, (3,))
        if not (edges > 0).all():
            raise ModelError(f"`size` of a Box is {edges.tolist()}; expected three positive numbers, m")
        object.__setattr__(self, "size", tuple(edges.tolist()))


@dataclass(frozen=True)
class Mesh:
    """A surface in a file, which is named here and not read.

    Parameters
    ----------
    file : str or path
        As given: relative names stay relative.
    scale : float, or three of them
        Metres per unit of the file, along its axes; a negative number mirrors.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        name = os.fspath(self.file) if isinstance(self.file, os.PathLike) else self.file
        if not isinstance(name, str) or not check_name("`file` of a Mesh", name):
            raise ModelError(f"`file` of a Mesh is {shown(self.file)}; expected the name of a file")
        object.__setattr__(self, "file", name)
        scale = _numbers("`scale` of a Mesh", self.scale, (), (3,))
        if not scale.all():
            raise ModelError(f"`scale` of a Mesh is {scale.tolist()}; expected numbers that are not zero")
        object.__setattr__(self, "scale", tuple(np.broadcast_to(scale, (3,)).tolist()))


Solid = Sphere | Cylinder | Capsule | Box | Mesh


@dataclass(frozen=True, eq=False)
class Shape:
    """A solid fixed in a link or frame, with a colour.  Immutable; compares and hashes by value, and pickles.

    Parameters
    ----------
    link : str or None
        The link or frame it is fixed in; None for the world, as the base of an arm is.
    solid : Sphere, Cylinder, Capsule, Box or Mesh
    placement : array_like, shape (4, 4) or (3,), optional
        The solid's frame in that link or frame; three numbers are a shift, m.
    color : three or four numbers from 0 to 1, optional
        Red, green, blue and, 1 if not given, opacity; None leaves it to who draws.
    collision : bool
        Whether it is a simplified solid for finding collisions, and not to be drawn.

    Examples
    --------
    >>> Shape("forearm", Capsule(0.03, 0.4), [-0.2, 0, 0], color=(0.8, 0.6, 0.5)).color
    (0.8, 0.6, 0.5, 1.0)
    """

    link: str | None
    solid: Solid
    placement: Array = field(default_factory=lambda: np.eye(4))
    color: tuple[float, float, float, float] | None = None
    collision: bool = False

    def __post_init__(self) -> None:
        if self.link is not None:
            object.__setattr__(self, "link", check_name("`link` of a shape", self.link))
        object.__setattr__(self, "collision", flag("`collision` of a shape", self.collision))
        if not isinstance(self.solid, Solid):
            expected = "expected a Sphere, Cylinder, Capsule, Box or Mesh"
            raise ModelError(f"`solid` of a shape is {shown(self.solid)}; {expected}")
        # drawings have no derivatives: a slope that numbers carry ends here
        placement = np.real(check_transform("`placement` of a shape", self.placement))
        object.__setattr__(self, "placement", frozen(placement))
        if self.color is not None:
            given = _numbers("`color` of a shape", self.color, (3,), (4,))
            if not ((given >= 0) & (given <= 1)).all():
                raise ModelError(f"`color` of a shape is {given.tolist()}; expected numbers from 0 to 1")
            object.__setattr__(self, "color", (*given.tolist(), 1.0)[:4])

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.link, self.solid, (self.placement + 0).tobytes(), self.color, self.collision

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Shape) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Shape, (self.link, self.solid, self.placement, self.color, self.collision)


def check_shapes(shapes: Any, places: Sequence[str], model: str) -> tuple[Shape, ...]:
    """A tuple of shapes whose links or frames exist, or a ModelError."""
    checked = as_tuple("shapes", shapes, "Shape objects")
    for k, shape in enumerate(checked):
        if not isinstance(shape, Shape):
            raise ModelError(f"`shapes`[{k}] is {shown(shape)}; expected a Shape")
        try:
            if shape.link is not None:
                find_name("link or frame", shape.link, places, model)
        except InputError as error:
            raise ModelError(f"`shapes`[{k}]: {error}") from None
    return checked


def _own(solid: Any, *names: str) -> None:
    """Replace lengths by checked plain numbers."""
    for name in names:
        what = f"`{name}` of a {type(solid).__name__}"
        length = float(_numbers(what, getattr(solid, name), ()))
        if not length > 0:
            raise ModelError(f"{what} is {length:g}; expected a positive number, m")
        object.__setattr__(solid, name, length)


def _numbers(what: str, value: Any, *shapes: tuple[int, ...]) -> Array:
    """Finite real numbers of one of the shapes, or a ModelError."""
    given = np.real(real_array(what, value, "real numbers"))
    if given.shape not in shapes or not np.isfinite(given).all():
        expected = " or ".join("one finite number" if shape == () else f"{shape[0]} finite numbers" for shape in shapes)
        raise ModelError(f"{what} is {shown(value)}; expected {expected}")
    return given
