"""A walk, through OpenSim's InverseDynamicsTool and InverseKinematicsSolver and through kinegrad, filters included."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.io.opensim import OpenSimFile, read
from kinegrad.io.storage_file import StorageTable, read_storage, write_storage
from kinegrad.io.trc_file import Markers, write_trc
from kinegrad.recordings import force_plates
from kinegrad.recordings.inverse_kinematics import inverse_kinematics
from kinegrad.recordings.opensim_filter import motion_as_opensim
from tests.io.opensim.files import J, constant, linear, new_layout, spline

osim = pytest.importorskip("opensim")
osim.Logger.setLevelString("Off")
osim.Logger.removeFileSink()

X = "-2.1 -1.2 -0.5 -0.35 -0.17 0.16 2.1"
ROOT = {
    "rotation1": ("tilt", "0 0 1", linear()), "rotation2": ("list", "1 0 0", linear()),
    "rotation3": ("turn", "0 1 0", linear()), "translation1": ("tx", "1 0 0", linear()),
    "translation2": ("ty", "0 1 0", linear()), "translation3": ("tz", "0 0 1", linear()),
}  # fmt: skip


def knee(name: str) -> dict[str, tuple[str, str, str]]:
    return {
        "rotation1": (name, "0 0 1", linear()),
        "rotation2": ("", "0 1 0", constant(0.0)),
        "rotation3": ("", "1 0 0", constant(0.0)),
        "translation1": (name, "1 0 0", spline(X, "-0.003 0.002 0.004 0.004 0.002 -0.005 -0.005")),
        "translation2": (name, "0 1 0", spline(X, "-0.42 -0.41 -0.40 -0.398 -0.397 -0.395 -0.396")),
    }


FLAT = ("0 0 0", "0 0 0")
MARKER = (
    '<Marker name="{0}{1}"><socket_parent_frame>/bodyset/{0}</socket_parent_frame><location>{2}</location></Marker>'
)


def walker(path: Path) -> OpenSimFile:
    joints = [J("CustomJoint", "pelvis", "ground", tuple(x for x, _, _ in ROOT.values()), ROOT, FLAT, FLAT)]
    for side, z in (("r", 0.08), ("l", -0.08)):
        joints += [
            J("GimbalJoint", f"femur_{side}", "pelvis", (f"hip1{side}", f"hip2{side}", f"hip3{side}"), {},
              (f"-0.07 -0.06 {z}", "0 0 0"), FLAT, mass="8"),
            J("CustomJoint", f"tibia_{side}", f"femur_{side}", (f"knee{side}",), knee(f"knee{side}"), FLAT, FLAT, mass="3"),
            J("PinJoint", f"calcn_{side}", f"tibia_{side}", (f"ankle{side}",), {}, ("0 -0.43 0", "0 0 0"), FLAT, mass="1"),
        ]  # fmt: skip
    rng = np.random.default_rng(2)
    markers = "".join(
        MARKER.format(j.body, k, " ".join(f"{x:.3f}" for x in rng.uniform(-0.15, 0.15, 3)))
        for j in joints
        for k in range(3)
    )
    path.write_text(new_layout(joints, markers=markers), encoding="utf-8")
    return read(path)


def motion(file: OpenSimFile, t: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    q = sum(
        a * np.sin(2 * np.pi * f * t[:, None] + rng.uniform(0, 6, file.model.nq))
        for a, f in ((0.3, 1.1), (0.08, 2.7), (0.002, 21.0))
    )
    return q + np.where(np.array(file.model.coordinate_names) == "ty", 0.95, 0.0)


def forces(path: Path, t: np.ndarray) -> StorageTable:
    rng = np.random.default_rng(8)
    names, columns = [], []
    for side in ("r", "l"):
        wave = np.sin(2 * np.pi * 1.3 * t[:, None] + rng.uniform(0, 6, 9)) * [80, 300, 40, 0.1, 0.0, 0.1, 2, 9, 3]
        columns.append(wave + np.array([0, 400, 0, 0.2, 0, 0.1, 0, 0, 0]))
        names += [f"{side}_force_{what}{x}" for what in "vp" for x in "xyz"] + [f"{side}_torque_{x}" for x in "xyz"]
    table = StorageTable(t, tuple(names), np.hstack(columns), title="forces")
    write_storage(path / "grf.mot", table)
    parts = "".join(
        f'<ExternalForce name="{s}"><applied_to_body>calcn_{s}</applied_to_body><force_expressed_in_body>ground'
        "</force_expressed_in_body><point_expressed_in_body>ground</point_expressed_in_body>"
        f"<force_identifier>{s}_force_v</force_identifier><point_identifier>{s}_force_p</point_identifier>"
        f"<torque_identifier>{s}_torque_</torque_identifier></ExternalForce>"
        for s in ("r", "l")
    )
    (path / "grf.xml").write_text(
        f'<?xml version="1.0" encoding="UTF-8" ?><OpenSimDocument Version="40000"><ExternalLoads name="e"><objects>{parts}'
        "</objects><groups/><datafile>grf.mot</datafile></ExternalLoads></OpenSimDocument>"
    )
    return table


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("cutoff", [6.0, None])
def test_inverse_dynamics_tool(tmp_path: Path, uneven: bool, cutoff: float | None) -> None:
    """Within 1e-6 of the largest moment, forces at another rate included.  (Its files have 8 digits: 1e-8.)"""
    file = walker(tmp_path / "m.osim")
    t = np.arange(81) / 64  # exact in binary: OpenSim asks for equal steps to the last bit
    if uneven:
        t = np.sort(np.concatenate([t, [0.3, 0.55]]))
    q = motion(file, t)
    turns = [file.motion_types[name] == "rotational" for name in file.model.coordinate_names]
    write_storage(
        tmp_path / "q.mot", StorageTable(t, file.model.coordinate_names, np.where(turns, np.rad2deg(q), q), True)
    )
    forces(tmp_path, np.arange(-5, 140) / 100)
    tool = osim.InverseDynamicsTool()
    tool.setModelFileName(str(tmp_path / "m.osim"))
    tool.setCoordinatesFileName(str(tmp_path / "q.mot"))
    tool.setExternalLoadsFileName(str(tmp_path / "grf.xml"))
    tool.setLowpassCutoffFrequency(-1.0 if cutoff is None else cutoff)
    tool.setStartTime(float(t[0]))
    tool.setEndTime(float(t[-1]))
    tool.setResultsDir(str(tmp_path))
    tool.setOutputGenForceFileName("id.sto")
    assert tool.run()
    theirs = read_storage(tmp_path / "id.sto")
    given, _, _ = read_storage(tmp_path / "q.mot").coordinates(file.model, motion_types=file.motion_types)
    moved = motion_as_opensim(file.model, t, given, lowpass=cutoff)[: len(theirs.t)]
    assert len(theirs.t) >= len(t)  # resampled, its last time may be lost to rounding
    assert np.abs(moved.t - theirs.t).max() < 1e-7
    plates = [plate.at(moved.t) for plate in force_plates.read_external_loads(tmp_path / "grf.xml")]
    loads = force_plates.plate_loads(file.model, moved.q, plates)
    tau = kg.inverse_dynamics(file.model, moved.q, moved.v, moved.a, loads=loads)
    for i, name in enumerate(file.model.speed_names):
        column = next(c for c in theirs.names if c in (f"{name}_moment", f"{name}_force"))
        assert np.abs(theirs.column(column) - tau[:, i]).max() < 1e-6 * np.abs(theirs.values).max(), name


def test_inverse_kinematics_is_below_opensims(tmp_path: Path) -> None:
    """OpenSim stops a little above the minimum of the same cost; kinegrad is at it."""
    file = walker(tmp_path / "m.osim")
    model, t = file.model, np.arange(12) / 50
    names = tuple(file.markers)
    x = kg.point_motion(model, motion(file, t), link=list(file.markers.values())).position
    markers = Markers(t, names, x + 0.005 * np.random.default_rng(0).normal(size=x.shape))
    write_trc(tmp_path / "m.trc", markers)
    found = inverse_kinematics(model, markers, start={"ty": 0.95}, tolerance=1e-12)
    theirs = osim.Model(str(tmp_path / "m.osim"))
    state = theirs.initSystem()
    reference = osim.MarkersReference(str(tmp_path / "m.trc"), osim.SetMarkerWeights())
    solver = osim.InverseKinematicsSolver(theirs, reference, osim.SimTKArrayCoordinateReference(), float("inf"))
    solver.setAccuracy(1e-9)
    for k, time in enumerate(t):
        state.setTime(float(time))
        (solver.assemble if k == 0 else solver.track)(state)
        cost = 0.5 * sum(solver.computeCurrentSquaredMarkerError(name) for name in names)
        assert found.cost[k] <= cost * (1 + 1e-9)
        assert cost < found.cost[k] * 1.01  # the same problem


def test_headers_and_identifiers_as_opensim_reads_them(tmp_path: Path) -> None:
    """Labels count rather than nColumns; angles by a sentence; the three columns that begin with an identifier."""
    text = "x\nversion=1\nnRows=9\nnColumns=40\ninDegrees=yes\nendheader\ntime\ta\tb\n0\t1\t2\n0.1\t3\t4\n"
    (tmp_path / "a.sto").write_text(text)
    theirs = osim.TimeSeriesTable(str(tmp_path / "a.sto"))
    with pytest.warns(kg.RecordingWarning):
        ours = read_storage(tmp_path / "a.sto")
    assert (theirs.getColumnLabels(), theirs.getMatrix().to_numpy().tolist()) == (ours.names, ours.values.tolist())
    for said, degrees in (
        ("Angles are in degrees.", True),
        ("inDegrees=yes", True),
        ("version=1\ninDegrees=no", False),
    ):
        (tmp_path / "a.mot").write_text(f"x\nnRows=2\nnColumns=3\n{said}\nendheader\ntime\ta\tb\n0\t1\t2\n0.1\t3\t4\n")
        assert read_storage(tmp_path / "a.mot").in_degrees is degrees
        assert osim.Storage(str(tmp_path / "a.mot")).isInDegrees() is degrees
    walker(tmp_path / "m.osim")
    table = forces(tmp_path, np.arange(20) / 10)
    names = tuple(name.replace("force_v", "force_vector_").replace("torque_", "torque_about_") for name in table.names)
    write_storage(tmp_path / "grf.mot", StorageTable(table.t, names, table.values))
    plates = force_plates.read_external_loads(tmp_path / "grf.xml")
    model, loads = osim.Model(str(tmp_path / "m.osim")), osim.ExternalLoads(str(tmp_path / "grf.xml"), True)
    model.addModelComponent(loads)
    model.initSystem()
    for k, plate in enumerate(plates):
        force = loads.get(k)
        assert np.abs(force.getForceAtTime(0.5).to_numpy() - plate.force[5]).max() < 1e-9
        assert np.abs(force.getPointAtTime(0.5).to_numpy() - plate.point[5]).max() < 1e-9
        assert np.abs(force.getTorqueAtTime(0.5).to_numpy() - plate.torque[5]).max() < 1e-9
