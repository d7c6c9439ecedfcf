"""A model in the scene of a browser: links that move, names, axes, the centre of mass, the ground, and forces.

The scene is a tree of nodes of viser: one frame for each link, moved by forward kinematics, with the link's parts
fixed in it.  Everything that changes with time is set in :meth:`Scene.pose`, in one message to the browser.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.energy import center_of_mass
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.view.parts import body_parts, reach
from kinegrad.view.shown import Shown
from kinegrad.view.surfaces import ARROW

__all__ = ["Scene", "up_direction"]

Array = NDArray[np.float64]
COM, FORCE, AXIS = (213, 94, 0), (200, 30, 30), (93, 107, 120)
WIRE = (110, 120, 130)
GROUND = {  # lines of cells and of sections: on light pages, on dark ones, and on those of which it is not known
    False: ((222, 226, 230), (176, 184, 192)),
    True: ((48, 54, 61), (82, 91, 100)),
    None: ((150, 156, 162), (122, 128, 134)),
}
LONGEST = 0.35  # length of the largest force, of the reach of the model


class Scene:
    """The nodes of a model in a scene of viser.

    Parameters
    ----------
    server : viser.ViserServer
    model : Model
    q : array, shape (nq,)
        Posture to begin with.
    postures : array, shape (k, nq), optional
        Postures that are to come: the ground is below all of them.
    shown : Shown
        Of that model: what connects its links.
    largest_force : float
        N, drawn as an arrow of about a third of the model's reach.
    dark : bool
        Whether the page is.
    """

    def __init__(
        self,
        server: Any,
        model: Model,
        q: Array,
        *,
        shown: Shown,
        postures: Array | None = None,
        largest_force: float = 0.0,
        dark: bool = False,
    ) -> None:
        self.server, self.model, self.shown = server, model, shown
        self.size = reach(model)
        self.up = up_direction(model)
        self.newtons = LONGEST * self.size / largest_force if largest_force > 0 else 0.0
        scene = server.scene
        scene.set_up_direction(tuple(self.up.tolist()))
        transforms = forward_kinematics(model, q).transform
        self.links = [scene.add_frame(f"/body/{i}", show_axes=False, **_placed(transforms[i])) for i in range(model.n)]
        self.parts = body_parts(model, shown.attached)
        self.meshes = [
            scene.add_mesh_simple(
                f"{_node(part.link)}/part{k}", part.surface.vertices, part.surface.faces,
                color=_bytes(part.color[:3]), opacity=part.color[3] if part.color[3] < 1 else None,
            )
            for k, part in enumerate(self.parts)
        ]  # fmt: skip
        self.names = [
            scene.add_label(f"{_node(part.link)}/name{k}", model.link_names[part.link],
                            position=part.surface.vertices.mean(axis=0), visible=False)
            for k, part in enumerate(self.parts) if part.link >= 0
        ]  # fmt: skip
        self.axes = [self._axis(i) for i in range(model.n)]
        mass = scene.add_icosphere("/com", radius=0.02 * self.size, color=COM, visible=False)
        self.com = mass if model.total_mass > 0 else None
        seen = transforms if postures is None else forward_kinematics(model, postures).transform
        self.low, self.high = np.array([self.span(seen, axis) for axis in np.eye(3)]).T
        ground = self.span(seen, self.up)[0]
        self.ground = scene.add_grid(
            "/ground", width=4 * self.size, height=4 * self.size, cell_size=self.size / 4, section_size=self.size,
            plane="xy", position=tuple((ground * self.up).tolist()), wxyz=_turn_to(self.up),
        )  # fmt: skip
        self.wires = [
            scene.add_line_segments(f"/wires/{k}", _pieces(wire), colors=WIRE, line_width=2.5)
            for k, wire in enumerate(shown.wires(q))
        ]
        self.forces: list[Any] = []
        self.forces_shown = True
        self.darken(dark)

    def span(self, transforms: Array, along: Array) -> tuple[float, float]:
        """From where to where all parts reach along a direction, m, over any batch of transforms (..., n, 4, 4)."""
        ends = []
        for part in self.parts:
            pose = transforms[..., part.link, :, :] if part.link >= 0 else np.eye(4)
            turned = np.swapaxes(pose[..., :3, :3], -1, -2) @ along
            heights = turned @ part.surface.vertices.T + (pose[..., :3, 3] @ along)[..., None]
            ends.append((heights.min(), heights.max()))
        return float(min((low for low, _ in ends), default=0.0)), float(max((high for _, high in ends), default=0.0))

    def pose(self, q: Array, arrows: Array | None = None) -> None:
        """Move the links to a posture, and the arrows to forces (k, 2, 3): points in m, vectors in N."""
        transforms = forward_kinematics(self.model, q).transform
        with self.server.atomic():
            for node, transform in zip(self.links, transforms, strict=True):
                placed = _placed(transform)
                node.wxyz, node.position = placed["wxyz"], placed["position"]
            for line, wire in zip(self.wires, self.shown.wires(q), strict=True):
                line.points = _pieces(wire)
            if self.com is not None:
                self.com.position = center_of_mass(self.model, q)
            self._draw_forces(np.zeros((0, 2, 3)) if arrows is None else arrows)

    def paint(self, colors: Array | None) -> None:
        """Colour the links (n, 3), from 0 to 1; as they were for None."""
        with self.server.atomic():
            for mesh, part in zip(self.meshes, self.parts, strict=True):
                felt = colors is not None and part.link >= 0
                mesh.color = _bytes(colors[part.link] if felt and colors is not None else part.color[:3])

    def darken(self, dark: bool | None) -> None:
        """Lines of the ground that stay behind the model on a light or a dark page; None if it may be either."""
        self.ground.cell_color, self.ground.section_color = GROUND[dark]

    def show(self, what: str, visible: bool) -> None:
        """Show or hide names, axes, com, ground or forces."""
        if what == "forces":
            self.forces_shown = visible
        nodes = getattr(self, what)
        for node in nodes if isinstance(nodes, list) else [nodes]:
            if node is not None:
                node.visible = visible

    def _draw_forces(self, arrows: Array) -> None:
        """One arrow per force, along z and a metre long, placed, turned and scaled."""
        while len(self.forces) < len(arrows):
            name = f"/forces/{len(self.forces)}"
            node = self.server.scene.add_mesh_simple(name, ARROW.vertices, ARROW.faces, color=FORCE)
            self.forces.append(node)
        for k, node in enumerate(self.forces):
            force = arrows[k, 1] if k < len(arrows) else np.zeros(3)
            length = self.newtons * float(np.linalg.norm(force))
            node.visible = self.forces_shown and length > 1e-3 * self.size
            if node.visible:
                node.position, node.wxyz = arrows[k, 0], _turn_to(force / np.linalg.norm(force))
                node.scale = length

    def _axis(self, i: int) -> Any:
        """An arrow along the axis of joint i, fixed in its link: the joint's motion leaves its axis where it is."""
        to_link = np.linalg.inv(self.model.tip[i])
        along = to_link[:3, :3] @ np.asarray(self.model.joints[i].axis)
        return self.server.scene.add_mesh_simple(
            f"/body/{i}/axis", ARROW.vertices, ARROW.faces, color=AXIS, visible=False, scale=0.12 * self.size,
            position=to_link[:3, 3], wxyz=_turn_to(along),
        )  # fmt: skip


def _pieces(wire: Array) -> Array:
    """A line of points, (k, 3), as pieces between two, (k − 1, 2, 3)."""
    return np.stack([wire[:-1], wire[1:]], axis=1)


def up_direction(model: Model) -> Array:
    """Against gravity; z where there is none."""
    strength = float(np.linalg.norm(model.gravity))
    return -model.gravity / strength if strength > 0 else np.array([0.0, 0.0, 1.0])


def _node(link: int) -> str:
    return f"/body/{link}" if link >= 0 else "/world"


def _placed(transform: Array) -> dict[str, Array]:
    """Quaternion and position of a 4×4 transform, as viser wants them."""
    return {"wxyz": _quaternion(transform[:3, :3]), "position": transform[:3, 3]}


def _quaternion(turn: Array) -> Array:
    """w, x, y, z of a rotation matrix: the column of 4ppᵀ whose diagonal entry is largest."""
    (a, b, c), (d, e, f), (g, h, i) = turn
    outer = np.array([
        [1 + a + e + i, h - f, c - g, d - b],
        [h - f, 1 + a - e - i, b + d, c + g],
        [c - g, b + d, 1 - a + e - i, f + h],
        [d - b, c + g, f + h, 1 - a - e + i],
    ])  # fmt: skip
    column = outer[np.argmax(np.diag(outer))]
    return np.asarray(column / np.linalg.norm(column))


def _turn_to(up: Array) -> Array:
    """The quaternion that turns z to a direction."""
    half = np.array([1 + up[2], -up[1], up[0], 0.0])
    return half / np.linalg.norm(half) if up[2] > -1 + 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])


def _bytes(color: Any) -> tuple[int, int, int]:
    red, green, blue = (int(x) for x in np.clip(np.rint(255 * np.asarray(color)), 0, 255))
    return red, green, blue
