"""Which coordinates are driven, and by what: torques τ = S u of controls u."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, ModelError, at_state, shown
from kinegrad.model.names import as_tuple, check_name, find_name
from kinegrad.model.numbers import LARGEST, real_array, too_large
from kinegrad.results import frozen

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["Actuation"]

Array = NDArray[np.float64]
ROUNDING = 1e-10  # of the largest torque: what may be left of one that actuators can produce


@dataclass(frozen=True, eq=False, repr=False)
class Actuation:
    """Actuators by name, and the torques that each causes: τ = S u, with a constant matrix S.

    Gears, belts, differentials and muscles with constant lever arms are such matrices.  Immutable; compares and hashes
    by value, and pickles.

    Parameters
    ----------
    names : sequence of str, length nu
        Of the actuators.
    matrix : array_like, shape (nv, nu)
        S: column k is the torque of all coordinates for one unit of control k.

    Examples
    --------
    Two motors in the base of an arm, the second with a belt of ratio 2 to the elbow:

    >>> from kinegrad import samples
    >>> arm = samples.two_link().replace(actuation=Actuation(["hip", "belt"], [[1, 1], [0, 2]]))
    >>> arm.torques([3.0, 0.5])
    array([3.5, 1. ])
    >>> arm.controls([3.5, 1.0])
    array([3. , 0.5])
    """

    names: tuple[str, ...]
    matrix: Array

    def __post_init__(self) -> None:
        names = as_tuple("names of actuators", self.names, "text")
        checked = tuple(check_name("the name of an actuator", name) for name in names)
        if not all(checked) or len(set(checked)) != len(checked):
            raise ModelError(f"the names of actuators are {shown(names)}; expected different ones, none empty")
        S = real_array("`matrix` of an Actuation", self.matrix, "numbers of shape (nv, nu)")
        if S.ndim != 2 or S.shape[1] != len(checked):
            raise ModelError(f"`matrix` of an Actuation has shape {S.shape}; expected (nv, {len(checked)})")
        if too_large(S):
            raise ModelError(f"`matrix` of an Actuation is not finite; expected finite numbers, below {LARGEST:g}")
        object.__setattr__(self, "names", checked)
        object.__setattr__(self, "matrix", frozen(S))

    @classmethod
    def of(cls, given: Any, speed_names: Sequence[str], model: str) -> Actuation:
        """From an Actuation, from names of driven coordinates, or from columns by name.

        A column is an array of nv torques, or a dictionary from coordinates to torques for one unit of control.
        """
        if isinstance(given, Actuation):
            if given.matrix.shape[0] != len(speed_names):
                found = f"`actuation` has a matrix of {given.matrix.shape[0]} rows"
                raise ModelError(f"{found}; model {shown(model)} has {len(speed_names)} speeds")
            return given
        if isinstance(given, Mapping):
            columns = [_column(name, x, speed_names, model) for name, x in given.items()]
        else:
            expected = "an Actuation, names of driven coordinates, or a dictionary from actuators to what they drive"
            names = tuple(check_name("a name in `actuation`", name) for name in as_tuple("actuation", given, expected))
            columns = [_column(name, {name: 1.0}, speed_names, model) for name in names]
            given = dict.fromkeys(names)
            if len(given) != len(names):
                raise ModelError(f"`actuation` is {shown(names)}; expected no name twice")
        return cls(tuple(given), np.array(columns).reshape(len(columns), len(speed_names)).T)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.names, self.matrix.shape, (self.matrix + 0).tobytes()  # + 0 makes −0 and 0 the same bytes

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Actuation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Actuation, (self.names, self.matrix)

    def __repr__(self) -> str:
        return f"Actuation({', '.join(self.names)})"

    @cached_property
    def _inverse(self) -> Array:
        return frozen(np.linalg.pinv(self.matrix))


def torques(model: Model, u: ArrayLike) -> Array:
    """τ = S u, (..., nv)."""
    given = _given("u", u, model.nu, "actuators", model.name)
    return given if model.actuation is None else _finite("u", _times(model.actuation.matrix, given))


def controls(model: Model, tau: ArrayLike) -> Array:
    """The smallest controls that cause τ, (..., nu), or an InputError."""
    given = _given("tau", tau, model.nv, "speeds", model.name)
    if model.actuation is None:
        return given
    found = _finite("tau", _times(model.actuation._inverse, given))
    caused = _finite("tau", _times(model.actuation.matrix, found))
    wrong = np.abs(given - caused) > ROUNDING * np.abs(given).max(axis=-1, keepdims=True, initial=0.0)
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        name, at = model.speed_names[where[-1]], at_state(where[:-1])
        raise InputError(
            f"`tau` of {shown(name)} is {given[where]:g}{at}, which the actuators of model {shown(model.name)} cannot "
            f"produce: the nearest is {caused[where]:g}; expected torques of the form model.torques(u)"
        )
    return found


def _times(matrix: Array, x: Array) -> Array:
    """matrix · x, (..., rows), in a fixed order, so that a state gives the same bits in any batch."""
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return np.asarray((matrix * x[..., None, :]).sum(axis=-1))


def _finite(name: str, result: Array) -> Array:
    if not np.isfinite(result).all():
        raise InputError(f"the results overflow float64, where `{name}` is large; expected smaller numbers")
    return result


def _given(name: str, value: Any, width: int, what: str, model: str) -> Array:
    try:
        array = real_array(f"`{name}`", value, "real numbers")
    except ModelError as error:
        raise InputError(str(error)) from None
    if array.shape[-1:] != (width,):
        found = f"`{name}` has shape {array.shape}"
        raise InputError(f"{found}; model {shown(model)} has {width} {what}, so its last axis must be {width}")
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"`{name}` at index {where} is {array[where]}; expected finite numbers")
    return array


def _column(name: Any, given: Any, speed_names: Sequence[str], model: str) -> Array:
    """The torques of one actuator for one unit of control."""
    if not isinstance(given, Mapping):
        column = real_array(f"`actuation` of {shown(name)}", given, f"{len(speed_names)} numbers")
        if column.shape != (len(speed_names),):
            found = f"`actuation` of {shown(name)} has shape {column.shape}"
            raise ModelError(f"{found}; expected ({len(speed_names)},), a torque of each speed, or a dictionary")
        return column
    column = np.zeros(len(speed_names))
    for speed, factor in given.items():
        try:
            k = find_name("speed", speed, speed_names, model)
        except InputError as error:
            raise ModelError(f"`actuation` of {shown(name)}: {error}") from None
        number = real_array(f"`actuation` of {shown(name)} on {shown(speed)}", factor, "a number")
        if number.shape != ():
            raise ModelError(f"`actuation` of {shown(name)} on {shown(speed)} is {shown(factor)}; expected a number")
        column[k] = number
    return column
