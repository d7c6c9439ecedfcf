"""A model on one screen: what ``repr`` shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinegrad.model.coordinates import CoupledCoordinate, Quaternion
    from kinegrad.model.model import Model


def summary(model: Model) -> str:
    """Counts, masses, gravity and the tree, one line a branch."""
    kinds = Counter(joint.kind for joint in model.joints)
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    virtual = int((model.mass == 0).sum())
    links = _count(model.n - virtual, "link")
    gravity = ", ".join(f"{x:g}" for x in model.gravity)
    passive = [what for what in ("stiffness", "damping", "armature") if getattr(model, what).any()]
    moving = _count(model.nv, "degree of freedom", "degrees of freedom") + (
        f", {model.n} joints" if model.coordinates else ""
    )
    lines = [
        f"Model {model.name!r}: {moving} ({counts}), {_count(len(model.topology.branches), 'branch', 'branches')}",
        f"  mass {model.total_mass:g} kg in {links} ({virtual} massless), gravity ({gravity}) m/s²",
    ]
    if model.frames:
        named = ", ".join(f"{name} in {frame.link}" for name, frame in model.frames.items())
        lines.append(f"  {_count(len(model.frames), 'frame')}: {named}")
    for name, element in model.elements.items():
        lines.append(f"  {name!r}: {element}")
    if model.actuation is not None:
        lines.append(f"  {_count(model.nu, 'actuator')}: {', '.join(model.actuator_names)}")
    if model.shapes:
        lines.append(f"  {_count(len(model.shapes), 'shape')}")
    for entry in model.coordinates:
        lines.append(f"  {_entry(model, entry)}")
    if passive:
        lines.append(f"  joints with {', '.join(passive)}")
    return "\n".join([*lines, *("  " + line for line in model.topology.draw_text().splitlines())])


def _count(number: int, one: str, several: str = "") -> str:
    """A number of things, in words for one or for several of them."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def _entry(model: Model, entry: CoupledCoordinate | Quaternion) -> str:
    """One line about coordinates that are not joints."""
    kind = "quaternion" if not hasattr(entry, "functions") else "coupled"
    joints = ", ".join(model.joint_names[joint] for joint in entry.joints)
    return f"{kind} {entry.name!r} moves {joints}"
