"""Frames by name: the same as the link and the point that they stand for, wherever a link can be named."""

import copy
import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Frame, Inertia, InputError, Loads, ModelError, rotate, samples, translate
from kinegrad.compare import numerical_jacobian
from kinegrad.objectives import EndPosition, Objective
from kinegrad.simulate import adjoint_gradient, objective_gradient, simulate_fixed

PLACE = translate(0.1, -0.2, 0.3) @ rotate([1, 2, 3], 0.7)
TREE = samples.random_tree(9, seed=3)
LINKS = TREE.link_names
MODEL = TREE.replace(frames={"tool": Frame(LINKS[6], PLACE), "marker": Frame(LINKS[2], [0.0, 0.1, 0.0])})
STATE = np.random.default_rng(5).normal(size=(3, 4, MODEL.n))
POINT = np.array([0.3, 0.2, -0.4])
IN_LINK = PLACE[:3, :3] @ POINT + PLACE[:3, 3]


def same(one, other):
    """Equal to rounding, field by field."""
    for name, x in vars(one).items():
        y = getattr(other, name)
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-13 * max(1.0, np.abs(y).max()), err_msg=name)


# --- wherever a link can be named ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
def test_points_of_frames_are_points_of_their_links(count):
    state = STATE[:count]
    of_frame, of_link = {"link": "tool", "point": POINT}, {"link": LINKS[6], "point": IN_LINK}
    same(kg.point_motion(MODEL, *state, **of_frame), kg.point_motion(TREE, *state, **of_link))
    change = kg.point_motion_derivatives
    same(change(MODEL, *state, **of_frame), change(TREE, *state, **of_link))
    same(kg.jacobian(MODEL, STATE[0], **of_frame), kg.jacobian(TREE, STATE[0], **of_link))


def test_frames_and_links_together():
    names = ["tool", LINKS[4], "marker", "tool"]
    found = kg.point_motion(MODEL, *STATE, link=names, point=POINT)
    for k, name in enumerate(names):
        same(kg.PointMotion(*(x[..., k, :] for x in vars(found).values())),
             kg.point_motion(MODEL, *STATE, link=name, point=POINT))  # fmt: skip


def test_links_give_the_same_bits_with_and_without_frames():
    for with_frames, without in zip(
        (kg.point_motion(MODEL, *STATE, link=LINKS[5], point=POINT), kg.jacobian(MODEL, STATE[0], link=[LINKS[1]])),
        (kg.point_motion(TREE, *STATE, link=LINKS[5], point=POINT), kg.jacobian(TREE, STATE[0], link=[LINKS[1]])),
        strict=True,
    ):
        assert with_frames == without
    assert np.array_equal(kg.inverse_dynamics(MODEL, *STATE), kg.inverse_dynamics(TREE, *STATE))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pose_and_motion_by_name(count):
    """Of a frame: its transform, and the motion of its origin as a point of the link; of a link, its own."""
    found = kg.forward_kinematics(MODEL, *STATE[:count])
    tool, both = found.at(MODEL, "tool"), found.at(MODEL, ["marker", LINKS[6]])
    np.testing.assert_allclose(tool.transform, found.transform[:, 6] @ PLACE, atol=1e-13)
    origin = kg.point_motion(MODEL, *STATE[:count], link="tool")
    np.testing.assert_allclose(tool.transform[..., :3, 3], origin.position, atol=1e-12)
    if count > 1:
        np.testing.assert_allclose(tool.linear_velocity, origin.velocity, atol=1e-12)
        assert np.array_equal(tool.angular_velocity, found.angular_velocity[:, 6])
    if count > 2:
        np.testing.assert_allclose(tool.linear_acceleration, origin.acceleration, atol=1e-10)
    assert both.transform.shape == (4, 2, 4, 4)
    np.testing.assert_allclose(both.transform[:, 1], found.transform[:, 6], atol=1e-15)
    assert (tool.linear_velocity is None) == (count < 2)
    with pytest.raises(InputError, match="expected the model that they were computed for"):
        found.at(samples.two_link(), "forearm")


def test_forces_at_frames():
    """At the frame's origin, or at a point in the frame; a torque is that of the link."""
    force, torque = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.1, 0.2])
    cases = [
        (Loads(force={"tool": force}), Loads(force={LINKS[6]: force}, point={LINKS[6]: PLACE[:3, 3]})),
        (
            Loads(force={"tool": force}, point={"tool": POINT}, torque={"marker": torque}),
            Loads(force={LINKS[6]: force}, point={LINKS[6]: IN_LINK}, torque={LINKS[2]: torque}),
        ),
        (
            Loads(force={LINKS[6]: force}, point={"tool": POINT}),
            Loads(force={LINKS[6]: force}, point={LINKS[6]: IN_LINK}),
        ),
        (
            Loads(force={"tool": force}, point={LINKS[6]: POINT}),
            Loads(force={LINKS[6]: force}, point={LINKS[6]: POINT}),
        ),
    ]
    for of_frame, of_link in cases:
        for what, x in of_frame.arrays(MODEL).items():
            np.testing.assert_allclose(x, of_link.arrays(TREE)[what], atol=1e-15)
        found, wanted = (kg.inverse_dynamics(MODEL, *STATE, loads=x) for x in (of_frame, of_link))
        np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())
    batch = Loads(force={"tool": np.ones((4, 3))}, point={"tool": np.ones((4, 3))})
    assert kg.inverse_dynamics(MODEL, *STATE, loads=batch).shape == (4, 9)


def test_loads_that_are_two():
    with pytest.raises(InputError, match=f"names 'tool' and '{LINKS[6]}', both in link '{LINKS[6]}'; expected one"):
        Loads(force={"tool": np.ones(3), LINKS[6]: np.ones(3)}).arrays(MODEL)
    with pytest.raises(InputError, match=r"names frame 'tool', and `loads.point` is an array"):
        Loads(force={"tool": np.ones(3)}, point=np.zeros((9, 3))).arrays(MODEL)


# --- designs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("link", ["tool", ["tool", LINKS[6], "tool"]])
def test_a_frame_is_a_design_parameter(link, count):
    """Shifts and turns of the frame, with what moves its link: as a massless link in the frame's place has them.

    That link hangs on a joint that does not move, so the derivatives with respect to the joint's placement are those
    with respect to the frame's, by quite another way; they agree to rounding.
    """
    with_link = TREE.replace(
        joints=(*TREE.joints, kg.prismatic("z")), parents=[*TREE.parents, 6], joint_names=(*TREE.joint_names, "tool"),
        link_names=(*LINKS, "tool"), placement=[*TREE.placement, PLACE], tip=[*TREE.tip, np.eye(4)],
        **{what: np.pad(getattr(TREE, what), [(0, 1), *[(0, 0)] * (getattr(TREE, what).ndim - 1)])
           for what in ("mass", "com", "inertia", "stiffness", "rest", "damping", "armature", "position_limits",
                        "velocity_limits", "effort_limits")},
    )  # fmt: skip
    names = [*(f"tool.placement.{x}" for x in ("x", "y", "z", "rx", "ry", "rz")), f"{MODEL.joint_names[6]}.placement.y"]
    both = {"length": {"tool.placement.x": 2.0, f"{MODEL.joint_names[2]}.placement.z": -0.5}}
    state, extended = STATE[:count], np.pad(STATE[:count], [(0, 0), (0, 0), (0, 1)])
    for parameters in (names, both):
        of_frame, of_link = (
            kg.point_motion_design_derivatives(Design(model, parameters), *x, link=link, point=POINT)
            for model, x in ((MODEL, state), (with_link, extended))
        )
        same(of_frame, of_link)
    assert Design(MODEL, names).values[:3].tolist() == PLACE[:3, 3].tolist()


def built(x, turn):
    arm = kg.ModelBuilder("arm")
    hand = arm.add("wrist", None, kg.revolute("z"), link="hand", inertia=Inertia.point(1.0 + x, [0.1, 0, 0]))
    arm.add_frame("tool", hand, translate(x, 0, 2 * x) @ rotate("y", turn))
    tip = arm.add_frame("tip", "tool", [0, 0, x])
    arm.add("finger", tip, kg.revolute("x"), link="finger", inertia=Inertia.point(0.2, [0, 0, 0.1]))
    return arm.build(), Loads(force={"tip": [1.0, 2.0, 3.0]}, point={"tip": [0, 0.1, 0]})


def built_in_links(x, turn):
    """The same mechanism, its loads given by link and point."""
    model, _ = built(x, turn)
    tip = translate(x, 0, 2 * x) @ rotate("y", turn) @ translate(0, 0, x)
    return model, Loads(force={"hand": [1.0, 2.0, 3.0]}, point={"hand": (tip @ [0, 0.1, 0, 1])[:3]})


def test_functions_that_build_frames_are_differentiated():
    """Points in frames, and loads at frames, follow them."""
    values = {"x": 0.3, "turn": 0.4}
    design, in_links = Design.from_function(built, values), Design.from_function(built_in_links, values)
    q, v, a = np.random.default_rng(1).normal(size=(3, 5, 2))
    found, wanted = (kg.inverse_dynamics_design_derivatives(x, q, v, a) for x in (design, in_links))
    np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max())
    change = kg.point_motion_design_derivatives(design, q, v, a, link="tip", point=POINT)

    def at(p):
        motion = kg.point_motion(built(*p)[0], q, v, a, link="tip", point=POINT)
        return np.concatenate([x.ravel() for x in vars(motion).values()])

    exact = np.concatenate([x.reshape(-1, 2) for x in vars(change).values()])
    wanted = numerical_jacobian(at, design.values, method="central")
    np.testing.assert_allclose(exact, wanted, atol=1e-7 * np.abs(wanted).max())


def test_the_same_slopes_by_name_and_by_function():
    """Two exact ways: the constants by name, and complex step through the builder; so the tolerance is rounding."""

    def function(x, rz):
        return TREE.replace(frames={"tool": Frame(LINKS[6], PLACE @ translate(x, 0, 0) @ rotate("z", rz))})

    by_name = Design(function(0, 0), {"x": {f"tool.placement.{c}": PLACE[k, 0] for k, c in enumerate("xyz")},
                                      "rz": "tool.placement.rz"})  # fmt: skip
    by_function = Design.from_function(function, {"x": 0.0, "rz": 0.0})
    same(*(kg.point_motion_design_derivatives(d, *STATE, link="tool", point=POINT) for d in (by_name, by_function)))


def test_the_end_of_a_motion_at_a_frame():
    """Direct and adjoint gradients agree, by way of the frame's own placement and of the mechanism's."""
    arm = samples.two_link().replace(frames={"grip": Frame("forearm", translate(0.1, 0.05, 0) @ rotate("z", 0.3))})
    design = Design(arm, ["grip.placement.x", "grip.placement.rz", "elbow.a", "forearm.mass"])
    reach = Objective(end=[EndPosition("grip", [0.2, 0.3, 0.0], [0.02, 0, 0])])
    run = {"step": 0.02, "steps": 20, "design": design}
    direct = objective_gradient(simulate_fixed(arm, [1.0, 0.5], [0, 0], **run), reach)
    adjoint = adjoint_gradient(arm, [1.0, 0.5], [0, 0], reach, **run)
    np.testing.assert_allclose(direct.dvalue_dp, adjoint.dvalue_dp, rtol=1e-11)
    assert direct.dvalue_dp.all()


def test_loads_do_not_follow_frames_that_move_by_name():
    loads = Loads(force={"tool": np.ones(3)})
    with pytest.raises(InputError, match="`loads` name frame 'tool', which parameters of the design move"):
        Design(MODEL, ["tool.placement.x"], loads)
    design = Design(MODEL, ["tool.placement.x"])
    with pytest.raises(InputError, match="expected the point in its link"):
        kg.inverse_dynamics_design_derivatives(design, *STATE, loads=loads)
    still = kg.inverse_dynamics_design_derivatives(design, *STATE, loads=Loads(force={"marker": np.ones(3)}))
    assert not still.any()


def test_constants_of_frames_by_name():
    moved = Design(MODEL, ["tool.placement.y"]).at([0.5]).model
    assert moved.frames["tool"].placement[1, 3] == 0.5
    assert moved.frames["marker"] == MODEL.frames["marker"]
    with pytest.raises(InputError, match=r"did you mean 'tool.placement"):
        Design(MODEL, ["tool.placment.x"])
    joint = MODEL.joint_names[0]
    twice = TREE.replace(frames={joint: Frame(LINKS[0])})
    with pytest.raises(InputError, match=f"could be that of joint or of frame '{joint}'"):
        Design(twice, [f"{joint}.placement.x"])
    assert Design(twice, [f"{joint}.tip.x"]).p == 1


# --- values and names ---------------------------------------------------------------------------------------


def test_models_with_frames_are_values():
    twin = TREE.replace(frames=dict(reversed(list(MODEL.frames.items()))))
    assert twin == MODEL
    assert hash(MODEL) == hash(twin)
    assert MODEL != TREE
    moved = MODEL.replace(frames={**MODEL.frames, "tool": Frame(LINKS[6])})
    assert moved != MODEL
    for other in (pickle.loads(pickle.dumps(MODEL)), copy.deepcopy(MODEL), MODEL.replace(mass=MODEL.mass)):
        assert other == MODEL
        assert list(other.frames) == ["tool", "marker"]
        with pytest.raises(ValueError, match="read-only"):
            other.frames["tool"].placement[0, 0] = 1
    with pytest.raises(TypeError):
        MODEL.frames["other"] = Frame(LINKS[0])
    assert "2 frames: tool in" in repr(MODEL)


def test_lookups():
    assert MODEL.frame("tool") is MODEL.frames["tool"]
    assert MODEL.frame(LINKS[3]) == Frame(LINKS[3])
    with pytest.raises(InputError, match=r"'tool' is a frame in link 'link6' of model .*; expected a link"):
        MODEL.link_index("tool")
    with pytest.raises(InputError, match=r"link or frame 'toll' does not exist .* did you mean 'tool'"):
        kg.jacobian(MODEL, STATE[0], link="toll")
    with pytest.raises(InputError, match="link 'toll' does not exist"):
        kg.jacobian(TREE, STATE[0], link="toll")
    with pytest.raises(InputError, match="does not exist"):
        MODEL.frame(3)


def test_wrong_frames_are_named():
    for frames, message in (
        ([1], "`frames` is"),
        ({"tool": PLACE}, "frame 'tool' is .*; expected Frame"),
        ({"tool": Frame("link66")}, "frame 'tool': link 'link66' does not exist .* did you mean 'link6'"),
        ({LINKS[0]: Frame(LINKS[1])}, "has the name of a link; choose another"),
        ({"": Frame(LINKS[1])}, "expected text"),
        ({" a": Frame(LINKS[1])}, "no blanks"),
        ({3: Frame(LINKS[1])}, "expected text"),
    ):
        with pytest.raises(ModelError, match=message):
            TREE.replace(frames=frames)
    with pytest.raises(ModelError, match="`placement` of a frame"):
        Frame("hand", np.ones((4, 4)))


def test_builders_attach_to_frames():
    """A joint on a frame is one placed in the link; a frame on a frame is one frame of the link."""
    model, _ = built(0.3, 0.4)
    tool = translate(0.3, 0, 0.6) @ rotate("y", 0.4)
    np.testing.assert_allclose(model.frames["tip"].placement, tool @ translate(0, 0, 0.3), atol=1e-15)
    np.testing.assert_allclose(model.placement[1], tool @ translate(0, 0, 0.3), atol=1e-15)
    assert model.parents.tolist() == [-1, 0]
    builder = kg.ModelBuilder("arm")
    builder.add("wrist", None, kg.revolute("z"), link="hand", inertia=Inertia.point(1.0, [0.1, 0, 0]))
    builder.add_frame("tool", "hand")
    for call, message in (
        (lambda: builder.add_frame("tool", "hand"), "is in model 'arm' already"),
        (lambda: builder.add_frame("hand", "hand"), "has the name of a link"),
        (lambda: builder.add("b", "hand", kg.revolute("z"), link="tool"), "has the name of a frame"),
        (lambda: builder.add_frame("tip", "tol"), "did you mean 'tool'"),
        (lambda: builder.add("b", "hnd", kg.revolute("z")), "did you mean 'hand'"),
        (lambda: builder.add_frame("tip", "hand", np.ones(2)), "`placement` of frame 'tip' has shape"),
    ):
        with pytest.raises((ModelError, InputError), match=message):
            call()


def test_points_so_far_that_they_overflow():
    with pytest.raises(InputError, match="not finite"):
        kg.point_motion(MODEL, STATE[0], link="tool", point=[1.7e308, 1.7e308, 1.7e308])
