"""Numbers of joints are one for all, one for each, or by name, wherever they are given; degrees are noticed."""

import warnings

import numpy as np
import pytest

import kinegrad as kg

UR5 = [(0, 0.089159, 0, np.pi / 2), (0, 0, -0.425, 0), (0, 0, -0.39225, 0), (0, 0.10915, 0, np.pi / 2)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (2.0, [2, 2, 2, 2]),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
        ({"joint1": 3}, [0, 3, 0, 0]),
        (np.float64(2), [2, 2, 2, 2]),
    ],
)
@pytest.mark.parametrize("what", ["damping", "armature", "stiffness", "rest"])
def test_scalars_arrays_and_names(what, given, expected):
    model = kg.Model.from_dh(UR5, **{what: given})
    np.testing.assert_array_equal(getattr(model, what), expected)
    again = kg.Model.from_dh(UR5).replace(**{what: given})
    np.testing.assert_array_equal(getattr(again, what), expected)


def test_limits_by_name_and_for_all():
    model = kg.Model.from_dh(UR5, position_limits=(-1, 2), effort_limits={"joint0": 150}, velocity_limits=3)
    np.testing.assert_array_equal(model.position_limits, [[-1, 2]] * 4)
    np.testing.assert_array_equal(model.effort_limits, [150, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(model.velocity_limits, [3] * 4)
    model = kg.Model.from_dh(UR5, position_limits={"joint2": (0, 1)})
    np.testing.assert_array_equal(model.position_limits[1:3], [[-np.inf, np.inf], [0, 1]])


def test_a_composite_joint_by_its_name_and_its_letters():
    builder = kg.ModelBuilder("leg")
    builder.add("hip", None, kg.spherical("zxy"), inertia=kg.Inertia.sphere(1, 0.1), damping={"x": 0.5})
    model = builder.build()
    np.testing.assert_array_equal(model.damping, [0, 0.5, 0])
    np.testing.assert_array_equal(model.replace(damping={"hip": 2}).damping, [2, 2, 2])
    np.testing.assert_array_equal(model.replace(damping={"hip": [1, 2, 3]}).damping, [1, 2, 3])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"joint9": 1}, "joint 'joint9' does not exist"),
        ({"joint1": "two"}, "`damping` of 'joint1'"),
        ({"joint1": [1, 2]}, "`damping` of 'joint1' is .*; expected a number"),
        ({1: 2}, "joint 1 does not exist"),
        ("much", "`damping`"),
        ([1, 2], r"`damping` has shape \(2,\); expected \(4,\)"),
        ({"joint1": -1}, "`damping` of joint 'joint1' is -1.0; expected zero or more"),
        (float("nan"), "`damping` at"),
    ],
)
def test_mistakes_are_named(given, message):
    with pytest.raises(kg.KinegradError, match=message):
        kg.Model.from_dh(UR5, damping=given)


def test_degrees_are_noticed():
    rows = [(0, 0.09, 0, 90), (0, 0, 0.4, 0), (180, 0, 0.4, 0)]
    with pytest.warns(kg.UnitsWarning, match=r"`alpha` of row 0 is 90, and 1 more, which look like degrees; .*rad"):
        kg.Model.from_dh(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kg.Model.from_dh([(2 * np.pi, 0, 0.4, -np.pi)])


@pytest.mark.parametrize(("name", "names", "expected"), [
    ("xiang2008", ["anderson2002", "zhakatayev2023"], []),
    ("zhakatayev", ["anderson2002", "zhakatayev2023"], ["zhakatayev2023"]),
    ("Elbow", ["elbow", "shoulder"], ["elbow"]),
    ("elbow", ["left_elbow.x", "right_elbow.x", "neck.x"], ["left_elbow.x", "right_elbow.x"]),
    (3, ["elbow"], []),
])  # fmt: skip
def test_did_you_mean_only_when_close(name, names, expected):
    from kinegrad.model.names import closest

    assert closest(name, names) == expected


def test_constants_that_do_not_exist_are_answered_by_those_that_do():
    with pytest.raises(kg.InputError, match=r"'forearm' has mass, length, com.x") as error:
        kg.Design(kg.samples.two_link(), ["forearm.size"])
    assert "did you mean" not in str(error.value)
    with pytest.raises(kg.InputError, match=r"did you mean 'forearm.mass'"):
        kg.Design(kg.samples.two_link(), ["forearm.mas"])
