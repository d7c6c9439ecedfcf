"""Whether a decay that has long ended holds back the steps of an explicit integrator: stiffness.

The last two stages of a step of DOP853 and of RK45 are both at its end, at near points y and y′ with rates f and f′.
Where the law is stiff, they differ along the direction of its fastest decay, so that with d = y − y′, g = f − f′

    h |λ| ≈ h |g| / |d|,    and    −d·g / (|d| |g|) ≈ 1,                                                          (1)

the latter because λ is real and negative: of an oscillation it is about zero.  The test of [hairer1996] IV.2 waits for
h |λ| to be at the boundary of stability, 6.1 or 3.25; at tight tolerances error control stops the step somewhat before,
as it sees the decay about to come back.  Here it is 0.4 of the boundary, where a smooth motion of that rate would still
be followed with longer steps, for many steps in a row, and (1) tells a decay from an oscillation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["StiffnessWatch", "stiff_method"]

BOUNDARY = {"DOP853": 6.1, "RK45": 3.25}
NEAR = 0.4  # of the boundary
DECAY = 0.7  # of (1)
STIFF = 25  # steps near the boundary, without as many as
CALM = 6  # away from it in a row


class StiffnessWatch:
    """Counts steps at the boundary of stability.

    Examples
    --------
    A damper of 1000 1/s makes steps of some 6 ms the longest that are stable, though the motion has long ended:

    >>> from scipy.integrate import DOP853
    >>> solver, watch = DOP853(lambda t, y: -1000.0 * y, 0.0, [1.0], 1.0), StiffnessWatch()
    >>> while solver.status == "running" and not watch.stiff:
    ...     _ = solver.step()
    ...     watch.look(solver)
    >>> watch.stiff, bool(solver.t < 0.5)
    (True, True)
    """

    def __init__(self) -> None:
        self.at, self.below, self.stiff = 0, 0, False

    def look(self, solver: Any) -> None:
        """After a step."""
        boundary = BOUNDARY.get(type(solver).__name__)
        if boundary is None or self.stiff or solver.t_old is None:
            return
        stages, h = solver.n_stages, solver.t - solver.t_old
        last = solver.y_old + h * (solver.K[: stages - 1].T @ solver.A[stages - 1, : stages - 1])
        d, g = solver.y - last, solver.K[stages] - solver.K[stages - 1]
        with np.errstate(all="ignore"):
            apart, change = np.linalg.norm(d), np.linalg.norm(g)
            near = h * change > NEAR * boundary * apart > 0 and -(d @ g) > DECAY * apart * change
        if near:
            self.at, self.below = self.at + 1, 0
            self.stiff = self.at >= STIFF
        else:
            self.below += 1
            if self.below >= CALM:
                self.at = 0


def stiff_method(*, constrained: bool, sensitivities: bool) -> str:
    """What takes over: LSODA, which also finds its way back; with constraints or many slopes Radau.

    >>> stiff_method(constrained=False, sensitivities=True)
    'Radau'
    """
    return "Radau" if constrained or sensitivities else "LSODA"
