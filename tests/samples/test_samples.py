"""The sample models against the papers' tables and figures, and published numbers of the PUMA 560."""

import pickle

import numpy as np
import pytest

from kinegrad.errors import InputError, ModelError
from kinegrad.model import Inertia, Model
from kinegrad.samples import (
    SAMPLES,
    double_pendulum,
    human43,
    multi_pendulum,
    puma560,
    random_tree,
    spatial_chain,
    two_link,
)

EXACT = 1e-12  # a few roundings of numbers of order one


# --- slow and obvious: kinematics, mass matrix, gravity -----------------------------------------------------


def cross(u):
    return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])


def motion(joint, q):
    u, M = np.array(joint.axis), np.eye(4)
    angle = 0.0 if joint.kind == "prismatic" else q
    M[:3, :3] += np.sin(angle) * cross(u) + (1 - np.cos(angle)) * cross(u) @ cross(u)
    M[:3, 3] = u * {"revolute": 0.0, "prismatic": q, "screw": joint.pitch * q}[joint.kind]
    return M


def frames(model: Model, q=None):
    """Link frames and joint frames in the world, (n, 4, 4) each."""
    q = np.zeros(model.n) if q is None else q
    links, joints = [], []
    for i, parent in enumerate(model.parents):
        joints.append((links[parent] if parent >= 0 else np.eye(4)) @ model.placement[i])
        links.append(joints[i] @ motion(model.joints[i], q[i]) @ model.tip[i])
    return np.array(links), np.array(joints)


def jacobians(model: Model, q):
    """Of each centre of mass, and of each link's angular velocity: (n, 3, n) each."""
    links, joints = frames(model, q)
    linear, angular = np.zeros((2, model.n, 3, model.n))
    for i in range(model.n):
        c = links[i, :3, :3] @ model.com[i] + links[i, :3, 3]
        for j in (*model.topology.ancestors(i), i):
            joint = model.joints[j]
            u = joints[j, :3, :3] @ joint.axis
            if joint.kind == "prismatic":
                linear[i, :, j] = u
            else:
                angular[i, :, j] = u
                linear[i, :, j] = np.cross(u, c - joints[j, :3, 3]) + joint.pitch * u
    return linear, angular


def mass_matrix(model: Model, q):
    R = frames(model, q)[0][:, :3, :3]
    M = np.diag(model.armature)
    for m, body, turn, J, W in zip(model.mass, model.inertia, R, *jacobians(model, q), strict=True):
        M = M + m * J.T @ J + W.T @ turn @ body @ turn.T @ W
    return M


def gravity_torque(model: Model, q):
    linear, _ = jacobians(model, q)
    return -np.einsum("i,ikj,k->j", model.mass, linear, model.gravity)


# --- the human ----------------------------------------------------------------------------------------------

UPSILON = [*range(13), 5, *range(14, 21), 5, *range(22, 31), 22, *range(32, 40), 22, 41, 42]  # (18)
PHI = [0, 1, 1, 1, 4, 4, 4]  # (19)
PSI = [[1, 6, 14, 22, 23, 32, 41], [5, 13, 21, 22, 31, 40, 43]]  # (20)


def test_human_has_the_topology_of_the_paper():
    upsilon, phi, psi = human43().topology.paper_matrices()
    np.testing.assert_array_equal(upsilon, np.transpose([np.arange(1, 44), UPSILON]))
    np.testing.assert_array_equal(phi, np.transpose([np.arange(1, 8), PHI]))
    np.testing.assert_array_equal(psi, np.transpose(PSI))


@pytest.mark.parametrize(
    ("link", "end"),
    [
        ("pelvis", (0.09, 0, 0)), ("thigh", (0.09, 0, -0.44)), ("shank", (0.09, 0, -0.87)),
        ("foot", (0.09, 0.16, -0.87)), ("toes", (0.09, 0.22, -0.87)),
        ("clavicle", (0.17, 0, 0.49)), ("upper_arm", (0.17, 0, 0.21)), ("forearm", (0.17, 0, -0.05)),
        ("hand", (0.17, 0, -0.24)), ("trunk", (0, 0, 0.49)), ("head", (0, 0, 0.84)),
    ],
)  # fmt: skip
def test_human_stands_upright(link, end):
    human = human43()
    links, _ = frames(human)
    sides = {"": 1} if end[0] == 0 else {"right_": 1, "left_": -1}
    for side, x in sides.items():
        found = links[human.link_index(side + link), :3, 3]
        np.testing.assert_allclose(found, end * np.array([x, 1, 1]), atol=EXACT)


def test_human_joints_are_called_after_their_axes():
    human = human43()
    _, joints = frames(human)
    for i, name in enumerate(human.joint_names):
        axis = joints[i, :3, :3] @ human.joints[i].axis
        if "." in name:
            letter = name[-1]
        else:
            letter = "x" if name.endswith(("knee", "toes")) else "y"
        negative = (letter == "x" and human.joints[i].kind == "revolute") or name.endswith("elbow.z")
        expected = np.array([letter == c for c in "xyz"]) * (-1 if negative else 1)
        np.testing.assert_allclose(axis, expected, atol=EXACT, err_msg=name)


def test_human_is_made_of_twenty_rods():
    human = human43()
    assert human.total_mass == pytest.approx(77.5, rel=EXACT)
    assert np.count_nonzero(human.mass) == 20
    links, joints = frames(human)
    for i in np.flatnonzero(human.mass):
        start, end = joints[i, :3, 3], links[i, :3, 3]
        seen = Inertia(human.mass[i], human.com[i], human.inertia[i]).moved(links[i])
        rod = Inertia.rod(human.mass[i], start, end)
        np.testing.assert_allclose(seen.pseudo, rod.pseudo, atol=EXACT)
        assert np.linalg.norm(end - start) > 0
    com = np.einsum("i,ij->j", human.mass, [T[:3] @ [*c, 1] for T, c in zip(links, human.com, strict=True)])
    assert com[0] == pytest.approx(0, abs=EXACT)  # the two sides weigh the same


def test_human_needs_thickness_for_a_regular_mass_matrix():
    """Head and hands are rods on three hinges; standing, toes and arms are straight as well."""
    solid = human43(thickness=0.1)
    assert solid.total_mass == pytest.approx(77.5, rel=EXACT)
    moving = np.random.default_rng(1).normal(0, 0.3, 43)
    for q, rank in ((moving, 40), (0 * moving, 36)):
        # the least inertias are 1e-9 kg·m² in rods and 1e-4 in cylinders; rounding leaves 1e-14
        assert np.linalg.matrix_rank(mass_matrix(human43(), q), tol=1e-12) == rank
        assert np.linalg.eigvalsh(mass_matrix(solid, q))[0] > 1e-4


def test_human_of_another_size():
    tall = human43(lengths={"thigh": 0.5, "trunk": 0.55}, masses={"hand": 0.6}, gravity=(0, 0, 0))
    links, _ = frames(tall)
    assert links[tall.link_index("left_thigh"), 2, 3] == pytest.approx(-0.5)
    assert links[tall.link_index("head"), 2, 3] == pytest.approx(0.9)
    assert tall.total_mass == pytest.approx(77.7)
    assert not tall.gravity.any()
    with pytest.raises(InputError, match=r"limb 'thig' does not exist .* did you mean 'thigh'"):
        human43(masses={"thig": 1.0})


# --- arms ---------------------------------------------------------------------------------------------------


def test_two_link_obeys_the_closed_form():
    """[xiang2008] (52), (53) at rest: coefficients of the accelerations, and the terms in g."""
    L, r, m, inertia, g = 0.4, 0.2, 0.5, 0.1, 9.8062
    q = np.array([0.3, -1.1])
    c2, c1, c12 = np.cos([q[1], q[0], q.sum()])
    m12 = inertia + m * r**2 + m * L * r * c2
    M = [[2 * inertia + m * r**2 + m * (L**2 + r**2 + 2 * L * r * c2), m12], [m12, inertia + m * r**2]]
    g2 = m * g * r * c12
    arm = two_link()
    np.testing.assert_allclose(mass_matrix(arm, q), M, atol=EXACT)
    np.testing.assert_allclose(gravity_torque(arm, q), [g2 + m * g * r * c1 + m * g * L * c1, g2], atol=EXACT)
    np.testing.assert_array_equal(arm.effort_limits, 10)
    assert not two_link(gravity=(0, 0, 0)).gravity.any()


def test_two_link_has_the_pseudo_inertia_of_the_paper():
    J = np.zeros((4, 4))  # [xiang2008] (47)
    J[0, 0], J[0, 3], J[3, 0], J[3, 3] = 0.1 + 0.5 * 0.2**2, -0.1, -0.1, 0.5
    for link in two_link().link_names:
        np.testing.assert_allclose(two_link().link_inertia(link).pseudo, J, atol=EXACT)


# Results of Corke's Robotics Toolbox (gravload, inertia) at its pose qn, to four decimals.
QN = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
GRAVITY_QN = [0, 31.6399, 6.0351, 0, 0.0283, 0]
INERTIA_QN = [
    [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
    [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
    [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
    [-0.0025, 0, 0, 0.1925, 0, 0],
    [0, 0.0024, 0.0015, 0, 0.1713, 0],
    [0, 0, 0, 0, 0, 0.1941],
]


def test_puma_agrees_with_published_results():
    arm = puma560()
    links, _ = frames(arm)
    np.testing.assert_allclose(links[5, :3, 3], [0.4521, -0.15005, 0.4318], atol=EXACT)
    np.testing.assert_allclose(gravity_torque(arm, QN), GRAVITY_QN, atol=5.1e-5)
    # link 3 has moments 0.0025 away from the published ones, which no rigid body can have
    np.testing.assert_allclose(mass_matrix(arm, QN), INERTIA_QN, atol=0.0025 + 5.1e-5)


def test_puma_changes_what_the_docstring_says_and_no_more():
    """With the published moments of link 3, which no body has, the inertia agrees in all digits."""
    arm = puma560()
    M = mass_matrix(arm, QN)
    W = jacobians(arm, QN)[1][2]
    R = frames(arm, QN)[0][2, :3, :3]
    published = np.diag([0.066, 0.086, 0.0125])
    M += W.T @ R @ (published - arm.inertia[2]) @ R.T @ W
    np.testing.assert_allclose(M, INERTIA_QN, atol=5.1e-5)
    with pytest.raises(ModelError, match="triangle inequality"):
        Inertia(4.8, [0, 0, 0], published)


# --- pendulums ----------------------------------------------------------------------------------------------


def test_double_pendulum_is_two_particles():
    """[anderson2002] (71): the kinetic energy of particles P and Q."""
    L1, L2, MP, MQ = 0.8, 0.5, 1.5, 0.7
    model, q, v = double_pendulum(L1=L1, L2=L2, MP=MP, MQ=MQ), np.array([0.4, 0.9]), np.array([1.3, -0.6])
    P = L1 * v[0] * np.array([-np.cos(q[0]), np.sin(q[0])])
    Q = P + L2 * v.sum() * np.array([-np.cos(q.sum()), np.sin(q.sum())])
    energy = (MP * P @ P + MQ * Q @ Q) / 2
    assert v @ mass_matrix(model, q) @ v / 2 == pytest.approx(energy, rel=EXACT)


@pytest.mark.parametrize("make", [multi_pendulum, spatial_chain])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_chains_hang_straight_down(make, n):
    model = make(n, length=0.3, mass=2.0)
    _, joints = frames(model)
    np.testing.assert_allclose(joints[:, :3, 3], [[0, 0, -0.3 * k] for k in range(n)], atol=EXACT)
    assert model.total_mass == pytest.approx(2.0 * n)
    assert np.linalg.eigvalsh(mass_matrix(model, np.zeros(n)))[0] > 0
    if make is multi_pendulum:
        np.testing.assert_allclose(gravity_torque(model, np.zeros(n)), 0, atol=EXACT)
    with pytest.raises(InputError, match="`n` is 0"):
        make(0)


def test_cart_feels_the_rod():
    model = SAMPLES["cart_pendulum"]()
    m, L, angle = 0.2, 0.6, 0.7
    coupling = -m * L / 2 * np.cos(angle)  # a positive turn about y takes the rod towards −x
    np.testing.assert_allclose(
        mass_matrix(model, [5.0, angle]), [[1.2, coupling], [coupling, m * L**2 / 3]], atol=EXACT
    )


# --- random trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_random_tree_is_sound(seed):
    n, roots = 3 + 3 * seed, 1 + seed % 3
    tree = random_tree(n, seed, roots=roots, passive=False)
    assert len(tree.topology.roots) == roots
    assert all(tree.mass[i] > 0 for i in tree.topology.leaves)
    M = mass_matrix(tree, np.random.default_rng(seed).normal(size=n))
    assert np.linalg.eigvalsh(M)[0] > 0  # though some links are massless
    assert not any(getattr(tree, what).any() for what in ("stiffness", "rest", "damping", "armature"))
    assert tree == random_tree(n, seed, roots=roots, passive=False)
    assert tree != random_tree(n, seed + 1, roots=roots, passive=False)


def test_random_tree_varies_in_everything():
    tree = random_tree(60, 1)
    assert {joint.kind for joint in tree.joints} == {"revolute", "prismatic", "screw"}
    assert {sum(x != 0 for x in joint.axis) for joint in tree.joints} == {1, 3}
    assert min(min(joint.axis) for joint in tree.joints if 0.0 in joint.axis) == -1
    assert 0 < np.count_nonzero(tree.mass == 0) < 30
    assert len(tree.topology.junctions) > 3
    for what in ("stiffness", "damping", "armature"):
        assert 10 < np.count_nonzero(getattr(tree, what)) < 50
    assert np.count_nonzero(tree.parents == np.arange(60) - 1) > 20
    assert {joint.kind for joint in random_tree(20, kinds=("prismatic",)).joints} == {"prismatic"}


@pytest.mark.parametrize("seed", range(6))
def test_random_tree_can_be_depth_first(seed):
    tree = random_tree(25, seed, roots=2, depth_first=True).topology
    assert len(tree.branch_joints) == len(tree.branches)  # a ModelError unless consecutive


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n": 0}, "`n` is 0; expected a whole number"), ({"n": 2, "roots": 3}, "`roots` is 3"),
     ({"n": 3, "kinds": ("ball",)}, "`kinds` is"), ({"n": 3, "kinds": ()}, "`kinds` is")],
)  # fmt: skip
def test_random_tree_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        random_tree(**arguments)


# --- all ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_named_values(name):
    model = SAMPLES[name]()
    assert model.name == name
    assert model == SAMPLES[name]()
    assert pickle.loads(pickle.dumps(model)) == model


@pytest.mark.parametrize("value", [2.5, "3", None, -1, True, 10**9, [3], np.nan])
@pytest.mark.parametrize("make", [random_tree, multi_pendulum, spatial_chain])
def test_numbers_of_joints_that_are_none(make, value):
    with pytest.raises(InputError, match=r"`n` is .*; expected"):
        make(value)
    with pytest.raises((InputError, ModelError), match=r"`(seed|length)` is"):
        make(3, seed=-1) if make is random_tree else make(3, length="1")
