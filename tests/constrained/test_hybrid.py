"""Hybrid dynamics under constraints: against constrained and inverse dynamics, other formulations, and differences."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, samples
from kinegrad.compare import numerical_jacobian
from tests.conftest import random_loads, random_state, tree
from tests.constraints.choice import independent_set
from tests.mixed import mixed_state, mixed_tree

METHODS = ("range-space", "null-space", "direct")
INPUTS = ("q", "v", "tau", "a")
OUTPUTS = ("a", "tau", "forces")


def case(seed):
    """A random tree with rotors and one or two constraints, and two prescribed joints with which these stay regular."""
    model = tree(seed, largest=8)
    model = model.replace(armature=model.armature + 0.3)
    q, v, tau = random_state(model, seed, (2,))
    rows = independent_set(model, q, seed, most=2)
    names = []
    for name in np.random.default_rng(seed).permutation(model.speed_names):
        free = [k for k, x in enumerate(model.speed_names) if x not in (*names, name)]
        G = rows.jacobian(q)[..., free]
        if len(names) < 2 and len(free) > rows.m and (not rows.m or np.linalg.cond(G).max() < 100):
            names.append(str(name))
    a = np.random.default_rng([seed, 4]).normal(size=v.shape)
    return model, rows, (q, v, tau, a), names


CASES = [seed for seed in range(12) if case(seed)[1].m and case(seed)[3]][:5]


@pytest.mark.parametrize("seed", CASES)
@pytest.mark.parametrize("stabilisation", [None, (1.0, 3.0)])
def test_motors_and_constraints_give_the_motion_that_was_prescribed(seed, stabilisation):
    """Forward with all torques, and inverse with all accelerations; by three formulations, loads included."""
    model, rows, (q, v, tau, a), names = case(seed)
    loads = random_loads(model, seed, (2,))
    how = {"loads": loads, "stabilisation": stabilisation}
    found = kg.constrained_hybrid_dynamics(model, rows, q, v, tau, a, prescribed=names, **how)
    held = [model.speed_index(name) for name in names]
    free = np.setdiff1d(np.arange(model.nv), held)
    assert np.array_equal(found.a[..., held], a[..., held])
    assert np.array_equal(found.tau[..., free], tau[..., free])
    forward = kg.constrained_dynamics(model, rows, q, v, found.tau, **how)
    size = max(1.0, np.abs(forward.a).max(), np.abs(forward.forces).max())
    np.testing.assert_allclose(forward.a, found.a, atol=1e-9 * size)
    np.testing.assert_allclose(forward.forces, found.forces, atol=1e-9 * size)
    needed = kg.inverse_dynamics(model, q, v, found.a, loads=loads) - rows.force(q, found.forces)
    np.testing.assert_allclose(needed, found.tau, atol=1e-9 * size)
    for method in METHODS[1:]:
        other = kg.constrained_hybrid_dynamics(model, rows, q, v, tau, a, prescribed=names, method=method, **how)
        np.testing.assert_allclose(other.tau, found.tau, atol=1e-9 * size)
    ignored_tau, ignored_a = tau.copy(), a.copy()
    ignored_tau[..., held], ignored_a[..., free] = np.nan, np.inf
    again = kg.constrained_hybrid_dynamics(model, rows, q, v, ignored_tau, ignored_a, prescribed=names, **how)
    assert again == found


@pytest.mark.parametrize("seed", CASES[:3])
@pytest.mark.parametrize("constrained", [True, False])
def test_derivatives_with_respect_to_all_that_is_given(seed, constrained):
    """Central differences, extrapolated; without constraints also those of hybrid dynamics alone."""
    model, rows, state, names = case(seed)
    rows = rows if constrained else kg.ConstraintSet(model, [])
    state = [x[0] for x in state]
    how = {"prescribed": names, "loads": random_loads(model, seed)}
    change = kg.constrained_hybrid_dynamics_derivatives(model, rows, *state, **how)
    plain = kg.hybrid_dynamics_derivatives(model, *state, **how)
    for k, x in enumerate(INPUTS):

        def moved(y, k=k):
            given = [y if i == k else part for i, part in enumerate(state)]
            found = kg.constrained_hybrid_dynamics(model, rows, *given, **how)
            return np.concatenate([found.a, found.tau, found.forces])

        expected = numerical_jacobian(moved, state[k], "central")
        found = np.concatenate([getattr(change, f"d{y}_d{x}") for y in OUTPUTS])
        np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))
        if not constrained:
            np.testing.assert_array_equal(found[: 2 * model.nv], np.concatenate(
                [getattr(plain, f"da_d{x}"), getattr(plain, f"dtau_d{x}")]))  # fmt: skip


@pytest.mark.parametrize("seed", [1, 4])
def test_coordinates_that_are_not_joints(seed):
    """Couplings and quaternions: forward with all torques gives the prescribed motion; slopes along a turn."""
    model = mixed_tree(seed)
    q, v, a = mixed_state(model, seed)
    rows = kg.ConstraintSet(model, [kg.Contact(model.link_names[-1], [0.1, 0.2, 0.3], directions="z")]).held_at(q)
    tau, names = np.ones(model.nv), [model.speed_names[0]]
    found = kg.constrained_hybrid_dynamics(model, rows, q, v, tau, a, prescribed=names)
    forward = kg.constrained_dynamics(model, rows, q, v, found.tau)
    np.testing.assert_allclose(forward.a, found.a, atol=1e-8 * np.abs(found.a).max())
    change = kg.constrained_hybrid_dynamics_derivatives(model, rows, q, v, tau, a, prescribed=names)
    turn = np.random.default_rng(seed).normal(size=model.nv)
    sides = [
        kg.constrained_hybrid_dynamics(model, rows, kg.integrate(model, q, h * turn), v, tau, a, prescribed=names)
        for h in (1e-5, -1e-5)
    ]
    for name in OUTPUTS:
        expected = (getattr(sides[0], name) - getattr(sides[1], name)) / 2e-5
        slope = getattr(change, f"d{name}_dq") @ turn
        np.testing.assert_allclose(slope, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("redundant", ["error", "least-squares"])
def test_design_derivatives(redundant):
    """Total ones, against differences; with redundant rows the forces of least norm."""
    model, loop = samples.five_bar()
    if redundant != "error":
        loop = kg.ConstraintSet(
            model, [*loop, kg.Loop("left_elbow", other="right_elbow", directions="xyz", name="pin3")]
        )
    design = kg.Design(model, ["left.mass", "right_elbow.placement.x", "gravity.z"])
    rng = np.random.default_rng(3)
    state, follow = rng.normal(size=(4, 4)), rng.normal(size=(4, 4, 3))
    names = {f"d{x}_dp": y for x, y in zip(INPUTS, follow, strict=True)}
    how = {"prescribed": ["left"], "redundant": redundant}
    change = kg.constrained_hybrid_dynamics_design_derivatives(design, loop, *state, **names, **how)

    def moved(values):
        there = design.at(values).model
        given = state + follow @ (values - design.values)
        found = kg.constrained_hybrid_dynamics(there, kg.ConstraintSet(there, loop.constraints), *given, **how)
        return np.concatenate([found.a, found.tau, found.forces])

    expected = numerical_jacobian(moved, design.values, "central")
    found = np.concatenate([change.da_dp, change.dtau_dp, change.dforces_dp])
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    assert np.array_equal(change.da_dp[0], follow[3, 0])


def test_least_squares_are_differentiated():
    model, loop = samples.five_bar()
    twice = kg.ConstraintSet(model, [*loop, kg.Loop("left_elbow", other="right_elbow", directions="xyz", name="pin3")])
    state, how = np.random.default_rng(6).normal(size=(4, 4)), {"prescribed": ["left"], "redundant": "least-squares"}
    change = kg.constrained_hybrid_dynamics_derivatives(model, twice, *state, **how)

    def moved(q):
        return kg.constrained_hybrid_dynamics(model, twice, q, *state[1:], **how).forces

    expected = numerical_jacobian(moved, state[0], "central")
    np.testing.assert_allclose(change.dforces_dq, expected, atol=1e-6 * np.abs(expected).max())


def test_nothing_need_resist_a_prescribed_joint():
    """A crank without mass."""
    model, loop = samples.four_bar()
    light = model.replace(mass={"crank": 0.0}, com={"crank": np.zeros(3)}, inertia={"crank": np.zeros((3, 3))})
    rows = kg.ConstraintSet(light, loop.constraints)
    found = kg.constrained_hybrid_dynamics(light, rows, *np.zeros((3, 3)), [5.0, 0, 0], prescribed=["crank"])
    np.testing.assert_allclose(rows.acceleration(np.zeros(3), np.zeros(3), found.a), 0, atol=1e-13)


def test_what_is_refused():
    model, loop = samples.four_bar()
    zero = np.zeros((4, 3))
    with pytest.raises(
        SingularError, match=r"row 'pin\.[xz]' .* redundant, with the prescribed motion of 'crank', 'rock"
    ):
        kg.constrained_hybrid_dynamics(model, loop, *zero, prescribed=["crank", "rocker"])
    with pytest.raises(InputError, match=r"names all joints of model 'four_bar', so that constraints have nothing"):
        kg.constrained_hybrid_dynamics(model, loop, *zero, prescribed=model.joint_names)
    with pytest.raises(InputError, match="joint 'cranc' does not exist"):
        kg.constrained_hybrid_dynamics_derivatives(model, loop, *zero, prescribed=["cranc"])
    with pytest.raises(InputError, match="`prescribed` is 'crank'; expected names"):
        kg.constrained_hybrid_dynamics(model, loop, *zero, prescribed="crank")
