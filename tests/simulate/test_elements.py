"""Motions of models with force elements: energy, sensitivities of both kinds, and what is refused."""

import numpy as np
import pytest

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


def test_adaptive_sensitivities():
    """dq/dp with the state, against differences of two motions."""
    design = kg.Design(swing(0.5), ["strap.stiffness", "mount.damping.ry"])
    options = {"t": [0.0, 0.5], "rtol": 1e-11, "atol": 1e-13}
    motion = simulate(design.model, *START, design=design, **options)
    for k, h in enumerate((1e-3, 1e-4)):
        ends = [simulate(design.at(design.values + x * np.eye(2)[k]).model, *START, **options).q[-1] for x in (-h, h)]
        assert np.abs((ends[1] - ends[0]) / (2 * h) - motion.dq_dp[-1, :, k]).max() < 1e-7


def test_what_is_refused():
    """Dampers of elements with the implicit rule, and several models, with the reason."""
    model = swing(0.5)
    with pytest.raises(InputError, match="element 'strap' of model 'double_pendulum' has a damper"):
        simulate_fixed(model, *START, step=0.01, steps=2, method="implicit_midpoint")
    with pytest.raises(InputError, match="several models are given, and they have force elements"):
        simulate_fixed([model, model], *START, step=0.01, steps=2)
