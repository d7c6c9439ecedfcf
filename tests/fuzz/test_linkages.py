"""Linkages of random lengths, whose postures and motions must not depend on how they are asked for.

Metamorphic: a path or a motion in two calls, refined, or with joints numbered in another order, is the same, and so is
the motion of a linkage that is driven by the torque that was found.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import simulate
from tests.fuzz.cases import cases

CLOSE = 1e-8  # rad: postures are closed to 1e-10 m or better, links of 0.1 m and more


class Linkage:
    """A four-bar whose crank turns all the way round, closed at the home posture; joints in one of two orders."""

    def __init__(self, seed, *, rocker_first=False):
        rng = np.random.default_rng([seed, 57])
        a = rng.uniform(0.1, 0.3)  # the shortest; by Grashof, shortest and longest are less than the other two
        d, b = a + rng.uniform(0.15, 0.4, size=2)
        c = rng.uniform(max(d, b) - min(d, b) + a, d + b - a) * 0.9 + 0.1 * (d + b) / 2
        self.masses = rng.uniform(0.2, 2.0, size=3)
        self.lengths = a, d, b, c
        self.valid = a + max(d, b, c) < 0.95 * (sum((d, b, c)) - max(d, b, c)) and c > 1.05 * a
        turn, hinge = rng.normal(size=3), kg.revolute("-y")
        base = kg.rotate(turn, rng.uniform(0, 3))
        builder = kg.ModelBuilder("linkage", gravity=rng.normal(size=3) * 5)

        def rod(name, parent, placement, length, mass):
            inertia = kg.Inertia.rod(mass, [0, 0, 0], [length, 0, 0])
            builder.add(name, parent, hinge, link=name, placement=placement, inertia=inertia)

        parts = [
            lambda: rod("crank", None, base, a, self.masses[0]),
            lambda: rod("coupler", "crank", [a, 0, 0], b, self.masses[1]),
            lambda: rod("rocker", None, base @ kg.translate(d, 0, 0), c, self.masses[2]),
        ]
        for k in (2, 0, 1) if rocker_first else (0, 1, 2):
            parts[k]()
        self.model = builder.build()
        ends = kg.Loop("coupler", [b, 0, 0], "rocker", [c, 0, 0], directions="xz", name="pin")
        self.loop = kg.ConstraintSet(self.model, [ends])

    @property
    def order(self):
        """Where crank, coupler and rocker are."""
        return [self.model.joint_index(name) for name in ("crank", "coupler", "rocker")]

    def home(self, angle, side):
        """A guess near a posture with that crank angle, (3,) in the order of the joints."""
        a, d, b, c = self.lengths
        end = a * np.array([np.cos(angle), np.sin(angle)])
        to = np.array([d, 0.0]) - end
        far = np.hypot(*to)
        lean = side * np.arccos((b * b + far * far - c * c) / (2 * b * far))
        along = np.arctan2(to[1], to[0]) + lean
        pin = end + b * np.array([np.cos(along), np.sin(along)])
        q = np.empty(3)
        q[self.order] = angle, along - angle, np.arctan2(pin[1], pin[0] - d)
        return q

    def guesses(self, angle, first):
        """Postures of a path whose first guess stands for all."""
        q = np.tile(first, (len(angle), 1))
        q[:, self.order[0]] = angle
        return q


def some_linkages(few):
    return [seed for seed in range(cases(few, cost=20)) if Linkage(seed).valid]


def same(q, other):
    """Up to whole turns."""
    return np.abs(np.angle(np.exp(1j * (q - other)))).max() < CLOSE


@pytest.mark.parametrize("seed", some_linkages(6))
def test_postures_do_not_depend_on_how_a_path_is_cut(seed):
    one, other = Linkage(seed), Linkage(seed, rocker_first=True)
    rng = np.random.default_rng([seed, 58])
    angle, side = rng.uniform(-4, 4, size=9), rng.choice([-1.0, 1.0])
    first = one.home(angle[0], side)
    path = kg.assemble_path(one.model, one.loop, one.guesses(angle, first), keep=["crank"])
    assert path.success
    assert all(same(q, one.home(x, side)) for q, x in zip(path.q, angle, strict=True)), "closed form"
    assert np.abs(one.loop.error(path.q)).max() < 1e-10
    middle = kg.assemble_path(one.model, one.loop, one.guesses(angle[4:], path.q[4]), keep=["crank"])
    np.testing.assert_allclose(middle.q, path.q[4:], atol=CLOSE, err_msg="two calls")
    fine = np.interp(np.linspace(0, 8, 81), np.arange(9), angle)
    refined = kg.assemble_path(one.model, one.loop, one.guesses(fine, first), keep=["crank"])
    np.testing.assert_allclose(refined.q[::10], path.q, atol=CLOSE, err_msg="refined")
    start = np.empty(3)
    start[other.order] = path.q[0]
    turned = kg.assemble_path(other.model, other.loop, other.guesses(angle, start), keep=["crank"])
    np.testing.assert_allclose(turned.q[:, other.order], path.q, atol=CLOSE, err_msg="joints in another order")


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_linkages(4))
def test_a_driven_linkage_moves_as_by_its_own_torque(seed):
    """And with joints in another order, and in two calls; the motion of the crank is random, too."""
    one, other = Linkage(seed), Linkage(seed, rocker_first=True)
    rng = np.random.default_rng([seed, 59])
    angle, speed, rise = rng.uniform(-3, 3, size=3)
    q0 = one.home(angle, rng.choice([-1.0, 1.0]))
    v0 = kg.project_velocity(one.model, one.loop, q0, [speed, 0, 0], keep=["crank"])
    drive = {"crank": lambda t: (angle + speed * t + rise * t**2 / 2, speed + rise * t, rise)}
    t = np.linspace(0, 0.2, 5)
    motion = simulate(one.model, q0, v0, t, prescribed=drive, constraints=one.loop)
    assert motion.success
    free = simulate(one.model, q0, v0, t, constraints=one.loop, tau=lambda x, q, v: motion([x]).tau[0])
    np.testing.assert_allclose(free.q, motion.q, atol=1e-6, err_msg="by its own torque")
    again = simulate(one.model, motion.q[2], motion.v[2], t[2:], prescribed=drive, constraints=one.loop)
    np.testing.assert_allclose(again.tau, motion.tau[2:], rtol=1e-6, atol=1e-6, err_msg="two calls")
    start = [np.empty(3), np.empty(3)]
    for x, y in zip(start, (q0, v0), strict=True):
        x[other.order] = y
    turned = simulate(other.model, *start, t, prescribed=drive, constraints=other.loop)
    np.testing.assert_allclose(turned.tau[:, other.order], motion.tau, rtol=1e-6, atol=1e-6, err_msg="another order")
    np.testing.assert_allclose(turned.forces, motion.forces, rtol=1e-5, atol=1e-5)
