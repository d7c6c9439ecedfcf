"""Motions: what simulations are and files give; between their times, in parts, by name, and under objectives."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import BPoly, BSpline, CubicSpline, make_interp_spline

import kinegrad as kg
from kinegrad import Design, InputError, Motion, samples
from kinegrad.io import Trajectory, read_trajectory, write_trajectory
from kinegrad.objectives import (
    EndPosition,
    Evaluation,
    KineticEnergy,
    Moments,
    Objective,
    TorqueSquared,
    Tracking,
    UserTerm,
    objective_gradient,
    objective_value,
)
from kinegrad.simulate import simulate, simulate_fixed

ARM = samples.two_link()
T = np.linspace(0.0, 2.0, 41)


def quintics(t, order=0, batch=()):
    """Polynomials of degree 5, one for each joint and state of a batch: what the interpolation has exactly."""
    c = np.random.default_rng(7).normal(size=(6, *batch, 2))
    for _ in range(order):
        c = np.arange(1, len(c)).reshape(-1, *[1] * (c.ndim - 1)) * c[1:]
    return np.moveaxis(np.polynomial.polynomial.polyval(t, c), -1, 0)


def sampled(t=T, batch=(), **more):
    return Motion(ARM, t, *(quintics(t, order, batch) for order in range(3)), **more)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_polynomials_of_degree_five_are_exact_between_samples(batch):
    """q, v and a of both ends determine them; the tolerance is the rounding of numbers of up to a few hundred."""
    times = np.sort(np.random.default_rng(0).uniform(0, 2, 50))
    found = sampled(np.array([0.0, 0.3, 1.1, 2.0]), batch)(times)
    for name, order in zip("qva", range(3), strict=True):
        wanted = quintics(times, order, batch)
        np.testing.assert_allclose(getattr(found, name), wanted, atol=2e-12 * np.abs(wanted).max())


def test_interpolation_converges_with_order_six():
    def error(count):
        t = np.linspace(0, 3, count)
        motion = Motion(ARM, t, *(np.stack([x, -x], -1) for x in (np.sin(t), np.cos(t), -np.sin(t))))
        fine = np.linspace(0, 3, 1001)
        return np.abs(motion(fine).q[:, 0] - np.sin(fine)).max()

    assert 5.8 < np.log2(error(7) / error(13)) < 6.2


def test_its_own_times_have_the_same_bits():
    """Asked for together with others, or alone; torques are straight lines between samples."""
    motion = sampled(tau=np.random.default_rng(1).normal(size=(41, 2)))
    times = np.union1d(T, [0.01, 1.33])
    found, own = motion(times), np.isin(times, T)
    for name in ("q", "v", "a", "tau"):
        assert np.array_equal(getattr(found, name)[own], getattr(motion, name))
    assert motion(T) == motion
    assert motion(2.0).q.shape == (1, 2)
    np.testing.assert_allclose(found.tau[times == 0.01], [0.8 * motion.tau[0] + 0.2 * motion.tau[1]], rtol=1e-14)


@pytest.mark.parametrize("kind", [BSpline, CubicSpline, BPoly])
def test_splines_are_exact(kind):
    t, q = np.linspace(0, 1, 8), np.random.default_rng(2).normal(size=(8, 2))
    spline = {
        BSpline: lambda: make_interp_spline(t, q, k=5),
        CubicSpline: lambda: CubicSpline(t, q),
        BPoly: lambda: BPoly.from_derivatives(t, np.stack([q, 0 * q], axis=1)),
    }[kind]()
    motion, times = Motion.from_spline(ARM, spline), np.linspace(0.05, 0.95, 11)
    assert motion.t[0] == 0
    assert motion.t[-1] == 1
    for order, name in enumerate("qva"):
        assert np.array_equal(getattr(motion(times), name), spline.derivative(order)(times) if order else spline(times))
    before = motion(times)
    spline.c[...] = 99.0
    assert motion(times) == before, "the spline is copied"
    assert pickle.loads(pickle.dumps(motion))(times) == before
    assert motion[2:5](motion.t[2:4]).q.shape == (2, 2)


def test_splines_that_are_no_motions():
    t = np.linspace(0, 1, 5)
    with pytest.raises(InputError, match="degree 1, whose speed jumps"):
        Motion.from_spline(ARM, make_interp_spline(t, np.zeros((5, 2)), k=1))
    with pytest.raises(InputError, match="`spline` is a list"):
        Motion.from_spline(ARM, [1, 2])
    with pytest.raises(InputError, match="`q` has shape"):
        Motion.from_spline(ARM, CubicSpline(t, np.zeros((5, 3))))
    with pytest.raises(InputError, match="from 0 to 2 s; the spline from 0 to 1 s"):
        Motion.from_spline(ARM, CubicSpline(t, np.zeros((5, 2))), [0, 2])


def test_simulations_are_motions_with_their_own_interpolation():
    design = Design(ARM, ["forearm.mass"])
    motion = simulate(ARM, [1.0, 0.5], [0, 0], T, tau=[0.1, 0.2], design=design)
    assert isinstance(motion, Motion)
    assert motion.model is ARM
    assert motion.design is design
    assert motion([0.111, 0.7]) == motion.interpolate([0.111, 0.7])
    assert motion[3:7].t.tolist() == T[3:7].tolist()
    part = motion.between(0.111, 0.7)
    assert part.t[0] == 0.111
    assert part.t[-1] == 0.7
    assert np.array_equal(part.dq_dp[0], motion([0.111]).dq_dp[0])


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
def test_fixed_steps_between_their_times(method):
    """Slopes between times are those of what is between: equal to differences of the interpolated motion."""
    design = Design(ARM, ["forearm.mass", "elbow.a"])
    q0 = np.array([[1.0, 0.5], [0.2, -0.3]])
    run = {"step": 0.05, "steps": 20, "method": method, "tau": [0.1, 0.2]}
    times = np.array([0.0, 0.012, 0.333, 0.99])

    def at(values, **more):
        return simulate_fixed(design.at(values).model, q0, [0, 0], **run, **more)(times)

    found = simulate_fixed(ARM, q0, [0, 0], design=design, **run)(times)
    assert type(found) is Motion
    assert found.q.shape == (4, 2, 2)
    assert found.dq_dp.shape == (4, 2, 2, 2)
    for k, h in enumerate(1e-5 * np.eye(2)):
        low, high = at(design.values - h), at(design.values + h)
        for x in ("q", "v", "a", "tau"):
            difference = (getattr(high, x) - getattr(low, x)) / 2e-5
            slope = getattr(found, f"d{x}_dp")[..., k]
            np.testing.assert_allclose(slope, difference, atol=1e-8 * max(1.0, np.abs(slope).max()))


def test_files_give_motions(tmp_path):
    wave = [quintics(T, order) for order in range(3)]
    write_trajectory(tmp_path / "wave.csv", ARM, T, *wave)
    assert read_trajectory(tmp_path / "wave.csv", ARM).motion() == Motion(ARM, T, *wave)
    write_trajectory(tmp_path / "timeless.csv", ARM, None, *wave)
    with pytest.raises(InputError, match="has no times"):
        read_trajectory(tmp_path / "timeless.csv", ARM).motion()
    with pytest.raises(InputError, match="of no model"):
        Trajectory(T, *wave).motion()


def test_values():
    motion = sampled(tau=np.zeros((41, 2)))
    assert motion == sampled(tau=np.zeros((41, 2)))
    assert motion != sampled()
    assert motion != Motion(ARM.replace(name="other"), T, motion.q, motion.v, motion.a, motion.tau)
    assert pickle.loads(pickle.dumps(motion)) == motion
    assert len(motion) == 41
    assert repr(motion) == "Motion(two_link: 41 times from 0 to 2 s; q, v, a, tau)"
    assert repr(sampled(batch=(2, 3))) == "Motion(two_link: 41 times of 2 × 3 motions from 0 to 2 s; q, v, a)"
    assert motion.coordinate_names == motion.speed_names == ("shoulder", "elbow")


def test_labels():
    data = sampled(batch=(3,)).to_xarray()
    assert set(data.data_vars) == {"q", "v", "a"}
    assert data["v"].dims == ("time", "batch", "joint")
    assert data["v"].attrs["units"] == "rad s-1"
    assert data.attrs == {"model": "two_link"}


def test_wrong_arguments_are_named():
    q = np.zeros((41, 2))
    for changes, message in (
        ({"t": T[::-1]}, "expected it to increase"),
        ({"t": [0.0, np.nan]}, "`t` at"),
        ({"q": np.zeros((41, 3))}, r"`q` has shape \(41, 3\); expected \(41, ..., 2\)"),
        ({"v": np.zeros((40, 2))}, r"`v` has shape \(40, 2\); expected \(41, 2\)"),
        ({"a": np.zeros((41, 3, 2))}, r"`a` has shape \(41, 3, 2\); expected \(41, 2\)"),
        ({"tau": np.zeros(2)}, "`tau` has shape"),
        ({"q": q + 1j}, "complex"),
        ({"dtau_dp": np.zeros((41, 2, 1))}, "without a `design`"),
        ({"dq_dp": np.zeros((41, 2, 1)), "design": Design(ARM, ["forearm.mass"])}, "all three, or none"),
        ({"dtau_dp": np.zeros((41, 2, 3)), "design": Design(ARM, ["forearm.mass"])}, r"expected \(41, 2, 1\)"),
        ({"model": "arm"}, "expected a Model"),
    ):
        with pytest.raises(InputError, match=message):
            Motion(**({"model": ARM, "t": T, "q": q, "v": q, "a": q} | changes))
    motion = sampled()
    with pytest.raises(InputError, match="from 1 to 3 s; this motion from 0 to 2"):
        motion([1, 3])
    with pytest.raises(InputError, match="expected a slice"):
        motion[3]
    with pytest.raises(InputError, match="expected it to increase"):
        motion.between(1.0, 0.5)


# --- objectives of any motion -------------------------------------------------------------------------------


def test_objectives_of_a_motion_that_is_given():
    """Integrals are those of the spline, here of a polynomial that five Gauss points have exactly."""
    times = np.linspace(0, 1, 4)
    motion = Motion.from_spline(ARM, make_interp_spline(times, np.outer(times**2, [1, 2]), k=3))
    value = objective_value(motion, Objective(integral=[Tracking([0.0, 0.0])], end=[Tracking([0.0, 0.0])]))
    np.testing.assert_allclose(value, 5 / 5 + 5, rtol=1e-12)
    with pytest.raises(InputError, match="the motion has no torques"):
        objective_value(motion, Objective(integral=[TorqueSquared()]))
    with pytest.raises(InputError, match="expected at least 2"):
        objective_value(motion[:1], Objective(integral=[KineticEnergy()]))


def test_the_gradient_of_a_motion_that_does_not_follow_the_design():
    """Torques of a given motion follow it, by inverse dynamics; the motion itself does not."""
    design = Design(ARM, ["forearm.mass", "elbow.a"])
    state = [quintics(T, order) for order in range(3)]
    objective = Objective(integral=[TorqueSquared()], end=[EndPosition("forearm", [0.1, 0.2, 0.0])])

    def motion(x):
        return Motion(x.model, T, *state, kg.inverse_dynamics(x.model, *state), design=x)

    slope = kg.inverse_dynamics_design_derivatives(design, *state)
    here = Motion(ARM, T, *state, motion(design).tau, design=design, dtau_dp=slope)
    found = objective_gradient(here, objective)
    for k, h in enumerate(1e-5 * np.eye(2)):
        ends = [objective_value(motion(design.at(design.values + way * h)), objective) for way in (-1, 1)]
        np.testing.assert_allclose(found.dvalue_dp[k], (ends[1] - ends[0]) / 2e-5, rtol=1e-7)


def test_terms_see_a_motion():
    seen = []

    def look(at):
        seen.append(at)
        return Evaluation(np.zeros(at.t.shape + at.q.shape[1:-1]))

    motion = simulate_fixed(ARM, [1.0, 0.5], [0, 0], step=0.1, steps=10)
    objective_value(motion, Objective(end=[UserTerm(look)], integral=[UserTerm(look)]))
    objective_value(sampled(), Objective(end=[UserTerm(look)]))
    assert all(isinstance(at, Motion) and at.model == ARM for at in seen)
    assert [len(at) for at in seen] == [1, 11, 1]
    assert seen[2].tau is None
    old = Moments(ARM, None, T, *(quintics(T, order) for order in range(3)), np.zeros((41, 2)))
    assert KineticEnergy().evaluate(old).value.shape == (41,)


def test_what_is_no_motion_is_refused():
    with pytest.raises(InputError, match="expected what simulate returns, or a Motion"):
        objective_value(3, Objective())
