"""Terms of the objective as functions at nodes, with the weights of their integrals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.functions import Powers, SmoothPower, Squares, User
from kinegrad.motion.problem.instants import quadrature
from kinegrad.motion.problem.nodes import Block
from kinegrad.motion.problem.requirements import Limits
from kinegrad.motion.problem.terms import Acceleration, Effort, Follow, Jerk, Posture, Power, Time, UserTerm
from kinegrad.motion.problem.variables import phase_numbers

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]


def effort_limits(parts: Transcription, p: int) -> tuple[Array, Array]:
    """Of actuators in a phase."""
    lower, upper = parts.actuators.lower.copy(), parts.actuators.upper.copy()
    for one in parts.requirements:
        if not isinstance(one, Limits) or one.tau is None:
            continue
        names = parts.actuators.names
        found = checks.limits_of("tau of Limits", one.tau, names, parts.model.name, "actuator")
        if p in phase_numbers(parts.phases, one.phase, "Limits"):
            for i, (low, high) in found.items():
                lower[i], upper[i] = max(lower[i], low), min(upper[i], high)
                if lower[i] > upper[i]:
                    raise InputError(f"limits of tau of {shown(names[i])} are crossed")
    return lower, upper


def term_blocks(parts: Transcription, p: int, layout: Any, s: Array, nodes: int) -> list[Block]:
    """Integrals over a phase."""
    blocks = []
    for term in parts.terms:
        if isinstance(term, Time) or p not in phase_numbers(parts.phases, term.phase, type(term).__name__):
            continue
        function = _function(parts, term, p, layout, s)
        steps = isinstance(term, Jerk) and parts.phases[p].degree == 3
        weights = quadrature(parts.phases[p], nodes, steps=steps)
        blocks.append(Block(function, weights=term.weight * weights, label=type(term).__name__))
    return blocks


def _function(parts: Transcription, term: Any, p: int, layout: Any, s: Array) -> Any:
    model, u = parts.model, parts.actuators
    if isinstance(term, Effort):
        weights = _factors(parts, term, u.names, "actuator", 0.0)
        if term.relative:
            lower, upper = effort_limits(parts, p)
            size = np.maximum(np.abs(lower), np.abs(upper))
            if np.isinf(size[weights != 0]).any():
                k = int(np.argmax(np.isinf(size) & (weights != 0)))
                raise InputError(f"Effort(relative=True) needs a limit for every actuator, and {shown(u.names[k])} "
                                 "has none; give it one with Limits(tau=…)")  # fmt: skip
            weights = weights / np.where(np.isfinite(size), np.maximum(size, 1e-300), 1.0) ** 2
        rows, columns = np.nonzero(u.E)
        return Squares("effort", rows, columns + layout.tau.start, u.E[rows, columns], weights)
    if isinstance(term, Power):
        return SmoothPower("power", Powers(u.names, layout, u.E, u.S), term.smoothing)
    if isinstance(term, UserTerm):
        return User(term.name, layout, term.function, s)
    order = {Acceleration: 2, Jerk: 3}.get(type(term), 0)
    weights = _factors(parts, term, model.coordinate_names, "coordinate", 0.0)
    target = None
    if isinstance(term, Posture):
        given = checks.per_name("q of Posture", term.q, model.coordinate_names, model.name)
        target = np.array([checks.number("q of Posture", given.get(i, 0.0)) for i in range(model.nv)])
        weights = weights * np.array([i in given for i in range(model.nv)])
    if isinstance(term, Follow):
        motion = term.motion
        if len(parts.phases) > 1 and term.phase is None:
            raise InputError("Follow has no `phase`, and there are several; expected the one that its motion lasts")
        if motion.coordinate_names != model.coordinate_names or motion.q.ndim != 2:
            raise InputError(f"`motion` of Follow is {motion!r}; expected one of the coordinates of {model.name!r}")
        t = motion.t[0] + s * (motion.t[-1] - motion.t[0])
        t[-1] = motion.t[-1]
        target = motion(t).q
    number = np.arange(model.nv)
    return Squares(type(term).__name__.lower(), number, number + order * layout.nv, np.ones(model.nv), weights, target)


def _factors(parts: Transcription, term: Any, names: tuple[str, ...], kind: str, missing: float) -> Array:
    what = f"by of {type(term).__name__}"
    given = checks.per_name(what, term.by, names, parts.model.name, kind)
    return np.array([checks.number(what, given[i], least=0.0) if i in given else missing for i in range(len(names))])
