"""Recordings: inverse dynamics and inverse kinematics beside OpenSim, processor time for each frame

Two walkers with spline knees, written for the run: 16 coordinates and 21 markers, 68 and 81, errors of 3 mm; no muscles
and no geometry, so that OpenSim has nothing else to do.  OpenSim from Python, in its leanest loops:
`InverseDynamicsSolver.solve` over states, `InverseKinematicsSolver.track` over frames, with its own accuracy; and its
InverseDynamicsTool, filter and force plates included, which goes from files to a file and has no other way.  kinegrad
works on the whole recording of 1000 frames at once, on one thread, and goes on to the minimum, above which OpenSim
stops.  Times are those of one frame.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from benchmarks.timing import Comparison, Row, Timing
from kinegrad import inverse_dynamics, point_motion, set_threads
from kinegrad.io import Markers, write_trc
from kinegrad.io.storage_file import StorageTable, read_storage, write_storage
from kinegrad.recordings import force_plates, inverse_kinematics, motion_from_positions
from kinegrad.recordings.opensim_filter import motion_as_opensim

FRAMES, FEW = 1000, 25  # of ours; of OpenSim's loops, which take each frame by itself
START = {"ty": 0.95}


def run(repeats: int) -> list[Row]:
    import opensim as osim

    from benchmarks.opensim_models import large_walker, walker

    osim.Logger.setLevelString("Off")
    set_threads(1)
    rows: list[Row] = []
    for make in (walker, large_walker):
        with tempfile.TemporaryDirectory() as folder:
            rows += _rows(osim, make(Path(folder, "m.osim")), Path(folder), repeats)
    return rows


def _rows(osim: Any, file: Any, folder: Path, repeats: int) -> list[Row]:
    """Of one model."""
    from tests.peers.test_opensim_recordings import motion

    model, t = file.model, np.arange(FRAMES) / 128  # exact in binary: OpenSim asks for equal steps to the last bit
    q = 0.6 * motion(file, t)
    q[:, model.coordinate_index("ty")] += 0.4 * 0.95
    moved = motion_from_positions(model, t, q, lowpass=6)
    x = point_motion(model, q, link=list(file.markers.values())).position
    markers = Markers(t, tuple(file.markers), x + 0.003 * np.random.default_rng(0).normal(size=x.shape))
    write_trc(folder / "m.trc", markers)
    theirs = osim.Model(str(folder / "m.osim"))
    state = theirs.initSystem()
    dynamics = osim.InverseDynamicsSolver(theirs)
    reference = osim.MarkersReference(str(folder / "m.trc"), osim.SetMarkerWeights())
    tracker = osim.InverseKinematicsSolver(theirs, reference, osim.SimTKArrayCoordinateReference(), float("inf"))
    vectors = [[osim.Vector.createFromMat(row) for row in rows[:FEW]] for rows in (moved.q, moved.v, moved.a)]

    def solve() -> None:
        for a, b, c in zip(*vectors, strict=True):
            state.setQ(a)
            state.setU(b)
            theirs.realizeVelocity(state)
            dynamics.solve(state, c)

    def track() -> None:
        state.setTime(0.0)
        tracker.assemble(state)
        for time in t[1:FEW]:
            state.setTime(float(time))
            tracker.track(state)

    size = f"{model.nv} coordinates"

    def ours() -> Any:
        return inverse_dynamics(model, moved.q, moved.v, moved.a)

    def fit() -> Any:
        return inverse_kinematics(model, markers, start=START)

    rows: list[Row] = [_compare(f"τ, {size}", "InverseDynamicsSolver", ours, solve, FEW, 50, max(repeats, 10))]
    memory, files, tool = _tool(osim, file, folder, t, q)
    few = min(repeats, 5)
    rows.append(_compare(f"τ of positions and plates, {size}", "InverseDynamicsTool", memory, tool, FRAMES, 50, few))
    rows.append(_compare(f"the same, files to file, {size}", "InverseDynamicsTool", files, tool, FRAMES, None, few))
    name = f"q of {len(file.markers)} markers, {size}"
    rows.append(_compare(name, "InverseKinematicsSolver", fit, track, FEW, 100, min(repeats, 10)))
    return rows


def _tool(osim: Any, file: Any, folder: Path, t: Any, q: Any) -> tuple[Callable[[], Any], ...]:
    """Torques of filtered positions with force plates: ours in memory, ours and OpenSim's from files to a file."""
    from tests.peers.test_opensim_recordings import forces

    model, names = file.model, file.model.coordinate_names
    turns = [file.motion_types[name] == "rotational" for name in names]
    write_storage(folder / "q.mot", StorageTable(t, names, np.where(turns, np.rad2deg(q), q), True))
    forces(folder, np.arange(-5, int(128 * t[-1]) + 10) / 128)
    if "calcn_r" not in model.link_names:
        loads = folder / "grf.xml"
        loads.write_text(loads.read_text().replace("calcn_", "foot_"))

    def theirs() -> None:
        tool = osim.InverseDynamicsTool()  # one that has run cannot run again
        tool.setModelFileName(str(folder / "m.osim"))
        tool.setCoordinatesFileName(str(folder / "q.mot"))
        tool.setExternalLoadsFileName(str(folder / "grf.xml"))
        tool.setLowpassCutoffFrequency(6.0)
        tool.setStartTime(float(t[0]))
        tool.setEndTime(float(t[-1]))
        tool.setResultsDir(str(folder))
        tool.setOutputGenForceFileName("theirs.sto")
        if not tool.run():
            raise RuntimeError("OpenSim's InverseDynamicsTool has failed")

    plates = force_plates.read_external_loads(folder / "grf.xml")

    def torques(t: Any, q: Any, plates: Any) -> tuple[Any, Any]:
        moved = motion_as_opensim(model, t, q, lowpass=6.0)
        loads = force_plates.plate_loads(model, moved.q, [plate.at(moved.t) for plate in plates])
        return moved.t, inverse_dynamics(model, moved.q, moved.v, moved.a, loads=loads)

    def files() -> None:
        table = read_storage(folder / "q.mot")
        given, _, _ = table.coordinates(model, motion_types=file.motion_types)
        times, tau = torques(table.t, given, force_plates.read_external_loads(folder / "grf.xml"))
        write_storage(folder / "ours.sto", StorageTable(times, model.speed_names, tau))

    return lambda: torques(t, q, plates), files, theirs


def _compare(
    name: str,
    against: str,
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    frames: int,
    target: float | None,
    repeats: int,
) -> Comparison:
    """Processor time of this thread for a frame, in turn; ours takes all frames, the peer so many."""
    seconds: tuple[list[float], list[float]] = ([], [])
    ours()
    peer()
    for _ in range(repeats):
        for function, count, found in ((ours, FRAMES, seconds[0]), (peer, frames, seconds[1])):
            began = thread_time()
            function()
            found.append((thread_time() - began) / count)
    return Comparison(name, against, Timing.of(seconds[0]), Timing.of(seconds[1]), target, None)
