"""What is known of postures that are given where phases begin and end: said before anything is solved.

A point that is nearer to an obstacle there than it may be stays so, whatever the motion is.

Where all of q is given and v = 0, the torques that hold the body there follow from q alone, τ = inverse dynamics of
(q, 0, 0).  If they exceed their limits, the body can pass through that posture and cannot stay in it: a fact worth
knowing, since solvers take long to fail with such motions.  Where a = 0 is asked for as well, there is no motion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinegrad.dynamics import inverse_dynamics
from kinegrad.errors import InputError
from kinegrad.motion.problem.functions import SquaredDistance
from kinegrad.motion.problem.term_functions import effort_limits

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]
TOUCH = 1e-6  # of a limit: what a solver's tolerance gives away


def check_rates(parts: Transcription) -> None:
    """Refuse speeds and accelerations at ends of phases that limits exclude, or that lead out of the range of q."""
    for (p, end, order, k), (low, high) in parts.conditions.items():
        if order == 0 or (parts.soft is not None and (p, end) == (0, 0)):
            continue
        lower, upper = parts.limits[p][order].get(k, (-np.inf, np.inf))
        name = parts.model.coordinate_names[parts.where.leaders[k]]
        asked = (
            f"{'qva'[order]} of {name!r} is asked to be {_between(low, high)} at the {('start', 'end')[end]} of phase "
            f"{parts.phases[p].name!r}"
        )
        if low > upper + TOUCH * abs(upper) or high < lower - TOUCH * abs(lower):
            or_measured = ", or measured=True of that Boundary" if (p, end) == (0, 0) else ""
            limits = f"its limits are {_between(lower, upper)}"
            raise InputError(f"{asked}, and {limits}; expected what is within them{or_measured}")
        at, (least, most) = parts.conditions.get((p, end, 0, k)), parts.limits[p][0].get(k, (-np.inf, np.inf))
        if order == 1 and at is not None and at[0] == at[1] and least < most:
            outwards = (-high, low) if end == 0 else (low, -high)  # below the range, above it
            if (at[0] <= least and outwards[0] > TOUCH) or (at[0] >= most and outwards[1] > TOUCH):
                where = f"q = {at[0]:.4g} there is a limit of its range, {_between(least, most)}"
                raise InputError(f"{asked}, but {where}, which it would leave; expected another speed or place")


def _between(lower: float, upper: float) -> str:
    return f"{lower:.4g}" if lower == upper else f"from {lower:.4g} to {upper:.4g}"


def torques_at_rest(parts: Transcription) -> list[str]:
    """Sentences about ends where limits of torques do not hold the body; refuse those where it must stay."""
    found: list[str] = []
    for p, part in enumerate(parts.parts):
        if part.forced is not None or part.design is not None or len(parts.actuators.N):
            continue  # forces of contacts, parameters or accelerations are unknown there
        lower, upper = effort_limits(parts, p)
        for end, name in enumerate(("start", "end")):
            q = given_posture(parts, p, end)
            if q is None or not _given_zero(parts, p, end, 1):
                continue
            zero = np.zeros(part.model.nv)
            u = parts.actuators.E @ inverse_dynamics(part.model, q, zero, zero, loads=part.phase.loads)
            with np.errstate(invalid="ignore", divide="ignore"):
                excess = np.maximum(u / np.where(u > 0, upper, lower), 0.0)
            k = int(np.nanargmax(np.where(u == 0, 0.0, excess)))
            if not excess[k] > 1 + TOUCH:
                continue
            limit = upper[k] if u[k] > 0 else lower[k]
            motor = parts.actuators.names[k]
            unit = "N" if _slides(parts, motor) else "N·m"
            takes = (
                f"to rest at the {name} of phase {part.phase.name!r} takes {u[k]:.4g} {unit} of {motor}, "
                f"and its limit is {limit:.4g} {unit}"
            )
            if _given_zero(parts, p, end, 2) and not (parts.soft is not None and (p, end) == (0, 0)):
                raise InputError(f"{takes}, but v = 0 and a = 0 are asked for there; expected a stronger actuator, "
                                 "another posture, or no condition on a")  # fmt: skip
            found.append(f"{takes}: the body can pass there, but not stay")
    return found


def check_clear(parts: Transcription) -> None:
    """Refuse postures, given at ends of phases, in which points are where they must not be."""
    for grid in parts.grids:
        if grid.name != "clearance":
            continue
        p = next(k for k, here in enumerate(parts.variables.phases) if here is grid.variables)
        if parts.parts[p].design is not None:
            continue
        for end, name in enumerate(("start", "end")):
            q = given_posture(parts, p, end)
            if q is None or end not in grid.s:
                continue
            y = grid.mechanics.values(grid.layout, q[None])
            for block in grid.rows:
                assert block.lower is not None
                found, least = float(block.function.value(y)[0, 0]), float(block.lower[0, 0])
                if not found < least - TOUCH:
                    continue
                row, d = block.function.names[0], getattr(block.function, "distance", None)
                if d is not None:
                    found, least, row = d * float(np.sqrt(found)), d, row.removesuffix(SquaredDistance.UNIT)
                raise InputError(
                    f"{row} is at {found:.4g} m in the posture that is given for the {name} of phase "
                    f"{parts.phases[p].name!r}, and {least:.4g} m is the least; expected another posture, or `during` "
                    "without that instant"
                )


def given_posture(parts: Transcription, p: int, end: int) -> Array | None:
    """All coordinates at an end of a phase, where they are given."""
    where, q = parts.where, np.array(parts.where.offset, dtype=float)
    for i in np.flatnonzero(where.spline >= 0):
        lower, upper = parts.conditions.get((p, end, 0, int(where.spline[i])), (-np.inf, np.inf))
        if lower != upper:
            return None
        q[i] += where.sign[i] * lower
    return q


def _given_zero(parts: Transcription, p: int, end: int, order: int) -> bool:
    """Whether a derivative of all splines is zero at an end of a phase."""
    return all(parts.conditions.get((p, end, order, k)) == (0.0, 0.0) for k in range(parts.where.count))


def _slides(parts: Transcription, actuator: str) -> bool:
    kinds = dict(zip(parts.model.speed_names, parts.model.layout.speed_kinds, strict=True))
    return kinds.get(actuator) == "prismatic"
