"""Exact sensitivities of inverse dynamics: ∂τ/∂(q, v, a), their products with vectors, derivatives by loads.

Two formulations against each other, against the oracle differentiated by complex step, against formulas worked
out on paper; then identities, and what is accepted and refused.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad import InputError, InverseDynamicsDerivatives, PackedMatrix, samples
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import assert_close, difference, parts, random_loads, random_state, tree
from tests.reference import oracle

# Sums of some hundred terms, each right to a few 1e-16 of the largest; 3e-15 is the worst seen.  1e-12 leaves room for
# other processors and longer chains, and is still nine digits below a wrong term.
CLOSE = 1e-12
METHODS = ("spatial", "lagrange")
MATRICES = ("dtau_dq", "dtau_dv", "dtau_da")
FIELDS = ("tau", *MATRICES)
MODELS = {
    **{name: make() for name, make in samples.SAMPLES.items()},
    "multi_pendulum(40)": samples.multi_pendulum(40),
    "spatial_chain(3)": samples.spatial_chain(3),
    "spatial_chain(24)": samples.spatial_chain(24),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
trees = pytest.mark.parametrize("seed", range(40))
methods = pytest.mark.parametrize("method", METHODS)


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


def fields(result):
    return [getattr(result, name) for name in FIELDS]


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


# --- two formulations, and the oracle -----------------------------------------------------------------------


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


# --- formulas on paper --------------------------------------------------------------------------------------


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


# --- identities ---------------------------------------------------------------------------------------------


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


# --- loads --------------------------------------------------------------------------------------------------


def check_load_derivatives(model, seed):
    q, v, a = random_state(model, seed)
    loads = random_loads(model, seed)
    actual = kg.inverse_dynamics_load_derivatives(model, q, loads=loads)
    for k, name in enumerate(("force", "point", "torque")):
        given = list(parts(loads))

        def tau(x, k=k, given=given):
            return oracle.regular_lagrangian(model, q, v, a, *given[:k], x, *given[k + 1 :])

        desired = oracle.numerical_derivative(tau, given[k])
        # ∂τ/∂point vanishes without hinges, what is left is rounding: it is compared by the force
        scale = max(np.abs(desired).max(), np.abs(loads.force).max() if name == "point" else 1.0)
        error = np.abs(getattr(actual, f"dtau_d{name}") - desired).max()
        assert error <= CLOSE * scale, f"{name}: {error / scale:.1e}"


@pytest.mark.parametrize("seed", range(20))
def test_load_derivatives_of_random_trees_equal_complex_step(seed):
    check_load_derivatives(tree(seed), seed)


@pytest.mark.parametrize("name", ["puma560", "two_link", "cart_pendulum", "spatial_chain(3)"])
def test_load_derivatives_equal_complex_step(name):
    check_load_derivatives(MODELS[name], 1)


@models
def test_torques_are_linear_in_forces_and_torques(model):
    """τ(loads) − τ(no loads) is the derivatives' product with them, for any point."""
    state, loads = random_state(model, 2), random_loads(model, 2)
    by = kg.inverse_dynamics_load_derivatives(model, state[0], loads=loads)
    change = np.einsum("ilx,lx->i", by.dtau_dforce, loads.force) + np.einsum("ilx,lx->i", by.dtau_dtorque, loads.torque)
    loaded, bare = (kg.inverse_dynamics(model, *state, loads=x) for x in (loads, None))
    error = np.abs(loaded - bare - change).max()
    assert error <= CLOSE * max(np.abs(loaded).max(), np.abs(bare).max())  # a difference: right to its terms' rounding


@models
def test_load_derivatives_are_jacobians(model):
    """∂τ/∂force = −J_vᵀ and ∂τ/∂torque = −J_ωᵀ of the point, by another kernel; zero where the link does not move."""
    q, loads = random_state(model, 3)[0], random_loads(model, 3)
    by = kg.inverse_dynamics_load_derivatives(model, q, loads=loads)
    J = kg.jacobian(model, q, link=model.link_names, point=loads.point)
    assert_close(by.dtau_dforce, -np.moveaxis(J.linear, -1, 0), CLOSE)
    assert_close(by.dtau_dtorque, -np.moveaxis(J.angular, -1, 0), CLOSE)
    for i, link in np.ndindex(model.n, model.n):
        if i != link and i not in model.topology.ancestors(link):
            assert not any(x[i, link].any() for x in vars(by).values())


def test_load_derivatives_without_loads_are_at_the_frames_and_by_point_zero():
    model = tree(4)
    q = random_state(model, 4, (2, 3))[0]
    by, at_zero = (kg.inverse_dynamics_load_derivatives(model, q, loads=x) for x in (None, kg.Loads()))
    for name in ("dtau_dforce", "dtau_dtorque", "dtau_dpoint"):
        assert getattr(by, name).shape == (2, 3, model.n, model.n, 3)
        same_bits(getattr(by, name), getattr(at_zero, name))
    assert by.dtau_dforce.any()
    assert not by.dtau_dpoint.any()


# --- far from the origin ------------------------------------------------------------------------------------

# Taken about the world's origin, moments of inertia are x² times larger at x metres, and derivatives with them:
# nothing would be left at 1000 km.  About a point of the mechanism, nothing is lost.
far_away = pytest.mark.parametrize("distance", [1e3, 1e6])


def walk(distance):
    """A human's state near the origin and far away, and loads."""
    human = samples.human43()
    q, v, a = random_state(human, 5)
    far = q.copy()
    far[:3] += np.array([1.0001, -2.0002, 3.0003]) * distance  # pelvis.tz, ty, tx
    return human, (q, far), (v, a), random_loads(human, 5)


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


@far_away
def test_load_derivatives_do_not_depend_on_where_the_human_walks(distance):
    human, places, _, loads = walk(distance)
    near, far = (kg.inverse_dynamics_load_derivatives(human, q, loads=loads) for q in places)
    for name in ("dtau_dforce", "dtau_dtorque", "dtau_dpoint"):
        assert difference(getattr(far, name), getattr(near, name)) <= 1e-13, name


# --- packed -------------------------------------------------------------------------------------------------


@methods
@pytest.mark.parametrize("batch", [(), (5,), (2, WIDTH + 1), (0,)])
def test_packed_is_dense_bit_for_bit(method, batch):
    for model in (samples.human43(), tree(2), tree(5), tree(7)):  # the last has one joint
        state, loads = random_state(model, 1, batch), random_loads(model, 1, batch)
        dense, packed = (
            kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method, packed=x) for x in (False, True)
        )
        same_bits(packed.tau, dense.tau)
        for name in MATRICES:
            matrix, whole = getattr(packed, name), getattr(dense, name)
            assert isinstance(matrix, PackedMatrix)
            assert matrix.values.shape == (*batch, model.topology.nonzeros)
            same_bits(matrix.values, whole[..., matrix.rows, matrix.cols])
            same_bits(matrix.to_dense(), whole)
            for k in np.ndindex(batch):
                assert np.array_equal(matrix.to_sparse(k).toarray(), whole[k])


def test_one_state_of_a_packed_batch():
    model = tree(2)
    result = kg.inverse_dynamics_derivatives(model, *random_state(model, 1, (4,)), packed=True)
    sparse = result.dtau_dq.to_sparse(-1)
    assert sparse.shape == (model.n, model.n)
    assert np.array_equal(sparse.toarray(), result.dtau_dq.to_dense()[-1])
    with pytest.raises(InputError, match=r"`k` is \(\), which leaves a batch of shape \(4,\); expected one state"):
        result.dtau_dq.to_sparse()


# --- batches and threads ------------------------------------------------------------------------------------


@methods
def test_batch_shapes_broadcast(method):
    """(5, 1) × (1, 7) × one state × (7,) of loads: the same bits as each state alone."""
    model = tree(5)
    q, v, a = random_state(model, 1, (5, 7))
    q, v, a, force = q[:, :1], v[:1], a[0, 0], random_loads(model, 1, (7,)).force
    result = kg.inverse_dynamics_derivatives(model, q, v, a, loads=kg.Loads(force=force), method=method)
    assert result.tau.shape == (5, 7, model.n)
    assert all(getattr(result, name).shape == (5, 7, model.n, model.n) for name in MATRICES)
    w = random_state(model, 2, (5, 1))[0]
    change = kg.inverse_dynamics_jvp(model, q, v, a, w, a, v, loads=kg.Loads(force=force))
    gradient = kg.inverse_dynamics_vjp(model, q, v, a, w, loads=kg.Loads(force=force))
    by_load = kg.inverse_dynamics_load_derivatives(model, q, loads=kg.Loads(force=force))
    for i, j in np.ndindex(5, 7):
        one, load = (q[i, 0], v[0, j], a), kg.Loads(force=force[j])
        alone = kg.inverse_dynamics_derivatives(model, *one, loads=load, method=method)
        for x, y in zip(fields(result), fields(alone), strict=True):
            same_bits(x[i, j], y)
        same_bits(change[i, j], kg.inverse_dynamics_jvp(model, *one, w[i, 0], a, v[0, j], loads=load))
        same_bits(gradient.dq[i, j], kg.inverse_dynamics_vjp(model, *one, w[i, 0], loads=load).dq)
        same_bits(
            by_load.dtau_dpoint[i, j], kg.inverse_dynamics_load_derivatives(model, q[i, 0], loads=load).dtau_dpoint
        )


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
@pytest.mark.parametrize("threads", [1, 3])
def test_no_states_give_no_results(shape, threads):
    model = tree(5)
    n, options = model.n, {"threads": threads}
    x = np.empty((*shape, n))
    for method in METHODS:
        result = kg.inverse_dynamics_derivatives(model, x, np.zeros(n), x, method=method, **options)
        assert [y.shape for y in fields(result)] == [(*shape, n), *[(*shape, n, n)] * 3]
    packed = kg.inverse_dynamics_derivatives(model, x, x, x, packed=True, **options)
    assert packed.dtau_dv.to_dense().shape == (*shape, n, n)
    assert kg.inverse_dynamics_jvp(model, x, x, x, x, x, x, **options).shape == (*shape, n)
    assert kg.inverse_dynamics_vjp(model, x, x, x, x, **options).dv.shape == (*shape, n)
    assert kg.inverse_dynamics_load_derivatives(model, x, **options).dtau_dforce.shape == (*shape, n, n, 3)


# --- out= ---------------------------------------------------------------------------------------------------


def empty_out(model, batch, packed=False, new=lambda shape: np.full(shape, np.nan)):
    core = (model.topology.nonzeros,) if packed else (model.n, model.n)
    return InverseDynamicsDerivatives(new((*batch, model.n)), *(new(batch + core) for _ in range(3)))


@methods
@pytest.mark.parametrize("packed", [False, True])
def test_out_is_filled_and_returned(method, packed):
    """Every entry, those that topology makes zero too; packed, in bare arrays or in PackedMatrix."""
    model = tree(5)
    state = random_state(model, 1, (4,))
    options = {"method": method, "packed": packed}
    desired = kg.inverse_dynamics_derivatives(model, *state, **options)
    out = empty_out(model, (4,), packed)
    assert kg.inverse_dynamics_derivatives(model, *state, out=out, **options) is out
    for x, y in zip(fields(out), fields(desired), strict=True):
        same_bits(x, y.values if isinstance(y, PackedMatrix) else y)
    for x in fields(desired):
        (x.values if isinstance(x, PackedMatrix) else x).fill(np.nan)
    assert kg.inverse_dynamics_derivatives(model, *state, out=desired, **options) is desired
    for x, y in zip(fields(out), fields(desired), strict=True):
        same_bits(x, y.values if isinstance(y, PackedMatrix) else y)


LAYOUTS = {
    "Fortran order": lambda shape: np.full(shape, np.nan, order="F"),
    "every second": lambda shape: np.full([2 * k for k in shape], np.nan)[tuple(slice(None, None, 2) for _ in shape)],
    "reversed": lambda shape: np.full(shape, np.nan)[::-1],
}


@pytest.mark.parametrize("new", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_out_of_any_layout(new):
    model = tree(5)
    state = random_state(model, 1, (4,))
    out = empty_out(model, (4,), new=new)
    kg.inverse_dynamics_derivatives(model, *state, out=out)
    for x, y in zip(fields(out), fields(kg.inverse_dynamics_derivatives(model, *state)), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", FIELDS)
def test_out_may_overlap_an_input(small_grain, name, threads):
    """q in the very memory of a result, at its beginning and one state further on."""
    model = tree(5)
    q, v, a = random_state(model, 1, (11,))
    desired = kg.inverse_dynamics_derivatives(model, q, v, a)
    for skip in (0, model.n):
        out = empty_out(model, (11,))
        # one state more than the result has
        buffer = np.full(getattr(out, name).size + model.n, np.nan)
        shape = getattr(out, name).shape
        overlapping = buffer[: getattr(out, name).size].reshape(shape)
        q_there = buffer[skip : skip + q.size].reshape(q.shape)
        q_there[...] = q
        out = InverseDynamicsDerivatives(**(vars(out) | {name: overlapping}))
        kg.inverse_dynamics_derivatives(model, q_there, v, a, out=out, threads=threads)
        for x, y in zip(fields(out), fields(desired), strict=True):
            same_bits(x, y)


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float32), "float32 array of shape .*; expected a float64 array of shape"),
        (lambda x: x[:-1].copy(), r"float64 array of shape \(3, .*; expected a float64 array of shape \(4, "),
        (lambda x: x[0].copy(), r"float64 array of shape .*; expected a float64 array of shape \(4, "),
        (np.ndarray.tolist, "list; expected a float64 array"),
        (read_only, "read-only; expected a writable array"),
    ],
)
def test_out_that_cannot_be_filled(name, change, message):
    model = tree(5)
    out = empty_out(model, (4,))
    out = InverseDynamicsDerivatives(**(vars(out) | {name: change(getattr(out, name))}))
    with pytest.raises(InputError, match=rf"`out\.{name}` is (a )?{message}"):
        kg.inverse_dynamics_derivatives(model, *random_state(model, 1, (4,)), out=out)


@pytest.mark.parametrize("out", [np.empty((4, 3)), (1, 2, 3, 4), {}, "out"])
def test_out_of_another_kind(out):
    model = tree(5)
    message = rf"`out` is a {type(out).__name__}; expected an InverseDynamicsDerivatives of arrays"
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_derivatives(model, *random_state(model), out=out)


def test_dense_out_for_packed_results_and_the_other_way_round():
    model = tree(5)
    state, n, k = random_state(model, 1, (4,)), model.n, model.topology.nonzeros
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {n}, {n}\); expected .* \(4, {k}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=empty_out(model, (4,)), packed=True)
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {k}\); expected .* \(4, {n}, {n}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=empty_out(model, (4,), packed=True))
    ready = kg.inverse_dynamics_derivatives(model, *state, packed=True)
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {k}\); expected .* \(4, {n}, {n}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=ready)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["newton", "Spatial", "", None, 0])
def test_unknown_method_is_named(method):
    arm, zero = samples.two_link(), [0, 0]
    message = rf"`method` is {method!r}; expected 'spatial' or 'lagrange'"
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_derivatives(arm, zero, zero, zero, method=method)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 3])
def test_not_finite_says_where(small_grain, bad, threads):
    """Every argument of every function; the last state, so that another thread than the first finds it."""
    model = tree(5)
    functions = {
        kg.inverse_dynamics_derivatives: ("q", "v", "a"),
        lambda *x, **o: kg.inverse_dynamics_derivatives(*x, method="lagrange", **o): ("q", "v", "a"),
        kg.inverse_dynamics_jvp: ("q", "v", "a", "dq", "dv", "da"),
        kg.inverse_dynamics_vjp: ("q", "v", "a", "w"),
        kg.inverse_dynamics_load_derivatives: ("q",),
    }
    for function, names in functions.items():
        for k, name in enumerate(names):
            arguments = np.random.default_rng(1).normal(size=(len(names), 30, model.n))
            arguments[k, 29, 1] = bad
            with pytest.raises(InputError, match=rf"`{name}` at index \(29, 1\) is {bad}; expected finite numbers"):
                function(model, *arguments, threads=threads)
        # ∂τ/∂(loads) does not depend on torques, and does not look at them
        for name in ("force", "point", "torque")[: 3 if len(names) > 1 else 2]:
            arguments = np.zeros((len(names), 30, model.n))
            loads = {name: np.zeros((30, model.n, 3))}
            loads[name][29, 1, 2] = bad
            with pytest.raises(InputError, match=rf"`loads\.{name}` at index \(29, 1, 2\) is {bad}"):
                function(model, *arguments, loads=kg.Loads(**loads), threads=threads)


@pytest.mark.parametrize("name", ["q", "v", "a", "dq", "dv", "da"])
def test_wrong_shape_is_named(name):
    model = tree(5)
    n = model.n
    arguments = dict.fromkeys(("q", "v", "a", "dq", "dv", "da"), np.zeros((3, n)))
    message = rf"`{name}` has shape \(3, {n + 1}\); model .* has {n} degrees of freedom, .* must be {n}"
    wrong = arguments | {name: np.zeros((3, n + 1))}
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_jvp(model, **wrong)
    with pytest.raises(InputError, match=rf"`{name}` \(4,\)"):
        kg.inverse_dynamics_jvp(model, **arguments | {name: np.zeros((4, n))})
