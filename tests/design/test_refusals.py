"""What is refused: constants, parameters, designs, values and states that are none."""

import re

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, InputError, SingularError, samples
from tests.conftest import random_state, tree


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forearm.mas", "did you mean 'forearm.mass'"),
        ("forarm.mass", "did you mean 'forearm.mass'"),
        ("elbow.aplha", "did you mean 'elbow.alpha'"),
        ("elbow.placement.w", "did you mean 'elbow.placement."),
        ("gravity.w", "'gravity' has x, y, z"),
        ("forearm.inertia.xw", "did you mean 'forearm.inertia."),
        ("forearm.com.4", "does not exist in model"),
        ("forearm", "does not exist in model"),
        ("", "does not exist in model"),
        ("...", "does not exist in model"),
        ("elbow.mass", "does not exist in model"),
        ("elbow.pitch", "joint 'elbow' of model 'two_link' is revolute; only a screw has a pitch"),
    ],
)
def test_unknown_constants(name, message):
    arm = samples.two_link()
    for parameters in ([name], {"x": name}, {"x": {name: 1.0}}):
        with pytest.raises(InputError, match=message):
            Design(arm, parameters)


def test_joints_that_are_not_rows():
    model = tree(0)
    with pytest.raises(InputError, match=r"'joint0' .* not placed by a Denavit–Hartenberg row.* use joint0\."):
        Design(model, ["joint0.a"])
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("z"), link="bob", inertia=Inertia.point(1.0, [1, 0, 0]))
    with pytest.raises(InputError, match=r"as Model.from_dh does; use hinge.placement.x"):
        Design(builder.build(), ["hinge.theta"])  # in which convention, nobody knows


@pytest.mark.parametrize(
    "parameters",
    [
        "forearm.mass", None, 3, [], {}, ["forearm.mass", "forearm.mass"], [None], [["forearm.mass"]],
        {1: "forearm.mass"},
        [{"forearm.mass": 1.0}], {"x": None}, {"x": {}}, {"x": {"forearm.mass": "1"}}, {"x": {"forearm.mass": np.nan}},
        {"x": {"forearm.mass": [1.0]}}, {"x": {"forearm.mass": True}}, {"x": {3: 1.0}}, {"x": ["forearm.mass"]},
    ],
)  # fmt: skip
def test_parameters_that_are_none(parameters):
    with pytest.raises(InputError, match=r"`parameters|constant 3"):
        Design(samples.two_link(), parameters)


def test_only_models_have_designs():
    with pytest.raises(InputError, match="`model` is a str"):
        Design("arm", ["forearm.mass"])


BODY = Inertia.box(1.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0])


def with_joint(joint, link, name="hand"):
    builder = kg.ModelBuilder("arm")
    builder.add("base", None, kg.revolute("z"), link="arm", inertia=BODY)
    builder.add(name, "arm", joint, link=link, inertia=BODY, placement=[0.3, 0, 0])
    return builder.build()


SERIES = {
    "ball": (kg.spherical(quaternion=True), "pose_z", "wz", {"damping": ["wx", "wy", "wz"]}),
    "euler": (kg.spherical("zxy"), "z", "y", {"armature": ["z", "x", "y"]}),
    "universal": (kg.universal("xy"), "x", "y", {"stiffness": ["x", "y"]}),
    "planar": (kg.planar(), "tx", "rz", {"rest": ["tx", "ty", "rz"]}),
    "free": (kg.free(), "tx", "rx", {"damping": ["tx", "ty", "tz"]}),
    "floating": (kg.free(quaternion=True), "tx", "wz", {"armature": ["tx", "ty", "tz"]}),
}


@pytest.mark.parametrize("link", ["hand", "palm"])
@pytest.mark.parametrize("kind", SERIES)
def test_constants_of_joints_in_series_are_suggested(kind, link):
    """What is suggested can be a parameter, whatever the link is called, and can be evaluated."""
    joint, first, last, others = SERIES[kind]
    model = with_joint(joint, link)
    expected = {"placement.x": [first], "placement.ry": [first], "placment.x": [first], "tip.z": [last]} | others
    for what, labels in expected.items():
        names = [f"hand.{label}.{what.replace('placment', 'placement')}" for label in labels]
        said = " or ".join(map(repr, names))
        with pytest.raises(InputError, match=re.escape(f"did you mean {said}?")):
            Design(model, [f"hand.{what}"])
        assert np.isfinite(kg.mass_matrix_design_derivatives(Design(model, names), kg.neutral(model))).all()
    if link != "hand":
        with pytest.raises(InputError, match=r"did you mean 'palm\.mass'"):
            Design(model, ["hand.mass"])
    with pytest.raises(InputError, match=rf"joint 'hand' has hand\.{first}\.placement\.x, …, hand\.{last}\.tip\.x, …"):
        Design(model, ["hand.pitch"])


INSIDE = [f"hand.{hinge}.{what}" for what, hinges in {
    "placement.x": ["pose_y", "pose_x", "wx", "wy", "wz"], "placement.rz": ["pose_y", "wx"],
    "tip.x": ["pose_z", "pose_y", "pose_x", "wx", "wy"], "tip.rx": ["pose_z", "wy"],
    "mass": ["pose_z", "wy"], "com.y": ["wx"], "inertia.xy": ["wx"], "load.force.y": ["wx"], "load.point.x": ["pose_x"],
    "stiffness": ["pose_z", "wz"], "armature": ["pose_x", "wx", "wz"],
}.items() for hinge in hinges]  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_what_is_inside_a_ball_cannot_vary(name):
    """Refused when the design is made: no function could evaluate it."""
    model = with_joint(kg.spherical(quaternion=True), "palm")
    loads = kg.Loads(force={"palm": [1, 0, 0]})
    for parameters in ([name], {"x": {"palm.mass": 1.0, name: 0.5}}):
        with pytest.raises(InputError, match=rf"constant '{re.escape(name)}' cannot vary: .* one ball joint .* 'palm'"):
            Design(model, parameters, loads)


@pytest.mark.parametrize("design", [None, samples.two_link(), ["forearm.mass"]])
def test_not_a_design(design):
    with pytest.raises(InputError, match="expected a Design"):
        kg.inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.mass_matrix_design_derivatives(design, [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.transform_design_derivatives(design, [0, 0])
    with pytest.raises(InputError, match="expected a Design"):
        kg.energy_design_derivatives(design, [0, 0], [0, 0])


def test_wrong_values():
    design = Design(samples.two_link(), ["forearm.mass", "elbow.a"])
    with pytest.raises(InputError, match=r"`values` has shape \(3,\); this design has 2 parameters"):
        design.at([1, 2, 3])
    with pytest.raises(InputError, match=r"`values` at index \(1,\) is nan"):
        design.at([1, np.nan])
    with pytest.raises(InputError, match="`values` holds"):
        design.at(["a", "b"])
    with pytest.raises(kg.ModelError, match="forearm"):
        design.at([-1, 0.4])


def test_wrong_states():
    design = Design(samples.two_link(), ["forearm.mass", "elbow.a", "gravity.y"])
    zero = np.zeros(2)
    with pytest.raises(InputError, match=r"`v` has shape \(3,\)"):
        kg.inverse_dynamics_design_derivatives(design, zero, np.zeros(3), zero)
    with pytest.raises(InputError, match=r"`q` at index \(1,\) is inf"):
        kg.mass_matrix_design_derivatives(design, [0, np.inf])
    with pytest.raises(InputError, match=r"`tau` at index \(0,\) is nan"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, [np.nan, 0])
    loads = kg.Loads(force={"forearm": [np.nan, 0, 0]})
    with pytest.raises(InputError, match=r"`loads\.force` at index"):
        kg.inverse_dynamics_design_derivatives(design, zero, zero, zero, loads=loads)
    with pytest.raises(InputError, match=r"`dq_dp` has shape \(3, 2\); expected \(2, 3\)"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dq_dp=np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"`dv_dp` has shape \(7, 2, 3\)"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dv_dp=np.zeros((7, 2, 3)))
    with pytest.raises(InputError, match=r"`dtau_dp` at index \(0, 1\) is nan"):
        kg.forward_dynamics_design_derivatives(design, zero, zero, zero, dtau_dp=[[0, np.nan, 0], [0, 0, 0]])


@pytest.mark.parametrize("states", [1, 9])
def test_singular_mechanism(states):
    """Slender limbs: nothing resists their turning about themselves.  Torques are still differentiated."""
    model = samples.human43()
    design = Design(model, [f"{link}.mass" for link in model.link_names[:4]])
    state = random_state(model, batch=(states,))
    with pytest.raises(SingularError, match="nothing resists joint '"):
        kg.forward_dynamics_design_derivatives(design, *state)
    assert np.isfinite(kg.inverse_dynamics_design_derivatives(design, *state)).all()
