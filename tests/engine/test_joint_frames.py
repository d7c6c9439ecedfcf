"""Joint frames turned about their own axes: where links, centres of mass and inertias are, by these frames."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import samples
from kinegrad._engine.joint_frames import joint_frames
from kinegrad._kernels.joint_frames import BRANCHED, PARALLEL, RIGHT, TILTED
from kinegrad._kernels.mechanism import Mechanism
from tests.conftest import tree


def almost_parallel(tilt):
    """Hinges about axes of their own frames, which are tilted."""
    builder, last = kg.ModelBuilder(), None
    for k in range(5):
        place = kg.translate(0.4, 0.5, k) @ kg.rotate([0.6, 0.8, 0], tilt)
        last = builder.add(f"{k}", last, kg.revolute("z"), placement=place, inertia=kg.Inertia.box(1, [1, 2, 3]))
    return builder.build()


MODELS = {
    "puma560": samples.puma560(),
    "human43": samples.human43(),
    "chain": samples.spatial_chain(5),
    "upside down": samples.spatial_chain(4).replace(
        joints=tuple(kg.revolute(-np.eye(3)[k % 3]) for k in range(4)),
    ),
    **{f"tree {seed}": tree(seed) for seed in range(6)},
    **{f"almost parallel, {tilt}": almost_parallel(tilt) for tilt in (1e-15, 1e-12, 1e-9, 1e-8, 1.5e-8, 6.2831853072)},
}  # fmt: skip


def about(axis, c, s):
    """Rotation about x or z."""
    i, j = {"x": (1, 2), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[[i, j], [i, j]] = c
    R[i, j], R[j, i] = -s, s
    return R


def poses(model, q):
    """Rotation and origin of each joint frame in the world, as the tables say."""
    m = Mechanism(*engine.mechanism(model))
    kinds, hinge, rate, F, inertia = joint_frames(m)
    R, p = [], []
    for i, parent in enumerate(m.parent):
        above, origin = (R[parent], p[parent]) if parent >= 0 else (np.eye(3), np.zeros(3))
        (ca, sa, cb, sb, cc, sc), d = hinge[i, :6], hinge[i, 6:].copy()
        tilt, offset = kinds[i]
        assert (cb, sb) == (1, 0) or tilt == BRANCHED
        assert (cc, sc) == (1, 0) or offset
        assert tilt != RIGHT or (ca, sa) == (0, 1)
        assert tilt != PARALLEL or (ca, sa) == (1, 0)
        placed = above @ about("z", cb, sb) @ about("x", ca, sa)
        d[2] += rate[i, 1] * q[i]
        p.append(origin + placed @ d)
        angle = rate[i, 0] * q[i]
        R.append(placed @ about("z", np.cos(angle), np.sin(angle)) @ about("z", cc, sc))
    return np.array(R), np.array(p), F, inertia


@pytest.mark.parametrize("name", MODELS)
def test_links_are_where_they_are(name):
    model = MODELS[name]
    q = np.random.default_rng(1).normal(size=model.n)
    R, p, F, inertia = poses(model, q)
    pose = kg.forward_kinematics(model, q).transform
    link_rotation, link_position = pose[:, :3, :3], pose[:, :3, 3]
    rotation = R @ F[:, :9].reshape(-1, 3, 3)
    position = p + np.einsum("nij,nj->ni", R, F[:, 9:])
    np.testing.assert_allclose(rotation, link_rotation, rtol=0, atol=1e-14)
    np.testing.assert_allclose(position, link_position, rtol=0, atol=1e-14 * max(1.0, np.abs(position).max()))
    mass, com, (xx, yy, zz, xy, xz, yz) = inertia[:, 0], inertia[:, 1:4], inertia[:, 4:].T
    np.testing.assert_array_equal(mass, model.mass)
    expected = link_position + np.einsum("nij,nj->ni", link_rotation, model.com)
    found = p + np.einsum("nij,nj->ni", R, com)
    massive = mass > 0
    np.testing.assert_allclose(found[massive], expected[massive], rtol=0, atol=1e-14 * max(1.0, np.abs(expected).max()))
    N = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    expected = link_rotation @ model.inertia @ link_rotation.transpose(0, 2, 1)
    size = max(1e-300, np.abs(expected).max())
    np.testing.assert_allclose(R @ N @ R.transpose(0, 2, 1), expected, rtol=0, atol=1e-14 * size)


def tilts(model):
    return joint_frames(Mechanism(*engine.mechanism(model))).kinds[:, 0].tolist()


def test_right_angles_and_parallel_axes_are_recognised():
    assert tilts(samples.spatial_chain(6)) == [BRANCHED] + 5 * [RIGHT]
    assert tilts(samples.two_link()) == [BRANCHED, PARALLEL]
    assert tilts(samples.puma560()) == [BRANCHED, RIGHT, PARALLEL, RIGHT, RIGHT, RIGHT]  # of cos(π/2) = 6e-17
    kinds = tilts(samples.human43())
    assert TILTED not in kinds


def test_axes_that_are_parallel_but_for_rounding():
    """Turned there and back, about many axes: angles of 1e-16 cost as much as any, and say nothing."""
    rng, builder, last = np.random.default_rng(2), kg.ModelBuilder(), None
    for k in range(50):
        axis, angle = rng.normal(size=3), rng.uniform(-3, 3)
        place = kg.rotate(axis, angle) @ kg.rotate(axis, -angle)
        last = builder.add(f"{k}", last, kg.revolute("z"), placement=place, inertia=kg.Inertia.box(1, [1, 2, 3]))
    kinds = tilts(builder.build())[1:]
    assert kinds.count(PARALLEL) > 40
    assert set(kinds) <= {PARALLEL, TILTED}


@pytest.mark.parametrize("name", MODELS)
def test_one_child_of_each_link_is_not_branched(name):
    model = MODELS[name]
    free = [i for i, kind in enumerate(tilts(model)) if kind != BRANCHED]
    parents = model.parents[free].tolist()
    assert sorted(parents) == sorted(set(model.parents.tolist()) - {-1})
