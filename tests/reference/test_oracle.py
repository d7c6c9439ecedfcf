"""The oracle's two routes agree, and both agree with formulas derived on paper."""

import numpy as np
import pytest

from kinegrad.model import Inertia, Joint, Model, ModelBuilder, free, revolute, rotate, translate
from tests.reference import oracle

# Rounding: two formulations of O(n) sums of O(10) terms, relative to the largest entry.
CLOSE = 1e-12
KINDS = ("revolute", "prismatic", "screw")


def assert_close(actual, desired, tolerance=CLOSE):
    scale = max(np.max(np.abs(desired)), 1e-300)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance * scale)


def random_inertia(rng):
    spread = rng.normal(size=(3, 3)) * 0.3
    sigma = spread @ spread.T
    return Inertia(rng.uniform(0.5, 2), rng.normal(size=3) * 0.3, np.trace(sigma) * np.eye(3) - sigma)


def random_transform(rng):
    return translate(*rng.normal(size=3) * 0.4) @ rotate(rng.normal(size=3), rng.uniform(-3, 3))


def random_tree(seed, n=7):
    """Any joints, anywhere, with springs, dampers and rotors; every third link without mass."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(n, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    kinds = rng.choice(KINDS, n).tolist()
    bodies = [Inertia.zero() if i % 3 == 1 else random_inertia(rng) for i in range(n)]
    return Model(
        name=f"tree{seed}",
        joints=[Joint(k, tuple(u), 0.2 * (k == "screw")) for k, u in zip(kinds, axes.tolist(), strict=True)],
        parents=np.array([rng.integers(max(-1, i - 3), i) for i in range(n)]),
        joint_names=[f"joint{i}" for i in range(n)],
        link_names=[f"link{i}" for i in range(n)],
        placement=np.array([random_transform(rng) for _ in range(n)]),
        tip=np.array([random_transform(rng) for _ in range(n)]),
        mass=[body.mass for body in bodies],
        com=[body.com for body in bodies],
        inertia=[body.inertia for body in bodies],
        gravity=rng.normal(size=3) * 5,
        **{what: rng.uniform(0, 2, n) for what in ("stiffness", "rest", "damping", "armature")},
    )


def random_state(model, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(3, model.n)))


def random_loads(model, seed):
    """Forces, points and torques."""
    return tuple(np.random.default_rng(seed).normal(size=(3, model.n, 3)))


TREES = [random_tree(seed) for seed in range(6)]
trees = pytest.mark.parametrize("model", TREES, ids=lambda model: model.name)


# --- the two routes against each other ---


def test_random_trees_cover_what_they_should():
    assert {joint.kind for model in TREES for joint in model.joints} == set(KINDS)
    assert any(len(set(model.parents)) < model.n for model in TREES)  # junctions
    assert any(np.sum(model.parents < 0) > 1 for model in TREES)  # forests


@trees
def test_both_routes_give_the_same_torques(model):
    state = random_state(model, 1)
    for loads in ((), random_loads(model, 2)):
        by_transforms = oracle.regular_lagrangian(model, *state, *loads)
        assert_close(by_transforms, oracle.inverse_dynamics(model, *state, *loads))


@trees
def test_transform_derivatives_are_those_by_complex_step(model):
    q, _, _ = random_state(model, 3)
    T, dT, ddT = oracle.transform_derivatives(model, q)
    first = oracle.numerical_derivative(lambda q: oracle.transforms(model, q), q)
    second = oracle.numerical_derivative(lambda q: oracle.transform_derivatives(model, q)[1], q)
    np.testing.assert_array_equal(T, oracle.transforms(model, q))
    assert_close(dT, np.moveaxis(first, -1, 1))
    assert_close(ddT, np.moveaxis(second, -1, 2))


@trees
def test_point_and_angular_motion_agree_with_the_geometric_jacobian(model):
    q, v, a = random_state(model, 4)
    r, j = [0.1, -0.2, 0.3], model.n - 1
    J_v, J_w = oracle.jacobian(model, q, j, r)
    dJ_v, dJ_w = oracle.rate(lambda q: np.array(oracle.jacobian(model, q, j, r)), (q, v))
    _, velocity, acceleration = oracle.point_motion(model, q, v, a, j, r)
    omega, omega_dot = oracle.angular_motion(model, q, v, a, j)
    assert_close(velocity, J_v @ v)
    assert_close(acceleration, J_v @ a + dJ_v @ v)
    assert_close(omega, J_w @ v)
    assert_close(omega_dot, J_w @ a + dJ_w @ v)


@trees
def test_the_mass_matrix_is_the_derivative_of_torque_and_positive(model):
    q, v, a = random_state(model, 5)
    M = oracle.mass_matrix(model, q)
    assert_close(oracle.numerical_derivative(lambda a: oracle.regular_lagrangian(model, q, v, a), a), M)
    assert_close(M, M.T, 1e-15)
    assert np.linalg.eigvalsh(M).min() > 0


# --- identities of mechanics ---


@trees
def test_power_balance(model):
    """d(T + V)/dt = τ·v + power of the loads − power lost in the dampers."""
    q, v, a = random_state(model, 6)
    force, point, torque = random_loads(model, 7)
    tau = oracle.regular_lagrangian(model, q, v, a, force, point, torque)
    energy_rate = oracle.rate(
        lambda q, v: oracle.kinetic_energy(model, q, v) + oracle.potential_energy(model, q), (q, v), (v, a)
    )
    power = tau @ v - model.damping @ v**2
    for j in range(model.n):
        power += force[j] @ oracle.point_motion(model, q, v, a, j, point[j])[1]
        power += torque[j] @ oracle.angular_motion(model, q, v, a, j)[0]
    assert_close(energy_rate, power)


@trees
def test_momentum_is_that_of_rigid_bodies(model):
    """p = Σ m ẋ, L = Σ m (x − c) × ẋ + R I Rᵀ ω."""
    q, v, a = random_state(model, 8)
    linear, angular = oracle.momentum(model, q, v)
    T, c = oracle.transforms(model, q), oracle.com(model, q)
    p, L = np.zeros(3), np.zeros(3)
    for j in range(model.n):
        x, dx, _ = oracle.point_motion(model, q, v, a, j, model.com[j])
        R, omega = T[j, :3, :3], oracle.angular_motion(model, q, v, a, j)[0]
        p += model.mass[j] * dx
        L += model.mass[j] * np.cross(x - c, dx) + R @ model.inertia[j] @ R.T @ omega
    assert_close(linear, p)
    assert_close(angular, L)


def floating_arm():
    rng = np.random.default_rng(9)
    builder = ModelBuilder("floating arm")
    link = builder.add("base", None, free(), link="body", inertia=random_inertia(rng))
    for name, joint in (("shoulder", revolute("x")), ("elbow", revolute([1, 2, 3]))):
        place, body = random_transform(rng), random_inertia(rng)
        link = builder.add(name, link, joint, placement=place, inertia=body)
    return builder.build()


def test_a_floating_body_changes_momentum_only_by_what_acts_from_outside():
    """With no torque at the free joint, ṗ = m g + Σ f and L̇ = Σ (x − c) × f + h, whatever its hinges do."""
    model = floating_arm()
    q, v, a = random_state(model, 10)
    force, point, torque = random_loads(model, 11)
    force[:5] = torque[:5] = 0  # the virtual links of the free joint are not part of the body
    tau = oracle.regular_lagrangian(model, q, v, a, force, point, torque)
    a[:6] -= np.linalg.solve(oracle.mass_matrix(model, q)[:6, :6], tau[:6])
    p_dot, L_dot = oracle.rate(lambda q, v: np.array(oracle.momentum(model, q, v)), (q, v), (v, a))
    c, _, ddc = oracle.com_motion(model, q, v, a)
    x = np.array([oracle.point_motion(model, q, v, a, j, point[j])[0] for j in range(model.n)])
    outside = model.total_mass * model.gravity + force.sum(0)
    assert_close(p_dot, outside)
    assert_close(model.total_mass * ddc, outside)
    assert_close(L_dot, (np.cross(x - c, force) + torque).sum(0))


# --- formulas derived on paper ---


def test_pendulum():
    """τ = (I + m l² + rotor) a + m g l sin q + d v + k (q − rest), and energies to match."""
    m, length, inertia, g = 1.3, 0.7, 0.05, 9.81
    k, rest, d, rotor = 2.0, 0.4, 0.3, 0.01
    bob = Inertia(m, [0, 0, -length], np.diag([inertia, inertia, 0.0]))
    builder = ModelBuilder("pendulum")
    builder.add("hinge", None, revolute("y"), inertia=bob, stiffness=k, rest=rest, damping=d, armature=rotor)
    model, q, v, a = builder.build(), 0.8, -1.1, 0.6
    total = inertia + m * length**2 + rotor
    tau = total * a + m * g * length * np.sin(q) + d * v + k * (q - rest)
    for route in (oracle.inverse_dynamics, oracle.regular_lagrangian):
        assert_close(route(model, [q], [v], [a]), [tau])
    assert_close(oracle.kinetic_energy(model, [q], [v]), total * v**2 / 2)
    assert_close(oracle.potential_energy(model, [q]), -m * g * length * np.cos(q) + k * (q - rest) ** 2 / 2)
    # about +y, a positive angle carries the bob from −z towards −x
    assert_close(oracle.com(model, [q]), [-length * np.sin(q), 0, -length * np.cos(q)])


def test_slider_and_screw():
    """A vertical slider carries m (a + g); a screw of pitch h, τ = (I + m h²) a + m g h."""
    m, inertia, h, g, a = 2.0, 0.1, 0.3, 9.81, 0.7
    body = Inertia(m, [0, 0, 0.2], inertia * np.eye(3))
    for joint, tau in (
        (Joint("prismatic", (0.0, 0.0, 1.0)), m * (a + g)),
        (Joint("screw", (0.0, 0.0, 1.0), h), (inertia + m * h**2) * a + m * g * h),
    ):
        builder = ModelBuilder("one joint")
        builder.add("joint", None, joint, inertia=body)
        for route in (oracle.inverse_dynamics, oracle.regular_lagrangian):
            assert_close(route(builder.build(), [0.5], [1.5], [a]), [tau])


L, MASS, INERTIA, G, LOAD = 0.4, 0.5, 0.1, 9.81, 3.0
ARM_LOADS = (np.array([[0, 0, 0], [0, -LOAD, 0]]), np.zeros((2, 3)))  # [xiang2008] (51), (50)


def two_link_arm():
    """[xiang2008] table 2, inertias (47), gravity (51); link frames at the far ends, centres at −L/2."""
    link = Inertia(MASS, [-L / 2, 0, 0], np.diag([0, INERTIA, INERTIA]))
    return Model.from_dh([(0, 0, L, 0), (0, 0, L, 0)], inertias=[link, link], gravity=(0, -G, 0))


def two_link_torques(q, v, a):
    """[xiang2008] (52), (53)."""
    l, m, I = L / 2, MASS, INERTIA
    c1, c2, s2, c12 = np.cos(q[0]), np.cos(q[1]), np.sin(q[1]), np.cos(q[0] + q[1])
    far = m * G * l * c12 + LOAD * L * c12
    near = m * G * l * c1 + m * G * L * c1 + LOAD * L * c1
    coupling = I + m * l**2 + m * L * l * c2
    own = I + m * l**2 + coupling + m * L**2 + m * L * l * c2
    centrifugal = m * L * l * s2
    tau1 = own * a[0] + coupling * a[1] - centrifugal * (2 * v[0] * v[1] + v[1] ** 2) + far + near
    tau2 = (I + m * l**2) * a[1] + coupling * a[0] + centrifugal * v[0] ** 2 + far
    return np.array([tau1, tau2])


@pytest.mark.parametrize("route", [oracle.inverse_dynamics, oracle.regular_lagrangian])
def test_two_link_arm_torques_are_those_printed(route):
    model = two_link_arm()
    for seed in range(5):
        state = random_state(model, seed)
        assert_close(route(model, *state, *ARM_LOADS), two_link_torques(*state))


@pytest.mark.parametrize("wrt", [0, 1, 2], ids=["q", "v", "a"])
def test_two_link_arm_sensitivities_are_those_of_the_printed_torques(wrt):
    model = two_link_arm()
    state = random_state(model, 12)

    def put(x):
        return [x if k == wrt else s for k, s in enumerate(state)]

    def torques(x):
        return oracle.regular_lagrangian(model, *put(x), *ARM_LOADS)

    printed = oracle.numerical_derivative(lambda x: two_link_torques(*put(x)), state[wrt])
    assert_close(oracle.numerical_derivative(torques, state[wrt]), printed)


# --- constants may be complex ---


@trees
@pytest.mark.parametrize("what", ["mass", "inertia", "gravity", "stiffness", "rest", "damping", "armature"])
def test_torque_is_affine_in_these_constants(model, what):
    """So the complex-step derivative is the whole difference between two models."""
    state = random_state(model, 13)
    old = getattr(model, what)
    change = 0.1 * old

    def tau(value):
        return oracle.regular_lagrangian(oracle.with_constants(model, **{what: value}), *state)

    difference = oracle.regular_lagrangian(model.replace(**{what: old + change}), *state) - tau(old)
    assert np.abs(difference).max() > 0
    assert_close(oracle.rate(tau, (old, change)), difference, 1e-11)  # the difference loses a digit or two


@trees
def test_a_load_point_moves_the_torque_as_the_force_says(model):
    """∂τ_i/∂r_j = −(∂R_j/∂q_i)ᵀ f_j."""
    state, (force, point, torque) = random_state(model, 14), random_loads(model, 15)

    def tau(r):
        return oracle.regular_lagrangian(model, *state, force, r, torque)

    slope = oracle.numerical_derivative(tau, point)
    _, dT, _ = oracle.transform_derivatives(model, state[0])
    assert_close(slope, -np.einsum("jixr,jx->ijr", dT[:, :, :3, :3], force))


def test_placements_and_centres_of_mass_may_be_complex():
    """A link length: ∂τ/∂L of the two-link arm with both joints' F and both centres moving with it."""
    model, state = two_link_arm(), random_state(two_link_arm(), 16)

    def with_length(length):
        tip, com = model.tip.astype(np.result_type(length)), model.com.astype(np.result_type(length))
        tip[:, 0, 3], com[:, 0] = length, -length / 2
        return oracle.with_constants(model, tip=tip, com=com)

    def tau(length):
        return oracle.regular_lagrangian(with_length(length), *state, *ARM_LOADS)

    step = 1e-5
    central = (tau(L + step) - tau(L - step)) / (2 * step)
    assert_close(oracle.numerical_derivative(tau, L), central, 1e-9)  # rounding: 1e-16 / step
