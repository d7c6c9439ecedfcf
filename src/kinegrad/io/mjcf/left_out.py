"""What of a compiled model has no counterpart, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinegrad.errors import shown
from kinegrad.io.mjcf.bodies import HINGE, SLIDE, Names
from kinegrad.io.model_file import Note

__all__ = ["actuation", "left_out"]


def left_out(package: Any, m: Any, names: Names) -> list[Note]:
    """Notes of tendons, friction, contacts, fluids, and of what does not move the mechanism."""
    notes = [*_forces(m, names), *_world(package, m, names)]
    still = {"camera": "cam", "light": "light", "sensor": "sensor", "keyframe": "key", "skin": "skin"}
    for what, short in still.items():
        for k in range(getattr(m, f"n{short}", 0)):
            notes.append(Note(what, f"{what} {_named(names, short, k)} is left out", matters=False))
    return notes


def _forces(m: Any, names: Names) -> list[Note]:
    notes = []
    for j in range(m.njnt):
        d = int(m.jnt_dofadr[j])
        name = shown(names.joints[j])
        if m.dof_frictionloss[d]:
            notes.append(Note("joint friction", f"joint {name} has frictionloss {m.dof_frictionloss[d]:g}"))
        if np.any(_field(m, "jnt_stiffnesspoly", j)):
            notes.append(Note("nonlinear stiffness", f"joint {name} has a stiffness of higher order"))
        if np.any(_field(m, "dof_dampingpoly", d)):
            notes.append(Note("nonlinear damping", f"joint {name} has a damping of higher order"))
        if int(_field(m, "jnt_plasticadr", j, -1)) >= 0:
            notes.append(Note("plastic spring", f"joint {name} has a spring that yields"))
    for k in range(m.ntendon):
        acts = [what for what in ("stiffness", "damping", "frictionloss", "armature") if _field(m, f"tendon_{what}", k)]
        acts += ["limits"] if m.tendon_limited[k] else []
        what = f" with {', '.join(acts)}" if acts else ""
        notes.append(Note("tendon", f"tendon {_named(names, 'tendon', k)}{what} is left out", matters=bool(acts)))
    for b in range(1, m.nbody):
        if m.body_gravcomp[b]:
            text = f"body {shown(names.links[b])} has gravcomp {m.body_gravcomp[b]:g}"
            notes.append(Note("gravity compensation", text))
        if m.body_mocapid[b] >= 0:
            notes.append(Note("mocap body", f"body {shown(names.links[b])} is moved by motion capture, and fixed here"))
    return notes


def _world(package: Any, m: Any, names: Names) -> list[Note]:
    notes = []
    touching = int(((np.asarray(m.geom_contype) | np.asarray(m.geom_conaffinity)) != 0).sum())
    off = int(m.opt.disableflags) & (
        int(package.mjtDisableBit.mjDSBL_CONTACT) | int(package.mjtDisableBit.mjDSBL_CONSTRAINT)
    )
    if (touching > 1 and not off) or m.npair:
        notes.append(Note("contacts", f"{touching} geoms may touch each other, {m.npair} pairs are named"))
    if m.opt.density or m.opt.viscosity:
        text = f"it moves in a fluid of density {m.opt.density:g} kg/m³ and viscosity {m.opt.viscosity:g} Pa·s"
        notes.append(Note("fluid", text))
    for what, count in (("flex", getattr(m, "nflex", 0)), ("plugin", m.nplugin)):
        if count:
            notes.append(Note(what, f"{count} of kind {what} are left out"))
    return notes


def actuation(package: Any, m: Any, names: Names, speeds: dict[int, str]) -> tuple[dict[str, Any] | None, list[Note]]:
    """Motors that drive a joint by a constant factor, by name; notes of all other actuators.

    `speeds` are the names of the model's speeds by MuJoCo's degrees of freedom.
    """
    columns: dict[str, Any] = {}
    notes = list[Note]()
    for k in range(getattr(m, "nactuator", m.nu)):
        name = names.of("actuator", k) or f"actuator{k}"
        why = _why_not(package, m, k)
        if why:
            notes.append(Note("actuator", f"actuator {shown(name)} is left out: {why}"))
            continue
        d = int(m.jnt_dofadr[int(m.actuator_trnid[k][0])])
        factor = float(m.actuator_gear[k][0]) * float(m.actuator_gainprm[k][0])
        columns[name] = {speeds[d]: factor}
        if m.actuator_ctrllimited[k] or m.actuator_forcelimited[k]:
            text = f"actuator {shown(name)} has limits of control or force"
            notes.append(Note("limits of an actuator", text, matters=False))
    return columns or None, notes


def _why_not(package: Any, m: Any, k: int) -> str:
    """Why an actuator is no motor with a constant factor; "" if it is."""
    transmissions = (int(package.mjtTrn.mjTRN_JOINT), int(package.mjtTrn.mjTRN_JOINTINPARENT))
    if int(m.actuator_trntype[k]) not in transmissions:
        return "it does not act on a joint"
    if int(m.jnt_type[int(m.actuator_trnid[k][0])]) not in (HINGE, SLIDE):
        return "its joint has several coordinates"
    if int(m.actuator_dyntype[k]) != int(package.mjtDyn.mjDYN_NONE):
        return "it has a state of its own, as muscles have"
    if int(m.actuator_gaintype[k]) != int(package.mjtGain.mjGAIN_FIXED):
        return "its gain is not constant"
    if int(m.actuator_biastype[k]) != int(package.mjtBias.mjBIAS_NONE):
        return "it has a bias, as position and velocity servos have"
    return "it has damping or armature" if _has_inertia(m, k) else ""


def _has_inertia(m: Any, k: int) -> bool:
    return any(np.any(_field(m, f"actuator_{what}", k)) for what in ("armature", "damping", "dampingpoly"))


def _field(m: Any, name: str, k: int, default: Any = 0.0) -> Any:
    """An entry of a field that not every version of MuJoCo has."""
    return getattr(m, name)[k] if hasattr(m, name) else default


def _named(names: Names, short: str, k: int) -> str:
    name = names.of(short, k)
    return shown(name) if name else str(k)
