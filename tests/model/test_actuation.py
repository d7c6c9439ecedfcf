"""What drives a model: torques of controls and back, under- and over-actuated."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Actuation, samples
from kinegrad.errors import InputError, ModelError


def test_without_actuation_every_speed_is_driven():
    arm = samples.two_link()
    assert arm.actuation is None
    assert (arm.nu, arm.actuator_names) == (2, arm.speed_names)
    u = np.array([1.0, 2.0])
    assert np.array_equal(arm.torques(u), u)
    assert arm.torques(u) is not u
    assert np.array_equal(arm.controls(u), u)


def test_under_actuated():
    """A cart whose pendulum is not driven: batches, derivatives, and torques that no control causes."""
    cart = samples.cart_pendulum().replace(actuation=["track"])
    assert (cart.nu, cart.actuator_names) == (1, ("track",))
    u = np.linspace(-1, 1, 5)[:, None]
    tau = cart.torques(u)
    assert np.array_equal(tau, np.column_stack([u[:, 0], np.zeros(5)]))
    assert np.array_equal(cart.controls(tau), u)
    q, v = np.array([0.1, 0.4]), np.array([0.3, -0.2])
    S = cart.actuation.matrix
    by_u = kg.forward_dynamics_derivatives(cart, q, v, tau[1]).da_dtau @ S
    one = kg.forward_dynamics(cart, q, v, cart.torques([1.0])) - kg.forward_dynamics(cart, q, v, cart.torques([0.0]))
    assert np.allclose(by_u[:, 0], one, atol=1e-13)
    with pytest.raises(InputError, match=r"`tau` of 'hinge' is 3 in state 1, which the actuators .* cannot produce"):
        cart.controls([[1.0, 0.0], [1.0, 3.0]])


def test_over_actuated():
    """Three muscles on two joints: the smallest controls that cause a torque, by columns given in any way."""
    S = np.array([[0.03, -0.02, 0.04], [0.0, 0.05, -0.03]])
    arm = samples.two_link()
    shoulder, elbow = arm.joint_names
    ways = [
        Actuation(["flexor", "extensor", "biceps"], S),
        dict(zip(("flexor", "extensor", "biceps"), S.T, strict=True)),
        {
            "flexor": {shoulder: 0.03},
            "extensor": {shoulder: -0.02, elbow: 0.05},
            "biceps": {shoulder: 0.04, elbow: -0.03},
        },
    ]
    models = [arm.replace(actuation=x) for x in ways]
    assert models[0] == models[1] == models[2]
    assert hash(models[0]) == hash(models[2])
    assert models[0] != arm
    assert pickle.loads(pickle.dumps(models[0])) == models[0]
    tau = np.array([[1.0, -2.0], [0.0, 0.0]])
    u = models[0].controls(tau)
    assert np.allclose(models[0].torques(u), tau, rtol=1e-13)
    assert np.allclose(u, np.linalg.lstsq(S, tau.T, rcond=None)[0].T, rtol=1e-12)
    assert "3 actuators: flexor, extensor, biceps" in repr(models[0])
    with pytest.raises(ValueError, match="read-only"):
        models[0].actuation.matrix[0, 0] = 1


def test_coordinates_that_are_not_joints():
    """Actuators drive speeds; the primitive of a model, whose speeds are others, is driven by itself."""
    gripper = kg.ModelBuilder("gripper")
    gripper.add("left", None, kg.prismatic("y"), inertia=kg.Inertia.point(0.1, [0, 0, 0]))
    gripper.add("right", None, kg.prismatic("y"), inertia=kg.Inertia.point(0.1, [0, 0, 0]))
    gripper.mimic("right", "left", multiplier=-1.0)
    gripper.actuate({"motor": {"left": 5.0}})
    model = gripper.build()
    assert model.torques([2.0]).tolist() == [10.0]
    assert model.primitive.actuator_names == ("left", "right")


@pytest.mark.parametrize(
    ("actuation", "message"),
    [
        (5, "`actuation` is 5; expected an Actuation, names of driven coordinates"),
        ("elbow", "`actuation` is 'elbow'; expected"),
        (["elbw"], "speed 'elbw' does not exist in model 'two_link'; did you mean 'elbow'"),
        (["elbow", "elbow"], "expected no name twice"),
        ({"m": [1, 2, 3]}, r"`actuation` of 'm' has shape \(3,\); expected \(2,\)"),
        ({"m": {"elbow": [1, 2]}}, "`actuation` of 'm' on 'elbow' is .*; expected a number"),
        ({"m": "abc"}, "`actuation` of 'm' is a str; expected 2 numbers"),
        ({"": [1, 2]}, "the names of actuators are .*; expected different ones, none empty"),
        ({"m": [1, np.inf]}, "`matrix` of an Actuation is not finite"),
    ],
)
def test_what_is_refused(actuation, message):
    with pytest.raises(ModelError, match=message):
        samples.two_link().replace(actuation=actuation)


def test_matrices_that_do_not_fit():
    with pytest.raises(ModelError, match=r"`matrix` of an Actuation has shape \(2, 2\); expected \(nv, 1\)"):
        Actuation(["a"], np.eye(2))
    with pytest.raises(ModelError, match="`actuation` has a matrix of 3 rows; model 'two_link' has 2 speeds"):
        samples.two_link().replace(actuation=Actuation(["a"], np.ones((3, 1))))


@pytest.mark.parametrize("bad", [None, "1", [1.0], [np.nan, 1.0], np.ma.array([1.0, 2.0], mask=[1, 0]), [1j, 0]])
def test_controls_that_are_refused(bad):
    for call, name in ((samples.two_link().torques, "u"), (samples.two_link().controls, "tau")):
        with pytest.raises(InputError, match=f"`{name}`"):
            call(bad)


def test_no_states():
    cart = samples.cart_pendulum().replace(actuation=["track"])
    assert cart.torques(np.zeros((0, 1))).shape == (0, 2)
    assert cart.controls(np.zeros((0, 2))).shape == (0, 1)
    none = samples.two_link().replace(actuation=[])
    assert none.torques(np.zeros((4, 0))).tolist() == [[0.0, 0.0]] * 4
    assert none.controls(np.zeros((4, 2))).shape == (4, 0)
