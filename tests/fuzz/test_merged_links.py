"""Links that are fixed together are one body, whatever each of them states.

Random robots of links that are fixed to each other, many with inertias that no body has.  Two other ways to write the
same robot must give the same torques, or the same refusal: the links of each body merged by hand (by pseudo-inertias,
T J Tᵀ), and links and joints in another order.
"""

import random

import numpy as np

import kinegrad as kg
from kinegrad.io import read_model
from tests.fuzz.cases import cases

LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="2"/>'


def pseudo(mass, com, inertia):
    """J of a link, [zhakatayev2023] (7), whether a body has it or not."""
    c = np.append(com, 1.0)
    J = mass * np.outer(c, c)
    J[:3, :3] += np.trace(inertia) / 2 * np.eye(3) - inertia
    return J


class Robot:
    """Links with their poses in the link that each hangs on, and how each hangs there."""

    def __init__(self, rng):
        count = rng.integers(3, 9)
        self.kinds = ["base"] + [str(rng.choice(["fixed", "revolute", "prismatic"])) for _ in range(count - 2)]
        self.kinds.append("revolute")
        self.parents = [-1, *(int(rng.integers(0, k)) for k in range(1, count))]
        self.rpy, self.xyz, self.axis = rng.uniform(-1, 1, (3, count, 3))
        self.mass, self.com, self.inertia = rng.uniform(0.5, 2, count), rng.uniform(-0.3, 0.3, (count, 3)), []
        size = 10.0 ** rng.uniform(-4, -1, count)
        for k in range(count):
            moments = rng.uniform(0.8, 1.2, 3)
            if self.kinds[k] == "fixed" and rng.random() < 0.7:
                moments[rng.integers(3)] = rng.choice([-0.5, 0.0, 4.0])
                self.mass[k] *= rng.choice([0.0, 0.1])
                moments *= size[k]
            elif rng.random() < 0.2:
                moments = np.array([1.0, 1.0, rng.uniform(1.99, 2.04)])
            R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            self.inertia.append(R @ np.diag(moments) @ R.T)

    def pose(self, k):
        roll, pitch, yaw = self.rpy[k]
        return kg.translate(*self.xyz[k]) @ kg.rotate("z", yaw) @ kg.rotate("y", pitch) @ kg.rotate("x", roll)

    def write(self, links, joints):
        """`links`: number, mass, com, inertia; `joints`: kind, parent, child, transform that precedes the own one."""
        parts = []
        for k, mass, com, inertia in links:
            xx, xy, xz, yy, yz, zz = (
                float(inertia[i]) for i in zip((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2), strict=True)
            )
            place = " ".join(repr(float(x)) for x in com)
            moments = f'ixx="{xx!r}" ixy="{xy!r}" ixz="{xz!r}" iyy="{yy!r}" iyz="{yz!r}" izz="{zz!r}"'
            inside = f'<origin xyz="{place}"/><mass value="{float(mass)!r}"/><inertia {moments}/>'
            parts.append(f'<link name="l{k}"><inertial>{inside}</inertial></link>')
        for kind, parent, k, T in joints:
            x, y, z = (repr(float(x)) for x in T[:3, 3])
            yaw, pitch = np.arctan2(T[1, 0], T[0, 0]), np.arctan2(-T[2, 0], np.hypot(T[2, 1], T[2, 2]))
            roll, axis = np.arctan2(T[2, 1], T[2, 2]), " ".join(repr(float(x)) for x in self.axis[k])
            parts.append(
                f'<joint name="j{k}" type="{kind}"><parent link="l{parent}"/><child link="l{k}"/><axis xyz="{axis}"/>'
                f'<origin xyz="{x} {y} {z}" rpy="{float(roll)!r} {float(pitch)!r} {float(yaw)!r}"/>{LIMIT}</joint>'
            )
        return parts

    def whole(self):
        numbers = range(len(self.kinds))
        links = [(k, self.mass[k], self.com[k], self.inertia[k]) for k in numbers]
        return self.write(links, [(self.kinds[k], self.parents[k], k, self.pose(k)) for k in numbers[1:]])

    def merged(self):
        """The same robot with one link for each body."""
        host, place, J = {0: 0}, {0: np.eye(4)}, {0: pseudo(self.mass[0], self.com[0], self.inertia[0])}
        joints = []
        for k in range(1, len(self.kinds)):
            above, T = host[self.parents[k]], place[self.parents[k]] @ self.pose(k)
            own = pseudo(self.mass[k], self.com[k], self.inertia[k])
            if self.kinds[k] == "fixed":
                host[k], place[k] = above, T
                J[above] = J[above] + T @ own @ T.T
            else:
                host[k], place[k], J[k] = k, np.eye(4), own
                joints.append((self.kinds[k], above, k, T))
        links = []
        for k, one in J.items():
            com = one[:3, 3] / one[3, 3]
            sigma = one[:3, :3] - one[3, 3] * np.outer(com, com)
            links.append((k, one[3, 3], com, np.trace(sigma) * np.eye(3) - sigma))
        return self.write(links, joints)


def outcome(path, parts, **options):
    path.write_text(f'<robot name="r">{"".join(parts)}</robot>')
    try:
        return read_model(path, **options).model
    except kg.FileError as caught:
        error = caught
    assert all("for the nearest possible one" in problem for problem in error.problems)
    return None


def test_merged_by_hand_and_in_another_order(tmp_path):
    read = 0
    for case in range(count := cases(60)):
        rng = np.random.default_rng([26, case])
        made = Robot(rng)
        parts = made.whole()
        others = {"merged": made.merged(), "shuffled": random.Random(case).sample(parts, len(parts))}
        for options in ({}, {"root": "free"}, {"inertia": "project"}):
            model = outcome(tmp_path / "a.urdf", parts, **options)
            found = {name: outcome(tmp_path / "b.urdf", other, **options) for name, other in others.items()}
            assert all((x is None) == (model is None) for x in found.values()), (case, options)
            if model is None:
                continue
            read += 1
            q, v, a = rng.uniform(-1, 1, (3, model.nv))
            tau = kg.inverse_dynamics(model, q, v, a)
            for name, other in found.items():
                order = [model.coordinate_names.index(x) for x in other.coordinate_names]
                same = kg.inverse_dynamics(other, q[order], v[order], a[order])
                np.testing.assert_allclose(
                    same, tau[order], rtol=0, atol=1e-11 * np.abs(tau).max(), err_msg=f"{case} {name}"
                )
    assert count < read < 3 * count
