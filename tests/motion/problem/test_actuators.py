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


SIX = ("root.tx", "root.ty", "root.tz")


def person(coupled, base, **fields):
    """A floating pelvis with a leg whose two hinges are coupled in some way."""
    builder = kg.ModelBuilder("person")
    bone = kg.Inertia.rod(4.0, (0, 0, 0), (0, 0, -0.4))
    builder.add("root", None, base, link="pelvis", inertia=bone)
    builder.add("hip", "pelvis", kg.revolute("x"), link="thigh", placement=[0, 0, -0.1], inertia=bone)
    builder.add("slide", "thigh", kg.prismatic("z"), link="patella", placement=[0, 0, -0.4])
    builder.add("knee", "patella", kg.revolute("x"), link="shank", inertia=bone, **fields)
    spline = kg.SplineFunction([-2.0, -0.5, 0.0], [0.01, 0.03, 0.0])
    if coupled == "mimic":
        builder.mimic("knee", "hip", multiplier=-2.0)
    elif coupled == "couple":
        builder.couple("bend", {"hip": 1.0, "knee": -2.0})
    elif coupled == "spline":
        builder.couple("knee", {"knee": 1.0, "slide": spline})
    return builder.build()


@pytest.mark.parametrize("coupled", ["not", "mimic", "couple", "spline"])
@pytest.mark.parametrize("quaternion", [False, True])
def test_a_floating_base_is_found_with_coupled_coordinates(coupled, quaternion):
    """What couples a knee far from the base gives the base no motor."""
    model = person(coupled, kg.free(quaternion=quaternion))
    turns = ("root.wx", "root.wy", "root.wz") if quaternion else ("root.rz", "root.ry", "root.rx")
    found = actuators_of(model)
    assert found.row_names == SIX + turns
    assert found.names == model.speed_names[6:]


@pytest.mark.parametrize("coupled", ["mimic", "couple", "spline"])
def test_the_rows_of_coupled_models_are_the_rate_of_momentum(coupled):
    """Independent of the search: nothing outside acts on these rows, so they are what moves the centre of mass."""
    model = person(coupled, kg.free()).replace(gravity=(0, 0, 0))
    N = actuators_of(model).N
    rng = np.random.default_rng(1)
    q, a = 0.3 * rng.standard_normal((2, model.nv))
    tau = kg.inverse_dynamics(model, q, np.zeros(model.nv), a)
    np.testing.assert_allclose((N @ tau)[:3], kg.momentum(model, q, a).linear, atol=1e-9)


@pytest.mark.parametrize("coupled", ["mimic", "couple", "spline"])
def test_the_actuation_of_a_coupled_model_is_taken(coupled):
    model = person(coupled, kg.free())
    last = model.speed_names[-1]
    found = actuators_of(model.replace(actuation=[last]))
    assert found.names == (last,)
    assert found.row_names == model.speed_names[:-1]


def test_a_link_without_mass_hides_no_floating_base():
    """A finger without inertia moves freely when the rest is rigid, and is no rigid motion of the body."""
    builder = kg.ModelBuilder("drone")
    builder.add("root", None, kg.free(), link="hull", inertia=kg.Inertia.sphere(1.0, 0.1))
    builder.add("finger", "hull", kg.revolute("x"), link="tip", placement=[0.1, 0, 0])
    assert len(actuators_of(builder.build()).N) == 6


def test_each_mechanism_floats_or_stands_by_itself():
    """A person beside an arm on the ground floats, and so does a box beside the person."""
    builder = kg.ModelBuilder("two and an arm")
    body = kg.Inertia.box(2.0, (0.1, 0.2, 0.3))
    builder.add("a", None, kg.free(), link="A", inertia=body)
    builder.add("b", None, kg.free(quaternion=True), link="B", inertia=body)
    builder.add("arm", None, kg.revolute("y"), link="C", inertia=body)
    found = actuators_of(builder.build())
    assert len(found.N) == 12
    assert found.names == ("arm",)


def test_a_fixed_coordinate_of_a_coupling_is_held_in_the_simulation():
    """Not the joint of its name at the coordinate's number: q̂ = 2 q here."""
    builder = kg.ModelBuilder("gear")
    rod = kg.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0))
    builder.add("a", None, kg.revolute("y"), link="A", inertia=rod)
    builder.add("b", "A", kg.revolute("y"), link="B", placement=[0.4, 0, 0], inertia=rod)
    builder.add("c", "B", kg.revolute("y"), link="C", placement=[0.4, 0, 0], inertia=rod)
    builder.couple("b", {"b": 2.0, "c": 0.5})
    ends = [kg.motion.Boundary("start", q={"a": 0.0}, v=0), kg.motion.Boundary("end", q={"a": 0.5}, v=0)]
    problem = kg.motion.MotionProblem(
        builder.build(), kg.motion.Phase(duration=0.5, segments=4), [*ends, kg.motion.Fixed({"b": 0.3})],
        kg.motion.Effort(),
    )  # fmt: skip
    proof = problem.solve().verify(mujoco=False)
    assert proof.in_segments < 1e-7
