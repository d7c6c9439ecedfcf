"""Contacts of mechanisms that have everything at once: quaternions, couplings, springs, dampers, force elements.

Sensitivities are compared with differences of whole simulations, of fourth order, along one direction of parameters.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import (
    KineticEnergy,
    Objective,
    PotentialEnergy,
    TorqueSquared,
    UnilateralContact,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)

STENCIL = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}


@pytest.mark.slow
def test_a_box_with_an_arm_lands_on_its_corners():
    """A free body by quaternions, a strap that holds its arm: two impacts, then a corner that bounces off again."""
    builder = kg.ModelBuilder("box")
    box = kg.Inertia.box(2.0, [0.2, 0.3, 0.4])
    builder.add("root", None, kg.free(quaternion=True), link="box", inertia=box, damping=0.05)
    rod = kg.Inertia.rod(0.5, [0, 0, 0], [0.3, 0, 0.05])
    builder.add("arm", "box", kg.revolute("y"), link="bar", placement=[0.1, 0, 0.2], inertia=rod, stiffness=2.0)
    strap = kg.SpringDamper("bar", [0.3, 0, 0.05], None, [0, 0, 2], stiffness=5.0, damping=0.2, rest_length=0.5)
    model = builder.build().replace(elements={"strap": strap})
    q0 = kg.integrate(model, kg.neutral(model), [0, 0, 1.0, 0.3, 0.2, 0.1, 0.2])
    v0, t = 0.3 * np.random.default_rng(0).normal(size=model.nv), np.array([0.0, 0.38, 0.45])
    corners = [(x, y) for x in (0.1, -0.1) for y in (0.15, -0.15)]
    contacts = [
        UnilateralContact(kg.Contact("box", [*xy, -0.2], "z", other_point=[0, 0, 0.2], name=f"corner{k}"), 0.5)
        for k, xy in enumerate(corners)
    ]
    design = kg.Design(model, ["bar.mass", "strap.stiffness", "box.inertia.xx", "gravity.x", "arm.placement.z"])
    along = np.array([0.5, 1.0, 0.01, 1.0, 0.1])

    def run(x, **more):
        return simulate(design.at(x).model, q0, v0, t, contacts=contacts, rtol=1e-9, atol=1e-11, **more)

    found, h = run(design.values, design=design), 1e-3
    assert [x.touching for x in found.impacts] == [("corner3",), ("corner2",)]
    dq, dv = np.zeros((2, len(t), model.nv))
    for k, weight in STENCIL.items():
        moved = run(design.values + k * h * along)
        dq += weight / h * kg.difference(model, found.q, moved.q)
        dv += weight / h * moved.v
    for x, y in ((found.dq_dp @ along, dq), (found.dv_dp @ along, dv)):
        assert np.abs(x - y).max() < 1e-6 * np.abs(y).max()


@pytest.mark.slow
def test_a_hopper_with_a_coupled_hip():
    """A leg whose hip follows its knee lands, takes off and lands again: discrete gradients, forwards and backwards."""
    builder, bar = kg.ModelBuilder("hopper"), kg.Inertia.rod(0.5, [0, 0, 0], [0, 0, -0.4])
    builder.add("z", None, kg.prismatic("z"), link="body", inertia=kg.Inertia.sphere(3.0, 0.1))
    passive = {"inertia": bar, "armature": 0.05}
    builder.add("hip", "body", kg.revolute("y"), link="thigh", damping=0.3, **passive)
    knee = {"placement": [0, 0, -0.4], "stiffness": 60.0, "rest": -1.0}
    builder.add("knee", "thigh", kg.revolute("y"), link="shank", **knee, **passive)
    builder.mimic("hip", "knee", multiplier=-0.5)
    strap = kg.SpringDamper("shank", [0, 0, -0.4], "body", [0.05, 0, 0.1], 200.0, 5.0, 0.85)
    model = builder.build().replace(elements={"strap": strap})
    contacts = [UnilateralContact(kg.Contact("shank", [0, 0, -0.4], "z", name="foot"))]
    names = ["body.mass", "strap.stiffness", "strap.rest_length", "knee.placement.z", "gravity.z"]
    design, along = kg.Design(model, names), np.array([1.0, 10.0, 0.01, 0.02, 1.0])
    q0, v0, tau = np.array([0.95, -1.0]), np.zeros(2), 0.5 * np.random.default_rng(0).normal(size=(68, 2))
    how = {"step": 0.01, "steps": 68, "contacts": contacts, "tau": tau}
    J = Objective(end=[KineticEnergy(), PotentialEnergy()], integral=[KineticEnergy(), TorqueSquared(1.0)])
    motion = simulate_fixed(model, q0, v0, design=design, **how)
    assert [x.closed for x in motion.phases] == [(), ("foot",), (), ("foot",)]
    direct, adjoint = objective_gradient(motion, J), adjoint_gradient(model, q0, v0, J, design=design, **how)
    np.testing.assert_allclose(direct.dvalue_dp, adjoint.dvalue_dp, rtol=1e-12)
    h, slope = 1e-4, 0.0
    for k, weight in STENCIL.items():
        moved = simulate_fixed(design.at(design.values + k * h * along).model, q0, v0, **how)
        slope += weight / h * objective_value(moved, J)
    np.testing.assert_allclose(adjoint.dvalue_dp @ along, slope, rtol=1e-8)
