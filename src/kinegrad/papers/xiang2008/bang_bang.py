"""The least time of example 1 of [xiang2008] without splines: torques at their limits, switched at times to be found.

Pontryagin's principle: where the time is least, each torque is at a limit but for the instants at which it changes its
sign.  With three switches t₁ of the shoulder and t₂ < t₃ of the elbow there are four unknowns with T, and four
conditions, θ(T) and θ̇(T) = 0.  Motions with fewer switches do not get there, and the other order of signs takes
0.4547 s.  Newton's method on an integration to 1e-12 then gives T to ten digits: what splines approach from above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import SolveError
from kinegrad.papers.xiang2008.closed_form import ClosedForm

__all__ = ["BangBang", "bang_bang"]

Array = NDArray[np.float64]
START, END = (0.0, -2.0), (1.0, -1.0)
GUESS = (0.2, 0.05, 0.24, 0.4)  # s: of the shoulder, twice of the elbow, T
LIMIT = 10.0  # N·m


@dataclass(frozen=True)
class BangBang:
    """Switching times of shoulder and elbow and the final time, s; what is left of the conditions there."""

    shoulder: float
    elbow: tuple[float, float]
    final_time: float
    residual: float


def bang_bang(closed: ClosedForm | None = None) -> BangBang:
    """Find the switches.

    Examples
    --------
    >>> round(bang_bang().final_time, 8)
    0.39185454
    """
    from scipy.optimize import root

    arm = closed or ClosedForm()
    found = root(lambda x: _missed(arm, x), GUESS, method="hybr", tol=1e-13)
    x, left = found.x, float(np.abs(found.fun).max())
    if left > 1e-9 or not 0 < x[1] < x[2] < x[3]:
        raise SolveError(f"the switching times were not found: {left:.1e} rad or rad/s are left of the conditions")
    return BangBang(float(x[0]), (float(x[1]), float(x[2])), float(x[3]), left)


def _missed(arm: ClosedForm, x: Array) -> Array:
    """θ and θ̇ at T less what they are to be."""
    from scipy.integrate import solve_ivp

    state, time = np.array([*START, 0.0, 0.0]), 0.0
    tau = LIMIT * np.array([1.0, -1.0])
    switches = sorted([(x[0], 0), (x[1], 1), (x[2], 1)])
    for until, joint in [*switches, (x[3], None)]:
        if until > time:
            piece = solve_ivp(
                _rates, (time, until), state, args=(arm, tau.copy()), method="DOP853", rtol=1e-12, atol=1e-13
            )
            state, time = piece.y[:, -1], until
        if joint is not None:
            tau[joint] *= -1
    missed: Array = state - np.array([*END, 0.0, 0.0])
    return missed


def _rates(_: float, state: Array, arm: ClosedForm, tau: Array) -> Array:
    q, v = state[:2], state[2:]
    a = np.linalg.solve(arm.mass_matrix(q), tau - arm.torques(q, v, np.zeros(2)))
    return np.concatenate([v, a])
