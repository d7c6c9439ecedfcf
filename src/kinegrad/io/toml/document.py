"""Whole files: all parts of a model, its constraints, loads and design.

What is written brings every number back to the last bit: Python's `repr` of a float is the shortest text that does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import FileError, InputError, shown
from kinegrad.io.model_file import ModelFile, Report
from kinegrad.io.toml.joints import JointEntry, dh_table, joint_tables, read_joint
from kinegrad.io.toml.lines import line_of
from kinegrad.io.toml.parts import (
    constraint_table,
    element_table,
    function_table,
    placement_value,
    read_constraint,
    read_element,
    read_function,
    read_placement,
    read_shape,
    same_bits,
    shape_table,
)
from kinegrad.io.toml.tables import Table, TomlFile, read_toml
from kinegrad.io.toml.text import document
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.loads import Loads
from kinegrad.model import Actuation, CoupledCoordinate, Model, ModelBuilder, Quaternion, Shape
from kinegrad.model.dh import CONVENTIONS
from kinegrad.model.model import STANDARD_GRAVITY

__all__ = ["read", "write"]

VERSION = 1
PARTS = ("force", "point", "torque")


# --- writing ----------------------------------------------------------------------------------------------------


def write(
    path: str | os.PathLike[str],
    model: Model | ModelFile,
    *,
    constraints: Any = None,
    loads: Loads | None = None,
    design: Any = None,
) -> None:
    """Write a model; see :func:`kinegrad.save`."""
    place = checked_path(path)
    if isinstance(model, ModelFile):
        own = model
        model = own.model
        constraints = own.constraints if constraints is None else constraints
        loads = own.loads if loads is None else loads
        design = own.design if design is None else design
    if not isinstance(model, Model):
        raise InputError(f"`model` is {shown(model)}; expected a Model, or what kinegrad.io.read_model returns")
    if model.carries_slopes:
        raise InputError("`model` is made of numbers that carry slopes; expected one of plain numbers")
    content = model_content(model)
    rows = _constraint_set(model, constraints)
    if rows.constraints:
        content["constraint"] = [constraint_table(each) for each in rows.constraints]
    designed = _design(model, design, loads)
    if designed is not None and designed.loads is not None:
        loads = designed.loads
    if loads is not None:
        content["loads"] = _load_table(model, loads)
    if designed is not None:
        content["design"] = _design_table(designed)
    text = document(content).encode()
    try:
        with replacing(place) as file:
            file.write(text)
    except OSError as error:
        raise FileError(place, (f"cannot be written: {error.strerror or error}",)) from None


def model_content(model: Model) -> dict[str, Any]:
    """All of a model as tables."""
    content: dict[str, Any] = {"kinegrad": VERSION, "name": model.name, "gravity": model.gravity.tolist()}
    if model.dh is not None:
        content["dh"] = model.dh.convention
    content["joint"], quaternions = joint_tables(model)
    frames = [
        {"name": name, "link": x.link, "placement": placement_value(x.placement)} for name, x in model.frames.items()
    ]
    content["frame"] = [{k: x for k, x in table.items() if x is not None} for table in frames]
    content["quaternion"] = [{"name": x.name, "joint": model.joint_names[x.first]} for x in quaternions]
    couplings = [x for x in model.coordinates if isinstance(x, CoupledCoordinate)]
    content["coupling"] = [_coupling(model, x) for x in couplings]
    natural = [x for x in model.coordinates if isinstance(x, Quaternion) and x not in quaternions]
    natural = sorted(natural, key=lambda x: x.first)
    order = [[*natural, *quaternions, *couplings].index(x) for x in model.coordinates]
    if order != sorted(order):
        content = {"kinegrad": VERSION, "coordinate_order": order, **content}
    content["element"] = [element_table(name, x) for name, x in model.elements.items()]
    if model.actuation is not None:
        content["actuation"] = _actuation(model.actuation, model)
    content["shape"] = [shape_table(x) for x in model.shapes]
    return {key: x for key, x in content.items() if x != [] or key == "joint"}


def _coupling(model: Model, entry: CoupledCoordinate) -> dict[str, Any]:
    pairs = zip(entry.joints, entry.functions, strict=True)
    return {"coordinate": entry.name, "joints": {model.joint_names[i]: function_table(f) for i, f in pairs}}


def _actuation(actuation: Actuation, model: Model) -> dict[str, Any]:
    columns = zip(actuation.names, actuation.matrix.T, strict=True)
    pairs = {name: zip(model.speed_names, column.tolist(), strict=True) for name, column in columns}
    return {name: {speed: x for speed, x in each if not same_bits(x, 0.0)} for name, each in pairs.items()}


def _constraint_set(model: Model, given: Any) -> ConstraintSet:
    if given is None:
        return ConstraintSet(model, ())
    if isinstance(given, ConstraintSet):
        if given.model != model:
            raise InputError(f"`constraints` are of model {shown(given.model.name)}; expected those of `model`")
        return given
    return ConstraintSet(model, given)


def _design(model: Model, given: Any, loads: Loads | None) -> Design | None:
    if given is None:
        return None
    design = given if isinstance(given, Design) else Design(model, given, loads)
    if design.model != model:
        raise InputError(f"`design` is of model {shown(design.model.name)}; expected one of `model`")
    if any(callable(spec) for spec in design.parameters.values()):  # type: ignore[union-attr]
        raise InputError("`design` is made by a function, which a file cannot hold; expected parameters by name")
    if design.loads is not None and loads is not None and design.loads != loads:
        raise InputError("`loads` are not those of `design`; expected the same, or one of the two")
    return design


def _design_table(design: Design) -> dict[str, Any]:
    specs: Mapping[str, Any] = design.parameters  # type: ignore[assignment]
    plain = {name: x if isinstance(x, str) else {key: float(c) for key, c in x.items()} for name, x in specs.items()}
    return ({"loads": True} if design.loads is not None else {}) | {"parameters": plain}


def _load_table(model: Model, loads: Loads) -> dict[str, Any]:
    if not isinstance(loads, Loads):
        raise InputError(f"`loads` is {shown(loads)}; expected Loads")
    loads.arrays(model)  # refuses what does not fit the model
    table: dict[str, Any] = {}
    for what in PARTS:
        given = getattr(loads, what)
        if given is None:
            continue
        if isinstance(given, Mapping):
            each = {str(link): np.asarray(x, dtype=float) for link, x in given.items()}
            plain = all(x.shape == (3,) for x in each.values())
            table[what] = {link: x.tolist() for link, x in each.items()}
        else:
            array = np.asarray(given, dtype=float)
            plain, table[what] = array.shape == (model.n, 3), array.tolist()
        if not plain:
            raise InputError(f"`loads` has a {what} of each of several states; expected constant ones in a file")
    return table


# --- reading ----------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> ModelFile:
    """Read a kinegrad TOML file.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelFile

    Raises
    ------
    FileError
        With all problems of the file.
    """
    place = checked_path(path)
    file = read_toml(place)
    root = file.root
    version = root.value("kinegrad", None)
    if version is None or isinstance(version, bool) or version != VERSION:
        line = line_of(("kinegrad",), file.lines)
        found = "has no key 'kinegrad'" if version is None else f"line {line}: kinegrad: is {shown(version)}"
        raise FileError(place, (f"{found}; expected kinegrad = {VERSION} in a model, the version of the format",))
    model = _read_model(file, root)
    constraints = [(table, read_constraint(table)) for table in root.tables("constraint")]
    loads = _read_loads(root)
    parameters, with_loads = _read_design(root)
    root.end()
    file.check()
    if model is None:  # what is wrong was said by the check
        raise AssertionError("no model, and no problem")
    for table, one in constraints:
        table.guard(ConstraintSet, model, [one])  # each by itself, to name the one that is wrong
    rows: ConstraintSet | None = None
    if not file.problems:
        rows = root.guard(ConstraintSet, model, [one for _, one in constraints])
    if loads is not None:
        root.table("loads").guard(loads.arrays, model)
    design = None
    if parameters is not None and not file.problems:
        design = root.table("design").guard(Design, model, parameters, loads if with_loads else None)
    file.check()
    if rows is None:
        raise AssertionError("no constraints, and no problem")
    return ModelFile(model, rows, Report(os.fspath(path), "kinegrad TOML"), loads, design)


def _read_model(file: TomlFile, root: Table) -> Model | None:
    builder = ModelBuilder(
        root.text("name", "mechanism"), gravity=root.numbers("gravity", (3,), default=STANDARD_GRAVITY)
    )
    convention = root.text("dh", "distal", among=CONVENTIONS)
    if "joint" not in root:
        root.problem("has no [[joint]]; expected at least one")
    entries = [read_joint(table, convention) for table in root.tables("joint")]
    frames = _Frames(builder, root.tables("frame"))
    for entry in entries:
        if entry.joint is not None:
            entry.table.guard(_add, builder, entry)
            frames.add_to(*entry.inner, entry.link)  # a joint may hang on one
    if not file.problems:
        frames.end()
    shapes = [(table, read_shape(table)) for table in root.tables("shape")]
    elements = [(table, read_element(table)) for table in root.tables("element")]
    couplings = [(table, _read_coupling(table)) for table in root.tables("coupling")]
    named = [(table, table.text("name"), table.text("joint")) for table in root.tables("quaternion")]
    actuation = _read_actuation(root)
    order = root.value("coordinate_order", None)
    for table, _, _ in named:
        table.end()
    if file.problems:
        return None
    for table, shape in shapes:
        if shape is not None:
            table.guard(_add_shape, builder, shape)
    for table, element in elements:
        if element is not None:
            table.guard(builder.add_element, *element)
    for table, coupling in couplings:
        if coupling is not None:
            table.guard(builder.couple, *coupling)
    if file.problems:
        return None
    if actuation is not None:
        builder.actuate(actuation)
    model: Model | None = root.guard(builder.build)
    return None if model is None else root.guard(_completed, model, entries, convention, frames.names, named, order)


def _add(builder: ModelBuilder, entry: JointEntry) -> None:
    builder.add(
        entry.name, entry.parent, entry.joint, link=entry.link, placement=entry.placement, tip=entry.tip,
        inertia=entry.body, **entry.numbers,
    )  # fmt: skip


def _add_shape(builder: ModelBuilder, shape: Shape) -> None:
    builder.add_shape(shape.link, shape.solid, shape.placement, color=shape.color, collision=shape.collision)


class _Frames:
    """Frames that wait for their links, or for the frames that they are in."""

    def __init__(self, builder: ModelBuilder, tables: list[Table]) -> None:
        self.builder = builder
        self.waiting: dict[str, list[tuple[Table, str, Any]]] = {}
        self.names = list[str]()  # in the order of the file
        for table in tables:
            name, link = table.text("name"), table.text("link")
            self.waiting.setdefault(link, []).append((table, name, read_placement(table, "placement")))
            self.names.append(name)
            table.end()

    def add_to(self, *links: str) -> None:
        """Add all frames in these links, and those in them."""
        ready = [*links]
        while ready:
            for table, name, placement in self.waiting.pop(link := ready.pop(), ()):
                if table.guard(self.builder.add_frame, name, link, placement) is not None:
                    ready.append(name)

    def end(self) -> None:
        """Those that still wait are in no link."""
        for link, frames in self.waiting.items():
            for table, name, placement in frames:
                table.guard(self.builder.add_frame, name, link, placement)


def _completed(
    model: Model,
    entries: list[JointEntry],
    convention: str,
    frames: list[str],
    named: Any,
    order: Any,
) -> Model:
    """The model with what a builder does not know of."""
    changes: dict[str, Any] = {"dh": dh_table(entries, convention)}
    changes["frames"] = {name: model.frames[name] for name in frames}
    quaternions = tuple(Quaternion(name, model.joint_index(joint)) for _, name, joint in named)
    if quaternions or order is not None:
        own = [x for x in model.coordinates if isinstance(x, Quaternion)]
        couplings = [x for x in model.coordinates if isinstance(x, CoupledCoordinate)]
        natural = [*own, *quaternions, *couplings]
        if order is not None:
            plain = isinstance(order, list) and all(type(k) is int for k in order)
            if not plain or sorted(order) != list(range(len(natural))):
                expected = f"expected each number from 0 to {len(natural) - 1} once"
                raise InputError(f"`coordinate_order` is {shown(order)}; {expected}")
            natural = [natural[k] for k in order]
        changes["coordinates"] = tuple(natural)
    # negative zeros, which bodies do not have, are in the numbers of some models
    mass, com = np.zeros(model.n), np.zeros((model.n, 3))
    last = np.cumsum([entry.count for entry in entries]) - 1
    mass[last], com[last] = [entry.body[0] for entry in entries], [entry.body[1] for entry in entries]
    changes |= {"mass": mass, "com": com}
    return replace(model, **changes)


def _read_coupling(table: Table) -> tuple[str, dict[str, Any]] | None:
    name, joints = table.text("coordinate"), table.table("joints")
    table.end()
    if joints is None:
        return None
    found = {}
    for joint, given in joints.entries():
        if isinstance(given, int | float) and not isinstance(given, bool):
            found[joint] = joints.number(joint)
        else:
            found[joint] = read_function(Table(table.file, (*joints.path, joint), given))
    return name, found


def _read_actuation(root: Table) -> Any:
    given = root.value("actuation", None)
    if given is None or isinstance(given, list):
        return given
    table = root.table("actuation")
    found: dict[str, Any] = {}
    for name, _ in table.entries():
        column = table.table(name)
        found[name] = {speed: column.number(speed) for speed, _ in column.entries()}
    return found


def _read_loads(root: Table) -> Loads | None:
    table = root.table("loads", None)
    if table is None:
        return None
    parts: dict[str, Any] = {}
    for what in PARTS:
        given = table.value(what, None)
        if isinstance(given, dict):
            each = table.table(what)
            parts[what] = {link: each.numbers(link, (3,)) for link, _ in each.entries()}
        elif given is not None:
            parts[what] = table.numbers(what, (None, 3))
    table.end()
    loads: Loads | None = table.guard(Loads, **parts)
    return loads


def _read_design(root: Table) -> tuple[Any, bool]:
    table = root.table("design", None)
    if table is None:
        return None, False
    with_loads = table.flag("loads", False)
    given = table.value("parameters")
    if isinstance(given, dict):
        inner = table.table("parameters")
        for name, spec in inner.entries():
            if isinstance(spec, dict):
                each = inner.table(name)
                for key, _ in each.entries():
                    each.number(key)
            elif not isinstance(spec, str):
                inner.problem(f"is {shown(spec)}; expected a constant, or a table of coefficients", name)
    table.end()
    return given, with_loads
