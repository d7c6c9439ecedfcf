"""Exact sensitivities of inverse dynamics: ∂τ/∂(q, v, a), their products with vectors, derivatives by loads.

Two formulations against each other, against the oracle differentiated by complex step, against formulas worked
out on paper; then identities, and what is accepted and refused.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, difference, parts, random_loads, random_state, tree
from tests.reference import oracle
from tests.sensitivities import CLOSE, FIELDS, MATRICES, METHODS, MODELS, far_away, methods, models, walk

trees = pytest.mark.parametrize("seed", range(40))


def assert_derivatives_close(actual, desired, v, tolerance=CLOSE):
    """Each matrix by its own largest entry, ∂τ/∂v by M·v at least.

    ∂τ/∂v is a difference of terms of that size, and vanishes where the mass matrix is constant (single joints):
    what is left there is their rounding.
    """
    M = np.abs(desired["dtau_da"]).max()
    for name in MATRICES:
        scale = np.abs(desired[name]).max()
        if name == "dtau_dv":
            scale = max(scale, M * np.abs(v).max())
        error = np.abs(getattr(actual, name) - desired[name]).max()
        assert error <= tolerance * scale, f"{name}: {error / scale:.1e} of the largest; expected {tolerance:.0e}"


def complex_step(model, q, v, a, loads):
    """∂τ/∂(q, v, a) of [xiang2008] (6)-(10): no truncation error, and none of the code that is tested."""

    def tau(q, v, a):
        return oracle.regular_lagrangian(model, q, v, a, *parts(loads))

    return {
        "dtau_dq": oracle.numerical_derivative(lambda x: tau(x, v, a), q),
        "dtau_dv": oracle.numerical_derivative(lambda x: tau(q, x, a), v),
        "dtau_da": oracle.numerical_derivative(lambda x: tau(q, v, x), a),
    }


@models
@pytest.mark.parametrize("loaded", [True, False])
def test_formulations_agree(model, loaded):
    """World-frame factors and (10)-(17) of [zhakatayev2023] share nothing but the joint's constants."""
    state = random_state(model, batch=(3,))
    loads = random_loads(model, batch=(3,)) if loaded else None
    spatial, lagrange = (kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=m) for m in METHODS)
    assert_close(spatial.tau, lagrange.tau, CLOSE)
    assert_derivatives_close(spatial, vars(lagrange), state[1])


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_formulations_agree_on_random_trees(first):
    """Any kinds of joints, one to three roots, either numbering, massless links, springs, dampers, rotors, loads."""
    for seed in range(first, first + 20):
        model, loads = tree(seed), random_loads(tree(seed), seed)
        state = random_state(model, seed)
        spatial, lagrange = (kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=m) for m in METHODS)
        assert_close(spatial.tau, lagrange.tau, CLOSE)
        assert_derivatives_close(spatial, vars(lagrange), state[1])


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.n <= 10])
def test_samples_equal_complex_step(name):
    model = MODELS[name]
    state, loads = random_state(model), random_loads(model)
    desired = complex_step(model, *state, loads)
    for method in METHODS:
        actual = kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method)
        assert_derivatives_close(actual, desired, state[1])


@pytest.mark.slow
def test_human_equals_complex_step():
    human = samples.human43()
    state, loads = random_state(human), random_loads(human)
    desired = complex_step(human, *state, loads)
    for method in METHODS:
        actual = kg.inverse_dynamics_derivatives(human, *state, loads=loads, method=method)
        assert_derivatives_close(actual, desired, state[1])


def check_complex_step(model, seed):
    state, loads = random_state(model, seed), random_loads(model, seed)
    desired = complex_step(model, *state, loads)
    for method in METHODS:
        actual = kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method)
        assert_derivatives_close(actual, desired, state[1])


@trees
def test_random_trees_equal_complex_step(seed):
    check_complex_step(tree(seed), seed)


# 160 more, of at most 8 joints: a complex step of the oracle takes O(n⁴).
@pytest.mark.parametrize("first", range(40, 200, 20))
def test_many_small_trees_equal_complex_step(first):
    for seed in range(first, first + 20):
        check_complex_step(tree(seed, largest=8), seed)


@methods
def test_torques_are_those_of_inverse_dynamics(method):
    for seed in range(20):
        model, loads = tree(seed), random_loads(tree(seed), seed)
        state = random_state(model, seed)
        tau = kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method).tau
        assert_close(tau, kg.inverse_dynamics(model, *state, loads=loads, method=method), CLOSE)


def xiang_gradients(theta, dtheta, ddtheta, f, g=9.8062):
    """[xiang2008] (54)-(65): the two-link arm with a force f down at its tip.

    (61) is printed as the derivative by the second joint's acceleration; what stands there is that by its angle.
    """
    L1 = L2 = 0.4
    l1 = l2 = 0.2
    m1 = m2 = 0.5
    I1 = I2 = 0.1
    (t1, t2), (d1, d2), (a1, a2) = theta, dtheta, ddtheta
    s1, s2, c2, s12 = np.sin(t1), np.sin(t2), np.cos(t2), np.sin(t1 + t2)
    mLl = m2 * L1 * l2
    tip = -m2 * g * l2 * s12 - f * L2 * s12
    by_q = [
        [tip - m1 * g * l1 * s1 - m2 * g * L1 * s1 - f * L1 * s1,  # (54)
         -2 * mLl * s2 * a1 - mLl * s2 * a2 - 2 * mLl * d1 * d2 * c2 - mLl * d2**2 * c2 + tip],  # (55)
        [tip,  # (60)
         -mLl * s2 * a1 + mLl * d1**2 * c2 + tip],  # (61)
    ]  # fmt: skip
    by_v = [
        [-2 * mLl * d2 * s2, -2 * mLl * d1 * s2 - 2 * mLl * d2 * s2],  # (56), (57)
        [2 * mLl * d1 * s2, 0.0],  # (62), (63)
    ]
    coupling = I2 + m2 * l2**2 + mLl * c2
    by_a = [
        [I1 + I2 + m1 * l1**2 + m2 * (L1**2 + l2**2 + 2 * L1 * l2 * c2), coupling],  # (58), (59)
        [coupling, I2 + m2 * l2**2],  # (64), (65)
    ]
    return dict(zip(MATRICES, map(np.array, (by_q, by_v, by_a)), strict=True))


@methods
@pytest.mark.parametrize("seed", range(5))
def test_two_link_arm_follows_the_paper(method, seed):
    arm = samples.two_link()
    state = random_state(arm, seed)
    f = 7.0 + seed
    loads = kg.Loads(force={"forearm": [0, -f, 0]})  # at the origin of the distal frame: the tip
    actual = kg.inverse_dynamics_derivatives(arm, *state, loads=loads, method=method)
    assert_derivatives_close(actual, xiang_gradients(*state, f), state[1], 1e-13)  # a dozen terms


@methods
def test_loaded_pendulum_on_paper(method):
    """A rod that hangs from a hinge about y: its load keeps its direction while the point swings along.

    With the point at X = R(q) r, τ = m L²/3 q̈ + m g L/2 sin q − (X_z f_x − X_x f_z) − h_y.
    """
    m, L, g = 1.3, 0.7, 9.81
    rod = samples.multi_pendulum(1, length=L, mass=m).replace(gravity=(0, 0, -g))
    q, v, a = random_state(rod, 1, (50,))
    r, f, h = np.random.default_rng(2).normal(size=(3, 3))
    loads = kg.Loads(force=[f], point=[r], torque=[h])
    sin, cos = np.sin(q), np.cos(q)
    x, z = cos * r[0] + sin * r[2], cos * r[2] - sin * r[0]
    result = kg.inverse_dynamics_derivatives(rod, q, v, a, loads=loads, method=method)
    # a handful of terms
    inertia = m * L**2 / 3
    assert_close(result.tau, inertia * a + m * g * L / 2 * sin - (z * f[0] - x * f[2]) - h[1], 1e-14)
    dtau_dq = m * g * L / 2 * cos + x * f[0] + z * f[2]  # dX_z/dq = −X_x, dX_x/dq = X_z
    assert_close(result.dtau_dq[:, 0], dtau_dq, 1e-14)
    assert np.abs(result.dtau_dv).max() <= 1e-15 * inertia * np.abs(v).max(), "a constant inertia: no velocity force"
    assert_close(result.dtau_da[:, 0], np.full_like(q, inertia), 1e-14)
    change = kg.inverse_dynamics_load_derivatives(rod, q, loads=loads)
    zero = np.zeros_like(q)
    assert_close(change.dtau_dforce[:, 0, 0], np.hstack([-z, zero, x]), 1e-14)
    assert_close(change.dtau_dtorque[:, 0, 0], np.hstack([zero, zero - 1, zero]), 1e-14)
    by_point = np.hstack([f[0] * sin + f[2] * cos, zero, f[2] * sin - f[0] * cos])
    assert_close(change.dtau_dpoint[:, 0, 0], by_point, 1e-14)


def check_structure(model, result, q):
    dense = [getattr(result, name) for name in MATRICES]
    apart = np.ones((model.n, model.n), dtype=bool)
    apart[model.topology.pattern] = False
    for matrix in dense:
        assert not matrix[..., apart].any(), "joints of different branches do not feel each other: exactly zero"
        assert np.isfinite(matrix).all()
    # Two sums of the same products, of the subtree at once or link by link: 2e-15 is the worst of 200 trees
    assert_close(result.dtau_da, kg.mass_matrix(model, q), 1e-14)


@models
@methods
def test_structure(model, method):
    state = random_state(model, batch=(3,))
    loads = random_loads(model, batch=(3,))
    check_structure(model, kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method), state[0])


@trees
@methods
def test_structure_of_random_trees(seed, method):
    model, loads = tree(seed), random_loads(tree(seed), seed)
    state = random_state(model, seed)
    check_structure(model, kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method), state[0])


@trees
def test_derivative_by_acceleration_is_symmetric(seed):
    """To the last bit by the spatial method, which writes each entry twice; (16) and (17) are two sums."""
    model = tree(seed)
    state = random_state(model, seed)
    spatial, lagrange = (kg.inverse_dynamics_derivatives(model, *state, method=m).dtau_da for m in METHODS)
    assert np.array_equal(spatial, spatial.T)
    assert_close(lagrange, lagrange.T, 1e-14)


def test_branches_are_there_to_be_zero():
    """The test of exact zeros proves nothing on chains alone."""
    assert samples.human43().topology.nonzeros == 747  # [zhakatayev2023]'s model: 1102 of 1849 entries are zero
    assert sum(tree(seed).topology.nonzeros < tree(seed).n ** 2 for seed in range(40)) > 25


@methods
def test_springs_dampers_and_rotors_are_on_the_diagonal(method):
    """And nowhere else; a difference of two results, so right to their rounding."""
    for seed in range(20):
        model = tree(seed)
        zero = np.zeros(model.n)
        state = random_state(model, seed)
        bare = model.replace(stiffness=zero, damping=zero, armature=zero)
        full, less = (kg.inverse_dynamics_derivatives(x, *state, method=method) for x in (model, bare))
        for name, constant in zip(MATRICES, (model.stiffness, model.damping, model.armature), strict=True):
            with_it, without = getattr(full, name), getattr(less, name)
            error = np.abs(with_it - without - np.diag(constant)).max()
            assert error <= 1e-15 * max(np.abs(with_it).max(), np.abs(without).max())


def check_products(model, seed, loads):
    """jvp and vjp are the matrices' products, and each other's transposes.

    Compared by the sum of the sizes of the products' terms, for they may cancel: n terms of a few 1e-16.
    """
    state = random_state(model, seed)
    dq, dv, da, w = np.random.default_rng([seed, 5]).normal(size=(4, model.n))
    result = kg.inverse_dynamics_derivatives(model, *state, loads=loads)
    change = kg.inverse_dynamics_jvp(model, *state, dq, dv, da, loads=loads)
    gradient = kg.inverse_dynamics_vjp(model, *state, w, loads=loads)
    size_v = np.abs(result.dtau_da).max() * np.abs(state[1]).max()  # terms that ∂τ/∂v is a difference of
    sizes = [np.abs(result.dtau_dq), np.maximum(np.abs(result.dtau_dv), size_v), np.abs(result.dtau_da)]
    steps = [dq, dv, da]
    size = sum(S @ np.abs(x) for S, x in zip(sizes, steps, strict=True)).max()
    by_matrices = result.dtau_dq @ dq + result.dtau_dv @ dv + result.dtau_da @ da
    assert np.abs(change - by_matrices).max() <= 1e-13 * size
    for part, S, name in zip((gradient.dq, gradient.dv, gradient.da), sizes, MATRICES, strict=True):
        assert np.abs(part - w @ getattr(result, name)).max() <= 1e-13 * (np.abs(w) @ S).max(), name
    both = w @ change, gradient.dq @ dq + gradient.dv @ dv + gradient.da @ da
    assert abs(both[0] - both[1]) <= 1e-13 * np.abs(w).sum() * size


@models
@pytest.mark.parametrize("loaded", [True, False])
def test_products_equal_matrices(model, loaded):
    check_products(model, 3, random_loads(model) if loaded else None)


@trees
def test_products_equal_matrices_on_random_trees(seed):
    check_products(tree(seed), seed, random_loads(tree(seed), seed))


@settings(max_examples=30)
@given(
    seed=st.integers(0, 30),
    factor=st.tuples(*[st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-6)] * 2),  # no denormal products
)
def test_jvp_is_linear_in_the_direction(seed, factor):
    model = tree(seed)
    state = random_state(model, seed)
    first, second = np.random.default_rng([seed, 6]).normal(size=(2, 3, model.n))
    one, other = (kg.inverse_dynamics_jvp(model, *state, *x) for x in (first, second))
    both = kg.inverse_dynamics_jvp(model, *state, *(factor[0] * first + factor[1] * second))
    matrices = kg.inverse_dynamics_derivatives(model, *state)
    largest = max(np.abs(getattr(matrices, name)).max() for name in MATRICES) * (1 + np.abs(state[1]).max())
    size = largest * (abs(factor[0]) * np.abs(first).sum() + abs(factor[1]) * np.abs(second).sum())
    assert np.abs(both - (factor[0] * one + factor[1] * other)).max() <= 1e-13 * size


def test_jvp_along_nothing_is_nothing():
    model, zero = tree(3), np.zeros(tree(3).n)
    assert not kg.inverse_dynamics_jvp(model, *random_state(model), zero, zero, zero).any()
    gradient = kg.inverse_dynamics_vjp(model, *random_state(model), zero)
    assert not any(x.any() for x in vars(gradient).values())


@methods
@far_away
def test_derivatives_do_not_depend_on_where_the_human_walks(method, distance):
    human, places, rest, loads = walk(distance)
    near, far = (kg.inverse_dynamics_derivatives(human, q, *rest, loads=loads, method=method) for q in places)
    for name in FIELDS:
        assert difference(getattr(far, name), getattr(near, name)) <= 1e-13, name


@far_away
def test_products_do_not_depend_on_where_the_human_walks(distance):
    human, places, rest, loads = walk(distance)
    direction = random_state(human, 6)
    assert_close(*(kg.inverse_dynamics_jvp(human, q, *rest, *direction, loads=loads) for q in places[::-1]), 1e-13)
    near, far = (kg.inverse_dynamics_vjp(human, q, *rest, direction[0], loads=loads) for q in places)
    for name in ("dq", "dv", "da"):
        assert difference(getattr(far, name), getattr(near, name)) <= 1e-13, name
