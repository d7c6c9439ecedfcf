"""The mechanism: an immutable open tree of joints and links.

Joint i moves link i relative to its parent link by  A_i(q_i) = P_i · motion(q_i) · F_i.  A model knows nothing of a
state; everything that depends on q is computed by the functions of :mod:`kinegrad.kinematics` and its neighbours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.actuation import Actuation, controls, torques
from kinegrad.model.attachment import attached, bodies_by_name
from kinegrad.model.by_name import spread
from kinegrad.model.coordinates import CoupledCoordinate, Layout, Quaternion, check_coordinate_names, check_coordinates
from kinegrad.model.dh import DH, DHTable, warn_of_degrees
from kinegrad.model.dh_rows import fields_of_rows
from kinegrad.model.elements import Element, check_elements, element_numbers, with_ways
from kinegrad.model.fields import PER_JOINT, PER_LINK, check_joint_numbers, numbers, updated
from kinegrad.model.frames import Frame, check_frames
from kinegrad.model.geometry import Shape, check_shapes
from kinegrad.model.inertia import Inertia, check_inertia
from kinegrad.model.joints import Joint
from kinegrad.model.names import as_tuple, check_name, check_names, find_name
from kinegrad.model.placement import check_transform
from kinegrad.model.summary import summary
from kinegrad.model.topology import Topology
from kinegrad.results import frozen

__all__ = ["Model"]

Array = NDArray[np.float64]
STANDARD_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """An open tree of n one-degree-of-freedom joints, each moving one link, with its coordinates and speeds.

    Usually created by :func:`kinegrad.load`, :class:`ModelBuilder`, :meth:`from_dh` or a function of
    :mod:`kinegrad.samples`.  Arrays are read-only; models are compared and hashed by value and can be pickled.

    Parameters
    ----------
    name : str
    joints : sequence of Joint, length n
        Kind, axis and pitch of each joint.
    parents : array_like of int, shape (n,)
        Parent of each joint, −1 for the world; a parent is numbered before its children.
    joint_names, link_names : sequence of str, length n
    placement, tip : array_like, shape (n, 4, 4)
        The constants P (joint in its parent's link frame) and F (link frame after the joint).
    mass : array_like, shape (n,)
        kg.
    com : array_like, shape (n, 3)
        Centre of mass in the link frame, m.
    inertia : array_like, shape (n, 3, 3)
        About the centre of mass, along the link frame's axes, kg·m².
    gravity : array_like, shape (3,)
        World, m/s².
    position_limits : array_like, shape (n, 2)
        Lower and upper, rad or m.
    velocity_limits, effort_limits : array_like, shape (n,)
        Largest magnitude, rad/s or m/s, and N·m or N.
    stiffness, rest, damping, armature : array_like, shape (n,)
        Stiffness and rest position of a spring, viscous damping, and rotor inertia of each joint.  These and the limits
        may also be one value for all joints, or a mapping from names of joints to values.
    dh : DHTable, optional
        The Denavit–Hartenberg rows that :meth:`from_dh` was given, so that ``joint.a`` and the like can be design
        parameters.  The row of a joint is dropped if its placement is changed in another way.
    frames : mapping of str to Frame, optional
        Frames fixed in links, by name; names of links and frames differ.  Frames can be used wherever a link can.
    shapes : sequence of Shape, optional
        Shapes for drawing.
    coordinates : sequence of CoupledCoordinate or Quaternion, optional
        Coordinates that are not joints: see :meth:`ModelBuilder.couple` and ``spherical(quaternion=True)``.  Every
        other joint has one coordinate.
    elements : mapping of str to SpringDamper or Bushing, optional
        Force elements between two links, or a link and the world, by name; no joint, link or frame has the same name.
    actuation : Actuation, sequence of str, or mapping, optional
        The actuators: names of driven speeds, one actuator each; or, for each actuator by name, its torques per unit of
        control, shape (nv,), or a dictionary from speeds to torques.  By default every speed has its own actuator.

    Examples
    --------
    >>> from kinegrad import ModelBuilder, Inertia, revolute
    >>> builder = ModelBuilder("pendulum")
    >>> _ = builder.add("hinge", None, revolute("y"), link="bob", inertia=Inertia.point(1.0, [0, 0, -0.5]))
    >>> model = builder.build()
    >>> model.n, model.joint_names, float(model.total_mass)
    (1, ('hinge',), 1.0)
    >>> model.replace(mass={"bob": 2.0}) == model
    False
    """

    name: str
    joints: tuple[Joint, ...]
    parents: NDArray[np.int64]
    joint_names: tuple[str, ...]
    link_names: tuple[str, ...]
    placement: Array
    tip: Array
    mass: Array
    com: Array
    inertia: Array
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    position_limits: Array = None  # type: ignore[assignment]  # None: no limits; set below
    velocity_limits: Array = None  # type: ignore[assignment]
    effort_limits: Array = None  # type: ignore[assignment]
    stiffness: Array = None  # type: ignore[assignment]
    rest: Array = None  # type: ignore[assignment]
    damping: Array = None  # type: ignore[assignment]
    armature: Array = None  # type: ignore[assignment]
    dh: DHTable | None = None
    frames: Mapping[str, Frame] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    coordinates: tuple[CoupledCoordinate | Quaternion, ...] = ()
    elements: Mapping[str, Element] = field(default_factory=dict)
    actuation: Actuation | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__.__get__(self)
        set_field("name", check_name("`name` of a model", self.name))
        set_field("joints", as_tuple("joints", self.joints, "Joint objects such as revolute('z')"))
        n = len(self.joints)
        if n == 0:
            raise ModelError(f"model {shown(self.name)} has no joints; expected at least one")
        for joint in self.joints:
            if not isinstance(joint, Joint):
                raise ModelError(f"`joints` holds {shown(joint)}; expected Joint objects such as revolute('z')")
        set_field("joint_names", check_names("joint_names", self.joint_names, n))
        set_field("link_names", check_names("link_names", self.link_names, n))
        set_field("topology", Topology(self.parents, names=self.joint_names))
        set_field("parents", self.topology.parents)
        if len(self.parents) != n:
            raise ModelError(f"`parents` has {len(self.parents)} entries; the model has {n} joints")
        for what in ("placement", "tip"):
            given = as_tuple(what, getattr(self, what), f"{n} transforms of shape (4, 4)")
            if len(given) != n:
                raise ModelError(f"`{what}` has {len(given)} transforms; expected {n}")
            named = zip(self.joint_names, given, strict=True)
            set_field(what, frozen(np.array([check_transform(f"`{what}` of joint {shown(j)}", T) for j, T in named])))
        set_field("gravity", frozen(numbers("gravity", self.gravity, (3,))))
        defaults = {"position_limits": (-np.inf, np.inf), "velocity_limits": np.inf, "effort_limits": np.inf}
        for what, shape in (PER_LINK | PER_JOINT).items():
            value = getattr(self, what)
            if value is None:
                value = np.broadcast_to(np.asarray(defaults.get(what, 0.0)), (n, *shape))
            elif what in PER_JOINT:
                default = defaults.get(what, 0.0)
                value = spread(what, value, self.joint_names, self.name, core=shape, default=default)
            set_field(what, frozen(numbers(what, value, (n, *shape), finite=not what.endswith("limits"))))
        bodies = zip(self.mass, self.com, self.inertia, self.link_names, strict=True)
        checked = [check_inertia(m, c, about_c, where=f"link {shown(link)}")[2] for m, c, about_c, link in bodies]
        set_field("inertia", frozen(np.array(checked)))
        check_joint_numbers(self)
        if self.dh is not None:
            set_field("dh", self._own_rows(self.dh))
        set_field("frames", check_frames(self.frames, self.link_names, self.name))
        set_field("shapes", check_shapes(self.shapes, (*self.link_names, *self.frames), self.name))
        set_field("coordinates", check_coordinates(self, self.coordinates))
        if self.coordinates:
            check_coordinate_names(self.layout.coordinate_names)
        set_field("elements", check_elements(self, self.elements))
        if self.actuation is not None:
            set_field("actuation", Actuation.of(self.actuation, self.speed_names, self.name))

    topology: Topology = field(init=False, compare=False)

    def _own_rows(self, table: Any) -> DHTable | None:
        if not isinstance(table, DHTable) or len(table.rows) != self.n:
            found = f"has {len(table.rows)} rows" if isinstance(table, DHTable) else f"is {shown(table)}"
            raise ModelError(f"`dh` {found}; expected a DHTable of {self.n} rows")
        return table.placing(self.joints, self.placement, self.tip)

    @classmethod
    def from_dh(
        cls,
        rows: Iterable[DH | Sequence[float]],
        *,
        parents: ArrayLike | None = None,
        branches: tuple[ArrayLike, ArrayLike] | None = None,
        convention: str = "distal",
        name: str = "mechanism",
        joint_names: Sequence[str] | None = None,
        link_names: Sequence[str] | None = None,
        inertias: Sequence[Inertia | None] | None = None,
        **fields: Any,
    ) -> Model:
        """A model from a Denavit–Hartenberg table.

        Parameters
        ----------
        rows : iterable of DH, or of (theta, d, a, alpha)
            Angles in rad, lengths in m; plain tuples are revolute joints.
        parents : array_like of int, shape (n,), optional
            The topology as a parent vector Υ (0-based, −1 for the world).
        branches : (phi, psi), optional
            The topology as branch parents Φ, shape (b,), and first and last joint of each branch Ψ, shape (b, 2),
            0-based.  Without either, the rows are one chain.
        convention : {"distal", "proximal"}
            Where the link frame sits: at the far end of the link, or at the joint (Craig).
        inertias : sequence of Inertia or None, length n, optional
            In link frames; None is a massless virtual link.
        **fields
            Any further field of :class:`Model`, such as ``gravity``, ``damping``, ``effort_limits``.  Numbers of
            joints are one for all, one for each, or by name.

        Warns
        -----
        UnitsWarning
            Where angles look like degrees.

        Examples
        --------
        >>> arm = Model.from_dh([(0, 0, 0.4, 0), (0, 0, 0.4, 0)], name="two-link arm", damping={"joint0": 2.0})
        >>> arm.n, arm.topology.branch_joints.tolist(), arm.damping.tolist()
        (2, [[0, 1]], [2.0, 0.0])
        """
        _check_fields(fields, _FIELDS - _OF_ROWS)
        found = fields_of_rows(rows, parents, branches, convention, inertias)
        warn_of_degrees(found["dh"].rows)
        n = len(found["joints"])
        return cls(
            name=name,
            joint_names=joint_names if joint_names is not None else tuple(f"joint{i}" for i in range(n)),  # type: ignore[arg-type]
            link_names=link_names if link_names is not None else tuple(f"link{i}" for i in range(n)),  # type: ignore[arg-type]
            **found,
            **fields,
        )

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of joints, and of links."""
        return len(self.joints)

    @property
    def nq(self) -> int:
        """Number of coordinates q."""
        return self.layout.nq if self.coordinates else len(self.joints)

    @property
    def nv(self) -> int:
        """Number of speeds v, accelerations a and torques τ."""
        return self.layout.nv if self.coordinates else len(self.joints)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates q, as many as `nq`."""
        return self.layout.coordinate_names if self.coordinates else self.joint_names

    @property
    def speed_names(self) -> tuple[str, ...]:
        """Names of the speeds v, as many as `nv`."""
        return self.layout.speed_names if self.coordinates else self.joint_names

    @cached_property
    def layout(self) -> Layout:
        """Where each coordinate, speed and joint is."""
        return Layout(self)

    @cached_property
    def primitive(self) -> Model:
        """The same mechanism with every joint its own coordinate, n of each, and driven by itself."""
        return dataclasses.replace(self, coordinates=(), actuation=None) if self.coordinates else self

    @cached_property
    def without_elements(self) -> Model:
        """The same mechanism without force elements between its links."""
        return dataclasses.replace(self, elements={}) if self.elements else self

    @cached_property
    def pattern(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows and columns, by speeds, where ∂τ/∂q and ∂τ/∂v can differ from zero: those of one path from a root, and
        those on the way between the two links of an element."""
        rows, cols = self.layout.pattern if self.coordinates else self.topology.pattern
        return with_ways(self, rows, cols) if self.elements else (rows, cols)

    # --- what drives it -----------------------------------------------------------------------------------------

    @property
    def nu(self) -> int:
        """Number of actuators."""
        return self.nv if self.actuation is None else len(self.actuation.names)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the actuators, as many as `nu`."""
        return self.speed_names if self.actuation is None else self.actuation.names

    def torques(self, u: ArrayLike) -> Array:
        """τ = S u, the torques (..., nv) of controls u, (..., nu): the `tau` of forward dynamics.

        S is ``model.actuation.matrix``, so that the derivatives of accelerations with respect to controls are
        ``da_dtau @ model.actuation.matrix``.

        >>> from kinegrad.samples import cart_pendulum
        >>> cart_pendulum().replace(actuation=["track"]).torques([2.0])
        array([2., 0.])
        """
        return torques(self, u)

    def controls(self, tau: ArrayLike) -> Array:
        """Controls u, (..., nu), that cause the torques τ, (..., nv); where there are several, the smallest ones.

        Raises
        ------
        InputError
            If no controls do, as where a coordinate is not driven and its torque is not zero.

        Examples
        --------
        >>> from kinegrad.samples import cart_pendulum
        >>> cart_pendulum().replace(actuation=["track"]).controls([2.0, 0.0])
        array([2.])
        """
        return controls(self, tau)

    # ------------------------------------------------------------------------------------------------------------

    @property
    def carries_slopes(self) -> bool:
        """Whether it was made from numbers that carry slopes, inside a function that is being differentiated."""
        numbers = (getattr(self, what) for what in _FIELDS)
        varies = any(isinstance(x, np.ndarray) and np.iscomplexobj(x) for x in numbers)
        varies = varies or any(np.iscomplexobj(frame.placement) for frame in self.frames.values())
        varies = varies or np.iscomplexobj(element_numbers(self))
        return varies or any(isinstance(joint.pitch, complex) for joint in self.joints)

    @property
    def total_mass(self) -> float:
        """Mass of all links together, kg."""
        return float(self.mass.sum())

    def joint_index(self, name: str) -> int:
        """The number of the joint called `name`."""
        return find_name("joint", name, self.joint_names, self.name)

    def coordinate_index(self, name: str) -> int:
        """The position in q of the coordinate called `name`."""
        return find_name("coordinate" if self.coordinates else "joint", name, self.coordinate_names, self.name)

    def speed_index(self, name: str) -> int:
        """The position in v of the speed called `name`."""
        return find_name("speed" if self.coordinates else "joint", name, self.speed_names, self.name)

    def link_index(self, name: str) -> int:
        """The number of the link called `name`."""
        if self.frames and isinstance(name, str) and name in self.frames:
            found = f"{shown(name)} is a frame in link {shown(self.frames[name].link)} of model {shown(self.name)}"
            raise InputError(f"{found}; expected a link, see Model.frame")
        return find_name("link", name, self.link_names, self.name)

    def frame(self, name: str) -> Frame:
        """The frame called `name`; of a link, its own.

        >>> from kinegrad.samples import two_link
        >>> arm = two_link().replace(frames={"grip": Frame("forearm", [0.05, 0, 0])})
        >>> arm.frame("grip"), arm.frame("forearm")
        (Frame('forearm' at (0.05, 0, 0)), Frame('forearm' at (0, 0, 0)))
        """
        i, placement = self.locate(name)
        return Frame(self.link_names[i]) if placement is None else self.frames[name]

    def locate(self, name: str) -> tuple[int, Array | None]:
        """The number of a link, and None; of a frame, that of its link, and where the frame is in it, (4, 4)."""
        if not self.frames:
            return find_name("link", name, self.link_names, self.name), None
        frame = self.frames.get(name) if isinstance(name, str) else None
        if frame is None:
            return find_name("link or frame", name, (*self.link_names, *self.frames), self.name), None
        return self.link_names.index(frame.link), frame.placement

    def link_inertia(self, name: str) -> Inertia:
        """Mass, centre of mass and inertia of the link called `name`."""
        i = self.link_index(name)
        return Inertia(self.mass[i], self.com[i], self.inertia[i])

    # --- copies, comparison -------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Model:
        """A copy with some fields changed.

        An array field also takes a dictionary from link or joint names to new values.  `frames`, `shapes` and
        `elements` are replaced as a whole: ``model.replace(frames={**model.frames, "tool": Frame("hand")})`` adds one.
        ``inertia={"hand": Inertia(…)}`` replaces whole bodies, with their masses and centres of mass.

        >>> from kinegrad.samples import two_link
        >>> heavier = two_link().replace(mass={"forearm": 1.5}, gravity=(0, 0, 0))
        >>> heavier.mass.tolist()
        [0.5, 1.5]
        """
        _check_fields(changes, _FIELDS)
        if "joints" in changes:
            changes["joints"] = as_tuple("joints", changes["joints"], "Joint objects such as revolute('z')")
            if len(changes["joints"]) != self.n:
                changes.setdefault("dh", None)  # another mechanism
        bodies = changes.get("inertia")
        if isinstance(bodies, Mapping) and any(isinstance(body, Inertia) for body in bodies.values()):
            changes |= bodies_by_name(self, bodies, changes)
        for what, value in changes.items():
            if isinstance(value, Mapping) and what not in ("frames", "elements", "actuation"):
                changes[what] = updated(self, what, value)
        return dataclasses.replace(self, **changes)

    def attach(
        self, link: str, mass: float | Inertia, *, point: ArrayLike | None = None, inertia: ArrayLike | None = None
    ) -> Model:
        """A copy with a body welded to a link: a box in the hands, a tool on a flange.

        Parameters
        ----------
        link : str
            The link, or a frame fixed in one.
        mass : float or Inertia
            kg, zero or more; an :class:`Inertia`, in the frame of that link, is the whole body.
        point : array_like, shape (3,), optional
            Its centre of mass in the frame of that link, m; without it, the frame's origin.
        inertia : array_like, shape (3, 3), optional
            About its centre of mass, along the axes of that frame, kg·m²; without it, a point mass.

        Returns
        -------
        Model
            With the exact mass, centre of mass and inertia of both bodies together.

        Examples
        --------
        >>> from kinegrad.samples import two_link
        >>> loaded = two_link().attach("forearm", 1.5)
        >>> loaded.mass.tolist(), loaded.link_inertia("forearm").com.round(12).tolist()
        ([0.5, 2.0], [-0.05, 0.0, 0.0])
        """
        return dataclasses.replace(self, **attached(self, link, mass, point, inertia))  # type: ignore[arg-type]

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        values = (getattr(self, what) for what in _FIELDS)
        # + 0.0 makes −0 and 0 the same bytes, as they are the same number
        plain = (frozenset(v.items()) if isinstance(v, Mapping) else v for v in values)
        return tuple((v + 0).tobytes() if isinstance(v, np.ndarray) else v for v in plain)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {what: getattr(self, what) for what in _FIELDS}
        return _rebuild, (type(self), values | {"frames": dict(self.frames), "elements": dict(self.elements)})

    def __repr__(self) -> str:
        return summary(self)


_FIELDS = {f.name: None for f in dataclasses.fields(Model) if f.init}.keys()
_OF_ROWS = {"joints", "placement", "tip", "mass", "com", "inertia", "dh"}  # what `from_dh` finds by itself


def _check_fields(given: Iterable[str], known: Collection[str]) -> None:
    for what in given:
        if what in _FIELDS and what not in known:
            raise InputError(f"`{what}` follows from `rows` and `inertias`; expected it there")
        if what not in known:
            found = f"`{shown(what)[1:-1]}` is not a field of Model"
            raise InputError(f"{found}; expected one of {', '.join(sorted(known))}")


def _rebuild(cls: type[Model], values: dict[str, Any]) -> Model:
    return cls(**values)
