"""Feet and clearances stand on the ground, whatever axis of the world is up."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Above, Effort, Foot, MotionProblem, Phase
from kinegrad.motion.problem.upright import axes_with_z
from tests.motion.problem.turned import turned

UPS = {"x": [1, 0, 0], "-y": [0, -1, 0], "y": [0, 1, 0], "z": [0, 0, 1], "-z": [0, 0, -1], "any": [0.36, -0.48, 0.8]}


@pytest.mark.parametrize("up", UPS.values(), ids=UPS)
def test_axes_turn_by_the_smallest_angle(up):
    R, up = axes_with_z(np.array(up, dtype=float)), np.array(up)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(R[:, 2], up, atol=1e-15)
    assert np.linalg.det(R) > 0
    angle = np.arccos(np.clip((np.trace(R) - 1) / 2, -1, 1))  # of the turn, which nothing between z and up can be below
    np.testing.assert_allclose(angle, np.arccos(up[2]), atol=1e-7)


def test_x_stays_forwards_where_y_is_up():
    np.testing.assert_array_equal(axes_with_z(np.array([0.0, 1.0, 0.0])), [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


def standing(model, foot, *more):
    return MotionProblem(model, Phase(segments=3), [foot, *more], Effort(relative=True)).parts


@pytest.mark.parametrize("up", UPS.values(), ids=UPS)
def test_a_sole_is_up_whatever_axis_is(up):
    """The weight of a model with y up was carried by friction of a sole on a wall."""
    R = axes_with_z(np.array(up, dtype=float))
    place = R @ [0.05, 0.0, 0.0]
    parts = standing(turned(kg.samples.human_sagittal(), R), Foot("foot", place, size=(0.25, 0.2)), Above("grip", 0.1))
    foot, above = parts.requirements
    np.testing.assert_allclose(foot.sole[:3, :3], R, atol=1e-15)
    np.testing.assert_allclose(foot.sole[:3, 3], place)
    np.testing.assert_allclose(above.normal, up, atol=1e-15)
    assert not [note for note in parts.notes if "up" in note]


@pytest.mark.parametrize(("axis", "angle"), [("x", np.pi / 2), ("x", np.pi), ("y", 1.1)])
def test_a_sole_that_points_elsewhere_is_among_the_notes(axis, angle):
    sole = kg.translate(0.05, 0, 0) @ kg.rotate(axis, angle)
    (note,) = [x for x in standing(kg.samples.human_sagittal(), Foot("foot", sole)).notes if "sole" in x]
    assert note.startswith(f"foot foot: the normal of its sole, z of the sole frame, is {np.degrees(angle):.0f}° from")


def test_slopes_have_no_note():
    sole = kg.translate(0.05, 0, 0) @ kg.rotate("y", 0.9)
    assert not [x for x in standing(kg.samples.human_sagittal(), Foot("foot", sole)).notes if "sole" in x]


def test_where_it_stands_counts_and_not_where_the_sole_is_in_its_posture():
    """A foot may point downwards in the posture in which its sole is given."""
    sole = kg.translate(0.05, 0, 0) @ kg.rotate("y", 1.5)
    parts = standing(kg.samples.human_sagittal(), Foot("foot", sole, at=(0.3, 0, 0)))
    assert not [x for x in parts.notes if "sole" in x]
    np.testing.assert_array_equal(parts.requirements[0].at, kg.translate(0.3, 0, 0))


def test_without_gravity_z_is_up_and_the_notes_say_so():
    model = kg.samples.human_sagittal().replace(gravity=(0, 0, 0))
    parts = standing(model, Foot("foot", (0.05, 0, 0)), Above("grip", 0.1))
    foot, above = parts.requirements
    np.testing.assert_array_equal(foot.sole[:3, :3], np.eye(3))
    assert above.normal == (0, 0, 1)
    assert len([note for note in parts.notes if "no gravity, and z is taken for up" in note]) == 2
    given = standing(model, Foot("foot", kg.translate(0.05, 0, 0)), Above("grip", 0.1, normal=(0, 0, 1)))
    assert not [note for note in given.notes if "gravity" in note]


def test_rows_that_are_rounding_alone_are_left_out_and_checked():
    """In a tilted world the slopes of a row across the plane of a model are 1e-17, and not zero."""
    R = axes_with_z(np.array([0.36, -0.48, 0.8]))
    model = turned(kg.samples.human_sagittal(), R)
    foot = Foot("foot", R @ [0.05, 0, 0], size=(0.25, 0.2))
    assert "foot foot: rows y, X, Z left out" in standing(model, foot).notes[0]
    with pytest.raises(kg.InputError, match=r"its row 'y' is 0\.1 off"):
        standing(model, Foot("foot", R @ [0.05, 0, 0], size=(0.25, 0.2), at=R @ [0.05, 0.1, 0]))
