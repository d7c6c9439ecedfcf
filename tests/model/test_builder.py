"""Models built by name: what composite joints become, where frames go, what is refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, InputError, ModelBuilder, ModelError

P = kg.translate(0.1, 0.2, 0.3) @ kg.rotate("x", 0.4)
F = kg.rotate("y", -0.6) @ kg.translate(0.0, 0.5, 0.0)
BODY = Inertia.box(2.0, [0.1, 0.2, 0.3])


def build(*additions, **options):
    builder = ModelBuilder("leg", **options)
    for arguments, numbers in additions:
        builder.add(*arguments, **numbers)
    return builder.build()


def hip(**numbers):
    return ("hip", None, kg.spherical("zxz")), {"link": "thigh"} | numbers


def test_composite_joint_is_a_string_of_virtual_links():
    model = build(
        hip(placement=P, tip=F, inertia=BODY),
        (("knee", "thigh", kg.revolute("x")), {"link": "shank", "placement": [0, 0, -0.4], "inertia": BODY}),
    )
    assert model.joint_names == ("hip.z", "hip.x", "hip.z2", "knee")
    assert model.link_names == ("hip.z", "hip.x", "thigh", "shank")
    assert model.parents.tolist() == [-1, 0, 1, 2]
    for i in (0, 1):
        assert model.link_inertia(model.link_names[i]) == Inertia.zero()
    assert model.link_inertia("thigh") == model.link_inertia("shank") == BODY
    eye = np.eye(4)
    np.testing.assert_array_equal(model.placement, [P, eye, eye, kg.translate(0, 0, -0.4)])
    np.testing.assert_array_equal(model.tip, [eye, eye, F, eye])


def test_link_frame_is_placement_then_joint_then_tip():
    model = build((("hip", None, kg.revolute("y")), {"placement": P, "tip": F}))
    T = kg.forward_kinematics(model, [0.8]).transform[0]
    np.testing.assert_allclose(T, P @ kg.rotate("y", 0.8) @ F, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("joint", "names"),
    [
        (kg.revolute("z"), "base"),
        ((kg.revolute("z"),), "base"),
        (kg.universal("xz"), "base.x base.z"),
        (kg.spherical("yxy"), "base.y base.x base.y2"),
        (kg.planar("y"), "base.tz base.tx base.ry"),
        (kg.free("xyx"), "base.tx base.ty base.tz base.rx base.ry base.rx2"),
        ([kg.revolute("z"), kg.prismatic("x")], "base.0 base.1"),
    ],
)
def test_names(joint, names):
    """Letters where the composite has them, numbers in a sequence of one's own."""
    model = build((("base", None, joint), {"link": "body"}))
    assert model.joint_names == tuple(names.split())
    assert model.link_names == (*names.split()[:-1], "body")


def test_defaults():
    """A link is called as its joint; it is massless, without limits, springs, dampers and rotors."""
    builder = ModelBuilder()
    assert builder.add("hinge", None, kg.revolute()) == "hinge"
    model = builder.build()
    assert model.link_names == ("hinge",)
    assert model.name == "mechanism"
    assert model.gravity.tolist() == [0, 0, -9.81]
    assert model.position_limits.tolist() == [[-np.inf, np.inf]]
    assert model.velocity_limits.tolist() == model.effort_limits.tolist() == [np.inf]
    for what in ("mass", "com", "inertia", "stiffness", "rest", "damping", "armature"):
        assert not getattr(model, what).any()


def test_numbers_of_a_composite_joint_are_shared_or_one_each():
    model = build(
        hip(damping=0.5, stiffness=[1, 2, 3], position_limits=(-1, 2), effort_limits=[10, 20, 30]),
        (("knee", "thigh", kg.revolute()), {"position_limits": (0, 1), "armature": 0.1, "rest": 0.2}),
        (("ankle", "knee", kg.universal()), {"position_limits": [(-1, 0), (-2, 3)], "velocity_limits": 9}),
    )
    inf = np.inf
    assert model.damping.tolist() == [0.5, 0.5, 0.5, 0, 0, 0]
    assert model.stiffness.tolist() == [1, 2, 3, 0, 0, 0]
    assert model.armature.tolist() == [0, 0, 0, 0.1, 0, 0]
    assert model.rest.tolist() == [0, 0, 0, 0.2, 0, 0]
    assert model.position_limits.tolist() == [[-1, 2], [-1, 2], [-1, 2], [0, 1], [-1, 0], [-2, 3]]
    assert model.effort_limits.tolist() == [10, 20, 30, inf, inf, inf]
    assert model.velocity_limits.tolist() == [inf, inf, inf, inf, 9, 9]


def test_a_refused_joint_leaves_nothing_behind():
    builder = ModelBuilder("leg")
    builder.add("hip", None, kg.revolute(), link="thigh")
    before = builder.build()
    for bad in ({"damping": [1, 2]}, {"placement": [1, 2]}, {"weight": 3}):
        with pytest.raises(ModelError):
            builder.add("knee", "thigh", kg.revolute(), **bad)
    assert builder.build() == before
    builder.add("knee", "thigh", kg.revolute())
    assert builder.build().n == 2


def test_a_built_model_does_not_follow_its_builder():
    builder = ModelBuilder("leg")
    shift = np.array([1.0, 2.0, 3.0])
    builder.add("hip", None, kg.revolute(), placement=shift)
    model = builder.build()
    builder.add("knee", "hip", kg.revolute())
    shift[:] = 0
    assert model.n == 1
    assert model.placement[0, :3, 3].tolist() == [1, 2, 3]


REFLECTION = np.diag([1.0, 1.0, -1.0, 1.0])
STRETCH = np.diag([1.0, 1.0, 1.5, 1.0])
PERSPECTIVE = np.eye(4) + np.eye(4, k=-3)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"placement": [1, 2]}, r"`placement` of joint 'knee' has shape \(2,\); expected a 4×4 transform or a 3-"),
        ({"placement": REFLECTION}, "`placement` of joint 'knee' has a 3×3 part that is a reflection; expected a rot"),
        ({"tip": STRETCH}, "`tip` of joint 'knee' has a 3×3 part that is not orthonormal: .* 1.2; expected a rot"),
        ({"tip": PERSPECTIVE}, r"`tip` of joint 'knee' has last row \[1.0, 0.0, 0.0, 1.0\]; expected \[0, 0, 0, 1\]"),
        ({"placement": "up"}, "`placement` of joint 'knee' is a str; expected a 4×4 transform"),
        ({"damping": [1, 2]}, r"`damping` of joint 'knee' is \[1, 2\]; expected numbers of shape \(1,\)"),
        ({"weight": 3}, "`weight` of 'knee' is unknown; expected one of position_limits, velocity_limits"),
        ({"inertia": 2.0}, "`inertia` of 'knee' is 2.0; expected an Inertia"),
        ({"link": ""}, "`link` of a joint is ''; expected text"),
        ({"link": "thigh"}, "link 'thigh' is in model 'leg' already; choose another name"),
    ],
)
def test_refused_numbers(numbers, message):
    with pytest.raises(ModelError, match=message):
        build(hip(), (("knee", "thigh", kg.revolute()), numbers))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hip", "thigh", kg.spherical("zxz")), "joint 'hip.z' is in model 'leg' already; choose another name"),
        (("hip.x", "thigh", kg.revolute()), "joint 'hip.x' is in model 'leg' already"),
        (("", "thigh", kg.revolute()), "`name` of a joint is ''; expected text"),
        (("knee", "thigh", "revolute"), "`joint of 'knee'` is 'revolute'; expected a Joint"),
        (("knee", "thigh", []), r"`joint` of 'knee' is \[\]; expected a Joint, or several in a sequence"),
        (("knee", "thigh", [kg.revolute(), "x"]), "`joint` of 'knee' is .*; expected a Joint, or several"),
    ],
)
def test_refused_joints(arguments, message):
    with pytest.raises(ModelError, match=message):
        build(hip(), (arguments, {}))


@pytest.mark.parametrize("limits", [(1, -1), (0, np.nan)])
def test_limits_the_wrong_way_round_are_refused_by_name(limits):
    with pytest.raises(ModelError, match="`position_limits`"):
        build(hip(position_limits=limits))


def test_unknown_parent_gets_a_suggestion():
    with pytest.raises(InputError, match="link 'tigh' does not exist in model 'leg'; did you mean 'thigh'"):
        build(hip(), (("knee", "tigh", kg.revolute()), {}))
    with pytest.raises(InputError, match="link 'thigh' does not exist in model 'leg'; it has no links yet"):
        build((("knee", "thigh", kg.revolute()), {}))


def test_an_empty_model_is_refused():
    with pytest.raises(ModelError, match="model 'leg' has no joints; expected at least one"):
        ModelBuilder("leg").build()


def test_inertia_by_its_numbers_equals_the_object():
    numbers = (2.0, [0.1, 0.0, -0.3], np.diag([0.3, 0.2, 0.15]))
    by_numbers, by_object = ModelBuilder("arm"), ModelBuilder("arm")
    by_numbers.add("elbow", None, kg.revolute("x"), link="forearm", inertia=numbers)
    by_object.add("elbow", None, kg.revolute("x"), link="forearm", inertia=Inertia(*numbers))
    assert by_numbers.build() == by_object.build()


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [((1.0, [0, 0, 0], np.diag([1.0, 1.0, 5.0])), "triangle inequality"), ((-1.0, [0, 0, 0], np.eye(3)), "mass")],
)
def test_impossible_inertia_names_the_link_and_the_reason(numbers, reason):
    with pytest.raises(ModelError, match=f"link 'forearm'.*{reason}"):
        ModelBuilder("arm").add("elbow", None, kg.revolute("x"), link="forearm", inertia=numbers)
