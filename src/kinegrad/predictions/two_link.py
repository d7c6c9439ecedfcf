"""The two motions of the two-link arm of [xiang2008], and chains that move in the same way."""

from __future__ import annotations

import numpy as np

from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Inertia, Model, ModelBuilder, revolute
from kinegrad.motion.problem import Boundary, Effort, MotionProblem, Phase, Time
from kinegrad.samples import two_link

__all__ = ["LOAD", "WEIGHT", "chain", "chain_ends", "chain_model", "lifting", "time_optimal"]

LOAD, WEIGHT = 10.0, 0.01  # N that hang at the tip in example 2, and u of its (67)
WHOLE = {"length": 0.8, "mass": 1.0, "inertia": 0.2}  # both links of Table 1 together: m, kg, kg·m²
TORQUE = 10.0  # N·m, of each motor


def time_optimal(*, segments: int = 20, nodes: int = 2) -> MotionProblem:
    """Example 1 of [xiang2008], (66): from (0, −2) to (1, −1) in the least time, |τ| ≤ 10 N·m, without gravity.

    Parameters
    ----------
    segments : int
        Of the cubic splines; the paper says 20.
    nodes : int
        In each segment, where torques are limited: 1 is the knots alone.

    Examples
    --------
    >>> solution = time_optimal(nodes=1).solve()
    >>> round(solution.duration, 5)
    0.39266
    """
    return MotionProblem(
        two_link(gravity=(0, 0, 0)),
        Phase(duration=(0.05, 5.0), segments=segments, nodes=nodes),
        [Boundary("start", q=[0.0, -2.0], v=0.0), Boundary("end", q=[1.0, -1.0], v=0.0)],
        Time(),
    )


def lifting(*, segments: int = 20, nodes: int = 2, load: float = LOAD, weight: float = WEIGHT) -> MotionProblem:
    """Example 2 of [xiang2008], (68): a load hangs at the tip; time and squared torques count, (67).

    Parameters
    ----------
    segments, nodes : int
        As of :func:`time_optimal`.
    load : float
        N, downwards at the tip.
    weight : float
        u of (67): 0 is the least time.
    """
    return MotionProblem(
        two_link(),
        Phase(
            duration=(0.05, 5.0), segments=segments, nodes=nodes,
            loads=Loads(force={"forearm": [0.0, -load, 0.0]}),
        ),
        [Boundary("start", q=[1.32, -2.37], v=0.0), Boundary("end", q=[2.80, -2.37], v=0.0)],
        [Time(1.0 - weight), Effort(weight)],
    )  # fmt: skip


def chain(links: int = 5, *, segments: int = 20, nodes: int = 2, weight: float = WEIGHT) -> MotionProblem:
    """The arm cut into more links, which share its length, mass, inertia and the angle of its elbow; (67) without load.

    Parameters
    ----------
    links : int
        2 or more; two are the arm of the paper.
    segments, nodes : int
        As of :func:`time_optimal`.
    weight : float
        u of (67): 0 is the least time.
    """
    first, last = chain_ends(links)
    return MotionProblem(
        chain_model(links),
        Phase(duration=(0.05, 5.0), segments=segments, nodes=nodes),
        [Boundary("start", q=first, v=0.0), Boundary("end", q=last, v=0.0)],
        [Time(1.0 - weight), Effort(weight)] if weight else Time(),
    )


def chain_ends(links: int) -> tuple[list[float], list[float]]:
    """Where a chain starts and ends, rad.

    >>> chain_ends(2)
    ([0.0, -2.0], [1.0, -1.0])
    """
    if isinstance(links, bool) or not isinstance(links, int | np.integer) or links < 2:
        raise InputError(f"`links` is {links!r}; expected a whole number from 2 on")
    rest = int(links) - 1
    return [0.0] + [-2.0 / rest] * rest, [1.0] + [-1.0 / rest] * rest


def chain_model(links: int) -> Model:
    """Hinges about z between equal links along x, without gravity.

    >>> chain_model(2).mass.tolist()
    [0.5, 0.5]
    """
    chain_ends(links)
    builder = ModelBuilder(f"chain of {links} links", gravity=(0, 0, 0))
    L, inertia = WHOLE["length"] / links, WHOLE["inertia"] / links
    body = Inertia(WHOLE["mass"] / links, [-L / 2, 0, 0], np.diag([0, inertia, inertia]))
    parent = None
    for k in range(1, links + 1):
        joint, link = f"hinge{k}", f"link{k}"
        parent = builder.add(
            joint, parent, revolute("z"), link=link, tip=[L, 0, 0], inertia=body, effort_limits=TORQUE
        )  # fmt: skip
    return builder.build()
