"""Loads that rest on the ground until they are lifted.

A mass that a link carries from some phase on is held by nobody before: if it is on the ground, the ground carries it
until it leaves.  So its point stays where it is for a phase, with an unknown force F of the ground on it,

    F_n ≥ 0,    |F_t| ≤ μ F_n by a pyramid,    F = 0 where the phase ends and the load is lifted                     (1)

and from then on without a force, and not below its place.  Force and height are complementary: in each phase one of
them is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.constraints.descriptions import Contact
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.places import Above
from kinegrad.motion.problem.requirements import Phase, Requirement, check_interval

__all__ = ["Rests"]


@dataclass(frozen=True, eq=False)
class Rests(Requirement):
    """A load that the ground carries while a phase lasts, and that is lifted at its end.

    The point stays in its place, with an unknown force of the ground at every node that pushes, within friction, and
    is zero at the end of the phase if the link carries the load on.  In the phases that follow, the point does not
    come below its place.  The link has to carry a mass in the phase: ``Phase(attached=…)``.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one, that carries the load.
    at : array_like, shape (3,)
        Where the load rests, world, m.
    phase : str
        Name of the phase in which the load rests.
    point : array_like, shape (3,)
        Point of the load that touches the ground, in the frame of the link, m.
    friction : float
        Coefficient μ between load and ground.
    faces : int
        Number of faces of the friction pyramid, at least 3.
    normal : array_like, shape (3,), optional
        Normal of the ground, world; against gravity by default.

    Examples
    --------
    >>> Rests("grip", (0.42, 0.0, 0.30), "take").friction
    0.6
    """

    link: str
    at: ArrayLike
    phase: str
    point: ArrayLike = (0.0, 0.0, 0.0)
    friction: float = 0.6
    faces: int = 4
    normal: ArrayLike | None = None
    size = None  # of a sole: none, a point

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise InputError(f"`link` of Rests is {shown(self.link)}; expected the name of a link or frame")
        if not isinstance(self.phase, str):
            raise InputError(f"`phase` of Rests is {shown(self.phase)}; expected the name of a phase")
        where = f"Rests({self.link!r})"
        if isinstance(self.faces, bool) or not isinstance(self.faces, int | np.integer) or not 3 <= self.faces <= 64:
            raise InputError(f"`faces` of {where} is {shown(self.faces)}; expected a whole number from 3 to 64")
        self._set(
            at=tuple(checks.vector(f"at of {where}", self.at).tolist()),
            point=tuple(checks.vector(f"point of {where}", self.point).tolist()),
            friction=checks.number(f"friction of {where}", self.friction, least=0.0, above=True),
        )
        if self.normal is not None:
            self._set(normal=tuple(checks.direction(f"normal of {where}", self.normal).tolist()))
        check_interval(self)


def resting_contact(one: Rests, axes: Any) -> Contact:
    """The point held in its place, by rows across the ground and along its normal."""
    return Contact(one.link, one.point, directions=np.ascontiguousarray(axes.T), other_point=one.at)


def is_carried(model: Model, phase: Phase, link: str) -> bool:
    """Return True if the body of a link or frame carries a mass in a phase."""
    return any(model.locate(other)[0] == model.locate(link)[0] for other in phase.attached)


def lifted(model: Model, phases: Sequence[Phase], requirements: Sequence[Any], p: int, one: Rests) -> bool:
    """Return True if a load that rests in phase p is lifted at its end."""
    if p + 1 == len(phases) or not is_carried(model, phases[p + 1], one.link):
        return False
    after = phases[p + 1].name
    return not any(isinstance(x, Rests) and x.phase == after and x.link == one.link for x in requirements)


def with_floors(model: Model, phases: Sequence[Phase], requirements: Sequence[Any]) -> tuple[Any, ...]:
    """Requirements, and clearances of loads from their places after they were lifted."""
    names, found = [phase.name for phase in phases], list(requirements)
    for one in requirements:
        if not isinstance(one, Rests):
            continue
        if one.phase not in names:
            raise InputError(f"`phase` of Rests is {shown(one.phase)}; the phases are {', '.join(map(repr, names))}")
        p = names.index(one.phase)
        if not is_carried(model, phases[p], one.link):
            raise InputError(f"Rests({one.link!r}) is about phase {one.phase!r}, in which that link carries nothing; "
                             "expected Phase(attached=…) with the load")  # fmt: skip
        height = float(np.dot(one.normal, one.at))  # type: ignore[arg-type]
        while lifted(model, phases, requirements, p, one):
            p += 1
            found.append(Above(one.link, height, one.point, one.normal, phase=names[p]))
    return tuple(found)


def sudden_loads(phases: Sequence[Phase], requirements: Sequence[Any]) -> list[str]:
    """Sentences about masses that a link carries from one instant to the next."""
    notes = []
    for before, phase in pairwise(phases):
        for link, (mass, _) in phase.attached.items():
            rests = any(isinstance(one, Rests) and one.phase == phase.name for one in requirements)
            if mass > 0 and link not in before.attached and not rests:
                notes.append(
                    f"phase {phase.name!r} begins with {mass:g} kg on {link}, which nothing carried before, so that it "
                    f"may fall; if it lies on the ground, add Rests({link!r}, …) for a phase before it is lifted"
                )
    return notes
