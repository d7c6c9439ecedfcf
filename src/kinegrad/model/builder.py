"""Build a model joint by joint, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import ModelError, shown
from kinegrad.model.by_name import spread
from kinegrad.model.coordinates import HINGES, POSE, CoupledCoordinate, Quaternion
from kinegrad.model.elements import Element, check_element_name
from kinegrad.model.frames import Frame, check_frame_name
from kinegrad.model.functions import LinearFunction, as_function
from kinegrad.model.geometry import Shape, Solid
from kinegrad.model.inertia import Inertia, check_inertia
from kinegrad.model.joints import BallJoint, Joint
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
        self._couplings: dict[str, dict[str, Any]] = {}
        self._quaternions: list[Quaternion] = []
        self._frames: dict[str, Frame] = {}
        self._shapes: list[Shape] = []
        self._elements: dict[str, Element] = {}
        self._actuation: Any = None

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
            ``revolute("x")``, ``spherical("zyx")``, ``free(quaternion=True)``, …
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
            ``armature``; for a composite joint one value for all its primitives, one for each, or by their
            letters: ``damping={"x": 0.1}``.  A ball whose
            coordinates are a quaternion has three, about its own axes, and neither position limits, stiffness nor
            armature.

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
        ball = isinstance(joint, BallJoint)
        values = {what: self._numbers(name, what, numbers.pop(what, default), names, ball)
                  for what, default in _NUMBERS.items()}  # fmt: skip
        if numbers:
            unknown = shown(next(iter(numbers)))[1:-1]
            raise ModelError(f"`{unknown}` of {shown(name)} is unknown; expected one of {', '.join(_NUMBERS)}")
        if ball:
            first = len(column["joints"]) + len(primitives) - len(HINGES)
            self._quaternions.append(Quaternion(name, first))
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

    def couple(self, coordinate: str, joints: Mapping[str, Any]) -> None:
        """Let one coordinate move several joints: q̂ᵢ = fᵢ(q).

        Its speed moves them by v̂ᵢ = fᵢ′(q) v; its torque is what does the same work, τ = Σ fᵢ′(q) τ̂ᵢ.

        Parameters
        ----------
        coordinate : str
            Its name, and that of its speed: a new one, or that of one of the joints.
        joints : dict of str to float, function or SciPy spline
            The joints it moves, and how: a number is a multiplier, others are :class:`LinearFunction`,
            :class:`PolynomialFunction`, :class:`SplineFunction`, or a spline of SciPy.

        Examples
        --------
        A knee whose shank slides while it bends, as in models of OpenSim:

        >>> from kinegrad import Inertia, PolynomialFunction, SplineFunction, planar
        >>> leg = ModelBuilder("leg")
        >>> _ = leg.add("knee", None, planar("z"), link="shank", inertia=Inertia.rod(3.7, [0, 0, 0], [0, -0.43, 0]))
        >>> slide = SplineFunction([-2.1, -1.0, 0.0], [-0.003, 0.004, -0.005])
        >>> leg.couple("knee_angle", {"knee.rz": 1.0, "knee.tx": slide, "knee.ty": PolynomialFunction([-0.4, 0, 0.01])})
        >>> leg.build().coordinate_names
        ('knee_angle',)
        """
        if not isinstance(coordinate, str) or not check_name("`coordinate`", coordinate):
            raise ModelError(f"`coordinate` is {shown(coordinate)}; expected text")
        if not isinstance(joints, Mapping) or not joints:
            found = f"`joints` of coordinate {shown(coordinate)} is {shown(joints)}"
            raise ModelError(f"{found}; expected a dictionary from joints to functions")
        if coordinate in self._couplings:
            raise ModelError(f"coordinate {shown(coordinate)} is coupled already; expected all its joints at once")
        names = self._columns["joint_names"]
        if coordinate in names and coordinate not in joints:
            found = f"coordinate {shown(coordinate)} has the name of a joint that it does not move"
            raise ModelError(f"{found}; choose another name")
        moved = {}
        for joint, function in joints.items():
            find_name("joint", joint, names, self._name)
            moved[joint] = as_function(f"the function of joint {shown(joint)}", function)
        self._couplings[coordinate] = moved

    def mimic(self, joint: str, of: str, *, multiplier: float = 1.0, offset: float = 0.0) -> None:
        """Let a joint follow another one, as ``<mimic>`` of URDF does: q̂_joint = multiplier · q_of + offset.

        Parameters
        ----------
        joint : str
            The one that follows; it is no coordinate any more.
        of : str
            The one that leads: a joint, or a coordinate of :meth:`couple`.
        multiplier, offset : float

        Examples
        --------
        >>> from kinegrad import Inertia, prismatic
        >>> gripper = ModelBuilder("gripper")
        >>> _ = gripper.add("left", None, prismatic("y"), inertia=Inertia.point(0.1, [0, 0, 0]))
        >>> _ = gripper.add("right", None, prismatic("y"), inertia=Inertia.point(0.1, [0, 0, 0]))
        >>> gripper.mimic("right", "left", multiplier=-1.0)
        >>> gripper.build().coordinate_names
        ('left',)
        """
        names = self._columns["joint_names"]
        find_name("joint", joint, names, self._name)
        follows = LinearFunction(multiplier, offset)
        if of not in self._couplings:
            find_name("joint", of, names, self._name)
        leads = self._couplings.get(of, {of: LinearFunction()})
        if joint in leads:
            raise ModelError(f"joint {shown(joint)} follows {shown(of)} already; expected it once")
        self._couplings[of] = {**leads, joint: follows}

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
        self,
        link: str | None,
        solid: Solid,
        placement: ArrayLike | None = None,
        *,
        color: Sequence[float] | None = None,
        collision: bool = False,
    ) -> None:
        """Add something to draw: a solid fixed in a link or frame, or in the world.

        Parameters
        ----------
        link, solid, placement, color, collision
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
        if link is not None:
            self._locate(link)
        place: Any = np.eye(4) if placement is None else placement
        self._shapes.append(Shape(link, solid, place, color, collision))  # type: ignore[arg-type]

    def add_element(self, name: str, element: Element) -> str:
        """Add a force element between two links, or a link and the world.

        Parameters
        ----------
        name : str
            What no joint, link, frame or other element is called.
        element : SpringDamper or Bushing
            Between links or frames that are there already.

        Returns
        -------
        str
            Its name.

        Examples
        --------
        >>> from kinegrad import Inertia, SpringDamper, potential_energy, prismatic
        >>> cart = ModelBuilder("cart")
        >>> box = cart.add("track", None, prismatic("x"), link="box", inertia=Inertia.point(1.0, [0, 0, 0]))
        >>> _ = cart.add_element("strap", SpringDamper(box, stiffness=100.0))
        >>> float(potential_energy(cart.build(), [0.1]).round(12))
        0.5
        """
        column = self._columns
        label = check_element_name(name, column["joint_names"], column["link_names"], tuple(self._frames))
        if label in self._elements:
            raise ModelError(f"element {shown(label)} is in model {shown(self._name)} already; choose another name")
        if not isinstance(element, Element):
            raise ModelError(f"element {shown(label)} is {shown(element)}; expected a SpringDamper or a Bushing")
        for link in (element.link, element.other):
            if link is not None:
                self._locate(link)
        self._elements[label] = element
        return label

    def actuate(self, actuation: Any) -> None:
        """Say what is driven; without it every coordinate is.

        Parameters
        ----------
        actuation : Actuation, sequence of str, or mapping
            As of :class:`Model`.

        Examples
        --------
        >>> from kinegrad import Inertia, prismatic, revolute
        >>> cart = ModelBuilder("cart with a pendulum")
        >>> _ = cart.add("track", None, prismatic("x"), link="box", inertia=Inertia.point(1.0, [0, 0, 0]))
        >>> _ = cart.add("hinge", "box", revolute("y"), link="rod", inertia=Inertia.point(0.1, [0, 0, -0.5]))
        >>> cart.actuate(["track"])
        >>> cart.build().actuator_names
        ('track',)
        """
        self._actuation = actuation

    def _locate(self, name: Any) -> tuple[int, Any]:
        """The number of a link, and None; of a frame, that of its link, and where it is in it."""
        links = self._columns["link_names"]
        frame = self._frames.get(name) if isinstance(name, str) else None
        if frame is None:
            what = "link or frame" if self._frames else "link"
            return find_name(what, name, (*links, *self._frames), self._name), None
        return links.index(frame.link), frame.placement

    @staticmethod
    def _numbers(name: str, what: str, value: Any, names: Sequence[str], ball: bool) -> Any:
        """Numbers of all primitives; a ball's hinges of the pose have none."""
        given = len(names) - POSE if ball else len(names)
        shape = (given, 2) if what == "position_limits" else (given,)
        if isinstance(value, Mapping):
            labels = [
                each.removeprefix(f"{name}.") for each in ([*names[: -len(HINGES)], *names[-POSE:]] if ball else names)
            ]
            value = spread(what, value, labels, name, core=shape[1:], default=_NUMBERS[what], kind="part")
        try:
            numbers = np.broadcast_to(real_array(what, value, "numbers"), shape)
        except ValueError:
            found = f"`{what}` of joint {shown(name)} is {shown(value)}"
            raise ModelError(f"{found}; expected numbers of shape {shape}") from None
        if not ball:
            return numbers
        none = np.broadcast_to(np.asarray(_NUMBERS[what]), (POSE, *shape[1:]))
        return np.concatenate([numbers[:-POSE], none, numbers[-POSE:]])

    def build(self) -> Model:
        """The finished model."""
        fields = {what: values for what, values in self._columns.items() if what != "bodies"}
        bodies = self._columns["bodies"]
        number = {name: i for i, name in enumerate(self._columns["joint_names"])}
        couplings = [
            CoupledCoordinate(name, tuple(number[joint] for joint in moved), tuple(moved.values()))
            for name, moved in self._couplings.items()
        ]
        return Model(
            coordinates=(*self._quaternions, *couplings),
            name=self._name,
            gravity=self._gravity,  # type: ignore[arg-type]
            frames=self._frames,
            shapes=tuple(self._shapes),
            elements=self._elements,
            actuation=self._actuation,
            mass=np.array([body.mass for body in bodies]),
            com=np.array([body.com for body in bodies]),
            inertia=np.array([body.inertia for body in bodies]),
            **fields,  # type: ignore[arg-type]
        )
