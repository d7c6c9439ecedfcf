"""Geoms of MuJoCo as shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kinegrad.errors import shown
from kinegrad.io.mjcf.bodies import Tree, transform
from kinegrad.io.model_file import Note
from kinegrad.model import Box, Capsule, Cylinder, Mesh, Sphere
from kinegrad.model.geometry import Solid

__all__ = ["add_shapes"]

HIDDEN = 3  # geoms of this group and above are not shown by MuJoCo's viewer unless asked for: simplified ones
GREY = (0.5, 0.5, 0.5, 1.0)  # of a geom that says nothing; its material counts then


def add_shapes(package: Any, tree: Tree, path: Path) -> None:
    """Add all geoms that have a counterpart; notes of the others."""
    m, kinds = tree.compiled, package.mjtGeom
    for k in range(m.ngeom):
        kind = kinds(int(m.geom_type[k]))
        place = transform(m.geom_pos[k], m.geom_quat[k])
        size = [float(x) for x in m.geom_size[k]]
        solid: Solid | None = None
        if kind == kinds.mjGEOM_SPHERE:
            solid = Sphere(size[0])
        elif kind == kinds.mjGEOM_CAPSULE:
            solid = Capsule(size[0], 2 * size[1])
        elif kind == kinds.mjGEOM_CYLINDER:
            solid = Cylinder(size[0], 2 * size[1])
        elif kind == kinds.mjGEOM_BOX:
            solid = Box((2 * size[0], 2 * size[1], 2 * size[2]))
        elif kind == kinds.mjGEOM_MESH:
            solid, place = _mesh(tree, k, place, path)
        if solid is None:
            name = tree.names.of("geom", k)
            word = kind.name.removeprefix("mjGEOM_").lower()
            text = f"geom {shown(name) if name else k} is a {word}, which is not drawn"
            tree.notes.append(Note(f"{word} geom", text, matters=False))
            continue
        host, T = tree.host[int(m.geom_bodyid[k])]
        hidden = int(m.geom_group[k]) >= HIDDEN
        tree.builder.add_shape(host, solid, T @ place, color=_color(m, k), collision=hidden)


def _color(m: Any, k: int) -> tuple[float, ...] | None:
    own, material = tuple(float(x) for x in m.geom_rgba[k]), int(m.geom_matid[k])
    if own == GREY and material >= 0:
        own = tuple(float(x) for x in m.mat_rgba[material])
    return tuple(float(x) for x in np.clip(own, 0.0, 1.0))


def _mesh(tree: Tree, k: int, place: Any, path: Path) -> tuple[Solid | None, Any]:
    """The file of a mesh, in the file's own frame: MuJoCo moves meshes to their centres."""
    m = tree.compiled
    mesh = int(m.geom_dataid[k])
    if mesh < 0 or not hasattr(m, "mesh_pathadr") or int(m.mesh_pathadr[mesh]) < 0:
        return None, place
    start = int(m.mesh_pathadr[mesh])
    name = bytes(m.paths[start : m.paths.index(b"\0", start)]).decode("utf-8", "replace")
    if not name or not name.isprintable():
        return None, place
    own = transform(m.mesh_pos[mesh], m.mesh_quat[mesh])
    scale = tuple(float(x) for x in m.mesh_scale[mesh])
    file = path.parent / name
    solid = Mesh(str(file) if file.is_file() else name, scale)  # type: ignore[arg-type]
    return solid, place @ np.linalg.inv(own)
