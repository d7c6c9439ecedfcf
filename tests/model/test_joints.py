"""Joints: primitives, and the composites that are sequences of them, by the motion of their last link."""

import dataclasses
import itertools

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Joint, ModelBuilder, ModelError

# Products of at most six matrices with entries of order one.
CLOSE = 1e-14
EULER = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]
UNIVERSAL = ["".join(s) for s in itertools.permutations("xyz", 2)]


def turn(axis, angle):
    """An elementary rotation, written out."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array(
        {
            "x": [[1, 0, 0], [0, c, -s], [0, s, c]],
            "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
            "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        }[axis]
    )


def pose(joint, q):
    """Rotation and position of the link that a joint moves."""
    builder = ModelBuilder()
    builder.add("joint", None, joint)
    T = kg.forward_kinematics(builder.build(), q).transform[-1]
    return T[:3, :3], T[:3, 3]


def turns(letters, q):
    R = np.eye(3)
    for axis, angle in zip(letters, q, strict=True):
        R = R @ turn(axis, angle)
    return R


def test_there_are_twelve_sequences():
    assert len(EULER) == 12


@pytest.mark.parametrize("sequence", EULER)
def test_spherical(sequence, rng):
    for q in rng.uniform(-4, 4, size=(5, 3)):
        R, x = pose(kg.spherical(sequence), q)
        np.testing.assert_allclose(R, turns(sequence, q), rtol=0, atol=CLOSE)
        assert not x.any(), "three hinges at one point"


@pytest.mark.parametrize("axes", UNIVERSAL)
def test_universal(axes, rng):
    q = rng.uniform(-4, 4, size=2)
    R, x = pose(kg.universal(axes), q)
    np.testing.assert_allclose(R, turns(axes, q), rtol=0, atol=CLOSE)
    assert not x.any()


@pytest.mark.parametrize(("normal", "across"), [("x", [1, 2]), ("y", [2, 0]), ("z", [0, 1])])
def test_planar(normal, across, rng):
    """The sliders come first: they move along axes that do not turn."""
    q = rng.normal(size=3)
    R, x = pose(kg.planar(normal), q)
    desired = np.zeros(3)
    desired[across] = q[:2]
    np.testing.assert_allclose(x, desired, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(R, turn(normal, q[2]), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("sequence", EULER)
def test_free(sequence, rng):
    q = rng.normal(size=6)
    R, x = pose(kg.free(sequence), q)
    np.testing.assert_allclose(x, q[:3], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(R, turns(sequence, q[3:]), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("sign", [1, -1])
def test_primitives(axis, sign):
    letter, q = ("-" if sign < 0 else "") + axis, 0.7
    unit = np.eye(3)["xyz".index(axis)] * sign
    for joint, R, x in (
        (kg.revolute(letter), turn(axis, sign * q), 0 * unit),
        (kg.prismatic(letter), np.eye(3), q * unit),
        (kg.screw(letter, pitch=0.2), turn(axis, sign * q), 0.2 * q * unit),
    ):
        for actual, desired in zip(pose(joint, [q]), (R, x), strict=True):
            np.testing.assert_allclose(actual, desired, rtol=0, atol=CLOSE)


def test_oblique_axis_is_normalised_and_stays_put():
    joint = kg.screw([1, 2, 2], pitch=0.3)
    assert joint.axis == pytest.approx((1 / 3, 2 / 3, 2 / 3), abs=1e-15)
    R, x = pose(joint, [1.1])
    np.testing.assert_allclose(R @ joint.axis, joint.axis, rtol=0, atol=CLOSE)
    assert np.trace(R) == pytest.approx(1 + 2 * np.cos(1.1), abs=CLOSE)
    np.testing.assert_allclose(x, 0.33 * np.array(joint.axis), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("sequence", EULER)
def test_labels_are_letters_and_repeated_ones_are_numbered(sequence):
    labels = [joint.label for joint in kg.spherical(sequence)]
    first, second, third = sequence
    assert labels == [first, second, f"{third}2" if third == first else third]
    assert [joint.label for joint in kg.free(sequence)[3:]] == [f"r{label}" for label in labels]


@pytest.mark.parametrize(("normal", "labels"), [("x", "ty tz rx"), ("y", "tz tx ry"), ("z", "tx ty rz")])
def test_labels_of_planar(normal, labels):
    assert [joint.label for joint in kg.planar(normal)] == labels.split()


def test_kinds_of_composites():
    assert {joint.kind for joint in kg.spherical() + kg.universal()} == {"revolute"}
    assert [joint.kind for joint in kg.planar()] == ["prismatic", "prismatic", "revolute"]
    assert [joint.kind for joint in kg.free()] == ["prismatic"] * 3 + ["revolute"] * 3


def test_joints_are_values():
    assert kg.revolute("z") == kg.revolute([0, 0, 2.0])
    assert hash(kg.revolute("z")) == hash(kg.revolute([0, 0, 2.0]))
    assert kg.revolute("z") != kg.revolute("-z")
    with pytest.raises(dataclasses.FrozenInstanceError):
        kg.revolute("z").axis = (1, 0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kg.spherical("zzx"), "`sequence` is 'zzx'; expected 3 of the letters x, y, z, no two neighb"),
        (lambda: kg.spherical("zy"), "`sequence` is 'zy'; expected 3"),
        (lambda: kg.spherical("ZYX"), "`sequence` is 'ZYX'; expected 3"),
        (lambda: kg.free("xxy"), "`sequence` is 'xxy'; expected 3"),
        (lambda: kg.universal("xx"), "`axes` is 'xx'; expected 2 of the letters"),
        (lambda: kg.universal(3), "`axes` is 3; expected 2 of the letters"),
        (lambda: kg.planar("-z"), "`normal` is '-z'; expected 'x', 'y' or 'z'"),
        (lambda: kg.revolute("w"), "`axis` is 'w'; expected 'x', 'y', 'z'"),
        (lambda: kg.revolute([0, 0, 0]), r"`axis` is \[0.0, 0.0, 0.0\]; expected a finite vector that is not zero"),
        (lambda: kg.prismatic([1, 0]), r"`axis` has shape \(2,\); expected three numbers"),
        (lambda: kg.screw("z", pitch=np.inf), "`pitch` of a screw joint is inf; expected a finite number"),
        (lambda: Joint("ball", "z"), "joint kind is 'ball'; expected one of revolute, prismatic, screw"),
        (lambda: Joint("revolute", "z", pitch=0.1), "`pitch` of a revolute joint is 0.1; expected 0, or a screw"),
        (lambda: Joint("revolute", "z", label=3), "`label` of a joint is 3; expected text"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()
