"""Random URDF files whose joints are written in any order, read here and by Pinocchio: one posture, one torque.

Names decide what a number means.  The same robot from a file with its joints in another order, and Pinocchio, which
sorts joints by the alphabet, give the same torques for the same posture by names.
"""

import random

import numpy as np
import pinocchio as pin

import kinegrad as kg
from kinegrad.bridges import from_pinocchio, to_pinocchio
from tests.fuzz.cases import cases

CLOSE = 1e-11  # of the largest torque; observed is 1e-14
KINDS = ("revolute", "continuous", "prismatic", "fixed", "revolute")
LIMIT = '<limit lower="-3" upper="3" effort="9" velocity="9"/>'


def parts_of(rng):
    """Elements of links and joints, of a tree of four to nine links with names in random order."""
    names = [f"{rng.choice('abcxyz')}{k}" for k in rng.sample(range(100), rng.randint(4, 9))]
    links, joints = [], []
    for k, name in enumerate(names):
        body = [round(rng.uniform(0.1, 1.0), 3) for _ in range(3)]
        xx, yy, zz = body[1] + body[2], body[0] + body[2], body[0] + body[1]  # those of a real body
        inertia = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
        place = f'<origin xyz="{body[0]} 0.1 0"/><mass value="{1 + body[1]}"/>'
        links.append(f'<link name="{name}"><inertial>{place}{inertia}</inertial></link>')
        if k:
            kind = rng.choice(KINDS) if k > 1 else "revolute"
            place = " ".join(str(round(rng.uniform(-0.5, 0.5), 3)) for _ in range(3))
            turn = " ".join(str(round(rng.uniform(-3, 3), 3)) for _ in range(3))
            axis = rng.choice(("1 0 0", "0 1 0", "0 0 1", "0.6 0 0.8"))
            joint, parent = f"{rng.choice('stuv')}{k}", rng.choice(names[:k])
            joints.append(f'<joint name="{joint}" type="{kind}"><parent link="{parent}"/>'
                          f'<child link="{name}"/><origin xyz="{place}" rpy="{turn}"/><axis xyz="{axis}"/>'
                          f'{LIMIT if kind in ("revolute", "prismatic") else ""}</joint>')  # fmt: skip
    return links, joints


def written(path, rng, links, joints):
    rng.shuffle(links)
    rng.shuffle(joints)
    path.write_text(f'<robot name="random">{"".join(links + joints)}</robot>')
    return str(path)


def test_names_decide_whatever_the_order(tmp_path):
    path, orders = tmp_path / "a.urdf", set()
    for seed in range(cases(15)):
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        links, joints = parts_of(rng)
        free, quaternion = rng.random() < 0.5, rng.random() < 0.5
        options = {"root": "free" if free else "fixed", "quaternion": quaternion}
        one = kg.load(written(path, rng, links, joints), **options)
        other = kg.load(written(path, rng, links, joints), **options)
        q = kg.integrate(one, kg.neutral(one), numbers.uniform(-1, 1, one.nv))
        v, a = numbers.uniform(-1, 1, (2, one.nv))
        tau = kg.inverse_dynamics(one, q, v, a)
        size = CLOSE * abs(tau).max()

        places = [one.layout.coordinate_names.index(name) for name in other.layout.coordinate_names]
        speeds = [one.layout.speed_names.index(name) for name in other.layout.speed_names]
        again = kg.inverse_dynamics(other, q[places], v[speeds], a[speeds])
        assert abs(again - tau[speeds]).max() < size, f"case {seed}: another order of the file, other torques"

        theirs = pin.buildModelFromUrdf(str(path), *[pin.JointModelFreeFlyer()] * free)
        there = to_pinocchio(one, theirs, q, v, a)
        torques = pin.rnea(theirs, theirs.createData(), there.q, there.v, there.a)
        back = from_pinocchio(other, theirs, there.q, there.v, there.a, tau=torques)
        assert abs(back.tau - tau[speeds]).max() < size, f"case {seed}: Pinocchio has other torques"
        assert abs(kg.difference(other, q[places], back.q)).max() < 1e-12
        orders.add(tuple(theirs.names)[1 + free :] == tuple(name for name in one.joint_names if "root" not in name))
    assert orders == {True, False} or len(orders) < cases(15)
