"""The gate of models whose coordinates are not their joints: arguments checked, and what they are in joints.

A call of a kernel (``_engine/call.py``) makes an :class:`Expansion` of its arguments, runs the kernel on the model's
joints, and contracts what comes back (``_engine/contraction.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.coordinates import Chart
from kinegrad._engine.gate import broadcast, check_out, overflow_is_passed, real
from kinegrad._engine.gate import not_finite as not_finite_at
from kinegrad._engine.memory import check_apart
from kinegrad._engine.signature import Kind
from kinegrad._kernels.coordinates import UNIT
from kinegrad._kernels.lanes.finite import FINE, LARGEST
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.model.coordinates import HINGES

__all__ = ["Expansion", "check_arguments", "check_shapes", "check_unit"]

Array = NDArray[np.float64]
Shape = tuple[int, ...]
MOTION = {"q", "v", "a"}  # what the kernel of the map looks at
COORDINATES = ("q", "q0", "q1", "q_guess")  # arguments that are coordinates; all others are as speeds are


class Expansion(Chart):
    """Checked arguments of one call, by name, and the map at them.

    Parameters
    ----------
    model : Model
        With coordinates that are not its joints.
    state : dict
        Arguments of shape (..., nq), those called q, or (..., nv), all others, by name.
    loads : dict, optional
        Force, point and torque, (..., n, 3), by name.

    Attributes
    ----------
    given : dict of str to ndarray
        The arguments as arrays, of their own batch shapes.
    shape : tuple of int
        Their common batch shape.
    """

    def __init__(self, model: Model, state: dict[str, Any], loads: dict[str, Array] | None = None) -> None:
        self.given, shape = check_shapes(model, state, loads)
        super().__init__(model, shape, self.given["q"], self.given.get("v"), self.given.get("a"))
        if self.status != FINE:
            _check_numbers(model, self.given)
            for x in (self.q, self.v, self.a):
                self.check(x, 1)
        elif len(state) > len(MOTION & state.keys()):
            _check_numbers(model, {name: x for name, x in self.given.items() if name not in MOTION})

    def check(self, x: Array, core: int) -> Array:
        """`x`, (..., *core axes), if all of it is finite; else an InputError that says where it overflows."""
        if overflow_is_passed() or np.isfinite(x).all():
            return x
        good = np.isfinite(x).all(axis=tuple(range(x.ndim - core, x.ndim)))
        where = tuple(int(k) for k in np.argwhere(~np.broadcast_to(good, self.shape))[0])
        at = f" of state {where[0] if len(where) == 1 else where}" if where else ""
        sizes = {name: float(np.abs(given).max(initial=0.0)) for name, given in self.given.items()}
        name = max(sizes, key=lambda name: sizes[name])
        cause = f", where `{name}` has numbers of up to {sizes[name]:.3g}" if sizes[name] > LARGEST else ""
        raise InputError(f"the results{at} are not finite: they overflow float64{cause}; expected smaller numbers")

    def arguments(self, kinds: Mapping[str, Kind]) -> list[Array]:
        """What was given, in joints, in the order of `kinds`, the kinds of a kernel's arguments."""
        fine = MOTION if self.status == FINE else ()  # what the kernel of the map has looked at
        found = {name: self._argument(kinds[name], x) for name, x in self.given.items()}
        return [x if name in fine else self.check(x, 1) for name, x in found.items()]

    def _argument(self, kind: Kind, x: Array) -> Array:
        if kind in (Kind.POSITION, Kind.SPEED, Kind.ACCELERATION):
            found: Array = {Kind.POSITION: self.q, Kind.SPEED: self.v, Kind.ACCELERATION: self.a}[kind]
            return found
        if kind is Kind.WEIGHT:
            return self.G.push(x)
        raise TypeError(f"a kernel of arguments of kind {kind} has to say what it does in coordinates")

    def deliver(self, names: Sequence[str], results: Sequence[Array], out: Any = None) -> tuple[Array, ...]:
        """Results by name, checked to be finite, in `out` if that is given."""
        return deliver(names, [self.check(x, x.ndim - len(self.shape)) for x in results], out)


def deliver(names: Sequence[str], results: Sequence[Array], out: Any = None) -> tuple[Array, ...]:
    """Results by name, in `out` if that is given."""
    if out is None:
        return tuple(results)
    if type(out) is dict and len(names) > 1:
        check_apart(out)
        return tuple(_filled(f"out.{name}", out[name], x) for name, x in zip(names, results, strict=True))
    return (_filled("out", out, results[0]),)


def _filled(name: str, out: Any, x: Array) -> Array:
    """`out` with the numbers of x."""
    check_out(name, out, x.shape)
    filled: Array = out
    filled[...] = x
    return filled


def check_arguments(
    model: Model, state: dict[str, Any], loads: dict[str, Array] | None = None
) -> tuple[dict[str, Array], Shape]:
    """Arguments of shape (..., nq) or (..., nv), finite, with quaternions of unit length; their common batch shape."""
    given, shape = check_shapes(model, state, loads)
    _check_numbers(model, given)
    return given, shape


def check_shapes(
    model: Model, state: dict[str, Any], loads: dict[str, Array] | None = None
) -> tuple[dict[str, Array], Shape]:
    """Real numbers of shape (..., nq) or (..., nv), and their common batch shape."""
    given = {name: real(name, value) for name, value in state.items()}
    for name, x in given.items():
        width, what = (model.nq, "coordinates") if name in COORDINATES else (model.nv, "speeds")
        if x.shape[-1:] != (width,):
            hint = f"model {model.name!r} has {width} {what}, so its last axis must be {width}"
            raise InputError(f"`{name}` has shape {x.shape}; {hint}")
    shapes = {name: x.shape[:-1] for name, x in given.items()}
    if loads is not None:
        _check_loads(model, loads)
        shapes |= {name: x.shape[:-2] for name, x in loads.items()}
    return given, broadcast(shapes, list(shapes.values()))


def _check_numbers(model: Model, given: dict[str, Array]) -> None:
    """Refuse numbers that are not finite, and quaternions that are not of unit length."""
    for name, x in given.items():
        if not np.isfinite(x).all():
            raise not_finite_at(name, x)
        if name in COORDINATES:
            check_unit(model, name, x)


def _check_loads(model: Model, loads: dict[str, Array]) -> None:
    """Loads on all links, and none inside a ball, which is no body: its inner frames depend on the chart."""
    inner = [first + k for first, _, _ in model.layout.balls for k in range(len(HINGES) - 1)]
    for name, x in loads.items():
        if x.shape[-2:] != (model.n, 3):
            hint = f"model {model.name!r} has {model.n} links, so its last axes must be ({model.n}, 3)"
            raise InputError(f"`{name}` has shape {x.shape}; {hint}")
        if not name.endswith("point") and x[..., inner, :].any():
            link = next(model.link_names[i] for i in inner if x[..., i, :].any())
            found = f"`{name}` is not zero on {shown(link)}, which is inside a ball joint and not a body"
            raise InputError(f"{found}; expected loads on links only")


def check_unit(model: Model, name: str, q: Array) -> None:
    """Refuse quaternions that are not of unit length."""
    for (_, first, _), entry in zip(model.layout.balls, _quaternions(model), strict=True):
        w, x, y, z = (q[..., first + k] for k in range(4))
        with np.errstate(over="ignore"):
            length = np.sqrt(w * w + x * x + y * y + z * z)
        wrong = np.argwhere(~(np.abs(length - 1) <= UNIT))
        if len(wrong):
            where = tuple(int(k) for k in wrong[0])
            at = f" of state {where[0] if len(where) == 1 else where}" if where else ""
            found = f"`{name}`{at} has a quaternion of length {float(length[where]):.12g} at joint {shown(entry)}"
            raise InputError(f"{found}; expected length 1 to {UNIT:g}: divide it by its length")


def _quaternions(model: Model) -> list[str]:
    """Names of the joints that are quaternions, in the order of their coordinates."""
    return [model.coordinate_names[first].removesuffix(".w") for _, first, _ in model.layout.balls]
