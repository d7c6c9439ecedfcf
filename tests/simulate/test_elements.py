"""Motions of models with force elements: energy, sensitivities of both kinds, and what is refused."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.simulate import KineticEnergy, Objective, PotentialEnergy, adjoint_gradient, simulate, simulate_fixed

START = np.array([0.7, -0.4]), np.array([0.3, 0.8])


def swing(damping=0.0):
    """A double pendulum whose end is held by a strap, with a bushing at its middle."""
    model = kg.samples.double_pendulum()
    one, two = model.link_names
    strap = kg.SpringDamper(two, [0, 0, -0.5], None, [0.5, 0.0, -1.0], 20.0, damping, 0.3)
    mount = kg.Bushing(two, [0, 0, 0], one, [0.1, 0, -1.0], [3, 2, 5, 1, 4, 2], [damping] * 6)
    return model.replace(elements={"strap": strap, "mount": mount})


def energy(model, motion):
    return kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)


def test_energy_is_conserved_without_dampers():
    """Within the tolerance of the adaptive integrator; with dampers it only falls, and the elements take it."""
    model = swing()
    total = energy(model, simulate(model, *START, t=np.linspace(0, 10, 101), rtol=1e-10, atol=1e-12))
    assert np.ptp(total) < 1e-7 * np.abs(total).max()
    damped = swing(0.5)
    total = energy(damped, simulate(damped, *START, t=np.linspace(0, 5, 51), rtol=1e-9, atol=1e-10))
    assert (np.diff(total) < 0).all()


def test_the_symplectic_rule_does_not_drift():
    """The implicit midpoint rule with elements: the energy of 2000 steps stays in a band, and has no trend."""
    model = swing()
    total = energy(model, simulate_fixed(model, *START, step=0.01, steps=2000, method="implicit_midpoint"))
    first, last = total[:500].mean(), total[-500:].mean()
    assert abs(last - first) < 1e-4 * np.abs(total).max()


@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4", "implicit_midpoint"])
def test_direct_and_adjoint_sensitivities(method):
    """dJ/dp by tangents along the motion and backwards: the same numbers, and those of differences."""
    model = swing(0.0 if method == "implicit_midpoint" else 0.5)
    names = [
        "strap.stiffness",
        "strap.rest_length",
        "mount.stiffness.ry",
        "mount.placement.x",
        f"{model.link_names[1]}.mass",
    ]
    design, objective = kg.Design(model, names), Objective(integral=[KineticEnergy()], end=[PotentialEnergy()])
    options = {"step": 0.02, "steps": 30, "method": method}
    found = adjoint_gradient(model, *START, objective, design=design, **options)
    motion = simulate_fixed(model, *START, design=design, **options)
    direct = kg.objectives.objective_gradient(motion, objective).dvalue_dp
    assert np.abs(found.dvalue_dp - direct).max() < 1e-11 * np.abs(direct).max()

    def value(p):
        return adjoint_gradient(design.at(p).model, *START, objective, **options).value

    h = 1e-5
    for k in range(design.p):
        e = h * np.eye(design.p)[k]
        slope = (value(design.values + e) - value(design.values - e)) / (2 * h)
        assert abs(slope - direct[k]) < 1e-7 * np.abs(direct).max()


def test_a_ball_with_a_quaternion():
    """Coordinates that are not joints: energy drifts as h⁴ without dampers, and direct and adjoint agree."""
    builder = kg.ModelBuilder("ball")
    body = kg.Inertia.box(1.0, [0.2, 0.3, 0.4], com=[0, 0.1, -0.3])
    builder.add("ball", None, kg.spherical(quaternion=True), link="bob", inertia=body)
    builder.add_element("strap", kg.SpringDamper("bob", [0.1, 0, -0.5], None, [0.4, 0.2, -0.3], 30.0, 0.0, 0.2))
    model = builder.build()
    start, options = ([1.0, 0, 0, 0], [0.3, -0.5, 1.0]), {"step": 0.01, "steps": 40}
    drift = [np.ptp(energy(model, simulate_fixed(model, *start, step=0.01 / k, steps=40 * k))) for k in (1, 2)]
    assert drift[1] < drift[0] / 14  # 16 in the limit
    assert drift[1] < 1e-6
    design, objective = kg.Design(model, ["strap.stiffness", "strap.point.x"]), Objective(integral=[KineticEnergy()])
    found = adjoint_gradient(model, *start, objective, design=design, **options)
    direct = kg.objectives.objective_gradient(simulate_fixed(model, *start, design=design, **options), objective)
    assert np.abs(found.dvalue_dp - direct.dvalue_dp).max() < 1e-11 * np.abs(direct.dvalue_dp).max()


def test_prescribed_joints():
    """The force that a prescribed joint takes is that of inverse dynamics, elements included."""
    model = swing(0.5)
    t = np.linspace(0, 1, 21)
    drive = CubicSpline(t, np.cos(t))
    start = [np.nan, START[0][1]], [np.nan, START[1][1]]
    motion = simulate(model, *start, t, prescribed={model.joint_names[0]: drive})
    tau = kg.inverse_dynamics(model, motion.q, motion.v, motion.a)
    assert np.abs(tau - motion.tau).max() < 1e-10 * np.abs(tau).max()


def test_adaptive_sensitivities():
    """dq/dp with the state, against differences of two motions."""
    design = kg.Design(swing(0.5), ["strap.stiffness", "mount.damping.ry"])
    options = {"t": [0.0, 0.5], "rtol": 1e-11, "atol": 1e-13}
    motion = simulate(design.model, *START, design=design, **options)
    for k, h in enumerate((1e-3, 1e-4)):
        ends = [simulate(design.at(design.values + x * np.eye(2)[k]).model, *START, **options).q[-1] for x in (-h, h)]
        assert np.abs((ends[1] - ends[0]) / (2 * h) - motion.dq_dp[-1, :, k]).max() < 1e-7


def test_what_is_refused():
    """Dampers of elements with the implicit rule, of the second model too; models with other elements."""
    model = swing(0.5)
    with pytest.raises(InputError, match="element 'strap' of model 'double_pendulum' has a damper"):
        simulate_fixed(model, *START, step=0.01, steps=2, method="implicit_midpoint")
    with pytest.raises(InputError, match="element 'strap' of model 'double_pendulum' has a damper"):
        simulate_fixed([swing(), model], *START, step=0.01, steps=2, method="implicit_midpoint")
    with pytest.raises(InputError, match=r"`model\[1\]` differs from `model\[0\]` in its force elements"):
        simulate_fixed([model.without_elements, model], *START, step=0.01, steps=2)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
def test_several_models(method):
    """Each as by itself."""
    models = [swing().replace(mass={swing().link_names[0]: mass}) for mass in (1.0, 2.0)]
    both = simulate_fixed(models, *START, step=0.01, steps=5, method=method)
    for k, model in enumerate(models):
        assert np.array_equal(both.q[:, k], simulate_fixed(model, *START, step=0.01, steps=5, method=method).q)
