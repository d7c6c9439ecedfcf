"""More segments where a solution is not good enough between its nodes.

A spline on halved segments can be every spline on the whole ones, so a solution is carried over exactly, forces
linearly, and the next solve begins next to its own solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.between import fine_instants, phases_outside
from kinegrad.motion.problem.clearances import too_near
from kinegrad.motion.problem.program import MotionProgram

if TYPE_CHECKING:
    from kinegrad.motion.problem.problem import MotionProblem
    from kinegrad.motion.problem.solution import MotionSolution

Array = NDArray[np.float64]
NEARBY = {  # IPOPT's, for a start that is nearly a solution: half of the iterations
    "mu_init": 1e-4, "bound_push": 1e-5, "bound_frac": 1e-5, "slack_bound_push": 1e-5, "slack_bound_frac": 1e-5,
}  # fmt: skip


def refined(problem: MotionProblem, solution: MotionSolution, tolerances: Mapping[str, float]) -> MotionProblem:
    """The same problem with halved segments in those phases that are not good enough.

    Where a point is too near to an obstacle, only segments there are halved, and the instants are added at which it is.
    """
    program, x = problem.program, solution.x
    bad = phases_outside(program, x, tolerances)
    phases = []
    for p, phase in enumerate(problem.phases):
        near = too_near(program, p, x, fine_instants(phase), tolerances)
        edges = phase.basis.breakpoints
        if phase.name in bad:
            edges = phase.basis.refined().breakpoints
        elif len(near):
            which = np.unique(np.clip(np.searchsorted(edges, near, side="right") - 1, 0, len(edges) - 2))
            edges = np.sort(np.concatenate([edges, (edges[which] + edges[which + 1]) / 2]))
        if len(edges) > len(phase.basis.breakpoints) or len(near):
            phase = replace(phase, segments=edges, clear_at=np.union1d(phase.clear_at, near))
        phases.append(phase)
    return problem.replaced(phases=phases)


def carried(old: MotionProgram, x: Array, new: MotionProgram) -> Array:
    """Unknowns of the finer program for the motion of the coarser one."""
    y = np.clip(np.zeros(new.n), new.x_lower, new.x_upper)
    for p, (before, after) in enumerate(zip(old.parts.variables.phases, new.parts.variables.phases, strict=True)):
        points = np.where(before.points >= 0, x[before.points], before.values)
        coarse, fine = old.parts.phases[p].basis, new.parts.phases[p].basis
        moved = points if coarse == fine else coarse.carried(points, fine)
        there = after.points >= 0
        y[after.points[there]] = moved[there]
        if after.duration >= 0:
            y[after.duration] = x[before.duration]
        known = after.parameters >= 0
        y[after.parameters[known]] = x[before.parameters[known]]
        here, there_nodes = old.parts.parts[p].nodes, new.parts.parts[p].nodes
        for w in range(new.parts.variables.forces[p].shape[1]):
            y[new.parts.variables.forces[p][:, w]] = np.interp(
                there_nodes, here, x[old.parts.variables.forces[p][:, w]]
            )
    return np.asarray(np.clip(y, new.x_lower, new.x_upper))
