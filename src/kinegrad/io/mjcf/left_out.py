"""What of a compiled model has no counterpart, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinegrad.errors import shown
from kinegrad.io.mjcf.bodies import BALL, HINGE, SLIDE, Names
from kinegrad.io.model_file import Note

__all__ = ["SWITCHES", "actuation", "left_out", "switches"]

SWITCHES = ("gravity", "spring", "damper", "equality", "limit", "frictionloss", "contact", "actuation")
_CONSTRAINTS = ("equality", "limit", "frictionloss", "contact")  # switched off together by <flag constraint="disable"/>
_PASSIVE = ("spring", "damper")  # switched off together by <flag passive="disable"/> of older versions


def switches(package: Any, m: Any) -> dict[str, bool]:
    """Return which parts of MuJoCo's simulation the file leaves switched on, by the names of its flags."""
    off = int(m.opt.disableflags)

    def on(what: str) -> bool:
        return not off & int(getattr(package.mjtDisableBit, f"mjDSBL_{what.upper()}", 0))

    found = {what: on(what) for what in SWITCHES}
    for together, parts in (("constraint", _CONSTRAINTS), ("passive", _PASSIVE)):
        if not on(together):
            found |= dict.fromkeys(parts, False)
    return found


def left_out(package: Any, m: Any, names: Names, flags: dict[str, bool]) -> list[Note]:
    """Notes of stops, tendons, friction, contacts, fluids, and of what does not move the mechanism."""
    notes = [*_forces(m, names, flags), *_world(package, m, names, flags)]
    still = {"camera": "cam", "light": "light", "sensor": "sensor", "keyframe": "key", "skin": "skin"}
    for what, short in still.items():
        for k in range(getattr(m, f"n{short}", 0)):
            notes.append(Note(what, f"{what} {_named(names, short, k)} is left out", matters=False))
    return notes


def _forces(m: Any, names: Names, flags: dict[str, bool]) -> list[Note]:
    notes = []
    for j in range(m.njnt):
        d = int(m.jnt_dofadr[j])
        name = shown(names.joints[j])
        if m.jnt_limited[j] and flags["limit"]:
            notes.append(_stop(m, j, name))
        if _field(m, "jnt_actfrclimited", j):
            low, high = m.jnt_actfrcrange[j]
            text = f"joint {name} has limits of the sum of its actuators from {low:g} to {high:g}"
            notes.append(Note("limits of an actuator", text, matters=False))
        if m.dof_frictionloss[d] and flags["frictionloss"]:
            notes.append(Note("joint friction", f"joint {name} has frictionloss {m.dof_frictionloss[d]:g}"))
        if np.any(_field(m, "jnt_stiffnesspoly", j)) and flags["spring"]:
            notes.append(Note("nonlinear stiffness", f"joint {name} has a stiffness of higher order"))
        if np.any(_field(m, "dof_dampingpoly", d)) and flags["damper"]:
            notes.append(Note("nonlinear damping", f"joint {name} has a damping of higher order"))
        if int(_field(m, "jnt_plasticadr", j, -1)) >= 0 and flags["spring"]:
            notes.append(Note("plastic spring", f"joint {name} has a spring that yields"))
    for k in range(m.ntendon):
        acts = [what for what in _TENDONS if np.any(_field(m, f"tendon_{what}", k)) and flags.get(_TENDONS[what], True)]
        acts += ["limits"] if m.tendon_limited[k] and flags["limit"] else []
        what = f" with {', '.join(acts)}" if acts else ""
        notes.append(Note("tendon", f"tendon {_named(names, 'tendon', k)}{what} is left out", matters=bool(acts)))
    for b in range(1, m.nbody):
        if m.body_gravcomp[b]:
            text = f"body {shown(names.links[b])} has gravcomp {m.body_gravcomp[b]:g}"
            notes.append(Note("gravity compensation", text))
        if m.body_mocapid[b] >= 0:
            notes.append(Note("mocap body", f"body {shown(names.links[b])} is moved by motion capture, and fixed here"))
    return notes


# what of a tendon acts, and the flag that switches it off
_TENDONS = {
    "stiffness": "spring", "stiffnesspoly": "spring", "damping": "damper", "dampingpoly": "damper",
    "frictionloss": "frictionloss", "armature": "",
}  # fmt: skip


def _stop(m: Any, j: int, name: str) -> Note:
    """The note of a joint that MuJoCo pushes back, softly, at its limits."""
    low, high = m.jnt_range[j]
    if int(m.jnt_type[j]) == BALL:
        return Note("joint stop", f"ball joint {name} has a stop at a turn of {high:g} rad")
    unit = "m" if int(m.jnt_type[j]) == SLIDE else "rad"
    text = f"joint {name} has stops at {low:g} and {high:g} {unit}, which are its position_limits and are not simulated"
    return Note("joint stop", text)


def _world(package: Any, m: Any, names: Names, flags: dict[str, bool]) -> list[Note]:
    notes = []
    touching = int(((np.asarray(m.geom_contype) | np.asarray(m.geom_conaffinity)) != 0).sum())
    if flags["contact"] and (touching > 1 or m.npair):
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
    if _field(m, "actuator_delay", k):
        return "it acts with a delay"
    group = int(m.actuator_group[k])
    if 0 <= group < 31 and int(getattr(m.opt, "disableactuator", 0)) >> group & 1:
        return "its group is switched off"
    return "it has damping or armature" if _has_inertia(m, k) else ""


def _has_inertia(m: Any, k: int) -> bool:
    return any(np.any(_field(m, f"actuator_{what}", k)) for what in ("armature", "damping", "dampingpoly"))


def _field(m: Any, name: str, k: int, default: Any = 0.0) -> Any:
    """An entry of a field that not every version of MuJoCo has."""
    return getattr(m, name)[k] if hasattr(m, name) else default


def _named(names: Names, short: str, k: int) -> str:
    name = names.of(short, k)
    return shown(name) if name else str(k)
