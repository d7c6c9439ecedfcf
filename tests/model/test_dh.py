"""Denavit–Hartenberg tables: both conventions against the products they stand for, topologies, plain rows."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import DH, InputError, Model, ModelError

# Products of a handful of 4×4 matrices with entries of order one.
CLOSE = 1e-14
PARENTS = [-1, 0, 1, 1, 3, 1]
BRANCHES = ([-1, 0, 0, 0], [[0, 1], [2, 2], [3, 4], [5, 5]])  # Φ and Ψ of the same tree
ROWS = [
    DH(0.3, 0.1, 0.4, -0.7),
    DH(-0.2, 0.2, 0.1, np.pi / 2, variable="d"),
    DH(1.1, -0.3, 0.2, 0.5, variable="-theta"),
    DH(0.0, 0.0, 0.3, 0.0, variable="-d"),
    DH(0.6, 0.2, -0.1, 1.2, pitch=0.05),
    DH(-0.6, 0.2, 0.1, 2.2, variable="-theta", pitch=-0.03),
]


def Rz(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def Rx(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def shift(x, z):
    T = np.eye(4)
    T[[0, 2], 3] = x, z
    return T


def transform(row, q, convention):
    """The row's matrix with q inside θ and d, where textbooks have it: no constants around a motion."""
    sign = -1 if row.variable.startswith("-") else 1
    theta = row.theta + (0 if row.variable.endswith("d") else sign * q)
    d = row.d + sign * q * (1 if row.variable.endswith("d") else row.pitch)
    if convention == "distal":
        return Rz(theta) @ shift(0, d) @ shift(row.a, 0) @ Rx(row.alpha)
    return Rx(row.alpha) @ shift(row.a, 0) @ Rz(theta) @ shift(0, d)


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_link_frames_are_the_products_of_the_rows(convention):
    """Every variable, sign and pitch, along the paths of a tree."""
    model = Model.from_dh(ROWS, parents=PARENTS, convention=convention)
    for q in np.random.default_rng(1).normal(size=(5, model.n)):
        frames = []
        for row, parent, angle in zip(ROWS, PARENTS, q, strict=True):
            above = np.eye(4) if parent < 0 else frames[parent]
            frames.append(above @ transform(row, angle, convention))
        np.testing.assert_allclose(kg.forward_kinematics(model, q).transform, frames, rtol=0, atol=CLOSE)


def test_conventions_differ():
    """The test above could not tell them apart if the table were too simple."""
    distal, proximal = (Model.from_dh(ROWS, convention=c) for c in ("distal", "proximal"))
    one, other = (kg.forward_kinematics(model, np.zeros(6)).transform for model in (distal, proximal))
    assert np.abs(one - other).max() > 0.1


@pytest.mark.parametrize("convention", ["distal", "proximal"])
def test_parents_and_branches_give_equal_models(convention):
    bodies = [kg.Inertia.point(1.0 + i, [0.1 * i, 0, 0]) for i in range(6)]
    same = {"convention": convention, "inertias": bodies, "damping": np.arange(6.0)}
    by_parents = Model.from_dh(ROWS, parents=PARENTS, **same)
    by_branches = Model.from_dh(ROWS, branches=BRANCHES, **same)
    assert by_parents == by_branches
    assert hash(by_parents) == hash(by_branches)
    assert by_branches.parents.tolist() == PARENTS
    assert by_parents != Model.from_dh(ROWS, **same), "without either, the rows are a chain"


def test_rows_without_topology_are_a_chain():
    assert Model.from_dh(ROWS).parents.tolist() == [-1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("row", [(0.1, 0.2, 0.3, 0.4), [0.1, 0.2, 0.3, 0.4], np.array([0.1, 0.2, 0.3, 0.4])])
def test_plain_rows_are_hinges(row):
    assert Model.from_dh([row, row]) == Model.from_dh([DH(0.1, 0.2, 0.3, 0.4)] * 2)
    assert Model.from_dh(iter([row])).joints == (kg.revolute("z"),)


def test_rows_without_inertia_are_massless():
    model = Model.from_dh(ROWS[:2], inertias=[None, kg.Inertia.point(2.0, [0, 0, 1])])
    assert model.mass.tolist() == [0.0, 2.0]
    assert Model.from_dh(ROWS).total_mass == 0.0


@pytest.mark.parametrize(
    ("row", "joint"),
    [
        (DH(), kg.revolute("z")),
        (DH(variable="-theta"), kg.revolute("-z")),
        (DH(variable="d"), kg.prismatic("z")),
        (DH(variable="-d"), kg.prismatic("-z")),
        (DH(pitch=0.1), kg.screw("z", pitch=0.1)),
        (DH(variable="-theta", pitch=0.1), kg.screw("-z", pitch=0.1)),
    ],
)
def test_joint_of_a_row(row, joint):
    assert row.joint() == joint


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DH(variable="alpha"), r"`variable` of a DH row is 'alpha'; expected one of theta, -theta, d, -d"),
        (lambda: DH(theta=np.nan), r"`theta` of a DH row is nan; expected a finite number"),
        (lambda: DH(a="long"), r"`a` of a DH row is a str; expected a finite number"),
        (lambda: DH(variable="d", pitch=0.1), r"`pitch` of a DH row needs variable 'theta'"),
        (lambda: DH().placement("craig"), r"`convention` is 'craig'; expected 'distal' or 'proximal'"),
        (lambda: Model.from_dh(ROWS, convention="modified"), r"`convention` is 'modified'; expected"),
        (lambda: Model.from_dh([(0, 0, 0, 0), (0, 0, 0)]), r"`rows`\[1\] is \(0, 0, 0\); expected a DH or \(theta, d"),
        (lambda: Model.from_dh([7]), r"`rows`\[0\] is 7; expected a DH or"),
        (lambda: Model.from_dh("rows"), r"`rows` is 'rows'; expected DH rows"),
        (lambda: Model.from_dh(ROWS, parents=PARENTS, branches=BRANCHES), r"`parents` and `branches` are both given"),
        (lambda: Model.from_dh(ROWS, branches=([-1],)), r"`branches` has 1 entries; expected the pair"),
        (lambda: Model.from_dh(ROWS, parents=[-1, 0]), r"the topology has 2 joints; the DH table has 6 rows"),
        (lambda: Model.from_dh(ROWS, inertias=[None]), r"`inertias` has 1 entries; the DH table has 6 rows"),
        (lambda: Model.from_dh(ROWS, inertias=[1.0] * 6), r"`inertias` holds 1.0; expected Inertia objects"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_unknown_field_is_named():
    with pytest.raises(
        InputError, match="`dampers` is not a field of Model; expected one of actuation, armature, coordinates, damping"
    ):
        Model.from_dh(ROWS, dampers=np.zeros(6))


def test_rows_whose_joint_is_tilted_are_dropped():
    """By 1e-9, too, where the third component of the axis is still 1."""
    arm = Model.from_dh([(0, 0.1, 0.4, 0.3), (0, 0, 0.3, 0.2)])
    tilted = arm.replace(joints=(kg.revolute([1e-9, 0.0, 1.0]), arm.joints[1]))
    assert tilted.joints[0].axis[2] == 1.0
    assert tilted.dh.rows == (None, arm.dh.rows[1])
    assert arm.replace(joints=(kg.revolute([0.0, 0.0, -1.0]), arm.joints[1])).dh.rows == arm.dh.rows
