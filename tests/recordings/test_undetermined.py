"""Coordinates that markers do not determine: filled in, their error bars those of what is not known, said by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.io import Markers
from kinegrad.recordings import Analysis, analyze_recording, inverse_kinematics
from kinegrad.recordings.undetermined import filled_gaps, null_projection
from tests.recordings.synthetic_walk import SyntheticWalk, synthetic_walk

FOOT = ("ankle_angle_r", "subtalar_angle_r")
GAPS = pytest.mark.filterwarnings("ignore:markers do not determine:kinegrad.RecordingWarning")


def hidden(markers: Markers, beginning: str, first: int, end: int) -> Markers:
    """Markers of a body that are not seen in some frames."""
    x = markers.position.copy()
    x[first:end, [name.startswith(beginning) for name in markers.names]] = np.nan
    return replace(markers, position=x)


def analyzed(walk: SyntheticWalk, markers: Markers, **options: object) -> Analysis:
    found = inverse_kinematics(walk.model, markers)
    return analyze_recording(
        walk.model, found.t, found.q, plates=walk.plates, lowpass=6, kinematics=found, marker_error=0.001, mass_error=0,
        length_error=0, **options,
    )  # fmt: skip


@GAPS
@pytest.mark.parametrize("first", [25, pytest.param(55, marks=pytest.mark.slow), 80])
def test_a_hidden_foot(first: int) -> None:
    """No marker of a foot for 0.3 s of a walk: bars were 0.2 N·m, where moments were wrong by ten times that.

    Within two bars are 95 % of normal errors; the largest of some hundreds is within four.
    """
    walk = synthetic_walk()
    model, markers = walk.model, walk.noisy()
    exact = analyze_recording(model, walk.motion.t, walk.motion.q, plates=walk.plates, lowpass=6).tau
    seen, lost = analyzed(walk, markers), analyzed(walk, hidden(markers, "calcn_r", first, first + 30))
    legs = [k for k, name in enumerate(model.speed_names) if name.endswith("_r")]
    rows, t = np.arange(first, first + 30), walk.motion.t
    off = np.abs(lost.tau - exact)[np.ix_(rows, legs)] / lost.errors.measured[np.ix_(rows, legs)]
    assert np.mean(off < 2) > 0.9
    assert off.max() < 4
    wider = lost.errors.measured[rows][:, legs].max(axis=0) / seen.errors.measured[rows][:, legs].max(axis=0)
    assert wider.max() > 2  # or nothing was tested
    far = np.abs(t - t[first + 15]) > 0.5
    assert np.abs(lost.errors.measured[far] / seen.errors.measured[far] - 1).max() < 0.1
    said = [f"'{name}' from {t[first]:.4g} to {t[first + 29]:.4g} s" for name in FOOT]
    assert all(any(text in warning for warning in lost.warnings) for text in said)
    assert seen.warnings == ()


def test_gaps_and_what_fills_them() -> None:
    """A cubic through what is known on both sides, held at the ends, without touching other coordinates."""
    walk = synthetic_walk()
    model, t = walk.model, walk.motion.t
    first, end = 40, 55
    found = inverse_kinematics(model, hidden(walk.markers, "calcn_r", first, end))
    assert found.success
    assert sorted(found.gaps) == [(name, t[first], t[end - 1]) for name in FOOT]
    assert sorted(found.undetermined) == sorted(FOOT)
    foot = [model.speed_index(name) for name in FOOT]
    rest = [k for k in range(model.nv) if k not in foot]
    assert np.abs(found.q - walk.motion.q)[:, rest].max() < 1e-7
    assert np.abs(found.q - walk.motion.q)[:, foot].max() < 0.05
    assert np.isinf(found.covariance[first:end, foot, foot]).all()
    assert np.isfinite(found.covariance[:first]).all()
    late = inverse_kinematics(model, hidden(walk.markers, "calcn_r", 100, 121))
    assert np.abs(late.q[100:, foot] - late.q[99, foot]).max() < 1e-12
    s = np.arange(20) / 100
    x, lost = s[:, None] ** 2 - 3 * s[:, None], (np.arange(20) // 3 == 3)[:, None]
    assert np.abs(filled_gaps(s, np.where(lost, 7.0, x), lost) - x).max() < 1e-12


def test_what_no_marker_depends_on_together() -> None:
    """Three hinges and one marker: a combination of angles; against the null space of the Jacobian."""
    builder = kg.ModelBuilder("chain")
    for k in range(3):
        parent = f"link{k - 1}" if k else None
        builder.add(f"j{k}", parent, kg.revolute("z"), link=f"link{k}", placement=[0.3 * bool(k), 0, 0],
                    inertia=kg.Inertia.rod(1.0, [0, 0, 0], [0.3, 0, 0]))  # fmt: skip
    builder.add_frame("tip", "link2", [0.3, 0, 0])
    model = builder.build()
    q = np.array([[0.3, 0.5, -0.4], [0.1, 0.2, 0.3]])
    J = kg.jacobian(model, q, link="tip").linear
    P = null_projection(model, J.transpose(0, 2, 1) @ J)
    assert np.abs(J @ P).max() < 1e-12
    assert np.abs(np.trace(P, axis1=1, axis2=2) - 1).max() < 1e-12


@GAPS
def test_never_determined() -> None:
    """By its limits, or by what is known of it beforehand: bars grow with it."""
    walk = synthetic_walk(61)
    foot = hidden(walk.noisy(), "calcn_r", 0, 61)
    found = inverse_kinematics(walk.model, foot)
    assert (found.q[:, [walk.model.speed_index(name) for name in FOOT]] == 0).all()
    without = analyzed(walk, foot)
    assert any("'ankle_angle_r' from 0 to 0.6 s: its errors there are taken to be 1 rad" in x for x in without.warnings)
    j = walk.model.speed_index("ankle_angle_r")
    small, large = (analyzed(walk, foot, prior=dict.fromkeys(FOOT, x)).errors.measured[:, j] for x in (0.1, 0.2))
    assert (large > small).all()
    assert (without.errors.measured[:, j] > large).all()
    with pytest.raises(InputError, match="is -1; expected a standard deviation above zero"):
        analyzed(walk, foot, prior={"ankle_angle_r": -1})
    with pytest.raises(InputError, match="did you mean 'ankle_angle_r'"):
        analyzed(walk, foot, prior={"ankle_angle_": 1.0})


def test_missing_coordinates() -> None:
    """Positions that are NaN for 0.15 s, not of markers: filled in, said, and their bars cover what that does."""
    walk = synthetic_walk(81)
    options = {"plates": walk.plates, "lowpass": 6, "coordinate_error": 1e-4, "mass_error": 0, "length_error": 0}
    j, rows = walk.model.speed_index("knee_angle_r"), slice(20, 35)
    q = walk.motion.q.copy()
    exact = analyze_recording(walk.model, walk.motion.t, q, **options)
    q[rows, j] = np.nan
    with pytest.warns(
        kg.RecordingWarning, match="missing and filled in is 'knee_angle_r' from 0.2 to 0.34 s: its errors"
    ):
        lost = analyze_recording(walk.model, walk.motion.t, q, **options)
    off = np.abs(lost.tau - exact.tau)[rows]
    assert (off[:, j] < 3 * lost.errors.measured[rows, j]).all()
    assert lost.errors.measured[rows, j].max() > 2 * exact.errors.measured[rows, j].max()
