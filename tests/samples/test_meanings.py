"""What coordinates are said to mean is what the models do: the words against the motion of hands, feet and head."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.samples.meanings import coordinate_meanings

HUMAN = kg.samples.human43()
RIGHT, FORWARD, UP = np.eye(3)


def moves(joint, link, model=HUMAN):
    """How a point of a link moves with a joint, from the neutral posture."""
    h, q = 1e-6, kg.neutral(model)
    d = np.zeros(model.nv)
    d[model.joint_index(joint)] = h
    return (kg.point_motion(model, q + d, link=link).position - kg.point_motion(model, q, link=link).position) / h


@pytest.mark.parametrize(
    ("joint", "link", "positive", "way"),
    [
        ("right_hip.x", "right_toes", "extension", -FORWARD),
        ("right_hip.y", "right_toes", "adduction", -RIGHT),
        ("left_hip.y", "left_toes", "abduction", -RIGHT),
        ("right_hip.z", "right_toes", "medial rotation", -RIGHT),
        ("left_hip.z", "left_toes", "lateral", -RIGHT),
        ("right_knee", "right_toes", "flexion", -FORWARD),
        ("right_ankle.x", "right_toes", "plantar flexion", -UP),
        ("right_toes", "right_toes", "flexion", -UP),
        ("right_shoulder.x", "right_hand", "extension", -FORWARD),
        ("right_shoulder.y", "right_hand", "adduction", -RIGHT),
        ("left_shoulder.y", "left_hand", "abduction", -RIGHT),
        ("right_elbow.x", "right_hand", "extension", -FORWARD),
        ("right_clavicle.y", "right_clavicle", "depression", -UP),
        ("right_clavicle.z", "right_clavicle", "protraction, forwards", FORWARD),
        ("left_clavicle.z", "left_clavicle", "retraction", -FORWARD),
        ("right_pelvis", "right_pelvis", "pelvis side down", -UP),
        ("left_pelvis", "left_pelvis", "up", UP),
        ("right_wrist.x", "right_hand", "ulnar deviation", -FORWARD),  # the palm is to the thigh
        ("right_wrist.y", "right_hand", "flexion", -RIGHT),
        ("lumbar", "head", "trunk bends to its right", RIGHT),
        ("neck.x", "head", "flexion, nods", FORWARD),
        ("neck.y", "head", "head bends to its right", RIGHT),
        ("pelvis.tx", "head", "body to its right", RIGHT),
        ("pelvis.ty", "head", "body forwards", FORWARD),
        ("pelvis.tz", "head", "body up", UP),
        ("pelvis.rx", "head", "body leans forwards", FORWARD),
        ("pelvis.rz", "right_toes", "body turns to its left", -RIGHT),
    ],
)
def test_positive_is_as_said(joint, link, positive, way):
    assert coordinate_meanings(HUMAN)[joint][0] == positive
    found = moves(joint, link)
    assert found @ way > 0.05
    assert found @ way == pytest.approx(np.abs(found).max())


def test_every_coordinate_has_a_meaning_and_ranges_agree():
    """Where one direction of a hinge is closed, it is the one that anatomy closes: knees do not bend forwards."""
    for model in (HUMAN, kg.samples.human_sagittal()):
        assert set(coordinate_meanings(model)) == set(model.joint_names)
    for side in ("right", "left"):
        lower, upper = np.degrees(HUMAN.position_limits[HUMAN.joint_index(f"{side}_knee")])
        assert (lower, upper) == (0, pytest.approx(130))
        assert coordinate_meanings(HUMAN)[f"{side}_knee"][0] == "flexion"
    assert not coordinate_meanings(kg.samples.two_link())
