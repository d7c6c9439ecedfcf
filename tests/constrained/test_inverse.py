"""What actuators and constraints have to supply for a motion, and its derivatives against complex steps of an oracle.

[xiang2008] (38): torques of actuated joints, and forces of the cut.
"""

import numpy as np
import pytest

import kinegrad as kg
from tests.constrained.test_derivatives import MECHANISMS, closed_state
from tests.constrained.test_dynamics import boat, loads_of, random_case, relative
from tests.constraints.choice import independent_set
from tests.mixed import mixed_state, mixed_tree
from tests.reference import constrained as reference
from tests.reference.oracle import STEP

EXACT = 1e-10


def test_there_and_back():
    for seed in range(6):
        model, held, q, v, tau = random_case(seed)
        free = np.random.default_rng(seed).choice(model.n, model.n - held.m, replace=False)
        names = [model.joint_names[k] for k in free]
        tau = np.where(np.isin(np.arange(model.n), free), tau, 0.0)
        S = np.eye(model.n)[:, free]
        supplied = np.concatenate([np.broadcast_to(S, (5, *S.shape)), np.swapaxes(held.jacobian(q), 1, 2)], axis=-1)
        if np.linalg.cond(supplied).max() > 1e4:
            continue
        forward = kg.constrained_dynamics(model, held, q, v, tau)
        for actuated in (names, S):
            back = kg.constrained_inverse_dynamics(model, held, q, v, forward.a, actuated=actuated)
            np.testing.assert_allclose(back.tau, tau, atol=1e-8 * np.abs(tau).max())
            np.testing.assert_allclose(back.forces, forward.forces, atol=1e-8 * np.abs(forward.forces).max())
            np.testing.assert_allclose(back.actuators, tau[:, free], atol=1e-8 * np.abs(tau).max())


def test_more_actuators_than_needed_share():
    # all joints driven and a loop besides: of all that supply the motion, the least
    model, held, q, v, tau = random_case(3)
    a = kg.constrained_dynamics(model, held, q, v, tau).a
    back = kg.constrained_inverse_dynamics(model, held, q, v, a)
    supplied = back.tau + held.force(q, back.forces)
    np.testing.assert_allclose(supplied, kg.inverse_dynamics(model, q, v, a), atol=1e-10)
    size = (back.tau**2).sum(-1) + (back.forces**2).sum(-1)
    assert (size <= (kg.inverse_dynamics(model, q, v, a) ** 2).sum(-1) * (1 + 1e-12)).all()


def test_what_nothing_can_supply_is_refused():
    arm = kg.samples.two_link(gravity=(0, -10, 0))
    wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="x")])
    with pytest.raises(kg.SingularError, match=r"cannot supply .* in state 0: joint 'elbow' lacks"):
        kg.constrained_inverse_dynamics(arm, wall, np.zeros((2, 2)), [0, 0], [0, 0], actuated=["shoulder"])
    ship, _ = boat(1e6)
    none = kg.ConstraintSet(ship, [])
    with pytest.raises(kg.SingularError, match="joint 'boom' lacks"):  # little beside what the ship takes
        kg.constrained_inverse_dynamics(ship, none, [0, 0.3, 0.4], [0, 0, 0], [3, 0.1, 0.2], actuated=["sea"])
    none = kg.ConstraintSet(arm, [])
    with pytest.raises(kg.SingularError, match="joint 'shoulder' lacks"):
        kg.constrained_inverse_dynamics(arm, none, [0, 0], [0, 0], [0, 0], actuated=[])
    for wrong in (["elbow", "elbow"], np.eye(3), "elbow", [[np.nan], [0.0]], 5):
        with pytest.raises(kg.InputError):
            kg.constrained_inverse_dynamics(arm, wall, [0, 0], [0, 0], [0, 0], actuated=wrong)


# --- derivatives ------------------------------------------------------------------------------------------------------

NAMES = ("tau", "forces", "actuators")


def along(d, D):
    """Derivatives of a result times a direction of q, v and a."""
    return [sum(getattr(d, f"d{name}_d{x}") @ dx for x, dx in zip("qva", D, strict=True)) for name in NAMES]


def check_direction(model, held, q, v, a, S, *, seed=0, loads=None):
    """Derivatives of one state along a random direction, times that direction, against the oracle's."""
    given = [] if loads is None else [loads.force, loads.point, loads.torque]
    D = np.random.default_rng([seed, 51]).normal(size=(3, model.n))
    moved = [x + 1j * STEP * dx for x, dx in zip((q, v, a), D, strict=True)]
    u, f = reference.constrained_inverse_dynamics(model, held, *moved, S, *given)
    wanted = [S @ u, f, u]
    d = kg.constrained_inverse_dynamics_derivatives(model, held, q, v, a, actuated=S, loads=loads)
    for name, slope, x in zip(NAMES, along(d, D), wanted, strict=True):
        assert relative(getattr(d, name), x.real) < EXACT
        assert relative(slope, x.imag / STEP) < EXACT


@pytest.mark.parametrize("name", MECHANISMS)
def test_derivatives_of_mechanisms(name):
    # as many actuators as the motion needs; one for each joint, and more than joints
    model, held = MECHANISMS[name]()
    for seed, count in enumerate((model.n - held.m, model.n, model.n + 2)):
        q, v, tau = closed_state(model, held, seed)
        a = kg.constrained_dynamics(model, held, q, v, tau).a
        S = np.eye(model.n) if count == model.n else np.random.default_rng(seed).normal(size=(model.n, count))
        check_direction(model, held, q, v, a, S, seed=seed)


def test_derivatives_of_random_trees():
    for seed in range(20):
        model, held, q, v, a = random_case(seed, states=1)
        loads = (
            kg.Loads(*(x[0] for x in np.random.default_rng(seed).normal(size=(3, 1, model.n, 3)))) if seed % 2 else None
        )
        count = model.n - held.m if seed % 3 else model.n
        S = np.random.default_rng([seed, 52]).normal(size=(model.n, count))
        check_direction(model, held, q[0], v[0], a[0], S, seed=seed, loads=loads)


def test_derivatives_where_rows_are_redundant():
    # a hinge of five rows, of which the plane leaves two to lock: forces of least norm, whichever joints are driven
    model, loop = kg.samples.four_bar()
    pin = loop["pin"]
    hinge = kg.ConstraintSet(model, [kg.Loop(pin.link, other=pin.other, directions="xyzXZ")])
    q, v, tau = closed_state(model, loop, 1)
    a = kg.constrained_dynamics(model, loop, q, v, tau).a
    for S in (np.eye(3)[:, :1], np.eye(3)):
        check_direction(model, hinge, q, v, a, S)


def test_derivatives_where_actuators_cannot_supply_all_motions():
    # this motion they can; those nearby as nearly as can be
    arm = kg.samples.puma560()
    held = kg.ConstraintSet(arm, [kg.Contact(arm.link_names[-1], [0.1, 0, 0.2], directions="xy", name="tip")])
    q, v, u = np.random.default_rng(53).normal(size=(3, arm.n))
    S = np.eye(arm.n)[:, :2]
    a = kg.forward_dynamics(arm, q, v, S @ u[:2] + held.force(q, u[2:4]))
    check_direction(arm, held, q, v, a, S)


def test_derivatives_of_a_batch():
    model, held, q, v, a = random_case(21)
    loads = loads_of(model, 5)
    strap = kg.SpringDamper(model.link_names[-1], [0.1, 0, 0], other_point=[0, 0.5, 3], stiffness=40.0, damping=3.0)
    model = model.replace(elements={"strap": strap})
    held = kg.ConstraintSet(model, held)
    d = kg.constrained_inverse_dynamics_derivatives(model, held, q, v, a, loads=loads)
    value = kg.constrained_inverse_dynamics(model, held, q, v, a, loads=loads)
    assert all(getattr(d, name).tobytes() == getattr(value, name).tobytes() for name in NAMES)
    given = kg.Loads(loads.force[3], loads.point[3], loads.torque[3])
    one = kg.constrained_inverse_dynamics_derivatives(model, held, q[3], v[3], a[3], loads=given)
    for name, x in vars(one).items():
        assert relative(getattr(d, name)[3], x) < 1e-13
    # what is supplied changes as inverse dynamics does, with the spring
    torque = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
    Gt, curve = np.swapaxes(held.jacobian(q), -1, -2), held.curvature(q, d.forces)
    for x, bent in zip("qva", (curve, 0.0, 0.0), strict=True):
        supplied = getattr(d, f"dtau_d{x}") + Gt @ getattr(d, f"dforces_d{x}") + bent
        assert relative(supplied, getattr(torque, f"dtau_d{x}")) < EXACT
    none = kg.constrained_inverse_dynamics_derivatives(model, held, q[:0], v[:0], a[:0])
    assert none.dactuators_dq.shape == (0, model.n, model.n)


def test_derivatives_without_constraints_are_those_of_inverse_dynamics():
    model, _, q, v, a = random_case(1)
    d = kg.constrained_inverse_dynamics_derivatives(model, kg.ConstraintSet(model, []), q, v, a)
    for name, x in vars(kg.inverse_dynamics_derivatives(model, q, v, a)).items():
        assert relative(getattr(d, name), x) < 1e-14
    assert d.dforces_dq.shape == (5, 0, model.n)


def test_derivatives_in_coordinates_that_are_not_joints():
    # differences of sixth order are good to about 1e-10 of the largest
    h = 1e-3
    for seed in (1, 2):
        model = mixed_tree(seed)
        q, v, a = mixed_state(model, seed)
        held = independent_set(model, q, seed)
        D = dq, dv, da = np.random.default_rng([seed, 54]).normal(size=(3, model.nv))

        def at(k, model=model, held=held, q=q, v=v, a=a, dq=dq, dv=dv, da=da):
            moved = kg.integrate(model, q, k * h * dq), v + k * h * dv, a + k * h * da
            found = kg.constrained_inverse_dynamics(model, held, *moved)
            return np.concatenate([getattr(found, name) for name in NAMES])

        steps = [(at(k) - at(-k)) / (2 * k * h) for k in (1, 2, 3)]
        wanted = 1.5 * steps[0] - 0.6 * steps[1] + 0.1 * steps[2]
        d = kg.constrained_inverse_dynamics_derivatives(model, held, q, v, a)
        assert relative(np.concatenate(along(d, D)), wanted) < 1e-9


def test_derivatives_refuse_what_values_refuse():
    arm = kg.samples.two_link(gravity=(0, -10, 0))
    wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="x")])
    with pytest.raises(kg.SingularError, match=r"cannot supply .* in state 0: joint 'elbow' lacks"):
        kg.constrained_inverse_dynamics_derivatives(arm, wall, np.zeros((2, 2)), [0, 0], [0, 0], actuated=["shoulder"])
    for bad in (np.nan, "x", None):
        with pytest.raises(kg.InputError, match="`v`"):
            kg.constrained_inverse_dynamics_derivatives(arm, wall, [0.1, 0.2], [0, bad], [0, 0])
