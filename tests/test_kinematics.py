"""Where links and points are and how they move, against the oracle's exact derivatives of the transforms."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, random_state, tree
from tests.reference import oracle

# Products of up to 40 transforms, each right to a few 1e-16 of its largest entry.
CLOSE = 1e-13
trees = pytest.mark.parametrize("seed", range(30))


def check_links(model, seed):
    q, v, a = random_state(model, seed)
    motion = kg.forward_kinematics(model, q, v, a)
    T, dT, ddT = oracle.transform_motion(model, q, v, a)
    assert_close(motion.transform, T, CLOSE)
    assert_close(motion.linear_velocity, dT[:, :3, 3], CLOSE)
    assert_close(motion.linear_acceleration, ddT[:, :3, 3], CLOSE)
    w, dw = zip(*(oracle.angular_motion(model, q, v, a, j) for j in range(0, model.n, 5)), strict=True)
    assert_close(motion.angular_velocity[::5], w, CLOSE)
    assert_close(motion.angular_acceleration[::5], dw, CLOSE)
    assert np.array_equal(motion.transform[:, 3], np.broadcast_to([0, 0, 0, 1], (model.n, 4)))


def check_points(model, seed):
    """Points away from the frames' origins, so that turning moves them."""
    q, v, a = random_state(model, seed)
    links = range(0, model.n, 6)
    points = np.random.default_rng(seed).normal(size=(len(links), 3))
    motion = kg.point_motion(model, q, v, a, link=[model.link_names[j] for j in links], point=points)
    desired = [oracle.point_motion(model, q, v, a, j, r) for j, r in zip(links, points, strict=True)]
    for actual, expected in zip(
        (motion.position, motion.velocity, motion.acceleration), zip(*desired, strict=True), strict=True
    ):
        assert_close(actual, expected, CLOSE)


def check_jacobians(model, seed):
    q, v, _ = random_state(model, seed)
    links = range(0, model.n, 4)
    points = np.random.default_rng(seed).normal(size=(len(links), 3))
    names = [model.link_names[j] for j in links]
    J = kg.jacobian(model, q, link=names, point=points)
    desired = [oracle.jacobian(model, q, j, r) for j, r in zip(links, points, strict=True)]
    assert_close(J.linear, [linear for linear, _ in desired], CLOSE)
    assert_close(J.angular, [angular for _, angular in desired], CLOSE)
    # what it is for
    assert_close(J.linear @ v, kg.point_motion(model, q, v, link=names, point=points).velocity, CLOSE)
    assert_close(J.angular @ v, kg.forward_kinematics(model, q, v).angular_velocity[::4], CLOSE)
    for k, j in enumerate(links):
        others = ~model.topology.support[j]
        assert not J.linear[k][:, others].any(), "joints that do not carry the link do not move it: exactly zero"
        assert not J.angular[k][:, others].any()


@pytest.mark.parametrize("check", [check_links, check_points, check_jacobians])
def test_samples_equal_oracle(sample, check):
    check(sample, 1)


@pytest.mark.parametrize("check", [check_links, check_points, check_jacobians])
@trees
def test_random_trees_equal_oracle(seed, check):
    check(tree(seed), seed)


@pytest.mark.parametrize("check", [check_links, check_points, check_jacobians])
def test_long_chain_equals_oracle(check):
    check(samples.spatial_chain(40), 2)


# --- [zhakatayev2023] (6) -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("off", [0.0, 1e-300, 1e-12, 1e-9, 1e-8, 1.5e-8, 1e-7])
def test_axes_that_are_almost_z(off, way):
    """Half a turn about a takes u to 2a(a·u) − u.  The third component of a unit vector that is 1e-8 off z is 1."""
    axis = way * np.array([off, -2 * off, 1.0])
    builder = kg.ModelBuilder()
    builder.add("link", None, kg.revolute(axis))
    axis /= np.linalg.norm(axis)
    found = kg.forward_kinematics(builder.build(), [np.pi]).transform[0, :3, :3]
    np.testing.assert_allclose(found, 2 * np.outer(axis, axis) - np.eye(3), rtol=0, atol=4e-15)  # three products


@pytest.mark.parametrize("length", [np.nextafter(1, 0), np.nextafter(1, 2), -np.nextafter(1, 0)])
def test_turns_about_z_are_whole(length):
    """An axis keeps its bits if its length is 1 to rounding; a large angle is not to be multiplied by that length."""
    builder = kg.ModelBuilder()
    builder.add("link", None, kg.revolute([0.0, 0.0, length]))
    found = kg.forward_kinematics(builder.build(), [1e12]).transform[0, 0, :2]
    np.testing.assert_allclose(found, [np.cos(1e12), -np.sign(length) * np.sin(1e12)], rtol=0, atol=1e-15)


def test_points_move_by_derivatives_of_transforms():
    """[zhakatayev2023] (6): T r, Ṫ r and T̈ r, with Ṫ and T̈ the rates along q(t) = q + v t + ½ a t².

    Ṫ is a complex step of the oracle's T; T̈ a complex step of its Ṫ.
    """
    human = samples.human43()
    q, v, a = random_state(human, 3)
    j, r = human.link_index("left_hand"), np.array([0.1, -0.05, 0.02])
    hand = kg.point_motion(human, q, v, a, link="left_hand", point=r)
    T = oracle.transforms(human, q)[j]
    dT = oracle.rate(lambda q: oracle.transforms(human, q)[j], (q, v))
    ddT = oracle.rate(lambda q, v: oracle.transform_motion(human, q, v, a)[1][j], (q, v), (v, a))
    for actual, X in zip((hand.position, hand.velocity, hand.acceleration), (T, dT, ddT), strict=True):
        assert_close(actual, (X @ [*r, 1.0])[:3], CLOSE)


def test_accelerations_are_kinematic():
    """A body at rest does not accelerate, whatever gravity there is."""
    arm = samples.two_link()
    still = kg.forward_kinematics(arm, [0.3, 0.4], [0, 0], [0, 0])
    assert not still.linear_acceleration.any()
    assert not still.angular_acceleration.any()


def test_a_turning_arm_accelerates_inwards():
    """On a circle of 0.8 m at 2 rad/s: speed 1.6 m/s, acceleration 3.2 m/s² to the centre."""
    hand = kg.point_motion(samples.two_link(), [0, 0], [2, 0], [0, 0], link="forearm")
    np.testing.assert_allclose(hand.velocity, [0, 1.6, 0], atol=1e-15)
    np.testing.assert_allclose(hand.acceleration, [-3.2, 0, 0], atol=1e-15)


# --- shapes -------------------------------------------------------------------------------------------------


def test_fields_that_were_not_asked_for_are_none():
    arm, zero = samples.two_link(), [0, 0]
    for given in ((), (zero,), (zero, zero)):
        links = kg.forward_kinematics(arm, zero, *given)
        assert (links.linear_velocity is None) == (links.angular_velocity is None) == (len(given) < 1)
        assert (links.linear_acceleration is None) == (links.angular_acceleration is None) == (len(given) < 2)
        point = kg.point_motion(arm, zero, *given, link="forearm")
        assert (point.velocity is None, point.acceleration is None) == (len(given) < 1, len(given) < 2)


def test_one_link_many_links_and_one_point_for_many():
    model = samples.human43()
    q, v, a = random_state(model, batch=(2, 3))
    names = ["left_hand", "head", "left_hand"]
    points = np.arange(9.0).reshape(3, 3) / 10
    many = kg.point_motion(model, q, v, a, link=names, point=points)
    J = kg.jacobian(model, q, link=names, point=points)
    assert many.position.shape == many.velocity.shape == many.acceleration.shape == (2, 3, 3, 3)
    assert J.linear.shape == J.angular.shape == (2, 3, 3, 3, 43)
    for k, (name, point) in enumerate(zip(names, points, strict=True)):
        one = kg.point_motion(model, q, v, a, link=name, point=point)
        assert one.position.shape == (2, 3, 3)
        for field in ("position", "velocity", "acceleration"):
            assert np.array_equal(getattr(one, field), getattr(many, field)[:, :, k])
        own = kg.jacobian(model, q, link=name, point=point)
        assert np.array_equal(own.linear, J.linear[:, :, k])
        assert np.array_equal(own.angular, J.angular[:, :, k])
    shared = kg.point_motion(model, q, link=names, point=points[1]).position
    assert np.array_equal(shared, kg.point_motion(model, q, link=names, point=[points[1]] * 3).position)
    alone = kg.point_motion(model, q, link=["head"], point=points[1]).position
    assert alone.shape == (2, 3, 1, 3), "a list of one link keeps its axis"
    assert np.array_equal(alone[:, :, 0], shared[:, :, 1])


def test_points_are_frame_origins_by_default():
    model = tree(4)
    q = random_state(model)[0]
    position = kg.point_motion(model, q, link=model.link_names).position
    assert_close(position, kg.forward_kinematics(model, q).transform[:, :3, 3], CLOSE)


def test_batches_broadcast_to_the_same_bits():
    model = tree(9)
    q, v, a = random_state(model, batch=(3, 4))
    motion = kg.forward_kinematics(model, q, v[:1], a[0, 0])
    alone = kg.forward_kinematics(model, q[2, 3], v[0, 3], a[0, 0])
    for field in vars(motion):
        assert np.array_equal(getattr(motion, field)[2, 3], getattr(alone, field))


# --- errors -------------------------------------------------------------------------------------------------


def test_acceleration_needs_velocity():
    arm, zero = samples.two_link(), [0, 0]
    for call in (kg.forward_kinematics, lambda *a, **k: kg.point_motion(*a, **k, link="forearm")):
        with pytest.raises(kg.InputError, match="`a` is given without `v`"):
            call(arm, zero, a=zero)


@pytest.mark.parametrize("function", [kg.point_motion, kg.jacobian])
def test_unknown_link_comes_with_the_closest_names(function):
    human = samples.human43()
    with pytest.raises(kg.InputError, match=r"link 'left_hnd' does not exist in model 'human43'.*'left_hand'"):
        function(human, np.zeros(43), link="left_hnd")
    with pytest.raises(kg.InputError, match="'right_thigh'"):
        function(human, np.zeros(43), link=["head", "right_thig"])


@pytest.mark.parametrize("function", [kg.point_motion, kg.jacobian])
@pytest.mark.parametrize(
    ("link", "point", "message"),
    [
        ("forearm", [0, 0], r"`point` has shape \(2,\); expected \(3,\)"),
        ("forearm", [[0, 0, 0]], r"`point` has shape \(1, 3\); expected \(3,\)"),
        (
            ["forearm", "upper_arm"],
            np.zeros((3, 3)),
            r"`point` has shape \(3, 3\); expected \(3,\) or \(2, 3\)",
        ),
        ("forearm", [0, np.nan, 0], r"`point` at index \(1,\) is nan; expected finite numbers"),
        ("forearm", "tip", "`point` holds str"),
    ],
)
def test_wrong_points_are_described(function, link, point, message):
    with pytest.raises(kg.InputError, match=message):
        function(samples.two_link(), [0, 0], link=link, point=point)


def test_wrong_state_shape_is_described():
    expected = "`q` has shape (301, 42); model 'human43' has 43 degrees of freedom, so its last axis must be 43"
    with pytest.raises(kg.InputError) as caught:
        kg.forward_kinematics(samples.human43(), np.zeros((301, 42)))
    assert str(caught.value) == expected
