"""Rows that nearly depend on each other: the default method keeps the digits that the null-space method has."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import simulate_fixed

CLOSE = 1e-9  # of the largest: rounding times the condition of the rows, some 1e5, with room


def arm():
    rng, parent = np.random.default_rng(0), None
    builder = kg.ModelBuilder("arm")
    for i in range(5):
        inertia = kg.Inertia(1.0, [0.1, 0, 0.1], np.diag([0.1, 0.12, 0.13]))
        placement = [0.3, 0.1, -0.2] if i else None
        builder.add(
            f"j{i}", parent, kg.revolute(rng.normal(size=3)), link=f"l{i}", placement=placement, inertia=inertia
        )
        parent = f"l{i}"
    return builder.build()


def nearly(model, angle):
    """A point held along two directions that differ by a small angle."""
    ways = [0, 0.6, 0.8], [angle, 0.6 + 0.3 * angle, 0.8]
    contacts = [kg.Contact("l4", [0.1, 0.2, 0.3], directions=[u], name=n) for n, u in zip("ab", ways, strict=True)]
    return kg.ConstraintSet(model, contacts)


MODEL = arm()
STATE = np.random.default_rng(1).normal(size=(3, 5))
DESIGN = kg.Design(MODEL, ["l2.mass", "j4.placement.x"])
WEIGHTS = np.random.default_rng(2).normal(size=5)
CALLS = {
    "dynamics": lambda pin, **how: kg.constrained_dynamics(MODEL, pin, *STATE, **how),
    "derivatives": lambda pin, **how: kg.constrained_dynamics_derivatives(MODEL, pin, *STATE, **how),
    "stabilised": lambda pin, **how: kg.constrained_dynamics_derivatives(MODEL, pin, *STATE, stabilisation=3.0, **how),
    "impact": lambda pin, **how: kg.impact(MODEL, pin, *STATE[:2], restitution=0.3, **how),
    "plastic": lambda pin, **how: kg.impact(MODEL, pin, *STATE[:2], **how),
    "impact derivatives": lambda pin, **how: kg.impact_derivatives(MODEL, pin, *STATE[:2], restitution=0.3, **how),
    "loads": lambda pin, **how: kg.constrained_dynamics_load_derivatives(MODEL, pin, STATE[0], **how),
    "design": lambda pin, **how: kg.constrained_dynamics_design_derivatives(DESIGN, pin, *STATE, **how),
    "impact design": lambda pin, **how: kg.impact_design_derivatives(DESIGN, pin, *STATE[:2], **how),
    "hessian": lambda pin, **how: kg.constrained_dynamics_hessian(MODEL, pin, *STATE, w_a=WEIGHTS, **how),
}


@pytest.mark.parametrize("angle", [1e-2, 1e-5])
@pytest.mark.parametrize("name", CALLS)
def test_digits_of_the_default_method_are_those_of_null_space(name, angle):
    """Factors of G M⁻¹ Gᵀ lose twice as many digits as those of G, five more at the smaller angle."""
    found, wanted = (CALLS[name](nearly(MODEL, angle), method=x) for x in ("range-space", "null-space"))
    for what, x in vars(wanted).items():
        assert np.abs(getattr(found, what) - x).max() <= CLOSE * np.abs(x).max(), what


def test_states_are_judged_by_themselves():
    """In a batch, loaded or not, each state has the bits that it has alone, whatever the others are like."""
    builder = kg.ModelBuilder("plane")
    builder.add("x", None, kg.revolute("z"), inertia=kg.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0]))
    builder.add(
        "y", "x", kg.revolute("z"), link="tip", placement=[1, 0, 0], inertia=kg.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0])
    )
    model = builder.build()
    pin = kg.ConstraintSet(model, [kg.Contact("tip", [1, 0, 0], directions="xy", name="pin")])
    q = np.array([[0.3, 1.0], [0.3, 1e-3], [0.3, -1.2], [0.4, 2e-5]])  # stretched, both directions are nearly one
    v, tau = np.random.default_rng(3).normal(size=(2, 4, 2))
    loads = kg.Loads(force=np.random.default_rng(4).normal(size=(4, 2, 3)))
    for given in (None, loads):
        for function in (kg.constrained_dynamics, kg.constrained_dynamics_derivatives):
            found = function(model, pin, q, v, tau, loads=given)
            for k in range(4):
                some = None if given is None else kg.Loads(force=given.force[k])
                for what, x in vars(function(model, pin, q[k], v[k], tau[k], loads=some)).items():
                    assert x.tobytes() == getattr(found, what)[k].tobytes(), what
    assert kg.impact(model, pin, q.reshape(2, 2, 2), v.reshape(2, 2, 2)).v.shape == (2, 2, 2)
    with pytest.raises(kg.errors.SingularError, match=r"row 'pin\.y' of the constraints is redundant in state 2"):
        kg.constrained_dynamics(model, pin, [q[1], q[3], [0.3, 0.0]], v[:3], tau[:3])


def test_motions_under_nearly_dependent_rows_keep_to_them():
    """The projection after each step sees the direction in which the rows differ, and its derivatives, too."""
    pin = nearly(MODEL, 1e-5)
    alike = nearly(MODEL, 1.0)  # the same plane
    q0 = kg.assemble(MODEL, alike, 0.1 * STATE[0])
    v0 = kg.project_velocity(MODEL, alike, q0, STATE[1])
    run = {"step": 0.01, "steps": 10, "project": True, "design": DESIGN}
    found, wanted = (simulate_fixed(MODEL, q0, v0, constraints=x, **run) for x in (pin, alike))
    for name in ("q", "v", "dq_dp", "dv_dp"):
        x = getattr(wanted, name)
        assert np.abs(getattr(found, name) - x).max() <= 1e-5 * np.abs(x).max(), name
