"""Which torques a model can have, found from the model."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion.problem.actuators import actuators_of


def test_the_third_turn_of_the_human_is_shared():
    """Not the first six rows: τ₅, τ₁₃ and τ₂₁ are actuated, and their sum is not."""
    found = actuators_of(kg.samples.human43())
    assert found.row_names[:5] == ("pelvis.tz", "pelvis.ty", "pelvis.tx", "pelvis.rx", "pelvis.rz")
    assert found.row_names[5] == "right_pelvis + left_pelvis + lumbar"
    assert len(found.names) == 38
    assert "lumbar" in found.names


def test_the_rows_are_what_gravity_and_inertia_of_the_whole_body_leave():
    """Independent of the search: without contact these torques are the rate of momentum, whatever joints do."""
    human = kg.samples.human43(gravity=(0, 0, 0))
    N = actuators_of(human).N
    rng = np.random.default_rng(0)
    q, a = 0.3 * rng.standard_normal((2, 43))
    inner = np.eye(43) - np.linalg.pinv(N) @ N
    wrench = N @ kg.inverse_dynamics(human, q, np.zeros(43), a)
    linear = kg.momentum(human, q, a).linear  # M a of the whole body, as speeds are not there
    np.testing.assert_allclose(np.sort(np.abs(wrench[:3])), np.sort(np.abs(linear)), atol=1e-9)
    assert np.linalg.matrix_rank(inner) == 37


def test_a_floating_body_in_the_plane():
    assert actuators_of(kg.samples.human_sagittal()).row_names == ("trunk.tz", "trunk.tx", "trunk.ry")


@pytest.mark.parametrize("model", [kg.samples.two_link(), kg.samples.puma560(), kg.samples.cart_pendulum()])
def test_what_stands_on_the_ground_has_motors(model):
    """The first joint of an arm moves all of it, too, and is driven; so is a cart on its track."""
    found = actuators_of(model)
    assert not len(found.N)
    assert found.names == model.speed_names


def test_strength_zero_is_no_motor():
    found = actuators_of(kg.samples.two_link().replace(effort_limits=(10.0, 0.0)))
    assert found.row_names == ("elbow",)
    assert found.names == ("shoulder",)


def test_a_matrix_of_actuation():
    """u = S⁺τ, and Nᵀ S = 0."""
    S = np.array([[1, 1], [0, 2], [0, 0.0]])
    model = kg.samples.multi_pendulum(3).replace(actuation=kg.Actuation(["a", "b"], S))
    found = actuators_of(model)
    np.testing.assert_allclose(found.E @ S, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(found.N @ S, 0, atol=1e-12)
    assert len(found.N) == 1


def test_motors_by_name():
    found = actuators_of(kg.samples.two_link(), ["elbow"])
    assert found.row_names == ("shoulder",)


def test_limits_of_joints_that_follow_are_spoken_of():
    """A coordinate has the limits of the joint of its name; where those of others are exceeded, a note says so."""
    builder = kg.ModelBuilder("gear")
    rod = kg.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0))
    builder.add("a", None, kg.revolute("y"), link="A", inertia=rod, position_limits=(-0.5, 0.5))
    builder.add("b", "A", kg.revolute("y"), link="B", placement=[0.4, 0, 0], inertia=rod, position_limits=(-0.8, 0.8))
    builder.couple("a", {"a": 1.0, "b": 2.0})
    problem = kg.motion.MotionProblem(builder.build())
    assert "limits of joint 'b', which follows coordinate 'a', are not kept" in problem.describe()
    tighter = kg.motion.Limits(q={"a": 0.4})
    assert not kg.motion.MotionProblem(builder.build(), kg.motion.Phase(), [tighter]).notes
