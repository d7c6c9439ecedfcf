"""Parts of a model as tables of TOML, and back: placements, bodies, functions, solids, elements, constraints.

Each `…_table` is what :func:`save` writes; each `read_…` also takes what is easier to write by hand.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Contact, Coupling, Distance, Given, Loop
from kinegrad.constraints.descriptions import Constraint
from kinegrad.io.toml.tables import Table
from kinegrad.model import Box, Bushing, Capsule, Cylinder, Inertia, Mesh, Sphere, SpringDamper, functions
from kinegrad.model.elements import Element
from kinegrad.model.functions import CoordinateFunction
from kinegrad.model.geometry import Shape
from kinegrad.model.placement import check_transform, rotate, translate

__all__ = [
    "constraint_table", "element_table", "function_table", "placement_value", "read_body", "read_constraint",
    "read_element", "read_function", "read_placement", "read_shape", "same_bits", "shape_table",
]  # fmt: skip

Array = NDArray[np.float64]


def same_bits(a: Any, b: Any) -> bool:
    """Whether numbers are the same to the last bit, −0 and 0 being different."""
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return x.shape == y.shape and x.tobytes() == y.tobytes()


# --- placements -------------------------------------------------------------------------------------------------


def placement_value(T: Array) -> Any:
    """None for no turn and no shift, three numbers for a shift, else the rows of the transform."""
    if same_bits(T, np.eye(4)):
        return None
    if same_bits(T, translate(*T[:3, 3])):
        return T[:3, 3].tolist()
    return (T[:3] if same_bits(T[3], [0, 0, 0, 1]) else T).tolist()


def read_placement(table: Table, key: str) -> Array | None:
    """A shift (3,), rows of a transform (3, 4) or (4, 4), or a table of a shift and a turn; None if there is none."""
    given = table.value(key, None)
    if isinstance(given, dict):
        return _shift_and_turn(table.table(key))
    found = table.numbers(key, (3,), (3, 4), (4, 4), default=None)
    if found is None or not np.isfinite(found).all():
        return None
    if found.shape == (3, 4):
        found = np.vstack([found, [0.0, 0.0, 0.0, 1.0]])
    T: Array | None = table.guard(check_transform, f"`{key}`", found)
    return T


def _shift_and_turn(table: Table) -> Array | None:
    """{ shift = […], rpy = […] } or { shift = […], axis = "z", angle = 0.3 }"""
    shift = table.numbers("shift", (3,), default=np.zeros(3))
    rpy = table.numbers("rpy", (3,), default=None)
    axis = table.value("axis", None)
    angle = table.number("angle", None)
    table.end()
    if (axis is None) != (angle is None):
        table.problem("has one of 'axis' and 'angle'; expected both, or none")
        return None
    if axis is not None and rpy is not None:
        table.problem("has 'rpy' and 'axis'; expected one of them")
        return None
    numbers = [*shift, *([] if rpy is None else rpy), 0.0 if angle is None else angle]
    if not np.isfinite(numbers).all():
        return None
    T: Array = translate(*shift)
    if rpy is not None:
        T = T @ rotate("z", rpy[2]) @ rotate("y", rpy[1]) @ rotate("x", rpy[0])
    elif axis is not None:
        turn = table.guard(rotate, axis, angle)
        T = T if turn is None else T @ turn
    return T


# --- bodies -----------------------------------------------------------------------------------------------------

_Shapes = dict[str, Any]  # of numbers, by key
_BODIES: dict[str, tuple[Any, _Shapes, _Shapes]] = {
    "point": (Inertia.point, {"at": (3,)}, {}),
    "rod": (Inertia.rod, {"start": (3,), "end": (3,)}, {}),
    "cylinder": (Inertia.cylinder, {"radius": (), "start": (3,), "end": (3,)}, {}),
    "frustum": (Inertia.frustum, {"radius_start": (), "radius_end": (), "start": (3,), "end": (3,)}, {}),
    "box": (Inertia.box, {"size": (3,)}, {"com": (3,)}),
    "ellipsoid": (Inertia.ellipsoid, {"semi_axes": (3,)}, {"com": (3,)}),
    "sphere": (Inertia.sphere, {"radius": ()}, {"com": (3,)}),
}


def read_body(table: Table) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia of a link: by numbers, or by the name of a solid."""
    none = 0.0, np.zeros(3), np.zeros((3, 3))
    solids = [name for name in _BODIES if name in table]
    if not solids:
        mass = table.number("mass", 0.0)
        com = table.numbers("com", (3,), default=np.zeros(3))
        inertia = table.numbers("inertia", (3, 3), (3,), default=np.zeros((3, 3)))
        inertia = np.diag(inertia) if inertia.shape == (3,) else inertia
        return (mass, com, inertia) if np.isfinite([mass, *com, *inertia.ravel()]).all() else none
    for key in ("mass", "com", "inertia", *solids[1:]):
        if key in table:
            table.problem(f"stands beside {solids[0]!r}, which is the whole body; remove one of them", key)
    make, required, optional = _BODIES[solids[0]]
    solid = table.table(solids[0])
    before = len(table.file.problems)
    given = {"mass": solid.number("mass")}
    given |= {key: solid.numbers(key, shape) for key, shape in required.items()}
    given |= {key: solid.numbers(key, shape) for key, shape in optional.items() if key in solid}
    solid.end()
    body = solid.guard(make, **given) if len(table.file.problems) == before else None
    return none if body is None else (body.mass, body.com, body.inertia)


# --- functions of a coordinate ----------------------------------------------------------------------------------

_FUNCTIONS: dict[str, tuple[str, _Shapes]] = {
    "linear": ("LinearFunction", {"multiplier": (), "offset": ()}),
    "polynomial": ("PolynomialFunction", {"coefficients": (None,)}),
    "spline": ("SplineFunction", {"knots": (None,), "values": (None,), "pieces": (None, None)}),
    "piecewise linear": ("PiecewiseLinearFunction", {"knots": (None,), "values": (None,), "pieces": (None, None)}),
}
_OPTIONAL = ("multiplier", "offset", "pieces")


def function_table(function: CoordinateFunction) -> dict[str, Any]:
    """All of its numbers: splines with their coefficients, so that they are the same on every machine."""
    kind, (_, fields) = next((k, x) for k, x in _FUNCTIONS.items() if x[0] == type(function).__name__)
    numbers = {key: getattr(function, key) for key in fields}
    return ({} if kind == "linear" else {"type": kind}) | {k: _listed(x) for k, x in numbers.items()}


def read_function(table: Table) -> CoordinateFunction | None:
    """A function of a coordinate; a linear one unless it says otherwise."""
    kind = table.text("type", "linear", among=tuple(_FUNCTIONS))
    name, fields = _FUNCTIONS[kind]
    before = len(table.file.problems)
    given = {key: table.numbers(key, shape) for key, shape in fields.items() if key not in _OPTIONAL or key in table}
    table.end()
    if len(table.file.problems) > before:
        return None
    given = {key: x if isinstance(x, float) else tuple(map(_tupled, x.tolist())) for key, x in given.items()}
    made: CoordinateFunction | None = table.guard(getattr(functions, name), **given)
    return made


def _tupled(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


def _listed(x: Any) -> Any:
    return [_listed(y) for y in x] if isinstance(x, tuple) else x


# --- shapes -----------------------------------------------------------------------------------------------------

_SOLIDS: dict[str, tuple[Any, _Shapes]] = {
    "sphere": (Sphere, {"radius": ()}),
    "cylinder": (Cylinder, {"radius": (), "length": ()}),
    "capsule": (Capsule, {"radius": (), "length": ()}),
    "box": (Box, {"size": (3,)}),
    "mesh": (Mesh, {"file": None, "scale": (3,)}),
}


def shape_table(shape: Shape) -> dict[str, Any]:
    """A shape: where it is, its solid under its name, its colour."""
    table: dict[str, Any] = {} if shape.link is None else {"link": shape.link}
    name, (_, fields) = next((k, x) for k, x in _SOLIDS.items() if isinstance(shape.solid, x[0]))
    table[name] = {key: _listed(getattr(shape.solid, key)) for key in fields}
    if (place := placement_value(shape.placement)) is not None:
        table["placement"] = place
    if shape.color is not None:
        table["color"] = list(shape.color)
    return table | ({"collision": True} if shape.collision else {})


def read_shape(table: Table) -> Shape | None:
    """A shape; None and a problem if it is wrong."""
    link = table.text("link", None)
    found = [name for name in _SOLIDS if name in table]
    placement = read_placement(table, "placement")
    color = table.numbers("color", (3,), (4,), default=None)
    collision = table.flag("collision", False)
    table.end()
    if len(found) != 1:
        table.problem(f"has {len(found)} solids; expected one of {', '.join(_SOLIDS)}")
        return None
    solid, (make, fields) = table.table(found[0]), _SOLIDS[found[0]]
    before = len(table.file.problems)
    given = {
        key: solid.text(key) if shape is None else solid.numbers(key, *((shape, ()) if key == "scale" else (shape,)))
        for key, shape in fields.items()
        if key != "scale" or key in solid
    }
    solid.end()
    made = solid.guard(make, **given) if len(table.file.problems) == before else None
    if made is None:
        return None
    place = np.eye(4) if placement is None else placement
    shape: Shape | None = table.guard(Shape, link, made, place, None if color is None else color.tolist(), collision)
    return shape


# --- elements and constraints -----------------------------------------------------------------------------------

_ELEMENTS = {"spring-damper": SpringDamper, "bushing": Bushing}
_CONSTRAINTS = {"contact": Contact, "loop": Loop, "distance": Distance, "coupling": Coupling, "given": Given}
_PLACEMENTS = ("placement", "other_placement")
_TEXTS = ("link", "other", "joint", "name")


def element_table(name: str, element: Element) -> dict[str, Any]:
    """A force element."""
    kind = next(k for k, x in _ELEMENTS.items() if type(element) is x)
    return {"name": name, "type": kind, **_fields(element)}


def constraint_table(constraint: Constraint) -> dict[str, Any]:
    """A constraint."""
    kind = next(k for k, x in _CONSTRAINTS.items() if type(constraint) is x)
    return {"type": kind, **_fields(constraint)}


def _fields(thing: Any) -> dict[str, Any]:
    """All that is not as by default."""
    table: dict[str, Any] = {}
    for each in dataclasses.fields(thing):
        value = getattr(thing, each.name)
        if value is None or (isinstance(value, str) and value == each.default):
            continue
        if each.name in _PLACEMENTS:
            value = placement_value(np.asarray(value))
            if value is None:
                continue
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        table[each.name] = _listed(value)
    return table


def read_element(table: Table) -> tuple[str, Element] | None:
    """A force element and its name."""
    kind = table.text("type", among=tuple(_ELEMENTS))
    name = table.text("name")
    numbers = {"point": (3,), "other_point": (3,), "stiffness": () if kind == "spring-damper" else (6,)}
    numbers |= {"damping": numbers["stiffness"], "rest_length": ()}
    made = _made(table, _ELEMENTS[kind], numbers)
    return None if made is None else (name, made)


def read_constraint(table: Table) -> Constraint | None:
    """A constraint."""
    kind = table.text("type", among=tuple(_CONSTRAINTS))
    numbers: dict[str, Any] = {"point": (3,), "other_point": (3,), "length": (), "ratio": (), "offset": (), "value": ()}
    if not isinstance(table.value("directions", ""), str):
        numbers["directions"] = (None, 3)
    found: Constraint | None = _made(table, _CONSTRAINTS[kind], numbers)
    return found


def _made(table: Table, make: Any, numbers: dict[str, Any]) -> Any:
    before = len(table.file.problems)
    given: dict[str, Any] = {}
    for each in dataclasses.fields(make):
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if each.name in _PLACEMENTS:
            place = read_placement(table, each.name)
            given |= {} if place is None else {each.name: place}
        elif required or each.name in table:
            given[each.name] = (
                table.numbers(each.name, numbers[each.name]) if each.name in numbers else table.text(each.name)
            )
    table.end()
    return table.guard(make, **given) if len(table.file.problems) == before else None
