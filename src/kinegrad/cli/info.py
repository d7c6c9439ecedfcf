"""``kinegrad info``: what a model is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kinegrad as kg
from kinegrad.cli.console import find_file, open_console, plain, print_section, text_table
from kinegrad.cli.meanings import meaning_table
from kinegrad.samples.meanings import missing_motion

if TYPE_CHECKING:
    from kinegrad.io import ModelFile

__all__ = ["Massless", "ModelName", "Project", "Root", "Strict", "Turned", "file_options", "info"]

ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help=f"A file (.urdf, .xml, .osim, .toml), or a sample: {', '.join(kg.samples.SAMPLES)}.",
    ),
]
Root = Annotated[
    str | None, typer.Option(metavar="fixed|free", help="For URDF: whether the root link is fixed or moves freely.")
]
Massless = Annotated[
    bool, typer.Option("--massless", help="For URDF, OpenSim: accept joints that move no mass without a note.")
]
Project = Annotated[
    bool,
    typer.Option(
        "--project-inertia", help="For URDF, OpenSim, MJCF: replace impossible inertias by the nearest possible ones."
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="For URDF, OpenSim, MJCF: refuse impossible inertias and moving links without mass."),
]
Turned = Annotated[
    bool, typer.Option("--quaternion", help="For URDF: unit quaternions for free joints, instead of three angles.")
]


def info(
    model: ModelName,
    root: Root = None,
    quaternion: Turned = False,
    massless: Massless = False,
    project_inertia: Project = False,
    strict: Strict = False,
) -> None:
    """Show a model: its joints, tree, masses and branches; for a file, also what is not in the model."""
    options = file_options(root, quaternion, massless, project_inertia, strict)
    console, found = open_console(), find_file(model, **options)
    mechanism = kg.samples.SAMPLES[model]() if found is None else found.model
    console.print(_header(mechanism))
    print_section(console, "joints, each axis in its joint's frame", _joint_table(mechanism))
    title = "what is positive: right-handed turns about axes of the world, where all joints are zero"
    print_section(console, title, meaning_table(mechanism))
    if missing := missing_motion(mechanism):
        console.print(plain(missing))
    if (limits := _limit_table(mechanism)) is not None:
        print_section(console, "limits of joints", limits)
    if mechanism.coordinates:
        print_section(console, "coordinates and speeds", _coordinate_table(mechanism))
    print_section(console, "tree, by joint numbers", Text(mechanism.topology.draw_text()))
    print_section(console, f"masses, {mechanism.total_mass:g} kg in total", _mass_table(mechanism))
    print_section(console, "branches: parents Φ, first and last joints Ψ", _branch_table(mechanism))
    print_section(console, "what describes the tree (zhakatayev2023, section 2.2)", _storage_table(mechanism))
    if found is not None:
        _print_rest(console, found)


def file_options(
    root: str | None, quaternion: bool, massless: bool, project_inertia: bool, strict: bool
) -> dict[str, Any]:
    """Return options of the command line as those of files, without those that were not given."""
    given = {"root": root, "quaternion": quaternion or None, "massless": massless or None, "strict": strict or None}
    given["inertia"] = "project" if project_inertia else None
    return {name: x for name, x in given.items() if x is not None}


def _print_rest(console: Console, found: ModelFile) -> None:
    """Constraints, loads and design of a file, and what of it is not in the model."""
    if found.constraints.m:
        table = text_table(["constraint", "what"])
        for one in found.constraints.constraints:
            table.add_row(plain(one.name), plain(one.summary))
        print_section(console, "constraints, beside the model", table)
    for what, each in (("loads", found.loads), ("design", found.design)):
        if each is not None:
            print_section(console, f"{what}, beside the model", Text(repr(each)))
    if found.report.repairs:
        print_section(
            console,
            "read otherwise than the file states (--strict refuses)",
            Text("\n".join(x.text for x in found.report.repairs)),
        )
    kinds: dict[tuple[str, bool], list[str]] = {}
    for note in found.report:
        kinds.setdefault((note.what, note.matters), []).append(str(note))
    table = text_table(["not in the model", "moves it"], ["times"])
    table.add_column("for example")
    for (what, matters), notes in sorted(kinds.items(), key=lambda item: not item[0][1]):
        table.add_row(plain(what), "yes" if matters else "", str(len(notes)), plain(notes[0]))
    count = len(found.report)
    title = f"{found.report.format} file, {count} {'part' if count == 1 else 'parts'} not in the model"
    print_section(console, title, table if kinds else Text("all of it is in the model"))


def _header(model: kg.Model) -> str:
    gravity = ", ".join(f"{x:g}" for x in model.gravity)
    solid = int((model.mass > 0).sum())
    return (
        f"[bold]{plain(model.name)}[/]: {model.nv} degrees of freedom, {model.total_mass:g} kg in "
        f"{solid} links ({model.n - solid} massless), gravity ({gravity}) m/s²"
    )


def _joint_table(model: kg.Model) -> Table:
    table = text_table(["#", "joint", "kind", "axis", "parent link", "link"], ["mass, kg"])
    for i, joint in enumerate(model.joints):
        parent = model.parents[i]
        above = "world" if parent < 0 else model.link_names[parent]
        cells = [str(i), model.joint_names[i], joint.kind, _axis(joint.axis), above, model.link_names[i]]
        table.add_row(*map(plain, (*cells, _kilograms(model.mass[i]))))
    return table


def _limit_table(model: kg.Model) -> Table | None:
    """Ranges and largest speeds and torques of those joints that have some; None if none has."""
    import numpy as np

    ranges = np.asarray(np.isfinite(model.position_limits).any(axis=1))
    most = {"max |v|": (model.velocity_limits, "rad/s", "m/s"), "max |τ|": (model.effort_limits, "N·m", "N")}
    most = {name: bound for name, bound in most.items() if np.isfinite(bound[0]).any()}
    some = ranges | np.isfinite(model.velocity_limits) | np.isfinite(model.effort_limits)
    if not some.any():
        return None
    table = text_table(["joint"], [*(["range"] if ranges.any() else []), *most])
    for i in np.flatnonzero(some):
        sliding = model.joints[i].kind == "prismatic"
        cells = [model.joint_names[i]]
        if ranges.any():
            lower, upper = model.position_limits[i]
            text = f"{lower:.3g} … {upper:.3g} m" if sliding else f"{np.degrees(lower):.4g}° … {np.degrees(upper):.4g}°"
            cells.append(text if ranges[i] else "")
        for values, turning, straight in most.values():
            unit = straight if sliding else turning
            cells.append(f"{values[i]:.3g} {unit}" if np.isfinite(values[i]) else "")
        table.add_row(*map(plain, cells))
    return table


def _coordinate_table(model: kg.Model) -> Table:
    """Names of coordinates, of speeds, and the joints that each speed moves."""
    layout = model.layout
    table = text_table(["coordinates", "speed", "joints"], [])
    for v, name in enumerate(layout.speed_names):
        joints = [model.joint_names[i] for i in range(model.n) if layout.speed_of[i] == v]
        ball = next((first for _, first, at in layout.balls if at == v), None)
        own = layout.coordinate_names[ball : ball + 4] if ball is not None else (name,)
        inside = any(at < v < at + 3 for *_, at in layout.balls)
        table.add_row(*map(plain, ("" if inside else ", ".join(own), name, ", ".join(joints))))
    return table


def _mass_table(model: kg.Model) -> Table:
    """Links with mass, in as many columns side by side as keep it short."""
    solid = [i for i in range(model.n) if model.mass[i] > 0]
    across = 1 if len(solid) <= 6 else 3
    rows = -(-len(solid) // across)
    table = text_table([])
    for _ in range(across):
        table.add_column("link")
        table.add_column("mass, kg", justify="right")
    for k in range(rows):
        pairs = ((model.link_names[i], _kilograms(model.mass[i])) for i in solid[k::rows])
        table.add_row(*(plain(cell) for pair in pairs for cell in pair))
    return table


def _branch_table(model: kg.Model) -> Table:
    tree = model.topology
    table = text_table([], ["branch", "Φ", "Ψ", "joints"])
    table.add_column("from … to")
    for k, joints in enumerate(tree.branches):
        first, last = joints[0], joints[-1]
        parent = int(tree.branch_parents[k])
        names = dict.fromkeys((model.joint_names[first], model.joint_names[last]))
        cells = (k, "world" if parent < 0 else parent, f"{first}, {last}", len(joints), " … ".join(names))
        table.add_row(*map(plain, cells))
    return table


def _storage_table(model: kg.Model) -> Table:
    stored = model.topology.storage()
    table = text_table(["description"], ["numbers stored"])
    rows = {
        "branch matrices Φ and Ψ": stored.branch_matrices,
        "parent matrix Υ": stored.parent_matrix,
        "incidence matrix": stored.incidence_matrix,
        "adjacency matrix": stored.adjacency_matrix,
    }
    for description, count in rows.items():
        table.add_row(description, str(count))
    return table


def _axis(axis: Sequence[float]) -> str:
    for letter, x in zip("xyz", axis, strict=True):
        if abs(x) == 1:
            return letter if x > 0 else f"-{letter}"
    return "(" + ", ".join(f"{x:.3g}" for x in axis) + ")"


def _kilograms(mass: float) -> str:
    return f"{mass:.4g}" if mass else ""
