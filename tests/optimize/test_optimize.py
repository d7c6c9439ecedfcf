"""Design optimisation: known optima, Lagrange's conditions, bounds, every method; and where there is no model."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, samples
from kinegrad.simulate import (
    DesignIterate,
    KineticEnergy,
    Limit,
    Objective,
    Simulated,
    TorqueEffort,
    objective_value,
    optimize_design,
    simulate_fixed,
)
from tests.optimize.objectives import CONSTRAINED, MASSES, METHODS, TIGHT, bowl
from tests.simulate.models import everything, feedback, pendulum


def central(function, design, h=1e-4):
    """Gradient by central differences, extrapolated to the fourth order."""
    rows = []
    for direction in np.eye(design.p):
        coarse, fine = (
            (function(design.at(design.values + x * direction)) - function(design.at(design.values - x * direction)))
            / (2 * x)
            for x in (2 * h, h)
        )
        rows.append((4 * fine - coarse) / 3)
    return np.array(rows)


@pytest.mark.parametrize("method", METHODS)
def test_free_optimum_of_a_quadratic(method):
    """Its centre.  J near it is quadratic, so a change of J by 1e-12 leaves 1e-6 of p to chance."""
    found = optimize_design(MASSES, bowl([0.7, 3.1]), method=method, **TIGHT)
    assert found.success
    assert found.status == 0
    np.testing.assert_allclose(found.values, [0.7, 3.1], atol=2e-6)
    np.testing.assert_allclose(found.gradient, 0, atol=1e-5)
    np.testing.assert_array_equal(found.design.values, found.values)
    np.testing.assert_array_equal(found.design.model.mass, found.values)
    assert found.value == bowl([0.7, 3.1])(found.design)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by_name", [True, False])
def test_active_bound(method, by_name):
    """With P's mass held at 0.9, Q's is where its own slope vanishes: 3.1 − (0.9 − 0.7)/2."""
    bounds = {"P.mass": (0.9, 5.0)} if by_name else [(0.9, 5.0), None]
    found = optimize_design(MASSES, bowl([0.7, 3.1]), bounds=bounds, method=method, **TIGHT)
    assert found.success
    np.testing.assert_allclose(found.values, [0.9, 3.0], atol=2e-6)
    assert found.gradient[0] == pytest.approx(0.5, abs=1e-5)  # 3·0.2 − 1·0.1: it would rather go lower
    assert all(0.9 <= record.values[0] <= 5.0 for record in found.history)


@pytest.mark.parametrize("method", METHODS)
def test_start_on_a_bound_and_a_fixed_parameter(method):
    found = optimize_design(
        MASSES, bowl([0.7, 3.1]), bounds={"P.mass": (1.0, 1.0), "Q.mass": (2.0, None)}, method=method, **TIGHT
    )
    assert found.success
    np.testing.assert_allclose(found.values, [1.0, 3.1 - 0.15], atol=2e-6)
    assert found.values[0] == 1.0


@pytest.mark.parametrize("method", CONSTRAINED)
def test_lagrange_conditions_on_an_equality(method):
    """∇J = λ ∇c, c = 0: for a linear c the solution of a linear system."""
    limit = Limit(lambda design: (design.model.total_mass, np.ones(2)), 3.5, 3.5)
    found = optimize_design(MASSES, bowl([0.7, 3.1]), constraints=[limit], method=method, **TIGHT)
    H, centre = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([0.7, 3.1])
    system = np.block([[H, -np.ones((2, 1))], [np.ones((1, 2)), np.zeros((1, 1))]])
    *expected, multiplier = np.linalg.solve(system, [*(H @ centre), 3.5])
    assert found.success
    np.testing.assert_allclose(found.values, expected, atol=2e-6)
    np.testing.assert_allclose(found.gradient, multiplier, atol=1e-5)
    assert found.violation < 1e-11


@pytest.mark.parametrize("method", CONSTRAINED)
def test_lagrange_conditions_on_curved_limits(method):
    """Two limits at once, one of them active: a disc that does not reach the centre, and a line far away."""

    def disc_and_line(design):
        p = design.values
        return [p @ p, p[0] - p[1]], [2 * p, [1.0, -1.0]]

    limit = Limit(disc_and_line, [-np.inf, -50.0], [6.0, np.inf])
    found = optimize_design(MASSES, bowl([2.7, 3.1]), constraints=[limit], method=method, tolerance=1e-10)
    assert found.success
    p, g = found.values, found.gradient
    multiplier = -(g @ p) / (2 * p @ p)
    assert multiplier > 0.1
    np.testing.assert_allclose(g + multiplier * 2 * p, 0, atol=1e-5)
    assert p @ p == pytest.approx(6.0, abs=1e-8)
    assert found.stationarity < 1e-7
    assert found.violation <= 10 * 1e-10 * 8  # SLSQP ends within ten tolerances; 8 is the limit's largest slope, scaled


def test_limit_with_two_sides():
    """A band: the centre is above it, so its upper edge holds; then below."""
    for centre, edge in ((9.0, 4.0), (0.5, 2.5)):
        limit = Limit(lambda design: (design.model.total_mass, np.ones(2)), 2.5, 4.0)
        found = optimize_design(MASSES, bowl([centre / 2, centre / 2]), constraints=(limit,), **TIGHT)
        assert found.values.sum() == pytest.approx(edge, abs=1e-9)


@pytest.mark.parametrize("gradient", ["adjoint", "direct"])
@pytest.mark.parametrize("method", METHODS)
def test_pendulum_that_swings_across_in_one_second(method, gradient):
    """A small swing comes to rest at the other side after half a period, π √(l/g): then the kinetic energy is least, 0.
    For a mass point on a massless bar and g = 9.81 this takes a second if l = 9.81/π².  The true pendulum of amplitude
    1e-3 is slower by 1e-6/16, and RK4 in 100 steps off by less."""
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("y"), link="bob", inertia=kg.Inertia.point(1.0, [0, 0, -0.8]))
    design = Design(builder.build(), {"z": "bob.com.z"})
    rest = Simulated(Objective(end=[KineticEnergy()]), [1e-3], [0.0], step=0.01, steps=100, gradient=gradient)
    found = optimize_design(design, rest, bounds={"z": (-1.3, -0.6)}, method=method, tolerance=1e-13)
    assert found.success
    assert found.values[0] == pytest.approx(-9.81 / np.pi**2, rel=2e-6)
    assert found.value < 1e-11 * rest(design)[0] + 1e-18


def test_units_do_not_matter():
    """The same problem in kg and in grams, joules and kilojoules: scaled, the iterations are the same."""

    def grams(design):
        value, gradient = bowl([0.7, 3.1])(design)
        return value * 1e6, gradient * 1e6

    plain = optimize_design(MASSES, bowl([0.7, 3.1]))
    other = optimize_design(MASSES, grams)
    assert plain.iterations == other.iterations
    np.testing.assert_allclose(plain.values, other.values, rtol=1e-9)


def test_scale_is_used():
    """A parameter said to matter by 1e-6 only: the first step along the gradient is that much shorter in it."""
    first = {}
    for name, scale in (("one", [1.0, 1.0]), ("other", {"P.mass": 1e-6, "Q.mass": 1.0})):
        found = optimize_design(MASSES, bowl([0.7, 3.1], np.eye(2)), scale=scale, max_iterations=2)
        first[name] = found.history[1].values - MASSES.values
    assert abs(first["one"][0]) > 0.1
    assert abs(first["other"][0]) < 1e-6
    assert first["other"][1] > 0.1


@pytest.mark.parametrize("gradient", ["adjoint", "direct"])
@pytest.mark.parametrize("states", [1, 3])
def test_simulated_is_the_objective_of_its_motion(gradient, states):
    """Value: the sum over states of objective_value.  Gradient: differences of whole simulations, good to 1e-8."""
    design, objective = pendulum(), everything(samples.double_pendulum())
    q0 = np.array([1.0, 0.5]) + np.linspace(0, 0.3, states)[:, None]
    q0, v0 = (q0[0] if states == 1 else q0), np.array([0.3, -0.2])
    run = {"step": 0.02, "steps": 30, "tau": feedback(), "loads": kg.Loads(force={"Q": [1.0, 0.0, 2.0]})}
    value, slope = Simulated(objective, q0, v0, gradient=gradient, **run)(design)

    def plain(at):
        return objective_value(simulate_fixed(at.model, q0, v0, **run), objective).sum()

    assert value == pytest.approx(plain(design), rel=1e-13)
    np.testing.assert_allclose(slope, central(plain, design), rtol=1e-7)


def particles_on_rods(p, q0, step, steps):
    """Kinetic energy at the end of the double pendulum of p = (L1, L2, MP, MQ), let go at q0: its equations of motion,
    by hand in the angles from the vertical, and RK4 in plain NumPy, for complex p too."""
    L1, L2, m1, m2 = p

    def mass(x):
        cos = np.cos(x[0] - x[1])
        return np.array([[(m1 + m2) * L1**2, m2 * L1 * L2 * cos], [m2 * L1 * L2 * cos, m2 * L2**2]])

    def rate(y):
        x, w = y[:2], y[2:]
        sin = m2 * L1 * L2 * np.sin(x[0] - x[1])
        force = -9.81 * np.array([(m1 + m2) * L1, m2 * L2]) * np.sin(x) + sin * np.array([-(w[1] ** 2), w[0] ** 2])
        return np.concatenate([w, np.linalg.solve(mass(x), force)])

    y = np.array([q0[0], q0[0] + q0[1], 0, 0], dtype=complex)
    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + step / 2 * k1)
        k3 = rate(y + step / 2 * k2)
        y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + step * k3))
    return y[2:] @ mass(y[:2]) @ y[2:] / 2


@pytest.mark.parametrize("gradient", ["adjoint", "direct"])
def test_simulated_by_complex_step_through_another_program(gradient):
    """RK4 does not see which angles it is given, so both programs make the same numbers, to rounding of 60 steps."""
    p, q0, run = [0.9, 1.1, 0.7, 1.3], [1.0, 0.5], {"step": 0.02, "steps": 60}
    design = Design.from_function(samples.double_pendulum, dict(zip(("L1", "L2", "MP", "MQ"), p, strict=True)))
    value, slope = Simulated(Objective(end=[KineticEnergy()]), q0, [0, 0], gradient=gradient, **run)(design)
    assert value == pytest.approx(particles_on_rods(p, q0, **run).real, rel=1e-12)
    expected = [particles_on_rods(p + 1e-30j * unit, q0, **run).imag / 1e-30 for unit in np.eye(4)]
    np.testing.assert_allclose(slope, expected, rtol=1e-11)


def arm_motion(n, m=41):
    """A smooth motion of n joints with its derivatives."""
    t = np.linspace(0, 1.5, m)
    phase = np.arange(1, n + 1)
    q = np.sin(t[:, None] * phase)
    return q, phase * np.cos(t[:, None] * phase), -(phase**2) * q, t


@pytest.mark.parametrize("weight", [1.0, [0.5, 2.0]])
def test_torque_effort_and_its_gradient(weight):
    """τ is linear in each of these, so J is quadratic: central differences have no error but rounding."""
    design = Design(samples.two_link(), ["upper_arm.mass", "forearm.mass", "gravity.y"])
    q, v, a, t = arm_motion(2)
    loads = kg.Loads(force={"forearm": np.stack([0 * t, -10 * t, 0 * t], axis=-1)})
    effort = TorqueEffort(q, v, a, t, loads=loads, weight=weight)

    def plain(at):
        tau = kg.inverse_dynamics(at.model, q, v, a, loads=loads)
        simpson = np.array([1, *[4, 2] * 19, 4, 1]) * (t[1] - t[0]) / 3  # 41 points
        return simpson @ (tau**2 @ np.broadcast_to(weight, 2))

    value, slope = effort(design)
    assert value == pytest.approx(plain(design), rel=1e-13)
    np.testing.assert_allclose(slope, central(plain, design, h=0.05), rtol=1e-11)


def test_torque_effort_of_unequal_times():
    """Torque 10·m·x of a level arm whose joint stands still, sampled unevenly: the integral is exact, 16 per second."""
    t = np.array([0, 0.1, 0.4, 0.5, 0.9, 2.0])
    design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    value, slope = TorqueEffort(*np.zeros((3, 6, 2)), t, weight=[1, 0])(design)
    assert value == pytest.approx(32.0, rel=1e-14)
    assert slope == pytest.approx([96.0], rel=1e-14)


def test_torque_effort_keeps_the_motion_it_was_given():
    q, v, a, t = arm_motion(2)
    design = Design(samples.two_link(), ["forearm.mass"])
    effort = TorqueEffort(q, v, a, t)
    before = effort(design)[0]
    q[:] = 0
    assert effort(design)[0] == before


@pytest.mark.parametrize("method", METHODS)
def test_history_and_progress(method):
    seen = []
    found = optimize_design(MASSES, bowl([0.7, 3.1]), method=method, progress=seen.append)
    history = found.history
    assert seen == list(history)
    assert [record.iteration for record in history] == list(range(len(history)))
    np.testing.assert_array_equal(history[0].values, MASSES.values)
    for record in history:
        assert isinstance(record, DesignIterate)
        assert record.value == bowl([0.7, 3.1])(MASSES.at(record.values))[0]
        assert record.violation == 0
    if method != "trust-constr":  # it may accept a small rise of J by rounding near the end
        values = [record.value for record in history]
        assert values == sorted(values, reverse=True)  # without limits, every iteration descends
    np.testing.assert_array_equal(history[-1].values, found.values)
    assert len(history) - 1 <= found.iterations
    assert found.evaluations >= len(history)


@pytest.mark.parametrize("method", METHODS)
def test_limit_of_iterations(method):
    rest = Simulated(Objective(end=[KineticEnergy()]), [1, 0.5], [0, 0], step=0.02, steps=20)
    bounds = [(-0.5, 0.5)] * 2 + [(0.5, 2)] * 2
    found = optimize_design(pendulum(), rest, bounds=bounds, method=method, max_iterations=2)
    assert not found.success
    assert found.status == 1
    assert found.iterations == 2


def test_linear_combinations_count_from_the_model_that_was_given():
    """Their value is 0 in any design, but the optimum says by how much they changed in total."""
    design = pendulum()

    def length(at):
        z = at.model.com[0, 2]
        return (z + 1.4) ** 2, [-2 * (z + 1.4), 0.0, 0.0, 0.0]

    found = optimize_design(design, length, **TIGHT)
    assert found.values[0] == pytest.approx(0.4, abs=1e-6)
    assert found.design.model.com[0, 2] == pytest.approx(-1.4, abs=1e-6)
    np.testing.assert_array_equal(found.design.values, found.values)


def test_design_of_a_function():
    """Lengths by their own values: the pendulum of 1.8 m whose mass points are at rest 1.25 s after it was let go."""
    design = Design.from_function(samples.double_pendulum, {"L1": 1.0, "L2": 0.8, "MQ": 1.0})
    left = Simulated(Objective(end=[KineticEnergy()]), [0.5, 0.3], [0, 0], step=0.025, steps=50)
    rod = Limit(lambda at: (at.values[0] + at.values[1], [1.0, 1.0, 0.0]), 1.8, 1.8)
    bounds = [(0.4, 1.4), (0.4, 1.4), (0.2, 3.0)]
    found = optimize_design(design, left, bounds=bounds, constraints=[rod], tolerance=1e-12)
    assert found.success
    assert found.value < 1e-12  # of 0.07 J at the start
    np.testing.assert_array_equal(found.design.values, found.values)
    assert found.design.model.placement[1, 2, 3] == -found.values[0]


def test_objective_is_evaluated_once_at_each_point():
    asked = []

    def counted(design):
        asked.append(tuple(design.values))
        return bowl([0.7, 3.1])(design)

    limit = Limit(lambda design: (design.model.total_mass, np.ones(2)), upper=3.0)
    for method in CONSTRAINED:
        asked.clear()
        found = optimize_design(MASSES, counted, constraints=[limit], method=method, tolerance=1e-6)
        assert len(asked) == found.evaluations
        assert len(asked) == len(set(asked))
