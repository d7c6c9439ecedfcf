"""Frames fixed in links by name: a tool tip, a marker, what is left of a link that was merged with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.names import check_name, find_name
from kinegrad.model.placement import check_transform
from kinegrad.results import frozen

__all__ = ["Frame"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """A frame fixed in a link.  Immutable; compares and hashes by value, and pickles.

    Parameters
    ----------
    link : str
        The link it is fixed in.
    placement : array_like, shape (4, 4) or (3,), optional
        The frame in the link's frame: a transform that takes coordinates in this frame to coordinates in the link's;
        three numbers are a shift, m.

    Examples
    --------
    >>> Frame("forearm", [0.0, 0.0, 0.05]).placement[:3, 3]
    array([0.  , 0.  , 0.05])
    """

    link: str
    placement: Array = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        object.__setattr__(self, "link", check_name("`link` of a frame", self.link))
        object.__setattr__(self, "placement", frozen(check_transform("`placement` of a frame", self.placement)))

    @cached_property
    def _key(self) -> tuple[str, bytes]:
        return self.link, (self.placement + 0).tobytes()  # + 0 makes −0 and 0 the same bytes

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Frame) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Frame, (self.link, self.placement)

    def __repr__(self) -> str:
        origin = ", ".join(f"{x:g}" for x in self.placement[:3, 3])
        turned = "" if np.array_equal(self.placement[:3, :3], np.eye(3)) else ", turned"
        return f"Frame({self.link!r} at ({origin}){turned})"


def check_frames(frames: Any, links: Sequence[str], model: str) -> Mapping[str, Frame]:
    """An immutable copy of `frames`, whose names are no links' and whose links exist; or a ModelError."""
    if not isinstance(frames, Mapping):
        raise ModelError(f"`frames` is {shown(frames)}; expected a dictionary from names to Frame(link, placement)")
    checked = {}
    for name, frame in frames.items():
        label = check_frame_name(name, links)
        if not isinstance(frame, Frame):
            raise ModelError(f"frame {shown(name)} is {shown(frame)}; expected Frame(link, placement)")
        try:
            find_name("link", frame.link, links, model)
        except InputError as error:
            raise ModelError(f"frame {shown(name)}: {error}") from None
        checked[label] = frame
    return MappingProxyType(checked)


def check_frame_name(name: Any, links: Sequence[str]) -> str:
    """The name of a frame, which no link has, or a ModelError."""
    label = check_name("the name of a frame", name)
    if not label:
        raise ModelError("the name of a frame is ''; expected text")
    if label in links:
        raise ModelError(f"frame {shown(label)} has the name of a link; choose another name")
    return label


def placements(frames: Mapping[str, Frame]) -> Array:
    """Where frames are in their links, (frames, 4, 4)."""
    return np.array([frame.placement for frame in frames.values()]).reshape(-1, 4, 4)
