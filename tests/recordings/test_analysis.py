"""Torques of recordings: their error bars against Monte Carlo, their sensitivities against differences, residuals."""

from __future__ import annotations

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.errors import InputError, SingularError
from kinegrad.io import Markers
from kinegrad.recordings import ForcePlate, analyze_recording, fit_design, fit_masses, inverse_kinematics
from kinegrad.recordings.analysis import root_speeds
from kinegrad.recordings.torque_errors import body_masses, bone_lengths
from tests.recordings.test_inverse_kinematics import leg, walk


def plates(model: kg.Model, t: np.ndarray, q: np.ndarray) -> list[ForcePlate]:
    at = kg.forward_kinematics(model, q).at(model, "shank").transform[:, :3, 3] + [0.0, 0.05, -0.3]
    force = np.stack([20 * np.sin(5 * t), 30 * np.cos(3 * t), 80 + 20 * np.sin(4 * t)], axis=-1)
    return [ForcePlate(t, force, at, 0.01 * force, link="shank")]


DOUBTED = pytest.mark.filterwarnings("ignore::kinegrad.RecordingWarning")  # plates that do not bear the leg


@pytest.mark.slow
@DOUBTED
@pytest.mark.parametrize("filter", ["butterworth", "opensim"])
def test_error_bars_of_markers_against_monte_carlo(filter: str) -> None:
    """Marker errors of 2 mm through inverse kinematics, filter and dynamics; the plate stays where it is in the world.

    150 samples know a standard deviation to 5.8 %; of 400 numbers the farthest is within 5 of those, and the mean of
    those of some 20 that are independent within 3 %.
    """
    model, names = leg()
    _, exact = walk(model, names, count=40)
    start = inverse_kinematics(model, exact)
    on = plates(model, exact.t, start.q)
    bars = analyze_recording(
        model, exact.t, start.q, lowpass=8, filter=filter, plates=on, kinematics=start, marker_error=0.002,
        mass_error=0.0, length_error=0.0,
    ).errors  # fmt: skip
    rng, count = np.random.default_rng(0), 150
    noisy = np.tile(exact.position, (count, 1, 1)) + 0.002 * rng.normal(size=(count * 40, len(names), 3))
    everything = Markers(np.arange(count * 40) / 100, tuple(names), noisy)
    q = inverse_kinematics(model, everything, start=start.q[0], tolerance=1e-8).q.reshape(count, 40, -1)
    tau = np.stack([analyze_recording(model, exact.t, x, lowpass=8, filter=filter, plates=on).tau for x in q])
    ratio = tau.std(axis=0) / bars.measured
    assert np.abs(ratio - 1).max() < 5 * 0.058
    assert abs(ratio.mean() - 1) < 0.03
    assert (bars.mass == 0).all()
    assert np.array_equal(bars.total, bars.measured)


def test_coordinate_errors_and_what_markers_show() -> None:
    model, names = leg()
    q, markers = walk(model, names, count=150, noise=0.004)
    found = inverse_kinematics(model, markers)
    assert found.marker_error == pytest.approx(0.004, rel=0.05)
    small, large = (
        analyze_recording(model, markers.t, q, lowpass=6, coordinate_error=e).errors.measured for e in (0.01, 0.02)
    )
    assert np.abs(large - 2 * small).max() < 1e-12 * large.max()
    assert (analyze_recording(model, markers.t, q, lowpass=6).errors.measured == 0).all()


@DOUBTED
def test_sensitivities_to_masses_and_lengths() -> None:
    """Central differences of the whole analysis, plates at their places in the world."""
    model, names = leg()
    q, markers = walk(model, names, count=30)
    on = plates(model, markers.t, q)
    found = analyze_recording(model, markers.t, q, plates=on)
    for design, slope in (
        (body_masses(model), found.errors.dtau_dmass),
        (bone_lengths(model), found.errors.dtau_dlength),
    ):
        assert design is not None
        for k in range(design.p):
            h = 1e-4
            up, down = (
                analyze_recording(
                    design.at(design.values + s * h * np.eye(design.p)[k]).model, markers.t, q, plates=on
                ).tau
                for s in (1, -1)
            )
            assert np.abs((up - down) / (2 * h) - slope[..., k]).max() < 1e-6 * np.abs(slope).max()
    relative = np.sqrt((found.errors.dtau_dmass**2).sum(axis=-1)) * 0.05
    assert np.abs(found.errors.mass - relative).max() < 1e-12


def test_residuals_and_masses_that_explain_them() -> None:
    """A leg that stands on a plate whose force is exactly right has none; wrong masses are found again."""
    model, names = leg()
    q, markers = walk(model, names, count=60)
    motion = analyze_recording(model, markers.t, q).motion
    M = kg.momentum(model, motion.q, motion.v)
    free = kg.inverse_dynamics(model, motion.q, motion.v, motion.a)  # with no load, all of it is at the root
    X = kg.forward_kinematics(model, motion.q)
    J = kg.jacobian(model, motion.q, link="pelvis")
    load = np.linalg.solve(np.concatenate([J.linear, J.angular], axis=1).transpose(0, 2, 1)[:, :6], free[:, :6, None])[
        ..., 0
    ]
    on = ForcePlate(markers.t, load[:, :3], X.at(model, "pelvis").transform[:, :3, 3], load[:, 3:], link="pelvis")
    right = analyze_recording(model, markers.t, q, plates=[on])
    assert right.residual_names == model.speed_names[:6]
    assert np.abs(right.residuals).max() < 1e-8 * np.abs(load).max()
    assert M.linear.shape == (60, 3)
    heavy = model.replace(mass={"thigh": 3.3}, inertia={"thigh": 1.1 * model.inertia[model.link_index("thigh")]})
    wrong = analyze_recording(heavy, markers.t, q, plates=[on])
    fitted = fit_masses(wrong, error=0.5, residual=(1e-3, 1e-3))
    assert fitted.change["thigh"] == pytest.approx(1 / 1.1 - 1, abs=1e-6)
    assert abs(fitted.change["pelvis"]) < 1e-6
    assert fitted.success
    assert fitted.force[1] < 1e-4 * fitted.force[0]
    assert fitted.moment[1] < 1e-4 * fitted.moment[0]
    sure = fit_masses(wrong, error=0.01, residual=(1e-3, 1e-3))
    assert not sure.success
    assert "the forces contradict the known mass of 'thigh'" in sure.message
    again = analyze_recording(fitted.model, markers.t, q, plates=[on])
    assert np.abs(again.residuals).max() < 1e-4 * np.abs(wrong.residuals).max()
    with pytest.raises(InputError, match="no residuals, or no force plates"):
        fit_masses(analyze_recording(model, markers.t, q))
    assert root_speeds(kg.samples.puma560()) == ()


def arm_with_frames(distal: bool) -> kg.Model:
    """Two rods of 0.4 m; with their frames at the joints, or at the far ends as Denavit and Hartenberg have them."""
    builder = kg.ModelBuilder("arm", gravity=(0, -9.81, 0))
    ends = ([-0.4, 0, 0], [0, 0, 0]) if distal else ([0, 0, 0], [0.4, 0, 0])
    shift = [0.4, 0, 0]
    rod, tip = kg.Inertia.rod(0.5, *ends), shift if distal else None
    builder.add("shoulder", None, kg.revolute("z"), link="upper", tip=tip, inertia=rod)
    builder.add(
        "elbow", "upper", kg.revolute("z"), link="fore", placement=None if distal else shift, tip=tip, inertia=rod
    )
    return builder.build()


def test_lengths_do_not_depend_on_where_frames_are() -> None:
    """The slopes of torques with respect to lengths, of one mechanism described in two ways."""
    t = np.arange(50) / 50
    q = np.outer(np.sin(3 * t), [0.5, 1.0])
    one, other = (analyze_recording(arm_with_frames(x), t, q, length_error=0.1).errors for x in (False, True))
    assert one.bone_names == other.bone_names == ("length of upper", "length of fore")
    np.testing.assert_allclose(one.dtau_dlength, other.dtau_dlength, rtol=0, atol=1e-12)
    assert (np.abs(one.dtau_dlength).max(axis=0) > 0.1)[0].all()


def test_labels() -> None:
    model, names = leg()
    q, markers = walk(model, names, count=30)
    data = analyze_recording(model, markers.t, q, lowpass=6).to_xarray()
    assert data["tau_error_total"].sel(speed="knee.rx").shape == (30,)
    assert data["dtau_dmass"].sel(mass_parameter="mass of thigh").shape == (30, 10)
    assert "Butterworth" in data.attrs["made"]


# --- scaling and motion in one problem --------------------------------------------------------------------------------


def test_lengths_offsets_and_motion_together() -> None:
    """The truth from exact markers; from noisy ones within the errors that are stated."""
    model, names = leg()
    bones = ["knee.ty.placement.z", "hip.z.placement.y", "shank2.placement.x", "thigh1.placement.z"]
    design = kg.Design(model, bones)
    values = design.values + np.array([0.03, -0.02, 0.02, -0.03])
    real = design.at(values).model
    _, markers = walk(real, names, count=60)
    found = fit_design(design, markers)
    assert found.success
    assert np.abs(found.design.values - values).max() < 1e-8
    assert found.kinematics.rms.max() < 1e-8
    _, noisy = walk(real, names, count=60, noise=0.003)
    found = fit_design(design, noisy)
    off = (found.design.values - values) / np.sqrt(np.diag(found.covariance))
    assert np.abs(off).max() < 4
    assert (np.diff(found.costs) <= 0).all()
    held = fit_design(design, noisy, known={design.names[0]: (float(values[0]), 1e-6)})
    assert held.design.values[0] == pytest.approx(values[0], abs=1e-8)


def test_combinations_are_reported_and_stay_known() -> None:
    """A number for both bones: its change, its error, and what is known of it count from the design that was given."""
    model, names = leg()
    both = {"knee.ty.placement.z": -0.4, "shank2.placement.z": -0.3}
    design = kg.Design(model, {"longer": both})
    _, markers = walk(design.at([0.05]).model, names, count=30, noise=0.003)
    found, alone = fit_design(design, markers), fit_design(kg.Design(model, ["knee.ty.placement.z"]), markers)
    assert alone.errors.keys() == {"knee.ty.placement.z"}
    assert abs(found.values["longer"] - 0.05) < 4 * found.errors["longer"] < 0.05
    assert found.design.model == design.at(list(found.values.values())).model
    for near in (0.0, 0.02):
        held = fit_design(design, markers, known={"longer": (near, 1e-7)})
        assert held.values["longer"] == pytest.approx(near, abs=1e-5)


def test_known_values_are_weighed_against_the_error_of_markers() -> None:
    """Two measurements of one length, the recording's and one that was known: their weighted mean, by their errors."""
    model, names = leg()
    design = kg.Design(model, ["knee.ty.placement.z"])
    _, markers = walk(model, names, count=40, noise=0.003)
    free = fit_design(design, markers)
    value, error = free.values["knee.ty.placement.z"], free.errors["knee.ty.placement.z"]
    assert free.marker_error == pytest.approx(0.003, rel=0.06)
    held = fit_design(design, markers, known={"knee.ty.placement.z": (value + 0.001, error)})
    assert held.values["knee.ty.placement.z"] == pytest.approx(value + 0.0005, abs=2e-5)
    assert held.errors["knee.ty.placement.z"] == pytest.approx(error / np.sqrt(2), rel=0.02)
    fixed = fit_design(design, markers, known={"knee.ty.placement.z": (value + 0.001, error)}, marker_error=1.0)
    assert fixed.values["knee.ty.placement.z"] == pytest.approx(value + 0.001, abs=1e-7)
    with pytest.raises(InputError, match="`marker_error` is -1"):
        fit_design(design, markers, marker_error=-1)


@pytest.mark.slow
def test_errors_of_lengths_against_monte_carlo_with_unequal_weights() -> None:
    """Standard deviations and marker errors of fits to 60 noisy recordings; 60 samples know a deviation to 9 %."""
    model, names = leg()
    design = kg.Design(model, ["knee.ty.placement.z", "shank2.placement.x"])
    weights = {names[0]: 10.0, names[3]: 0.1}
    fits = [
        fit_design(design, walk(model, names, count=10, noise=0.002, seed=k)[1], weights=weights) for k in range(60)
    ]
    spread = np.std([fit.design.values for fit in fits], axis=0)
    bars = np.mean([list(fit.errors.values()) for fit in fits], axis=0)
    np.testing.assert_allclose(spread / bars, 1.0, atol=4 * 0.09)
    assert np.mean([fit.marker_error**2 for fit in fits]) ** 0.5 == pytest.approx(0.002, rel=0.03)


def test_what_markers_do_not_tell() -> None:
    model, names = leg()
    _, markers = walk(model, names, count=20)
    with pytest.raises(SingularError, match="no marker depends on 'thigh"):
        fit_design(kg.Design(model, ["thigh.mass"]), markers)
    every = [f"{name}.placement.x" for name in names[:4]]
    with pytest.raises(SingularError, match="markers do not tell"):
        fit_design(kg.Design(model, [*every, *(name.replace(".x", ".y") for name in every),
                                     *(name.replace(".x", ".z") for name in every)]), markers)  # fmt: skip
    with pytest.raises(InputError, match="`known` names 'x'"):
        fit_design(kg.Design(model, ["shank2.placement.x"]), markers, known={"x": (0, 1)})
    nothing = Markers([], markers.names, np.zeros((0, len(names), 3)))
    with pytest.raises(InputError, match="`markers` have no frames; expected at least one"):
        fit_design(kg.Design(model, ["shank2.placement.x"]), nothing)
    with pytest.raises(InputError, match="`design` is a Model"):
        fit_design(model, markers)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"filter": "magic"}, "`filter` is 'magic'; expected 'butterworth' or 'opensim'"),
        ({"mass_error": 1.5}, "`mass_error` is 1.5; expected a relative error"),
        ({"marker_error": 0.1}, "`marker_error` is given without `kinematics`"),
        ({"coordinate_error": -1.0}, "`coordinate_error` is -1.0; expected a positive number"),
        ({"kinematics": 3}, "`kinematics` is a int"),
        ({"lowpass": 1e9, "filter": "opensim"}, "expected less than half of the sampling rate"),
    ],
)
def test_refused(change: dict[str, object], sentence: str) -> None:
    model, names = leg()
    q, markers = walk(model, names, count=20)
    with pytest.raises(InputError, match=sentence):
        analyze_recording(model, markers.t, q, **change)
