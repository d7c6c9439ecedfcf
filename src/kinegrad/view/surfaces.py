"""Triangles of the solids that links are drawn as.

Spheres, cylinders and capsules are surfaces of revolution: a profile (radius, height), turned about z.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model.geometry import Box, Capsule, Cylinder, Mesh, Solid, Sphere
from kinegrad.view.needs import need_collada, need_trimesh

__all__ = ["ARROW", "Surface", "capsule_between", "refined", "surface"]

Array = NDArray[np.float64]
HALVINGS = 12  # of a triangle, at most
AROUND, ALONG = 20, 6  # corners of a circle, and of a quarter of a meridian


class Surface(NamedTuple):
    """A triangulated surface."""

    vertices: Array  # (k, 3), m
    faces: NDArray[np.int64]  # (f, 3), counter-clockwise from outside

    def moved(self, placement: Array) -> Surface:
        """The surface placed by a 4×4 transform."""
        return Surface(self.vertices @ placement[:3, :3].T + placement[:3, 3], self.faces)


def refined(mesh: Surface, longest: float) -> Surface:
    """The same surface of triangles without edges beyond a length, m: halved at their longest edges, again and again.

    Examples
    --------
    >>> rod = refined(surface(Cylinder(0.01, 1.0)), 0.1)
    >>> corners = rod.vertices[rod.faces]
    >>> bool(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() <= 0.1)
    True
    """
    corners, done = mesh.vertices[mesh.faces], []
    for _ in range(HALVINGS):
        edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)  # from each corner to the next
        large = edges.max(axis=1) > longest
        done.append(corners[~large])
        if not large.any():
            break
        first = edges[large].argmax(axis=1)
        a, b, c = (corners[large][np.arange(len(first)), (first + k) % 3] for k in range(3))
        middle = (a + b) / 2
        corners = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    else:
        done.append(corners)
    whole = np.concatenate(done)
    return Surface(whole.reshape(-1, 3), np.arange(3 * len(whole)).reshape(-1, 3))


def surface(solid: Solid, where: str = "") -> Surface:
    """Triangles of a solid in its own frame; meshes are read from their files.

    Examples
    --------
    >>> ball = surface(Sphere(0.5))
    >>> bool(np.allclose(np.linalg.norm(ball.vertices, axis=1), 0.5))
    True
    """
    if isinstance(solid, Sphere):
        return _revolved(_arc(solid.radius, 0.0, -np.pi / 2, np.pi / 2))
    if isinstance(solid, Cylinder):
        half, r = solid.length / 2, solid.radius
        return _revolved([(0.0, -half), (r, -half), (r, -half), (r, half), (r, half), (0.0, half)])
    if isinstance(solid, Capsule):
        half = solid.length / 2
        lower, upper = _arc(solid.radius, -half, -np.pi / 2, 0.0), _arc(solid.radius, half, 0.0, np.pi / 2)
        return _revolved(lower + upper)
    if isinstance(solid, Box):
        return _box(solid.size)
    return _read(solid, where)


def capsule_between(start: Array, end: Array, radius: float) -> Surface:
    """A capsule whose axis goes from one point to another.

    Examples
    --------
    >>> bone = capsule_between(np.zeros(3), np.array([1.0, 0, 0]), 0.1)
    >>> bone.vertices.min(axis=0).round(6).tolist(), bone.vertices.max(axis=0).round(6).tolist()
    ([-0.1, -0.1, -0.1], [1.1, 0.1, 0.1])
    """
    along = end - start
    length = float(np.linalg.norm(along))
    z = along / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    placement = np.eye(4)
    placement[:3] = np.column_stack([x, np.cross(z, x), z, (start + end) / 2])
    return surface(Capsule(radius, length)).moved(placement)


def _arc(radius: float, middle: float, first: float, last: float) -> list[tuple[float, float]]:
    count = ALONG if last - first < 2 else 2 * ALONG
    angles = np.linspace(first, last, count + 1)
    return [(float(radius * np.cos(a)), float(middle + radius * np.sin(a))) for a in angles]


def _revolved(profile: list[tuple[float, float]]) -> Surface:
    turn = 2 * np.pi * np.arange(AROUND) / AROUND
    r, z = np.array(profile).T
    rings = np.stack([np.outer(r, np.cos(turn)), np.outer(r, np.sin(turn)), np.repeat(z[:, None], AROUND, 1)], axis=-1)
    below, here = np.arange(len(r) - 1)[:, None] * AROUND, np.arange(AROUND)
    a, b = below + here, below + np.roll(here, -1)
    faces = np.concatenate([np.stack([a, b, b + AROUND], -1), np.stack([a, b + AROUND, a + AROUND], -1)])
    return Surface(rings.reshape(-1, 3), faces.reshape(-1, 3))


def _box(size: tuple[float, float, float]) -> Surface:
    """Six faces with corners of their own, so that edges stay sharp."""
    vertices: list[Array] = []
    faces: list[tuple[int, int, int]] = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            if sign < 0:
                u, v = v, u
            middle, first = sign * np.eye(3)[axis], 4 * len(faces) // 2
            vertices += [middle - u - v, middle + u - v, middle + u + v, middle - u + v]
            faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return Surface(np.array(vertices) * np.array(size) / 2, np.array(faces))


def _read(mesh: Mesh, where: str) -> Surface:
    if not os.path.isfile(mesh.file):
        raise InputError(f"{where}mesh file {shown(mesh.file)} does not exist; expected the file of a surface")
    trimesh = need_trimesh()
    if os.fspath(mesh.file).lower().endswith(".dae"):
        need_collada()
    try:
        read: Any = trimesh.load(mesh.file, force="mesh")
    except Exception as error:  # whatever trimesh and what it builds on raise for a damaged file
        raise InputError(f"{where}mesh file {shown(mesh.file)} cannot be read: {error}") from error
    vertices = np.asarray(read.vertices, dtype=np.float64) * np.array(mesh.scale)
    faces = np.asarray(read.faces, dtype=np.int64)
    if not len(faces) or not np.isfinite(vertices).all():
        raise InputError(f"{where}mesh file {shown(mesh.file)} has no triangles of finite corners")
    mirrored = np.prod(mesh.scale) < 0
    return Surface(vertices, faces[:, ::-1] if mirrored else faces)


ARROW = _revolved(
    [(0.0, 0.0), (0.02, 0.0), (0.02, 0.0), (0.02, 0.85), (0.05, 0.85), (0.05, 0.85), (0.0, 1.0)]
)  # along z
