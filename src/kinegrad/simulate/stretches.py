"""An integration with error control, stretch by stretch: one law governs each, and an event that changes it is its end.

After each step the state is drawn onto the constraints, if there are any, and the rate there takes the place of the
integrator's.  Events are found in the interpolation of the step; a step in which one happens ends there, and the next
stretch begins with the state and the law that the event leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import OdeSolution

from kinegrad.errors import SingularError, SolveError
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.crossings import turn_rate
from kinegrad.simulate.law import Law, diverged
from kinegrad.simulate.rank import RankWatch, watch_rank
from kinegrad.simulate.stiffness import StiffnessWatch
from kinegrad.simulate.track import Stretch, Track, jacobian_of, pack, rate_of, slopes_of, state_of
from kinegrad.simulate.unfinished import WITHOUT_END
from kinegrad.simulate.watch import Watched

__all__ = ["Integration", "Switching"]

Array = NDArray[np.float64]
CALM = 1e-9  # part of the whole time that has to be between events,
MOST = 100  # or else there may be so many


class Switching(Protocol):
    """What finds events and says what follows."""

    def begin(self, t: float, y: Array) -> tuple[Law, Array]:
        """The law and the state at the start of the motion."""

    def find(self, law: Law, piece: Callable[[Any], Array], first: float, last: float) -> Any:
        """The first event between two times of a step, or None; it has a time `t`."""

    def follow(self, event: Any, law: Law, y: Array) -> tuple[Law, Array]:
        """The law and the state after it."""


class Integration:
    """One integration; :meth:`run` makes its track.

    Parameters
    ----------
    law : Law
        At the start.
    span : (float, float)
    integrator : type
        One of SciPy's.
    options : dict
        Of it.
    exact : bool
        Whether to give it the exact Jacobian; `sparse` is its form.
    speed_limit, most
        Of :func:`simulate`.
    switching : Switching, optional
    stiff : (type, dict, str), optional
        What takes over where the law turns out to be stiff: integrator, options, and its name.  Without it, that is
        only said.
    """

    def __init__(
        self, law: Law, span: tuple[float, float], integrator: Any, options: dict[str, Any], *, exact: bool,
        sparse: bool, speed_limit: float, most: int | None, switching: Switching | None = None,
        stiff: tuple[Any, dict[str, Any], str] | None = None,
    ) -> None:  # fmt: skip
        self.law, self.span, self.switching, self.speed_limit = law, span, switching, speed_limit
        self.integrator, self.options = integrator, dict(options)
        self.stiff, self.stiffness, self.stiff_from = stiff, StiffnessWatch(), ""
        self.watched = Watched(lambda t, y: rate_of(self.law, t, y), law, span, most)
        if exact:
            self.options["jac"] = self._jacobian(sparse)
        self.stretches: list[Stretch] = []
        self.taken_over: tuple[float, Array] | None = None
        self.ranks: RankWatch | None = None
        self.status, self.trouble, self.counts, self.restless = 0, "", np.zeros(3, int), 0

    def _jacobian(self, sparse: bool) -> Callable[[float, Array], Any]:
        return self.watched.guard(lambda t, y: jacobian_of(self.law, t, y, sparse=sparse))

    def run(self, y: Array, tell: Callable[[float], None]) -> Track:
        """From y at the start of the span to its end, or as far as it goes."""
        t = self.span[0]
        if self.switching is not None:
            self.law, y = self.switching.begin(t, y)
        while True:
            event = self._stretch(t, y, tell)
            if event is None and self.taken_over is not None:
                t, y = self.taken_over
                continue
            if event is None or self.switching is None:
                break
            calm = event.t - t > CALM * (self.span[1] - self.span[0])
            self.restless = 0 if calm else self.restless + 1
            t = event.t
            stretch = self.stretches[-1]
            at = self._drawn(t, stretch(np.array([t]))[0]) if len(stretch.edges) > 1 else stretch.start
            try:
                self.law, y = self.switching.follow(event, self.law, at)
            except SolveError as error:
                self.status, self.trouble = -2, f"given up at t = {t:.6g} s: {error}"
                break
            if self.restless > MOST:
                self.status = -2
                self.trouble = (
                    f"given up at t = {t:.6g} s: contacts open and close {MOST} times in no time; {WITHOUT_END}"
                )
            if self.trouble or not t < self.span[1]:
                self.stretches.append(Stretch(self.law, np.array([t]), y, None))
                break
        track = Track(self.stretches)
        nfev, njev, steps = self.counts.tolist()
        track.report = {
            "success": not self.trouble, "status": self.status,
            "message": (self.trouble or "reached the end") + self.stiff_from,
            "nfev": nfev, "njev": njev, "steps": steps,
        }  # fmt: skip
        return track

    def _stretch(self, t: float, y: Array, tell: Callable[[float], None]) -> Any:
        """Integrate until an event, which is returned, or the end."""
        watched, edges, pieces, event = self.watched, [t], [], None
        self.taken_over, self.ranks = None, watch_rank(self.law, self.law.whole(t, *state_of(self.law, y))[0])
        solver = watched.unlimited(self.integrator, watched.rate, t, y, self.span[1], **self.options)
        while solver.status == "running" and not self.trouble and event is None:
            if not self._step(solver) or not self._draw(solver):
                break
            piece = watched.unlimited(solver.dense_output)
            if self.switching is not None:
                event = self.switching.find(self.law, piece, edges[-1], float(solver.t))
            end = float(solver.t) if event is None else event.t
            dependent = self._look(piece, edges[-1], end)
            if dependent is not None:
                event, (end, self.trouble), self.status = None, dependent, -2
            edges.append(end)
            pieces.append(piece)
            tell(edges[-1])
            if event is None and not self.trouble and not self.stiff_from and self._is_stiff(solver):
                break
        if len(edges) > 1 and edges[-1] == edges[-2]:  # an event where the stretch begins
            edges.pop(), pieces.pop()
        self.stretches.append(Stretch(self.law, np.array(edges), y, OdeSolution(edges, pieces) if pieces else None))
        self.counts += solver.nfev, solver.njev, len(pieces)
        return event

    def _step(self, solver: Any) -> bool:
        """One step of the integrator; whether there is one.  Near a posture of lower rank that is why there is none."""
        try:
            self.status, self.trouble = self.watched.step(solver, self.speed_limit)
        except SingularError:
            if self._posture(solver) is None:
                raise
            self.status, self.trouble = -2, "singular"
        if self.trouble:
            self.trouble = self._posture(solver) or self.trouble
        return not self.trouble

    def _look(self, piece: Callable[[Any], Array], first: float, last: float) -> tuple[float, str] | None:
        """When the constraints reach a posture of lower rank in a step, and a sentence."""
        if self.ranks is None or not last > first:
            return None
        law = self.law

        def whole(t: Array) -> tuple[Array, Array]:
            states = map(law.whole, t.tolist(), *state_of(law, piece(t).T))
            q, v = (np.array(x) for x in zip(*states, strict=True))
            return q, v

        def path(t: Array) -> Array:
            return whole(t)[0][:, None]

        rate = float(turn_rate(law.model, *whole(np.array([first, last]))).max())
        return self.ranks.look(path, first, last, rate).get(0)

    def _posture(self, solver: Any) -> str | None:
        """A sentence if an integrator is near a posture of lower rank."""
        if self.ranks is None or not np.isfinite(solver.y).all():
            return None
        q, _ = self.law.whole(float(solver.t), *state_of(self.law, solver.y))
        return self.ranks.say(float(solver.t), q, 0) if self.ranks.near(q) else None

    def _is_stiff(self, solver: Any) -> bool:
        """Look whether stability holds the steps back; whether another integrator takes over because of that."""
        self.stiffness.look(solver)
        if not self.stiffness.stiff:
            return False
        when, slow = f"stiff from t = {solver.t:.4g} s on", type(solver).__name__
        if self.stiff is None or solver.status != "running":
            self.stiff_from = f"; {when}, where {slow} takes short steps: 'auto', 'LSODA' or 'Radau' would be faster"
            return False
        self.integrator, options, name = self.stiff
        self.options = dict(options)
        if self.options.pop("exact", False):
            self.options["jac"] = self._jacobian(name != "LSODA")
        self.stiff_from = f"; {when}, where {name} took over from {slow}"
        self.taken_over = float(solver.t), solver.y.copy()
        return True

    def _draw(self, solver: Any) -> bool:
        """Draw the state of an integrator onto the constraints; whether that succeeded."""
        if not (isinstance(self.law, ConstrainedLaw) and self.law.projects):
            return True
        try:
            solver.y = self._drawn(solver.t, solver.y)
        except SolveError as error:
            v = state_of(self.law, solver.y)[1]
            self.status, self.trouble = -1, diverged(self.law.model, solver.t, v, str(error))
            return False
        solver.f = self.watched.unlimited(self.watched.rate, solver.t, solver.y)
        return True

    def _drawn(self, t: float, y: Array) -> Array:
        """Any y drawn onto the constraints."""
        law = self.law
        if not (isinstance(law, ConstrainedLaw) and law.projects):
            return y
        q, v = law.drawn(*law.whole(t, *state_of(law, y)))
        if law.design is None:
            return np.concatenate([q[law.free_q], v[law.free]])
        slopes = law.drawn_slopes(q, v, *law.whole_slopes(t, *slopes_of(law, y)))
        return pack(q[law.free_q], v[law.free], *(x[law.free] for x in slopes))
