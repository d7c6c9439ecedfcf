"""Build a model joint by joint, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import ModelError, shown
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
            The link it is attached to; None is the world.
        joint : Joint or sequence of Joint
            ``revolute("x")``, ``spherical("zyx")``, ``free()``, …
        link : str, optional
            The link's name; the joint's name without it.
        placement : array_like, shape (4, 4) or (3,), optional
            P: the joint's frame in the parent's link frame; three numbers are a shift.
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
        above = -1 if parent is None else find_name("link", parent, column["link_names"], self._name)
        single = len(primitives) == 1
        names = [name] if single else [f"{name}.{p.label or k}" for k, p in enumerate(primitives)]
        for taken, new in (("joint_names", names), ("link_names", [*names[:-1], link])):
            for label in new:
                if label in column[taken]:
                    found = f"{taken[:-6]} {shown(label)} is in model {shown(self._name)} already"
                    raise ModelError(f"{found}; choose another name")
        values = {what: self._numbers(name, what, numbers.pop(what, default), len(primitives))
                  for what, default in _NUMBERS.items()}  # fmt: skip
        if numbers:
            unknown = shown(next(iter(numbers)))[1:-1]
            raise ModelError(f"`{unknown}` of {shown(name)} is unknown; expected one of {', '.join(_NUMBERS)}")
        eye = np.eye(4)
        P = eye if placement is None else check_transform(f"`placement` of joint {shown(name)}", placement)
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
            mass=np.array([body.mass for body in bodies]),
            com=np.array([body.com for body in bodies]),
            inertia=np.array([body.inertia for body in bodies]),
            **fields,  # type: ignore[arg-type]
        )
