"""Build a model joint by joint, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import ModelError, shown
from kinegrad.model.frames import Frame, check_frame_name
from kinegrad.model.geometry import Shape, Solid
from kinegrad.model.inertia import Inertia, check_inertia
from kinegrad.model.joints import Joint
from kinegrad.model.model import STANDARD_GRAVITY, Model
from kinegrad.model.names import as_tuple, check_name, find_name
from kinegrad.model.numbers import real_array
from kinegrad.model.placement import check_transform

__all__ = ["ModelBuilder"]

_NUMBERS = {
    "position_limits": (-np.inf, np.inf), "velocity_limits": np.inf, "effort_limits": np.inf,
    "stiffness": 0.0, "rest": 0.0, "damping": 0.0, "armature": 0.0,
}  # fmt: skip


class ModelBuilder:
    """Collects joints and links, then :meth:`build` makes the :class:`Model`.

    Examples
    --------
    A leg with a ball joint at the hip and a hinge at the knee:

    >>> from kinegrad import Inertia, revolute, spherical
    >>> leg = ModelBuilder("leg")
    >>> _ = leg.add("hip", None, spherical("zxy"), link="thigh", inertia=Inertia.rod(9.5, [0, 0, 0], [0, 0, -0.44]))
    >>> _ = leg.add("knee", "thigh", revolute("x"), link="shank", placement=[0, 0, -0.44],
    ...             inertia=Inertia.rod(3.7, [0, 0, 0], [0, 0, -0.43]), damping=0.1)
    >>> leg.build().joint_names
    ('hip.z', 'hip.x', 'hip.y', 'knee')
    """

    def __init__(self, name: str = "mechanism", *, gravity: ArrayLike = STANDARD_GRAVITY) -> None:
        self._name = name
        self._gravity = gravity
        self._columns: dict[str, list[Any]] = {
            what: [] for what in ("joints", "parents", "joint_names", "link_names", "placement", "tip", "bodies")
        }
        self._columns |= {what: [] for what in _NUMBERS}
        self._frames: dict[str, Frame] = {}
        self._shapes: list[Shape] = []

    def add(
        self,
        name: str,
        parent: str | None,
        joint: Joint | Sequence[Joint],
        *,
        link: str | None = None,
        placement: ArrayLike | None = None,
        tip: ArrayLike | None = None,
        inertia: Inertia | tuple[float, ArrayLike, ArrayLike] | None = None,
        **numbers: Any,
    ) -> str:
        """Add a joint and the link it moves.

        Parameters
        ----------
        name : str
            The joint's name.  The primitives of a composite joint are called ``name.z``, …
        parent : str or None
            The link or frame it is attached to; None is the world.
        joint : Joint or sequence of Joint
            ``revolute("x")``, ``spherical("zyx")``, ``free()``, …
        link : str, optional
            The link's name; the joint's name without it.
        placement : array_like, shape (4, 4) or (3,), optional
            P: the joint's frame in the parent's link frame, or in the frame; three numbers are a shift.
        tip : array_like, shape (4, 4) or (3,), optional
            F: the link's frame seen from the joint's frame at q = 0.
        inertia : Inertia, or (mass, com, inertia), optional
            In the link's frame, the 3×3 about the centre of mass; without it the link is massless.  An impossible one
            given by its numbers is refused with the link's name (an :class:`Inertia` refuses when it is made).
        **numbers
            ``position_limits`` (pair), ``velocity_limits``, ``effort_limits``, ``stiffness``, ``rest``, ``damping``,
            ``armature``; for a composite joint one value for all its primitives, or one for each.

        Returns
        -------
        str
            The link's name, to be the parent of the next.
        """
        for what, text in (("name", name), ("link", name if link is None else link)):
            if not isinstance(text, str) or not check_name(f"`{what}` of a joint", text):
                raise ModelError(f"`{what}` of a joint is {shown(text)}; expected text")
        primitives = (
            (joint,) if isinstance(joint, Joint) else as_tuple(f"joint of {shown(name)}", joint, "a Joint, or several")
        )
        if not primitives or not all(isinstance(p, Joint) for p in primitives):
            raise ModelError(f"`joint` of {shown(name)} is {shown(joint)}; expected a Joint, or several in a sequence")
        link = name if link is None else link
        if isinstance(inertia, tuple) and len(inertia) == 3:
            inertia = Inertia(*check_inertia(*inertia, where=f"link {shown(link)}"))
        if inertia is not None and not isinstance(inertia, Inertia):
            expected = "expected an Inertia, or (mass, com, inertia)"
            raise ModelError(f"`inertia` of {shown(name)} is {shown(inertia)}; {expected}")
        column = self._columns
        above, base = (-1, None) if parent is None else self._locate(parent)
        single = len(primitives) == 1
        names = [name] if single else [f"{name}.{p.label or k}" for k, p in enumerate(primitives)]
        for taken, new in (("joint_names", names), ("link_names", [*names[:-1], link])):
            for label in new:
                if label in column[taken]:
                    found = f"{taken[:-6]} {shown(label)} is in model {shown(self._name)} already"
                    raise ModelError(f"{found}; choose another name")
                if taken == "link_names" and label in self._frames:
                    found = f"link {shown(label)} has the name of a frame of model {shown(self._name)}"
                    raise ModelError(f"{found}; choose another name")
        values = {what: self._numbers(name, what, numbers.pop(what, default), len(primitives))
                  for what, default in _NUMBERS.items()}  # fmt: skip
        if numbers:
            unknown = shown(next(iter(numbers)))[1:-1]
            raise ModelError(f"`{unknown}` of {shown(name)} is unknown; expected one of {', '.join(_NUMBERS)}")
        eye = np.eye(4)
        P = eye if placement is None else check_transform(f"`placement` of joint {shown(name)}", placement)
        P = P if base is None else base @ P
        F = eye if tip is None else check_transform(f"`tip` of joint {shown(name)}", tip)
        for k, primitive in enumerate(primitives):
            first, last = k == 0, k == len(primitives) - 1
            column["joints"].append(primitive)
            column["parents"].append(above if first else len(column["parents"]) - 1)
            column["joint_names"].append(names[k])
            column["link_names"].append(link if last else names[k])
            column["placement"].append(P if first else eye)
            column["tip"].append(F if last else eye)
            column["bodies"].append(inertia if last and inertia is not None else Inertia.zero())
            for what, value in values.items():
                column[what].append(value[k])
        return link

    def add_frame(self, name: str, link: str, placement: ArrayLike | None = None) -> str:
        """Add a frame fixed in a link.

        Parameters
        ----------
        name : str
            What neither a link nor another frame is called.
        link : str
            The link, or a frame that is there already.
        placement : array_like, shape (4, 4) or (3,), optional
            The frame in that link's frame, or in that frame; three numbers are a shift.

        Returns
        -------
        str
            Its name.  Joints, frames and shapes can be attached to it.

        Examples
        --------
        >>> from kinegrad import Inertia, point_motion, revolute
        >>> arm = ModelBuilder("arm")
        >>> hand = arm.add("wrist", None, revolute("z"), link="hand", inertia=Inertia.point(1.0, [0.1, 0, 0]))
        >>> _ = arm.add_frame("tool", hand, [0.3, 0, 0])
        >>> point_motion(arm.build(), [0.0], link="tool", point=[0, 0.1, 0]).position
        array([0.3, 0.1, 0. ])
        """
        label = check_frame_name(name, self._columns["link_names"])
        if label in self._frames:
            raise ModelError(f"frame {shown(label)} is in model {shown(self._name)} already; choose another name")
        i, base = self._locate(link)
        what = f"`placement` of frame {shown(label)}"
        T = np.eye(4) if placement is None else check_transform(what, placement)
        self._frames[label] = Frame(self._columns["link_names"][i], T if base is None else base @ T)
        return label

    def add_shape(
        self, link: str, solid: Solid, placement: ArrayLike | None = None, *, color: Sequence[float] | None = None
    ) -> None:
        """Add something to draw: a solid fixed in a link or frame.

        Parameters
        ----------
        link, solid, placement, color
            As of :class:`Shape`.

        Examples
        --------
        >>> from kinegrad import Box, Inertia, revolute
        >>> door = ModelBuilder("door")
        >>> leaf = door.add("hinge", None, revolute("z"), link="leaf", inertia=Inertia.box(20, [0.8, 0.04, 2.0]))
        >>> door.add_shape(leaf, Box([0.8, 0.04, 2.0]), color=(0.6, 0.4, 0.2))
        >>> len(door.build().shapes)
        1
        """
        self._locate(link)
        self._shapes.append(Shape(link, solid, np.eye(4) if placement is None else placement, color))  # type: ignore[arg-type]

    def _locate(self, name: Any) -> tuple[int, Any]:
        """The number of a link, and None; of a frame, that of its link, and where it is in it."""
        links = self._columns["link_names"]
        frame = self._frames.get(name) if isinstance(name, str) else None
        if frame is None:
            what = "link or frame" if self._frames else "link"
            return find_name(what, name, (*links, *self._frames), self._name), None
        return links.index(frame.link), frame.placement

    @staticmethod
    def _numbers(name: str, what: str, value: Any, count: int) -> Any:
        shape = (count, 2) if what == "position_limits" else (count,)
        try:
            return np.broadcast_to(real_array(what, value, "numbers"), shape)
        except ValueError:
            found = f"`{what}` of joint {shown(name)} is {shown(value)}"
            raise ModelError(f"{found}; expected numbers of shape {shape}") from None

    def build(self) -> Model:
        """The finished model."""
        fields = {what: values for what, values in self._columns.items() if what != "bodies"}
        bodies = self._columns["bodies"]
        return Model(
            name=self._name,
            gravity=self._gravity,  # type: ignore[arg-type]
            frames=self._frames,
            shapes=tuple(self._shapes),
            mass=np.array([body.mass for body in bodies]),
            com=np.array([body.com for body in bodies]),
            inertia=np.array([body.inertia for body in bodies]),
            **fields,  # type: ignore[arg-type]
        )
