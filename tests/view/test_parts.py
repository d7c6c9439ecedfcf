"""Every model has something to look at, and it is where the model is."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.model.segments import link_segments
from kinegrad.view.parts import body_parts, reach

MODELS = [*kg.samples.SAMPLES.values(), lambda: kg.samples.four_bar()[0], lambda: kg.samples.stewart_platform()[0]]


@pytest.mark.parametrize("make", MODELS)
def test_every_link_with_mass_is_drawn(make):
    model = make()
    drawn = {part.link for part in body_parts(model)}
    lines = {line.link for line in link_segments(model)}
    assert drawn == lines | set(np.flatnonzero(model.mass > 0))
    assert all(np.isfinite(part.surface.vertices).all() for part in body_parts(model))


def test_lines_end_where_the_next_joints_are():
    """At any posture: joint i of the world is the end of a line of its parent."""
    model = kg.samples.random_tree(12, seed=3)
    q = np.random.default_rng(0).normal(size=model.nq)
    pose = kg.forward_kinematics(model, q).transform
    ends = {}
    for line in link_segments(model):
        ends.setdefault(line.link, []).append(pose[line.link, :3, :3] @ line.end + pose[line.link, :3, 3])
    for i, parent in enumerate(model.parents):
        if parent >= 0:
            joint = pose[parent] @ model.placement[i]
            start = pose[parent] @ np.linalg.inv(model.tip[parent])
            if np.linalg.norm(joint[:3, 3] - start[:3, 3]) > 1e-6:
                assert min(np.linalg.norm(end - joint[:3, 3]) for end in ends[parent]) < 1e-9


def test_shapes_take_the_place_of_capsules_and_collision_shapes_are_not_drawn():
    arm = kg.samples.two_link()
    box = kg.Shape("forearm", kg.Box((0.4, 0.1, 0.1)), [-0.2, 0, 0], color=(1, 0, 0))
    hull = kg.Shape("upper_arm" if "upper_arm" in arm.link_names else arm.link_names[0], kg.Sphere(1.0), collision=True)
    base = kg.Shape(None, kg.Cylinder(0.1, 0.05))
    parts = body_parts(arm.replace(shapes=(box, hull, base)))
    assert [part.link for part in parts] == [1, -1, 0]
    assert parts[0].color == (1, 0, 0, 1)


def test_a_thigh_reaches_to_a_knee_that_slides_with_its_angle():
    """As in OpenSim's gait models: between thigh and shank are massless slides that the knee's angle moves."""
    builder = kg.ModelBuilder("leg")
    mass = kg.Inertia.point(5.0, [0, 0, -0.2])
    builder.add("hip", None, kg.revolute("y"), link="thigh", inertia=mass)
    builder.add("roll", "thigh", kg.prismatic("x"), link="roll")
    builder.add("glide", "roll", kg.prismatic("z"), link="glide")
    builder.add("knee", "glide", kg.revolute("y"), link="shank", inertia=mass)
    roll, glide = kg.PolynomialFunction([0.01, 0.02]), kg.PolynomialFunction([-0.4, 0.0, 0.01])
    builder.couple("knee_angle", {"roll": roll, "glide": glide, "knee": 1.0})
    model = builder.build()
    thigh, *_ = (line for line in link_segments(model) if line.link == model.link_index("thigh"))
    knee = kg.forward_kinematics(model, [0.0, 0.0]).transform[model.link_index("shank"), :3, 3]
    np.testing.assert_allclose(thigh.end, knee, atol=1e-15)
    np.testing.assert_allclose(thigh.end, [0.01, 0, -0.4], atol=1e-15)
    assert {line.link for line in link_segments(model)} == {0, 3}


def test_a_pelvis_that_carries_the_trunk_has_a_line_to_its_mass():
    builder = kg.ModelBuilder("gait")
    builder.add("root", None, kg.revolute("y"), link="pelvis", inertia=kg.Inertia.point(50.0, [0, 0, 0.4]))
    for side, y in (("right", -0.1), ("left", 0.1)):
        placed = np.eye(4)
        placed[1, 3] = y
        builder.add(side, "pelvis", kg.revolute("y"), link=f"{side}_leg", placement=placed,
                    inertia=kg.Inertia.point(9.0, [0, 0, -0.5]))  # fmt: skip
    ends = [line.end.tolist() for line in link_segments(builder.build()) if line.link == 0]
    assert ends == [[0, -0.1, 0], [0, 0.1, 0], [0, 0, 0.4]]


def test_a_model_without_extent_has_a_size():
    builder = kg.ModelBuilder("ball")
    builder.add("free", None, kg.revolute("z"), link="ball", inertia=kg.Inertia.point(2.0, [0, 0, 0]))
    model = builder.build()
    assert reach(model) == 1.0
    assert len(body_parts(model)) == 1
