"""Prescribed motions that follow the parameters of a design: θ(t; p), in all simulations and their derivatives.

Against a complex step through a whole simulation of the equation on paper, whole simulations of changed designs, and
direct against adjoint gradients.
"""

import math

import numpy as np
import pytest

from kinegrad import Design, InputError, samples
from kinegrad.simulate import (
    DesignMotion,
    Evaluation,
    KineticEnergy,
    Objective,
    Simulated,
    TorqueSquared,
    Tracking,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    simulate,
    simulate_fixed,
)
from tests.simulate.models import feedback
from tests.simulate.test_prescribed import extrapolated

NAN = np.nan
TIGHT = {"rtol": 1e-12, "atol": 1e-13}
NAMES = ("q", "v", "a", "tau")


def swing(t, p):
    """Amplitude and frequency, (q, v, a), and a drift: three of four parameters."""
    w, size = 1.0 + p[1], 0.3 + p[0]
    x = w * t
    return size * np.sin(x) + p[2] * t, size * w * np.cos(x) + p[2], -size * w * w * np.sin(x)


def swing_slopes(t, p):
    w, size = 1.0 + p[1], 0.3 + p[0]
    x, by_size = w * t, np.array([1.0, 0.0, 0.0, 0.0])
    by_w, by_drift = np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0])
    s, c = np.sin(x), np.cos(x)
    dq = s * by_size + size * t * c * by_w + t * by_drift
    dv = w * c * by_size + size * (c - x * s) * by_w + by_drift
    da = -w * w * s * by_size - size * (2 * w * s + w * w * t * c) * by_w
    return dq, dv, da


def chain():
    model = samples.spatial_chain(3).replace(stiffness=[0, 2.0, 1.0], damping=[0.1, 0.2, 0.3], armature=[0, 0.2, 0.3])
    parameters = {"L1": {"bar1.com.z": -0.5, "hinge2.placement.z": -1.0}, "m": "bar3.mass", "rotor": "hinge3.armature"}
    return Design(model, parameters | {"g": "gravity.z"})


def run(function, design, *given, motion=None, **options):
    start = [0.4, NAN, 0.3], [0.1, NAN, -0.2]
    motions = {"hinge2": DesignMotion(swing) if motion is None else motion}
    return function(
        design.model, *start, *given, prescribed=motions, tau=feedback(3), design=design, **options
    )  # fmt: skip


def values(motion):
    return np.stack([getattr(motion, name) for name in NAMES])


def slopes(motion):
    return np.stack([getattr(motion, f"d{name}_dp") for name in NAMES])


# --- anderson2002: θ₁(t; p) -----------------------------------------------------------------------------------


def paper(parameters, h, steps):
    """The second bar of the double pendulum of section 5, whose first bar has θ₁(t; p) = A sin w t, by RK4:
    L₂ φ̈ = −g sin φ − L₁ (θ̈₁ cos(φ − θ₁) + θ̇₁² sin(φ − θ₁)) of the angle φ = θ₁ + q₂; any numbers, complex too."""
    L1, A, w = parameters
    L2, g = 0.8, 9.81

    def first(t):
        return A * np.sin(w * t), A * w * np.cos(w * t), -A * w * w * np.sin(w * t)

    def rate(t, y):
        th, om, al = first(t)
        turn = -(g * np.sin(th + y[0]) + L1 * (al * np.cos(y[0]) + om * om * np.sin(y[0]))) / L2
        return np.array([y[1], turn - al])

    y = np.array([0.5, 0.2], dtype=np.result_type(*map(np.asarray, parameters), float))
    for k in range(steps):
        t = k * h
        k1 = rate(t, y)
        k2 = rate(t + h / 2, y + h / 2 * k1)
        k3 = rate(t + h / 2, y + h / 2 * k2)
        k4 = rate(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def test_prescribed_angle_of_the_paper_follows_the_design():
    """[anderson2002] has specified motions θ₁(t; p) in its kinematics (33)–(36): the same steps on paper, complex."""
    at = {"L1": 1.1, "A": 0.4, "w": 3.0}

    def pendulum(L1, A, w):
        return samples.double_pendulum(L1=L1, L2=0.8)

    design = Design.from_function(pendulum, at)
    drive = DesignMotion(
        lambda t, p: (p[1] * np.sin(p[2] * t), p[1] * p[2] * np.cos(p[2] * t), -p[1] * p[2] ** 2 * np.sin(p[2] * t))
    )
    h, steps = 0.02, 50
    start = [NAN, 0.5], [NAN, 0.2]
    found = simulate_fixed(
        design.model, *start, step=h, steps=steps, prescribed={"hinge1": drive}, design=design, every=steps
    )
    y = paper(tuple(at.values()), h, steps)
    np.testing.assert_allclose([found.q[-1, 1], found.v[-1, 1]], y, rtol=1e-12)
    for k in range(3):
        moved = [complex(x) for x in at.values()]
        moved[k] += 1e-40j
        exact = paper(tuple(moved), h, steps).imag / 1e-40
        np.testing.assert_allclose([found.dq_dp[-1, 1, k], found.dv_dp[-1, 1, k]], exact, rtol=1e-11, atol=1e-12)
    smooth = simulate(
        design.model, *start, [0, 1.0], prescribed={"hinge1": drive}, design=design, rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(smooth.dq_dp[-1], found.dq_dp[-1], atol=1e-4)  # h⁴
    np.testing.assert_allclose(found.dq_dp[-1, 0], [0, np.sin(3.0), 0.4 * np.cos(3.0)], atol=1e-14)


# --- whole simulations of changed designs -----------------------------------------------------------------------------


@pytest.mark.slow
def test_sensitivities_with_error_control():
    design, t = chain(), np.linspace(0, 1, 5)
    motion = run(simulate, design, t, rtol=1e-11, atol=1e-12)
    expected = extrapolated(
        lambda change: values(run(simulate, design.at(design.values + change), t, **TIGHT)), design.p
    )
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert (np.abs(slopes(motion) - expected) / scale).max() < 3e-7
    given = [swing_slopes(x, design.values) for x in t]
    np.testing.assert_allclose(motion.dq_dp[:, 1], [x[0] for x in given], rtol=1e-13)
    np.testing.assert_allclose(motion.da_dp[:, 1], [x[2] for x in given], rtol=1e-13)
    stated = run(simulate, design, t, motion=DesignMotion(swing, swing_slopes), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(stated.dtau_dp, motion.dtau_dp, rtol=1e-7, atol=1e-9)
    stiff = run(simulate, design, t, method="Radau", rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(stiff.dq_dp, motion.dq_dp, atol=1e-4)
    np.testing.assert_allclose(motion([0.3]).dq_dp[0, 1], swing_slopes(0.3, design.values)[0], rtol=1e-13)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_fixed_steps_direct_and_adjoint(method):
    """Slopes are those of whole runs of steps; both gradients agree to rounding, with all kinds of terms."""
    design = chain()
    options = {"step": 0.05, "steps": 8, "method": method}
    motion = run(simulate_fixed, design, **options)
    expected = extrapolated(
        lambda change: values(run(simulate_fixed, design.at(design.values + change), **options)), design.p
    )
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert (np.abs(slopes(motion) - expected) / scale).max() < 1e-7
    reference = Tracking(lambda t: np.stack([np.sin(t), t**2, t], axis=-1), [1.0, 2.0, 0.5])
    soft = UserTerm(lambda at: Evaluation((at.a**2).sum(axis=-1) / 10, da=at.a / 5))
    terms = [KineticEnergy(), TorqueSquared(0.3), reference, soft]
    everything = Objective(end=terms, integral=terms)
    direct = objective_gradient(motion, everything)
    adjoint = run(
        lambda model, q, v, **given: adjoint_gradient(model, q, v, everything, segment=3, **given), design, **options
    )
    np.testing.assert_allclose(adjoint.value, direct.value, rtol=1e-13)
    np.testing.assert_allclose(adjoint.dvalue_dp, direct.dvalue_dp, rtol=1e-11)
    assert adjoint.dvalue_dq0[1] == adjoint.dvalue_dv0[1] == 0.0
    assert not adjoint.dvalue_dtau[:, 1].any()


def test_gradients_by_torques_and_the_start():
    """Of free joints, beside a driven one, against central differences; samples of torques are held in steps."""
    design = chain()
    rng = np.random.default_rng(5)
    tau, start = rng.normal(size=(6, 3)), np.array([0.4, NAN, 0.3])
    effort = Objective(end=[KineticEnergy()], integral=[TorqueSquared(0.3), KineticEnergy()])
    options = {"step": 0.05, "steps": 6, "prescribed": {"hinge2": DesignMotion(swing)}, "design": design}
    found = adjoint_gradient(design.model, start, [0.1, NAN, 0], effort, tau=tau, **options)

    def value(dq, dtau):
        moved = simulate_fixed(design.model, start + dq, [0.1, NAN, 0], tau=tau + dtau, **options)
        return objective_gradient(moved, effort).value

    h, still = 1e-5, np.zeros((6, 3))
    for j in (0, 2):
        step = h * np.eye(3)[j]
        assert (value(step, still) - value(-step, still)) / (2 * h) == pytest.approx(found.dvalue_dq0[j], abs=1e-7)
        push = still.copy()
        push[3, j] = h
        assert (value(0, push) - value(0, -push)) / (2 * h) == pytest.approx(found.dvalue_dtau[3, j], abs=1e-8)


def test_initial_slopes_of_free_joints_and_batches():
    design = chain()
    slope = np.random.default_rng(1).normal(size=(3, 4))
    slope[1] = NAN
    options = {"step": 0.05, "steps": 4, "dq0_dp": slope}
    motion = run(simulate_fixed, design, **options)
    np.testing.assert_allclose(motion.dq_dp[0, [0, 2]], slope[[0, 2]])
    np.testing.assert_allclose(motion.dq_dp[0, 1], swing_slopes(0.0, design.values)[0], atol=1e-15)
    batch = simulate_fixed(
        design.model, np.tile([0.4, NAN, 0.3], (2, 1)), [0.1, NAN, -0.2], prescribed={"hinge2": DesignMotion(swing)},
        tau=feedback(3), design=design, **options,
    )  # fmt: skip
    np.testing.assert_allclose(batch.dtau_dp[:, 1], motion.dtau_dp, atol=1e-12)
    for name in ("dq0_dp", "dv0_dp"):
        with pytest.raises(InputError, match=f"`{name}` is .* at joint 'hinge2', whose motion .* follows parameter"):
            run(simulate, design, [0, 1], **{name: np.ones((3, 4))})


def test_designs_of_a_drive_are_optimised():
    """Simulated takes prescribed motions, by both gradients alike."""
    design = chain()
    effort, start = Objective(integral=[TorqueSquared([0.0, 1.0, 0.0])]), ([0.4, NAN, 0.3], [0.1, NAN, -0.2])
    both = [
        Simulated(
            effort, *start, step=0.05, steps=6, prescribed={"hinge2": DesignMotion(swing)}, gradient=gradient
        )(design.at(design.values + 0.1))
        for gradient in ("adjoint", "direct")
    ]  # fmt: skip
    assert both[0][0] == pytest.approx(both[1][0], rel=1e-12)
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-10)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("motion", "message"),
    [
        (DesignMotion(lambda t, p: (math.sin(p[0]), 0, 0)), r"cannot take complex parameters .*NumPy's functions"),
        (DesignMotion(lambda t, p: (abs(p[3]) * t, abs(p[3]), 0)), "not give derivatives by the complex step"),
        (DesignMotion(lambda t, p: (np.real(p[0]) * t, np.real(p[0]), 0)), r"with respect to 'L1' at t = .* agree"),
        (DesignMotion(swing, lambda t, p: [2 * x for x in swing_slopes(t, p)]), "not those of its function"),
        (DesignMotion(swing, lambda t, p: np.zeros((2, 4))), r"`derivatives` of `prescribed\['hinge2'\]` give"),
        (DesignMotion(swing, lambda t, p: 3.0), r"give float at t = 0 s; expected three of shape \(4,\)"),
        (DesignMotion(lambda t, p: 0.0), r"`prescribed\['hinge2'\]` gives shape \(\) at t = 0 s"),
    ],
)  # fmt: skip
def test_motions_without_proper_derivatives_are_refused(motion, message):
    with pytest.raises(InputError, match=message):
        run(simulate, chain(), [0, 1], motion=motion)


def test_a_design_motion_needs_a_design():
    model = chain().model
    with pytest.raises(InputError, match="is a DesignMotion, and no `design` is given"):
        simulate(model, np.zeros(3), np.zeros(3), [0, 1], prescribed={"hinge2": DesignMotion(swing)})
    with pytest.raises(InputError, match="`function` of a DesignMotion is a float"):
        DesignMotion(3.0)
