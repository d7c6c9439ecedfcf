"""What designs are made of as they are given: names of constants, combinations of them, loads; read and checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.loads import PARTS, Loads, named_frames
from kinegrad.model import Model
from kinegrad.model.constants import Constant, find_constant
from kinegrad.model.coordinates import HINGES, POSE

Array = NDArray[np.float64]


def read_terms(model: Model, name: str, spec: Any) -> Iterator[tuple[Constant, float]]:
    """Constants of one parameter, with coefficients: a name, or a dictionary."""
    if isinstance(spec, str):
        yield find_constant(model, spec), 1.0
        return
    if not isinstance(spec, Mapping) or not spec:
        found = f"`parameters[{shown(name)}]` is {shown(spec)}"
        raise InputError(f"{found}; expected a constant's name, or a dictionary of them")
    for constant, coefficient in spec.items():
        factor = real_numbers(f"parameters[{shown(name)}][{shown(constant)}]", coefficient)
        if factor.shape != () or not np.isfinite(factor):
            found = f"`parameters[{shown(name)}][{shown(constant)}]` is {shown(coefficient)}"
            raise InputError(f"{found}; expected a finite number")
        yield find_constant(model, constant), float(factor)


def real_numbers(name: str, value: Any) -> Array:
    """`value` as float64, or an InputError that names it."""
    with np.errstate(all="ignore"):  # a long double beyond float64 becomes infinite, and is refused as such
        return engine.real(name, value)


def check_still_frames(moved: Collection[str], model: Model, loads: Loads | None) -> None:
    """Refuse loads at frames that vary: constant loads do not follow parameters by name."""
    both = sorted(named_frames(loads, model).intersection(moved)) if loads is not None and moved else ()
    if both:
        raise InputError(
            f"`loads` name frame {shown(both[0])}, which parameters of the design move, and loads do not follow them; "
            "expected the point in its link, which can be a parameter (link.load.point.x), or Design.from_function "
            "with a function that returns model and loads"
        )


def check_ball_constants(model: Model, constants: Iterable[Constant]) -> None:
    """Refuse constants that would take the hinges of a quaternion apart, or give them springs."""
    inner = _inside_balls(model)
    for constant in constants if inner else ():
        for what, where in constant.touches(model):
            if (what, where[0]) in inner:
                raise InputError(f"constant {shown(constant.name)} cannot vary: {inner[what, where[0]]}")


def check_balls(model: Model, variation: Mapping[str, Array]) -> None:
    """The same where a function builds the model: slopes of its fields, (p, *shape of the field)."""
    for (what, joint), reason in _inside_balls(model).items():
        if what in variation and variation[what][:, joint].any():
            raise InputError(f"`{what}` of {shown(model.joint_names[joint])} cannot vary: {reason}")


def _inside_balls(model: Model) -> dict[tuple[str, int], str]:
    """Fields of joints and links that belong to hinges inside a ball, and what can vary of that ball instead."""
    found: dict[tuple[str, int], str] = {}
    for first, _, _ in model.layout.balls:
        hinges = range(first, first + len(HINGES))
        names = [model.joint_names[i] for i in hinges]
        reason = (
            f"{shown(names[0])} to {shown(names[-1])} are the hinges of one ball joint whose "
            f"coordinates are a quaternion; expected '{names[0]}.placement.x', …, '{names[-1]}.tip.x', … or "
            f"'{names[POSE]}.damping', …, or constants of link {shown(model.link_names[hinges[-1]])}"
        )
        inner = {"placement": hinges[1:], "stiffness": hinges, "armature": hinges}
        inner |= dict.fromkeys(("tip", "mass", "com", "inertia", *PARTS), hinges[:-1])
        found |= {(what, i): reason for what, joints in inner.items() for i in joints}
    return found


def check_loads(loads: Any) -> None:
    """Refuse what are no loads."""
    if loads is not None and not isinstance(loads, Loads):
        raise InputError(f"`loads` is a {type(loads).__name__}; expected Loads(force=…, point=…, torque=…)")


def check_load_constant(constant: Constant, model: Model, loads: Loads | None) -> None:
    """A load that varies must be there, once for all states."""
    if constant.of_load and loads is None:
        found = f"constant {shown(constant.name)} is of a load, and there are none"
        raise InputError(f"{found}; expected Design(…, loads=…)")
    if constant.of_load and loads is not None and loads.arrays(model)[constant.what].ndim != 2:
        found = f"constant {shown(constant.name)} is of loads with batch axes"
        raise InputError(f"{found}; expected one load for all states")
