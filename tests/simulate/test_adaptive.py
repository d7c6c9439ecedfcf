"""Motions conserve energy, change with the design as whole simulations do, and say where they fail.

(Complex step through a whole simulation is not possible: compiled kernels and SciPy's step control take real numbers.
The reference is central differences of simulations converged to 1e-12.)
"""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad import Design, samples
from kinegrad.errors import InputError, SingularError
from kinegrad.simulate import Feedback, simulate
from kinegrad.simulate.law import Law
from kinegrad.simulate.track import jacobian_of, rate_of
from tests.simulate.models import chain, feedback, pendulum

T = np.linspace(0, 2, 21)
METHODS = ["DOP853", "RK45", "Radau", "BDF", "LSODA"]
STATE = [1.0, 0.5], [0.3, -0.2]


def energy(model, motion):
    return kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)


@pytest.mark.parametrize(
    ("model", "tolerance"),
    [(samples.double_pendulum(), 1e-8), (samples.spatial_chain(4), 1e-7)],
    ids=["double_pendulum", "spatial_chain"],
)
def test_energy_is_conserved(model, tolerance):
    """To some times rtol = 1e-9, relative to energies of 10 to 100 J."""
    n = model.n
    motion = simulate(model, np.linspace(0.2, 1, n), np.zeros(n), np.linspace(0, 3, 31), rtol=1e-9, atol=1e-11)
    E = energy(model, motion)
    assert np.ptp(kg.kinetic_energy(model, motion.q, motion.v)) > 1.0, "it moves"
    assert np.abs(E - E[0]).max() < tolerance * np.abs(E).max()


@pytest.mark.slow
@pytest.mark.parametrize("design", [pendulum(), chain()], ids=["pendulum", "chain"])
@pytest.mark.parametrize("tau", [None, feedback()], ids=["free", "feedback"])
def test_sensitivities_are_those_of_whole_simulations(design, tau):
    """Central differences with step 1e-4, extrapolated: error about 1e-12 / 1e-4."""
    slopes = {"dq0_dp": np.arange(2.0 * design.p).reshape(2, -1) / 10, "dv0_dp": np.ones((2, design.p)) / 5}
    motion = simulate(design.model, *STATE, T, design=design, tau=tau, rtol=1e-11, atol=1e-12, **slopes)

    def at(change):
        start = STATE[0] + slopes["dq0_dp"] @ change, STATE[1] + slopes["dv0_dp"] @ change
        moved = simulate(design.at(design.values + change).model, *start, T, tau=tau, rtol=1e-12, atol=1e-13)
        return np.stack([moved.q, moved.v, moved.a, moved.tau])

    for k, direction in enumerate(np.eye(design.p)):
        coarse, fine = ((at(h * direction) - at(-h * direction)) / (2 * h) for h in (2e-4, 1e-4))
        expected = (4 * fine - coarse) / 3
        found = np.stack([motion.dq_dp, motion.dv_dp, motion.da_dp, motion.dtau_dp])[..., k]
        scale = np.abs(expected).max(axis=(1, 2), keepdims=True) + 1e-3
        assert (np.abs(found - expected) / scale).max() < 3e-7


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree(method):
    """To what their tolerances promise, sensitivities too; implicit ones count their Jacobians."""
    design = pendulum()
    exact = simulate(design.model, *STATE, T, design=design, tau=feedback(), rtol=1e-12, atol=1e-13)
    motion = simulate(design.model, *STATE, T, design=design, tau=feedback(), method=method, rtol=1e-6, atol=1e-8)
    assert motion.success
    assert motion.steps > 5
    assert motion.nfev > 20
    assert motion.njev > 0 or method not in ("Radau", "BDF")
    np.testing.assert_allclose(motion.q, exact.q, atol=2e-4)
    np.testing.assert_allclose(motion.dq_dp, exact.dq_dp, atol=2e-4)


def test_the_jacobian_of_implicit_methods_is_exact():
    """Against central differences of the right-hand side, and with it a stiff motion goes as with SciPy's own."""
    model = samples.double_pendulum().replace(stiffness=np.full(2, 1e4), damping=np.full(2, 1e3))
    pull = feedback()
    law = Law(model, pull, None, (0.0, 1.0), None, None)
    y, h = np.array([0.4, -0.3, 1.2, 0.7]), 1e-5
    expected = [(rate_of(law, 0.3, y + h * e) - rate_of(law, 0.3, y - h * e)) / (2 * h) for e in np.eye(4)]
    found = jacobian_of(law, 0.3, y, sparse=True)
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-9 * np.abs(found).max())
    given = simulate(model, *STATE, T, method="Radau", tau=pull)
    differences = simulate(model, *STATE, T, method="Radau", tau=pull.function)
    np.testing.assert_allclose(given.q, differences.q, atol=1e-7)
    assert given.steps < 1.2 * differences.steps


def test_interpolation_is_as_good_as_the_samples():
    design = pendulum()
    few = simulate(design.model, *STATE, [0, 2], design=design)
    many = simulate(design.model, *STATE, T, design=design)
    between = few.interpolate(T)
    for name in ("q", "v", "a", "dq_dp", "dv_dp", "da_dp"):
        np.testing.assert_allclose(getattr(between, name), getattr(many, name), atol=1e-12)
    with pytest.raises(InputError, match=r"goes from 1 to 3 s; this simulation from 0 to 2"):
        few.interpolate([1, 3])


def test_torques_of_every_kind_agree():
    """A constant; samples; a spline; a function; all the same torque."""
    model, tau = samples.double_pendulum(), np.array([1.0, -0.5])
    kinds = [
        tau,
        np.tile(tau, (21, 1)),
        CubicSpline(T, np.tile(tau, (21, 1))),
        lambda t, q, v: tau,
        Feedback(lambda *_: tau, None, None),
    ]
    motions = [simulate(model, *STATE, T, tau=kind) for kind in kinds]
    for motion in motions:
        np.testing.assert_allclose(motion.q, motions[0].q, atol=1e-9)
        np.testing.assert_allclose(motion.tau, np.tile(tau, (21, 1)), atol=1e-13)


def test_samples_are_a_cubic_spline():
    """Cubic torques are met exactly."""
    cubic = np.stack([T**3 - T, 1 - T**2], axis=1)
    by_samples = simulate(samples.double_pendulum(), *STATE, T, tau=cubic)
    by_function = simulate(samples.double_pendulum(), *STATE, T, tau=lambda t, q, v: np.array([t**3 - t, 1 - t**2]))
    np.testing.assert_allclose(by_samples.q, by_function.q, atol=1e-9)


def test_acceleration_obeys_the_equations_of_motion():
    model = samples.spatial_chain(2)
    loads = kg.Loads(force={"bar2": [1.0, 2.0, 3.0]}, point={"bar2": [0.0, 0.0, -1.0]})
    motion = simulate(model, *STATE, T, tau=[0.5, 0.1], loads=loads)
    tau = kg.inverse_dynamics(model, motion.q, motion.v, motion.a, loads=loads)
    np.testing.assert_allclose(tau, np.tile([0.5, 0.1], (21, 1)), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_divergence_names_time_and_joint_and_keeps_what_there_is(method):
    """v̇ ~ v³ blows up in finite time, in the second joint."""

    def push(t, q, v):
        return np.array([0.0, v[1] ** 3])

    motion = simulate(samples.double_pendulum(), [1, 0.5], [0, 2], np.linspace(0, 2, 2001), tau=push, method=method)
    assert not motion.success
    assert motion.status == -1
    assert "diverged at t = 0.034603 s" in motion.message
    assert "joint 'hinge2'" in motion.message
    assert len(motion.t) == len(motion.q) == 35
    assert np.isfinite(motion.a).all()


def test_singular_mechanism_names_the_time():
    """A leaf without mass."""
    model = samples.double_pendulum().replace(mass=[1.0, 0.0], com={"Q": [0, 0, 0]})
    with pytest.raises(SingularError, match=r"at t = 0 s nothing resists joint 'hinge2'"):
        simulate(model, *STATE, T)


def test_progress_is_told():
    told = []
    motion = simulate(samples.double_pendulum(), *STATE, T, progress=told.append)
    assert len(told) == motion.steps
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_inputs_are_not_changed_and_runs_repeat():
    q0, design = np.array([1.0, 0.5]), pendulum()
    one, two = (simulate(design.model, q0, [0, 0], T, design=design) for _ in range(2))
    assert np.array_equal(one.dq_dp, two.dq_dp)
    assert np.array_equal(q0, [1.0, 0.5])
    one.q[:] = 0
    assert one.interpolate(T).q[0, 0] == 1.0, "results are not views of what interpolates"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"design": chain()}, r"design of another model"),
        ({"method": "euler"}, r"`method` is 'euler'; expected one of 'auto', 'DOP853'"),
        ({"t": [0, 2, 1]}, r"`t` goes from 2 to 1 at index 2; expected it to increase"),
        ({"t": [0]}, r"at least 2 times"),
        ({"tau": np.ones((3, 2))}, r"`tau` has shape \(3, 2\); expected \(2,\) for a constant, or \(21, 2\)"),
        ({"tau": lambda t, q, v: np.ones(3)}, r"`tau` gives shape \(3,\) at t = 0; expected \(2,\)"),
        (
            {"tau": lambda t, q, v: np.full(2, np.nan)},
            r"`tau`, or its derivatives, are not finite at the start, t = 0 s",
        ),
        ({"q0": np.zeros((4, 2))}, r"batch shape \(4,\).*see simulate_fixed"),
        ({"v0": [np.nan, 0]}, r"`v0` at index \(0,\) is nan"),
        ({"dq0_dp": np.zeros((2, 1))}, r"`dq0_dp` is given without a `design`"),
        ({"rtol": -1.0}, r"`rtol` is -1.0"),
        ({"loads": kg.Loads(force=np.zeros((5, 2, 3)))}, r"`loads` has batch axes"),
    ],
)
def test_wrong_input_is_refused(change, message):
    arguments = {"q0": [1, 0], "v0": [0, 0], "t": T} | change
    with pytest.raises(InputError, match=message):
        simulate(samples.double_pendulum(), **arguments)


def test_a_function_without_derivatives_is_refused_with_a_design():
    design = pendulum()
    with pytest.raises(InputError, match=r"expected Feedback\(function, dtau_dq, dtau_dv\)"):
        simulate(design.model, *STATE, T, tau=lambda t, q, v: -q, design=design)
    with pytest.raises(InputError, match=r"`dv0_dp` has shape \(3,\)"):
        simulate(design.model, *STATE, T, design=Design(design.model, ["P.mass"]), dv0_dp=[1, 2, 3])


def test_tolerances_of_any_size_and_kind():
    """A whole number too large for float64 is as good as infinite; what is no number is named on one line."""
    assert simulate(samples.double_pendulum(), [1, 0], [0, 0], [0, 0.1], max_step=10**400).success
    with pytest.raises(InputError, match="`rtol` is ") as error:
        simulate(samples.double_pendulum(), [1, 0], [0, 0], [0, 0.1], rtol=np.ones((3, 3)))
    assert "\n" not in str(error.value)
