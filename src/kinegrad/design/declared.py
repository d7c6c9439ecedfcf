"""Second slopes of a model along constants by name: exact, by the product rule of ``transforms.py``.

Masses, lengths, moments of inertia, forces and points enter linearly, and so do combinations of them.  Curved are

- placements, tips and frames that are turned: P = P₀ R₁ R₂ …, in the order in which the parameters are given;
- what Denavit–Hartenberg rows place: Rz(θ) Tz(d) Tx(a) Rx(α), or Rx(α) Tx(a) Rz(θ) Tz(d);
- ends of force elements: the frame that an end is attached to, times where it is in that frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.design.transforms import Transform, placed, shifted, turned
from kinegrad.model import Model
from kinegrad.model.constants import Constant, dh_row
from kinegrad.model.elements import NUMBERS, Bushing
from kinegrad.model.frames import placements
from kinegrad.model.lengths import link_length

if TYPE_CHECKING:
    from kinegrad.design.parameters import Design

Array = NDArray[np.float64]


class _Change(NamedTuple):
    """What one parameter does to one constant."""

    parameter: int
    constant: Constant
    coefficient: float
    added: float  # to the constant where the design is; of a parameter that is the constant, what it has there
    alone: bool


def declared_second_slopes(design: Design) -> dict[str, Array]:
    """Of fields of the model, (p, p, *shape of the field), of those that have any."""
    base, here = design._origin or (design, design.values)
    changes = [
        _Change(k, constant, coefficient, coefficient * float(here[k]), base._alone(name))
        for k, (name, terms) in enumerate(base._terms.items())
        for constant, coefficient in terms
    ]
    model, found = design.model, _Found(design.p)
    for what in ("placement", "tip", "frames"):
        now = placements(base.model.frames) if what == "frames" else getattr(base.model, what)
        for i in sorted({x.constant.where[0] for x in changes if x.constant.what == what and x.constant.turns}):
            own = _of_placement(base.model, changes, what, i)
            numbers = _parameters(own)
            found.add(what, now.shape, i, numbers, _placed(base.model, now[i], own, numbers).dd)
    for i in sorted({x.constant.where[0] for x in changes if x.constant.what in ("theta", "alpha")}):
        own = [x for x in changes if x.constant.what in ("theta", "d", "a", "alpha") and x.constant.where[0] == i]
        numbers = _parameters(own)
        for what, T in zip(("placement", "tip"), _row(base.model, i, own, numbers), strict=True):
            found.add(what, model.placement.shape, i, numbers, T.dd)
    shape = len(model.elements), NUMBERS
    for e in range(len(model.elements)):
        found.add("elements", shape, e, *_element(base.model, model, changes, e))
    return {what: x for what, x in found.items() if x.any()}


class _Found(dict[str, Array]):
    """Second slopes of fields, filled entry by entry."""

    def __init__(self, p: int) -> None:
        self._p = p

    def add(self, what: str, shape: tuple[int, ...], i: int, parameters: list[int], dd: Array) -> None:
        """Entry i of the field, which follows some of the parameters."""
        if dd.any():
            whole = self.setdefault(what, np.zeros((self._p, self._p, *shape)))
            whole[np.ix_(parameters, parameters, [i])] = dd[:, :, None]


def _parameters(changes: Iterable[_Change]) -> list[int]:
    return sorted({x.parameter for x in changes})


def _of_placement(model: Model, changes: list[_Change], what: str, i: int) -> list[_Change]:
    """Those that move or turn transform i of a field."""
    return [
        x
        for x in changes
        if any(name == what and where[0] == i for name, where in x.constant.touches(model))
    ]  # fmt: skip


def _placed(model: Model, x: Array, changes: list[_Change], parameters: list[int]) -> Transform:
    """A transform that was `x`, (4, 4), and is moved and turned."""
    shifts, turns = np.zeros((len(parameters), 3)), []
    for change in changes:
        constant, along = change.constant, parameters.index(change.parameter)
        about = constant.turned(model)
        if about is not None:
            axis = "xyz"[about[1]] if constant.turns else about[1][-1]
            turns.append(turned(axis, change.added, change.coefficient * np.eye(len(parameters))[along]))
        elif constant.what == "length":
            shifts[along] += change.coefficient * link_length(model, constant.where[0]).direction
        else:
            axis = constant.name[-1]
            shifts[along, "xyz".index(axis)] += change.coefficient
    found = placed(x, shifts)
    for turn in turns:
        found = found @ turn
    return found


def _row(model: Model, i: int, changes: list[_Change], parameters: list[int]) -> tuple[Transform, Transform]:
    """Placement and tip of a joint that a Denavit–Hartenberg row places."""
    row, convention = dh_row(model, i)
    values = {what: float(getattr(row, what)) for what in ("theta", "d", "a", "alpha")}
    slopes = {what: np.zeros(len(parameters)) for what in values}
    for x in changes:
        values[x.constant.what] = x.added if x.alone else values[x.constant.what] + x.added
        slopes[x.constant.what][parameters.index(x.parameter)] += x.coefficient
    along_z = turned("z", values["theta"], slopes["theta"]) @ shifted("z", values["d"], slopes["d"])
    along_x = turned("x", values["alpha"], slopes["alpha"]) @ shifted("x", values["a"], slopes["a"])
    if convention == "distal":
        return placed(np.eye(4), np.zeros((len(parameters), 3))), along_z @ along_x
    return along_x, along_z


def _element(base: Model, model: Model, changes: list[_Change], e: int) -> tuple[list[int], Array]:
    """Parameters that move the ends of an element, and second slopes of its numbers, (p, p, 37)."""
    element, names = list(model.elements.values())[e], list(model.frames)
    was = list(base.elements.values())[e]
    fields = ("placement", "other_placement") if isinstance(element, Bushing) else ("point", "other_point")
    own: list[list[_Change]] = [[], []]
    for x in changes:
        if x.constant.what == "elements" and x.constant.where[0] == e:
            field = element.constants[x.constant.where[1]].partition(".")[0]
            if field in fields:
                own[fields.index(field)].append(x)
    held = [names.index(x) if x is not None and x in names else None for x in (element.link, element.other)]
    around = [[] if k is None else _of_placement(base, changes, "frames", k) for k in held]
    numbers = _parameters(x for each in (*own, *around) for x in each)
    dd = np.zeros((len(numbers), len(numbers), NUMBERS))
    for end, (field, k) in enumerate(zip(fields, held, strict=True)):
        now, before = (_transform(getattr(x, field)) for x in (element, was))
        T = _placed(base, _turned_back(now, before), own[end], numbers)
        if k is not None:
            name = names[k]
            outer = _turned_back(model.frames[name].placement, base.frames[name].placement)
            T = _placed(base, outer, around[end], numbers) @ T
        dd[..., 3 * end : 3 * end + 3] = T.dd[..., :3, 3]
        if isinstance(element, Bushing):
            dd[..., 6 + 9 * end : 15 + 9 * end] = T.dd[..., :3, :3].reshape(len(numbers), len(numbers), 9)
    return numbers, dd


def _transform(given: Any) -> Array:
    """A placement, or a point as a shift."""
    if np.shape(given) == (4, 4):
        return np.asarray(given)
    x = np.eye(4)
    x[:3, 3] = given
    return x


def _turned_back(now: Array, before: Array) -> Array:
    """The origin of a transform as it is now, with axes as they were before it was turned."""
    x = np.array(before)
    x[:3, 3] = now[:3, 3]
    return x
