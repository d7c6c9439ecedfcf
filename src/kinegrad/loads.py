"""External loads: for every link at once, a force at a point fixed in the link, and a torque."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad._engine import Batch, check_model, no_load, real
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.model.numbers import holds_masked
from kinegrad.results import frozen

__all__ = ["Loads"]

Array = NDArray[np.float64]
PARTS = ("force", "point", "torque")
PerLink = ArrayLike | Mapping[str, ArrayLike]


@dataclass(frozen=True, eq=False)
class Loads:
    """Forces and torques that the surroundings exert on links.

    Each part is an array of shape (..., n, 3) for all links, or a dictionary from link names to arrays of
    shape (..., 3); what is not given is zero.  Leading axes are batch axes, broadcast with those of the state.
    A frame fixed in a link can be named in the place of the link: its force acts at the frame's origin, or at a point
    given in the frame.  A link has one force, one point and one torque.
    Loads own read-only copies of their numbers; they compare and hash by value, and pickle.

    Parameters
    ----------
    force : array_like or dict, optional
        World frame, N.
    point : array_like or dict, optional
        Where the force acts: a point fixed in the link, in the frame of the link (or in the frame that is named), m.
    torque : array_like or dict, optional
        World frame, N·m.

    Examples
    --------
    Ten newtons pull the tip of a two-link arm down:

    >>> from kinegrad import inverse_dynamics, samples
    >>> arm = samples.two_link(gravity=(0, 0, 0))
    >>> loads = Loads(force={"forearm": [0, -10, 0]})
    >>> inverse_dynamics(arm, [0, 0], [0, 0], [0, 0], loads=loads)
    array([8., 4.])
    """

    force: PerLink | None = None
    point: PerLink | None = None
    torque: PerLink | None = None

    def __post_init__(self) -> None:
        for what in PARTS:
            object.__setattr__(self, what, _owned(getattr(self, what)))

    def arrays(self, model: Model) -> dict[str, Array]:
        """Force, point and torque of all links of `model`, each (..., n, 3)."""
        check_model(model)
        return load_arrays(self, model, real)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return tuple(_content(getattr(self, what)) for what in PARTS)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Loads) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (getattr(self, what) for what in PARTS)
        return Loads, tuple(dict(part) if isinstance(part, Mapping) else part for part in parts)


def load_arrays(loads: Loads, model: Model, read: Callable[[str, Any], Array]) -> dict[str, Array]:
    """Force, point and torque of all links; `read` makes arrays of what was given."""
    given = {what: getattr(loads, what) for what in PARTS}
    if model.frames and isinstance(given["force"], Mapping):
        given["point"] = _at_frames(model, given["force"], given["point"])
    return {what: _per_link(model, what, given[what], read) for what in PARTS}


def named_frames(loads: Loads, model: Model) -> set[str]:
    """Frames of the model that loads name."""
    parts = [getattr(loads, what) for what in PARTS]
    return {name for part in parts if isinstance(part, Mapping) for name in part if name in model.frames}


def _at_frames(model: Model, force: Mapping[str, Any], point: PerLink | None) -> PerLink | None:
    """Points, with the origins of frames that forces name where no point of their link is given."""
    frames = [name for name in force if name in model.frames]
    if not frames:
        return point
    if point is not None and not isinstance(point, Mapping):
        raise InputError(
            f"`loads.force` names frame {shown(frames[0])}, and `loads.point` is an array for all links; "
            "expected a dictionary, or none: the force then acts at the frame's origin"
        )
    points = dict(point or {})
    placed = {model.locate(name)[0] for name in points}
    return points | {name: np.zeros(3) for name in frames if model.locate(name)[0] not in placed}


def load_batch(model: Model, loads: Loads | None, state: dict[str, Any]) -> tuple[Batch, Sequence[Array]]:
    """The gate for a state with loads: the batch, and force, point, torque as kernels want them."""
    batch = Batch(model, state, named_loads(model, loads))
    return batch, (no_load(model.n),) * 3 if loads is None else batch.arguments[len(state) :]


def named_loads(model: Model, loads: Loads | None) -> dict[str, Array] | None:
    """Force, point and torque of all links, (..., n, 3), by the names that errors have for them."""
    if loads is None:
        return None
    if not isinstance(loads, Loads):
        raise InputError(f"`loads` is a {type(loads).__name__}; expected Loads(force=…, point=…, torque=…)")
    return {f"loads.{what}": value for what, value in loads.arrays(model).items()}


def _owned(value: Any) -> Any:
    """Numbers, alone or by name, as read-only copies; anything else as it is, to be refused by name when used."""
    try:
        if isinstance(value, Mapping):
            return MappingProxyType({link: _owned(x) for link, x in value.items()})
        if value is None or holds_masked(value):
            return value
        array = np.asarray(value)
        with np.errstate(all="ignore"):  # a long double beyond float64 becomes infinite, and is refused as such
            return frozen(array.astype({"i": float, "u": float, "f": float, "c": complex}[array.dtype.kind]))
    except Exception:  # whatever a foreign object raises when asked for its numbers
        return value


def _content(part: Any) -> Any:
    """What of a part counts in comparisons; + 0 makes −0 and 0 the same bytes, as they are the same number."""
    if isinstance(part, np.ndarray) and part.dtype.kind in "fc":
        return part.shape, part.dtype.str, (part + 0).tobytes()
    if isinstance(part, Mapping):
        return frozenset((link, _content(x)) for link, x in part.items())
    return None if part is None else id(part)


def _per_link(model: Model, what: str, value: PerLink | None, read: Callable[[str, Any], Array]) -> Array:
    if value is None:
        return np.zeros((model.n, 3))
    if not isinstance(value, Mapping):
        return read(f"loads.{what}", value)
    parts: dict[int, Array] = {}
    names: dict[int, str] = {}
    for link, given in value.items():
        i, placement = model.locate(link)
        x = read(f"loads.{what}[{shown(link)}]", given)
        if x.shape[-1:] != (3,):
            raise InputError(f"`loads.{what}[{shown(link)}]` has shape {x.shape}; expected (..., 3)")
        if i in parts:
            both = f"{shown(names[i])} and {shown(link)}, both in link {shown(model.link_names[i])}"
            raise InputError(f"`loads.{what}` names {both}; expected one of them")
        if what == "point" and placement is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused as any other number
                x = x @ placement[:3, :3].T + placement[:3, 3]
        parts[i], names[i] = x, link
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in parts.values()))
    except ValueError:
        found = ", ".join(f"{shown(link)} {np.shape(x)[:-1]}" for link, x in value.items())
        raise InputError(f"batch shapes of `loads.{what}` do not broadcast: {found}") from None
    result = np.zeros((*shape, model.n, 3), dtype=np.result_type(float, *parts.values()))
    for i, x in parts.items():
        result[..., i, :] = x
    return result
