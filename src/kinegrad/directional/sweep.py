"""The arguments of a directional derivative, checked: a state, directions, and what a function takes besides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError
from kinegrad.loads import named_loads
from kinegrad.model import Model

__all__ = ["Algorithm", "Array", "Found", "Sweep"]

Array = NDArray[np.float64]
Found = tuple[Array, Array]  # values, (..., *core), and derivatives, (..., *core, k)


class Algorithm:
    """A function of dynamics: its names, what it takes, its value, and its derivatives by both exact modes."""

    names: tuple[str, str]
    state: tuple[str, ...]
    loads = True
    takes: tuple[str, ...] = ()  # besides the state

    def prepared(self, model: Model, given: dict[str, Any]) -> dict[str, Any]:
        """Return the checked arguments besides states, constraints and loads."""
        return given

    def checked(self, model: Model, constraints: Any) -> Any:
        """The constraints, if there are any where there are to be some."""
        if constraints is not None:
            name = self.names[0]
            raise InputError(f"`constraints` are given; {name} does not depend on constraints, so expected None")
        return constraints

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        """The function at states of any batch shape."""
        raise NotImplementedError

    def tangent(self, sweep: Sweep) -> Found:
        """By duals."""
        raise NotImplementedError

    def structured(self, sweep: Sweep) -> Found:
        """With values shared by all directions."""
        raise NotImplementedError


class Sweep:
    """Checked arguments: states x, (*shape, nq or nv) each, and directions D, (*shape, nv, k) each or None for zero."""

    def __init__(
        self, algorithm: Algorithm, model: Model, state: Any, D: Any, constraints: Any, loads: Any, threads: int | None,
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.algorithm, self.model, self.threads, self.given_loads = algorithm, model, threads, loads
        self.constraints = algorithm.checked(model, constraints)
        for name, x in options.items():
            if x is not None and name not in algorithm.takes:
                raise InputError(f"`{name}` is given; {algorithm.names[0]} does not take it, so expected None")
        self.options = algorithm.prepared(model, options)
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

    @property
    def plain(self) -> bool:
        """Whether joints are all there is: neither coordinates that are not joints nor force elements."""
        return not (self.model.coordinates or self.model.elements)

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
