"""Energies, centre of mass and momentum, against the oracle and each other."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, difference, random_state, tree
from tests.reference import oracle

CLOSE = 1e-13  # sums over some dozen links, each right to a few 1e-16 of the largest
trees = pytest.mark.parametrize("seed", range(30))


def check_against_oracle(model, seed):
    q, v, _ = random_state(model, seed)
    assert_close(kg.kinetic_energy(model, q, v), oracle.kinetic_energy(model, q, v), CLOSE)
    # V may be a small difference of heights: what counts is the size of what is summed
    scale = np.abs(model.mass).sum() * np.linalg.norm(model.gravity) * model.n + np.sum(model.stiffness)
    assert abs(kg.potential_energy(model, q) - oracle.potential_energy(model, q)) <= CLOSE * scale
    assert_close(kg.center_of_mass(model, q), oracle.com(model, q), CLOSE)
    momentum = kg.momentum(model, q, v)
    linear, angular = oracle.momentum(model, q, v)
    assert_close(momentum.linear, linear, CLOSE)
    # Beside the angular momentum about the centre, that of the centre about the origin is lost (and is large)
    origin = np.abs(np.cross(oracle.com(model, q), linear)).max() + np.abs(angular).max()
    assert np.abs(momentum.angular - angular).max() <= CLOSE * origin


def test_samples_equal_oracle(sample):
    check_against_oracle(sample, 1)


@trees
def test_random_trees_equal_oracle(seed):
    check_against_oracle(tree(seed), seed)


@trees
def test_kinetic_energy_is_that_of_the_mass_matrix(seed):
    model = tree(seed)
    q, v, _ = random_state(model, seed)
    assert_close(kg.kinetic_energy(model, q, v), v @ kg.mass_matrix(model, q) @ v / 2, CLOSE)


def test_kinetic_energy_of_samples_is_that_of_the_mass_matrix(sample):
    q, v, _ = random_state(sample, batch=(4,))
    half = np.einsum("si,sij,sj->s", v, kg.mass_matrix(sample, q), v) / 2
    assert_close(kg.kinetic_energy(sample, q, v), half, CLOSE)


@trees
def test_linear_momentum_is_mass_times_speed_of_the_center(seed):
    """d(com)/dt is exact: a complex step of the oracle's centre of mass."""
    model = tree(seed)
    q, v, _ = random_state(model, seed)
    speed = oracle.rate(lambda q: oracle.com(model, q), (q, v))
    assert_close(kg.momentum(model, q, v).linear, model.total_mass * speed, CLOSE)


def test_slope_of_the_center_of_mass_by_central_difference():
    """With no oracle at all. A step h leaves h² ≈ 4e-11 of truncation and 1e-16/h ≈ 2e-11 of rounding."""
    human, h = samples.human43(), 6e-6
    q, v, _ = random_state(human, 2)
    ahead, behind = (kg.center_of_mass(human, q + s * h * v) for s in (1, -1))
    assert difference(kg.momentum(human, q, v).linear, human.total_mass * (ahead - behind) / (2 * h)) < 1e-8


def test_free_fall_conserves_energy_and_momentum():
    """Nothing pulls a tree without gravity, springs and dampers on a free root: p and L do not change.

    Rates by complex step of the oracle, at the acceleration that takes no torque.
    """
    root = kg.ModelBuilder("floating", gravity=(0, 0, 0))
    body = kg.Inertia.box(2.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0.2])
    root.add("base", None, kg.free(), link="trunk", inertia=body)
    root.add("arm", "trunk", kg.revolute([1, 2, 3]), inertia=body, placement=[0.2, 0.1, 0])
    root.add("slide", "arm", kg.prismatic("y"), inertia=body, placement=[0.1, 0, 0.3])
    model = root.build()
    q, v, _ = random_state(model, 8)
    a = np.linalg.solve(kg.mass_matrix(model, q), -kg.bias_forces(model, q, v))
    momentum = kg.momentum(model, q, v)
    dp, dL = (oracle.rate(lambda q, v, k=k: oracle.momentum(model, q, v)[k], (q, v), (v, a)) for k in (0, 1))
    assert np.abs(dp).max() < 1e-11 * np.abs(momentum.linear).max()  # a carries the condition of M, about 1e3
    assert np.abs(dL).max() < 1e-11 * np.abs(momentum.angular).max()


def test_momentum_keeps_its_digits_far_away():
    """Angular momentum is about the centre of mass, and never passes through that about the world's origin.

    By that way 2e-11 of it would be lost at 1 km, and 2e-8 at 1000 km.
    """
    human = samples.human43()
    q, v, _ = random_state(human, 3)
    far = q.copy()
    far[:3] += [1.0001e6, -2.0002e6, 3.0003e6]
    near, away = kg.momentum(human, q, v), kg.momentum(human, far, v)
    assert_close(away.linear, near.linear, CLOSE)
    assert_close(away.angular, near.angular, CLOSE)
    assert_close(kg.kinetic_energy(human, far, v), kg.kinetic_energy(human, q, v), CLOSE)


def test_shapes_follow_the_batch():
    model = tree(6)
    q, v, _ = random_state(model, batch=(2, 3))
    assert kg.kinetic_energy(model, q, v).shape == kg.potential_energy(model, q).shape == (2, 3)
    assert kg.center_of_mass(model, q).shape == kg.momentum(model, q, v).angular.shape == (2, 3, 3)
    assert kg.kinetic_energy(model, q[0, 0], v[0, 0]).shape == ()
    assert np.array_equal(kg.kinetic_energy(model, q, v[0])[1, 2], kg.kinetic_energy(model, q[1, 2], v[0, 2]))


def test_a_model_without_mass_has_no_center():
    builder = kg.ModelBuilder("ghost")
    builder.add("hinge", None, kg.revolute("y"), armature=0.5)
    ghost = builder.build()
    for call in (lambda: kg.center_of_mass(ghost, [0]), lambda: kg.momentum(ghost, [0], [0])):
        with pytest.raises(kg.ModelError, match="model 'ghost' has no mass"):
            call()
    assert kg.kinetic_energy(ghost, [0], [2.0]) == 1.0, "its rotor has energy all the same"
    assert kg.potential_energy(ghost, [1.0]) == 0.0


def test_results_keep_no_more_memory_than_their_own():
    """The kernel fills eleven columns; one of them would keep all alive."""
    model = samples.two_link()
    q, v = np.zeros((2, 100, 2))
    for x in (
        kg.kinetic_energy(model, q, v),
        kg.potential_energy(model, q),
        kg.center_of_mass(model, q),
        kg.momentum(model, q, v).linear,
    ):
        owner = x if x.base is None else x.base
        assert owner.nbytes == x.nbytes
