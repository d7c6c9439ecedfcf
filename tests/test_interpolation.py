"""A motion between its samples where coordinates are quaternions: exact cases, order of convergence, slopes."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, ModelBuilder, Motion
from kinegrad.objectives import KineticEnergy, Objective, Tracking, objective_gradient, objective_value
from kinegrad.simulate import simulate
from tests.mixed import mixed_tree


def body():
    builder = ModelBuilder("body", gravity=(0, 0, 0))
    builder.add("base", None, kg.free(quaternion=True), link="box", inertia=Inertia.box(1.0, [0.1, 0.2, 0.4]))
    return builder.build()


BODY = body()
START = kg.integrate(BODY, kg.neutral(BODY), [0.1, 0.2, 0.3, 0.4, -0.5, 0.6])
SPIN = np.array([0.1, -0.2, 0.3, 0.05, 4.0, 0.1])  # about the middle axis: it tumbles


def samples_of(motion, every):
    return Motion(BODY, motion.t[::every], motion.q[::every], motion.v[::every], motion.a[::every])


def test_turns_about_one_axis_are_exact():
    """If the angle is a polynomial of degree 5; up to nearly half a turn between two samples."""
    c = np.array([0.0, 0.5, -0.3, 1.1, -0.4, 0.2])
    axis = np.array([2.0, -1.0, 2.0]) / 3

    def states(t):
        turn, rate, second = (np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyder(c, k))
                              for k in range(3))  # fmt: skip
        q = kg.integrate(BODY, START, np.concatenate([np.zeros((len(t), 3)), turn[:, None] * axis], axis=-1))
        return q, *(np.concatenate([np.zeros((len(t), 3)), x[:, None] * axis], axis=-1) for x in (rate, second))

    knots, between = np.array([0.0, 0.9, 1.4, 1.65, 1.9]), np.linspace(0, 1.9, 37)
    wanted = states(between)
    assert 2.5 < np.abs(np.diff(np.polynomial.polynomial.polyval(knots, c))).max() < np.pi
    found = Motion(BODY, knots, *states(knots))(between)
    assert np.abs(kg.difference(BODY, wanted[0], found.q)).max() < 1e-14
    for x, y, size in zip((found.v, found.a), wanted[1:], (1e-13, 1e-12), strict=True):
        np.testing.assert_allclose(x, y, atol=size)


def test_tumbling_converges_with_order_six():
    """q by h⁶, v by h⁵, a by h⁴: those of the polynomial's derivatives."""
    motion = simulate(BODY, START, SPIN, np.linspace(0, 2, 641), rtol=1e-13, atol=1e-13)
    errors = []
    for every in (40, 20):
        found = samples_of(motion, every)(motion.t)
        away = kg.difference(BODY, motion.q, found.q), found.v - motion.v, found.a - motion.a
        errors.append([np.abs(x).max() for x in away])
    orders = np.log2(np.array(errors[0]) / errors[1])
    np.testing.assert_allclose(orders, [6, 5, 4], atol=0.35)
    assert errors[1][0] < 1e-6
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:], axis=-1), 1, atol=1e-14)


def test_own_times_keep_their_bits_and_speeds_are_rates():
    motion = samples_of(simulate(BODY, START, SPIN, np.linspace(0, 1, 33), rtol=1e-12, atol=1e-12), 4)
    assert np.array_equal(motion(motion.t).q, motion.q)
    t, h = np.array([0.07, 0.31, 0.77]), 1e-4
    before, here, after = (motion(t + s * h) for s in (-1, 0, 1))
    np.testing.assert_allclose(kg.difference(BODY, before.q, after.q) / (2 * h), here.v, atol=1e-6)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), here.a, atol=1e-5)


@pytest.mark.parametrize("model", [BODY, mixed_tree(2, joints=4)], ids=["body", "mixed"])
def test_slopes_are_derivatives_of_the_interpolation(model):
    """Samples moved along their slopes move what is between them as its slopes say: central differences of 1e-5 err by
    1e-10 of some thousand, which the second derivatives of a turn within 0.1 s are."""
    rng = np.random.default_rng(4)
    t = np.array([0.0, 0.1, 0.25])
    change = rng.normal(size=(2, model.nv)) * 0.3
    q = np.stack([x := kg.random_configuration(model, 5), x := kg.integrate(model, x, change[0]),
                  kg.integrate(model, x, change[1])])  # fmt: skip
    v, a = rng.normal(size=(2, 3, model.nv))
    dq, dv, da = rng.normal(size=(3, 3, model.nv, 2))
    design = Design(model, ["gravity.x", "gravity.y"])
    times = np.array([0.03, 0.08, 0.2])
    found = Motion(model, t, q, v, a, design=design, dq_dp=dq, dv_dp=dv, da_dp=da)(times)
    for k in range(2):
        ends = [
            Motion(model, t, kg.integrate(model, q, s * dq[..., k]), v + s * dv[..., k], a + s * da[..., k])(times)
            for s in (1e-5, -1e-5)
        ]
        np.testing.assert_allclose(kg.difference(model, ends[1].q, ends[0].q) / 2e-5, found.dq_dp[..., k], atol=1e-7)
        np.testing.assert_allclose((ends[0].v - ends[1].v) / 2e-5, found.dv_dp[..., k], atol=1e-5)
        np.testing.assert_allclose((ends[0].a - ends[1].a) / 2e-5, found.da_dp[..., k], atol=1e-3)


def test_objectives_of_sampled_quaternions():
    """Integrals of a motion that is known at samples only are those of the simulation it was taken from, to what
    samples 1/80 s apart leave of six orders."""
    design = Design(BODY, ["box.mass", "gravity.x"])
    whole = simulate(BODY, START, SPIN, np.linspace(0, 0.5, 41), design=design, rtol=1e-11, atol=1e-11)
    fields = {name: getattr(whole, name) for name in ("q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp")}
    sampled = Motion(BODY, whole.t, design=design, **fields)
    objective = Objective(integral=[KineticEnergy(), Tracking(START)])
    np.testing.assert_allclose(objective_value(sampled, objective), objective_value(whole, objective), rtol=1e-9)
    mine, theirs = (objective_gradient(motion, objective).dvalue_dp for motion in (sampled, whole))
    np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
