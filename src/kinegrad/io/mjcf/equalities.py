"""Equality constraints of MuJoCo as constraints of a model.

connect  two points coincide                            Loop, pin
weld     T₁ · relpose = T₂ · T(anchor)                  Loop, weld; pin if its torquescale is zero
joint    q₁ − q₁₀ = c₀ + c₁ (q₂ − q₂₀)                  Coupling; Given without a second joint

MuJoCo enforces them softly, with its solver's parameters; here they hold exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Coupling, Given, Loop
from kinegrad.constraints.descriptions import Constraint
from kinegrad.errors import shown
from kinegrad.io.mjcf.bodies import HINGE, SLIDE, Tree, transform
from kinegrad.io.model_file import Note
from kinegrad.model.placement import translate

__all__ = ["equalities"]

Array = NDArray[np.float64]


def equalities(package: Any, tree: Tree) -> list[Constraint]:
    """All that can be represented; notes of the others are added to those of the tree."""
    m, kinds = tree.compiled, package.mjtEq
    known = {int(kinds.mjEQ_CONNECT): _connect, int(kinds.mjEQ_WELD): _weld, int(kinds.mjEQ_JOINT): _joint}
    found: list[Constraint] = []
    for k in range(m.neq):
        kind = int(m.eq_type[k])
        name = tree.names.of("equality", k) or f"equality{k}"
        word = kinds(kind).name.removeprefix("mjEQ_").lower()
        if not (m.eq_active0[k] and tree.flags["equality"]):
            why = "not active" if tree.flags["equality"] else "switched off by <flag>"
            text = f"equality {shown(name)} ({word}) is there, but {why}"
            tree.notes.append(Note("inactive equality", text, matters=False))
            continue
        made = known[kind](package, tree, k, name) if kind in known else "it has no counterpart"
        if isinstance(made, str):
            tree.notes.append(Note(f"equality {word}", f"equality {shown(name)} ({word}) is left out: {made}"))
        else:
            found.append(made)
    return found


def _end(package: Any, tree: Tree, k: int, which: int) -> tuple[str | None, Array]:
    """The link of one of its two objects, None for the world, and where the object is in it."""
    m = tree.compiled
    index = int((m.eq_obj1id, m.eq_obj2id)[which][k])
    if int(m.eq_objtype[k]) == int(package.mjtObj.mjOBJ_SITE):
        host, T = tree.host[int(m.site_bodyid[index])]
        return host, T @ transform(m.site_pos[index], m.site_quat[index])
    return tree.host[index]


def _loop(a: tuple[str | None, Array], b: tuple[str | None, Array], directions: str, name: str) -> Loop | str:
    if a[0] is None:
        a, b = b, a
    if a[0] is None:
        return "both of its bodies are fixed in the world"
    if a[0] == b[0]:
        return f"both of its bodies are part of link {shown(a[0])}"
    return Loop(a[0], a[1], b[0], b[1], directions=directions, name=name)


def _connect(package: Any, tree: Tree, k: int, name: str) -> Constraint | str:
    data = tree.compiled.eq_data[k]
    ends = [_end(package, tree, k, which) for which in range(2)]
    if int(tree.compiled.eq_objtype[k]) != int(package.mjtObj.mjOBJ_SITE):
        ends = [(host, T @ translate(*data[3 * i : 3 * i + 3])) for i, (host, T) in enumerate(ends)]
    return _loop(ends[0], ends[1], "pin", name)


def _weld(package: Any, tree: Tree, k: int, name: str) -> Constraint | str:
    data = tree.compiled.eq_data[k]
    a, b = (_end(package, tree, k, which) for which in range(2))
    if int(tree.compiled.eq_objtype[k]) != int(package.mjtObj.mjOBJ_SITE):
        a = a[0], a[1] @ transform(data[3:6], data[6:10])
        b = b[0], b[1] @ translate(*data[0:3])
    return _loop(a, b, "weld" if data[10] else "pin", name)


def _joint(package: Any, tree: Tree, k: int, name: str) -> Constraint | str:
    m = tree.compiled
    first, second = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    c = [float(x) for x in m.eq_data[k][:5]]
    start = float(m.qpos0[m.jnt_qposadr[first]])
    if second < 0:
        return Given(tree.names.joints[first], start + c[0], name=name)
    if any(c[2:]):
        return f"its polynomial has powers above the first: {shown(c)}"
    kinds = {int(m.jnt_type[first]), int(m.jnt_type[second])}
    if not kinds <= {HINGE, SLIDE}:
        return "it is of a joint with several coordinates"
    offset = start + c[0] - c[1] * float(m.qpos0[m.jnt_qposadr[second]])
    return Coupling(tree.names.joints[first], tree.names.joints[second], c[1], offset, name=name)
