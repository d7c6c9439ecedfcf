"""Recordings: inverse dynamics and inverse kinematics beside OpenSim, processor time for each frame

A walker of 16 coordinates with spline knees and 21 markers with errors of 3 mm, written for the run; OpenSim from
Python: `InverseDynamicsSolver.solve` in a loop over states, `InverseKinematicsSolver.track` over frames as it is.
kinegrad works on the whole recording at once, on one thread, and goes on to the minimum, above which OpenSim stops.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Case, Row, compare
from kinegrad import inverse_dynamics, point_motion, set_threads
from kinegrad.io import Markers, write_trc
from kinegrad.recordings import inverse_kinematics, motion_from_positions

FRAMES, TRACKED = 1000, 25


def run(repeats: int) -> list[Row]:
    import opensim as osim
    from tests.peers.test_opensim_recordings import motion, walker

    osim.Logger.setLevelString("Off")
    set_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.osim")
        file = walker(path)
        t = np.arange(FRAMES) / 100
        q = motion(file, t)
        moved = motion_from_positions(file.model, t, q, lowpass=6)
        x = point_motion(file.model, q, link=list(file.markers.values())).position
        x = x + 0.003 * np.random.default_rng(0).normal(size=x.shape)
        markers = Markers(t, tuple(file.markers), x)
        write_trc(Path(folder, "m.trc"), markers)
        model = osim.Model(str(path))
        state = model.initSystem()
        dynamics = osim.InverseDynamicsSolver(model)
        reference = osim.MarkersReference(str(Path(folder, "m.trc")), osim.SetMarkerWeights())
        tracker = osim.InverseKinematicsSolver(model, reference, osim.SimTKArrayCoordinateReference(), float("inf"))
        vectors = [[osim.Vector.createFromMat(row) for row in rows[:TRACKED]] for rows in (moved.q, moved.v, moved.a)]

        def theirs() -> None:
            for a, b, c in zip(*vectors, strict=True):
                state.setQ(a)
                state.setU(b)
                model.realizeVelocity(state)
                dynamics.solve(state, c)

        def track() -> None:
            state.setTime(0.0)
            tracker.assemble(state)
            for time in t[1:TRACKED]:
                state.setTime(float(time))
                tracker.track(state)

        begin = {"ty": 0.95}

        def shares(function: Any, count: int) -> Any:
            """The same for TRACKED frames: timings are those of as many."""
            return function, count / TRACKED

        whole = moved.q, moved.v, moved.a
        part = [np.tile(y[:TRACKED], (FRAMES // TRACKED, 1)) for y in whole]
        ours, many = shares(lambda: inverse_dynamics(file.model, *part), FRAMES)
        rows = compare(
            [Case("τ", ours, lambda: _again(theirs, many), "InverseDynamicsSolver, as many states", 50)], repeats
        )
        fit, many = shares(lambda: _nothing(inverse_kinematics(file.model, markers, start=begin)), FRAMES)
        peer = Case("q of markers", fit, lambda: _again(track, many), "InverseKinematicsSolver, as many frames", 100)
        return rows + compare([peer], min(repeats, 3))


def _again(function: Any, many: float) -> None:
    """As often as makes as many frames."""
    for _ in range(round(many)):
        function()


def _nothing(_: Any) -> None:
    """Results are compared in the tests, at the same tolerances."""
