"""Bodies welded to links: exact composite inertias, and what cannot be welded."""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, InputError, ModelError, samples
from tests.conftest import tree


def with_fixed_box(model, link, mass, point):
    """The same by another route: kinetic energy of the box by the motion of its point."""

    def torque_of_box(q, v, a):
        motion = kg.point_motion(model, q, v, a, link=link, point=point)
        J = kg.point_motion_derivatives(model, q, link=link, point=point).dposition_dq
        return J.T @ (mass * (motion.acceleration - model.gravity))

    return torque_of_box


@pytest.mark.parametrize("seed", range(4))
def test_torques_are_those_of_the_link_and_of_the_point_mass(seed):
    model = tree(seed)
    rng = np.random.default_rng(seed)
    link, point, mass = model.link_names[-1], rng.normal(size=3), 2.5
    q, v, a = rng.normal(size=(3, model.n))
    expected = kg.inverse_dynamics(model, q, v, a) + with_fixed_box(model, link, mass, point)(q, v, a)
    found = kg.inverse_dynamics(model.attach(link, mass, point=point), q, v, a)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * max(np.abs(expected).max(), 1))


def test_a_body_with_inertia_is_four_of_its_points():
    """A box stands for any body: its inertia is that of point masses with the same moments."""
    arm = samples.two_link()
    spread = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]) * 0.1
    about = sum(0.5 * (d @ d * np.eye(3) - np.outer(d, d)) for d in spread)
    whole = arm.attach("forearm", 3.0, point=[0.1, 0.2, 0.3], inertia=about)
    parts = arm
    for d in spread:
        parts = parts.attach("forearm", 0.5, point=np.array([0.1, 0.2, 0.3]) + d)
    for what in ("mass", "com", "inertia"):
        np.testing.assert_allclose(getattr(whole, what), getattr(parts, what), atol=1e-14)
    body = Inertia(3.0, [0.1, 0.2, 0.3], about)
    assert arm.attach("forearm", body) == whole


def test_a_frame_places_and_turns_the_body():
    turned = kg.translate(0.1, 0, 0) @ kg.rotate("z", np.pi / 2)
    arm = samples.two_link().replace(frames={"tool": kg.Frame("forearm", turned)})
    body = Inertia.box(2.0, [0.1, 0.2, 0.3], com=[0.05, 0, 0])
    seen = arm.attach("tool", body).link_inertia("forearm")
    expected = arm.link_inertia("forearm") + body.moved(turned)
    np.testing.assert_allclose(seen.pseudo, expected.pseudo, atol=1e-15)


def test_everything_else_stays():
    human = samples.human43()
    loaded = human.attach("right_hand", 5.0).attach("left_hand", 5.0)
    assert loaded.total_mass == pytest.approx(87.5)
    assert loaded.dh == human.dh
    np.testing.assert_array_equal(loaded.effort_limits, human.effort_limits)
    np.testing.assert_array_equal(loaded.position_limits, human.position_limits)
    assert pickle.loads(pickle.dumps(loaded)) == loaded
    assert human.attach("right_hand", 0.0) == human
    assert human.total_mass == pytest.approx(77.5)  # the original is as it was


def test_a_massless_link_becomes_the_body():
    human = samples.human43()
    loaded = human.attach("pelvis.rz", Inertia.box(2.0, [0.1, 0.1, 0.1]))
    assert loaded.link_inertia("pelvis.rz") == Inertia.box(2.0, [0.1, 0.1, 0.1])


def test_the_mass_can_be_a_design_parameter():
    """∂τ/∂(mass of the box), which goes through `attach` by complex numbers, is the torque of one kilogram."""
    arm = samples.two_link()
    design = kg.Design.from_function(lambda box: arm.attach("forearm", box, point=[0.05, 0, 0]), {"box": 2.0})
    q, v, a = np.array([[0.3, -0.4], [1.0, 2.0], [3.0, -1.0]])
    found = kg.design.inverse_dynamics_design_derivatives(design, q, v, a)
    one = with_fixed_box(arm, "forearm", 1.0, [0.05, 0, 0])(q, v, a)
    np.testing.assert_allclose(found[:, 0], one, atol=1e-12)


def test_replace_takes_whole_bodies_by_name():
    arm = samples.two_link()
    ball = Inertia.sphere(2.0, 0.1, com=[0.1, 0, 0])
    changed = arm.replace(inertia={"forearm": ball})
    assert changed.link_inertia("forearm") == ball
    assert changed.link_inertia("upper_arm") == arm.link_inertia("upper_arm")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.attach("hand", 1.0), InputError, "link 'hand'"),
        (lambda m: m.attach("forearm", -1.0), ModelError, "attached to 'forearm': `mass` is -1 kg"),
        (lambda m: m.attach("forearm", np.nan), ModelError, "attached to 'forearm': `mass`"),
        (lambda m: m.attach("forearm", "1"), ModelError, "attached to 'forearm': `mass`"),
        (lambda m: m.attach("forearm", 1.0, point=[0, 0]), ModelError, r"`com` has shape \(2,\)"),
        (lambda m: m.attach("forearm", 1.0, inertia=np.diag([1, 1, 5])), ModelError, "triangle inequality"),
        (lambda m: m.attach("forearm", 0.0, point=[1, 0, 0]), ModelError, "`mass` is 0 kg"),
        (lambda m: m.attach("forearm", Inertia.zero(), point=[1, 0, 0]), InputError, "`point` is given"),
        (
            lambda m: m.replace(inertia={"forearm": Inertia.zero(), "upper_arm": np.eye(3)}),
            ModelError,
            "either for all",
        ),
        (lambda m: m.replace(inertia={"forearm": Inertia.zero()}, mass=[1, 1]), InputError, "`mass` is given"),
        (lambda m: m.replace(inertia={"arm": Inertia.zero()}), InputError, "link 'arm'"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(samples.two_link())
