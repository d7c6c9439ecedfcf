"""Inverse dynamics by two formulations, the mass matrix, bias and gravity forces.

Against each other, the two routes of the oracle, identities of mechanics, and formulas and numbers worked out
on paper.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, parts, random_loads, random_state, tree
from tests.reference import oracle

# Sums of some hundred terms, each right to a few 1e-16 of the largest: 1e-14 in the worst case; 1e-12 leaves
# room for other processors, and is still nine digits below a wrong term.
CLOSE = 1e-12
METHODS = ("spatial", "lagrange")
CHAINS = {
    **{f"multi_pendulum({n})": samples.multi_pendulum(n) for n in (3, 10, 40)},
    **{f"spatial_chain({n})": samples.spatial_chain(n) for n in (3, 4, 10, 24, 40)},
}
MODELS = {name: make() for name, make in samples.SAMPLES.items()} | CHAINS
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
trees = pytest.mark.parametrize("seed", range(40))
# 160 more, in blocks of 20; of at most 8 joints, for the oracle takes O(n⁴)
small_trees = pytest.mark.parametrize("first", range(40, 200, 20))


def only_motion(model):
    """The model with no force but inertia: no gravity, springs or dampers."""
    zero = np.zeros(model.n)
    return model.replace(gravity=(0, 0, 0), stiffness=zero, damping=zero)


# --- two formulations, and the oracle's two routes ----------------------------------------------------------


@models
@pytest.mark.parametrize("loaded", [True, False])
def test_formulations_agree(model, loaded):
    """Newton–Euler in the world frame and the 4×4 Lagrangian share nothing but the joint's constants."""
    q, v, a = random_state(model, batch=(5,))
    loads = random_loads(model, batch=(5,)) if loaded else None
    spatial, lagrange = (kg.inverse_dynamics(model, q, v, a, loads=loads, method=m) for m in METHODS)
    for one, other in zip(spatial, lagrange, strict=True):  # each state by its own largest torque
        assert_close(one, other, CLOSE)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_formulations_agree_on_random_trees(first):
    """Oblique axes, screws, several roots, massless links, springs, dampers, rotors, loads, all at once."""
    for seed in range(first, first + 20):
        model, loads = tree(seed), random_loads(tree(seed), seed)
        state = random_state(model, seed)
        assert_close(*(kg.inverse_dynamics(model, *state, loads=loads, method=m) for m in METHODS), CLOSE)


def test_random_trees_are_not_all_alike():
    """The tests above prove little if no tree has a screw, a second root, a spring or a massless link."""
    grown = [tree(seed) for seed in range(40)]
    assert {joint.kind for model in grown for joint in model.joints} == {"revolute", "prismatic", "screw"}
    assert {model.n for model in grown} >= {1, 2, 15}
    assert {len(model.topology.roots) for model in grown} == {1, 2, 3}
    for what in ("stiffness", "damping", "armature"):
        assert any(getattr(model, what).any() for model in grown)
    assert any((model.mass == 0).any() for model in grown)


@models
@pytest.mark.parametrize("method", METHODS)
def test_torques_equal_regular_lagrangian(model, method):
    """[xiang2008] (6)-(10) with exact second derivatives of the transforms: no recursion, no 6-vectors."""
    state, loads = random_state(model), random_loads(model)
    desired = oracle.regular_lagrangian(model, *state, *parts(loads))
    assert_close(kg.inverse_dynamics(model, *state, loads=loads, method=method), desired, CLOSE)


# The oracle differentiates the whole mass matrix n times, O(n⁴): 40 joints take seconds and show no more.
@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.n <= 10])
def test_torques_equal_lagrange_equation_of_energies(name):
    """d/dt ∂T/∂v − ∂T/∂q + ∂V/∂q from nothing but energies; complex steps have no truncation error."""
    model = MODELS[name]
    state, loads = random_state(model), random_loads(model)
    desired = oracle.inverse_dynamics(model, *state, *parts(loads))
    for method in METHODS:
        assert_close(kg.inverse_dynamics(model, *state, loads=loads, method=method), desired, CLOSE)


@pytest.mark.slow
def test_human_equals_lagrange_equation_of_energies():
    human = samples.human43()
    state, loads = random_state(human), random_loads(human)
    desired = oracle.inverse_dynamics(human, *state, *parts(loads))
    for method in METHODS:
        assert_close(kg.inverse_dynamics(human, *state, loads=loads, method=method), desired, CLOSE)


def check_oracle(model, seed):
    state, loads = random_state(model, seed), random_loads(model, seed)
    by_energies = oracle.inverse_dynamics(model, *state, *parts(loads))
    by_transforms = oracle.regular_lagrangian(model, *state, *parts(loads))
    for method in METHODS:
        tau = kg.inverse_dynamics(model, *state, loads=loads, method=method)
        assert_close(tau, by_energies, CLOSE)
        assert_close(tau, by_transforms, CLOSE)


@trees
def test_random_trees_equal_oracle(seed):
    check_oracle(tree(seed), seed)


@small_trees
def test_many_small_trees_equal_oracle(first):
    for seed in range(first, first + 20):
        check_oracle(tree(seed, largest=8), seed)


# --- the mass matrix ----------------------------------------------------------------------------------------


@models
def test_mass_matrix_equals_oracle(model):
    q = random_state(model)[0]
    assert_close(kg.mass_matrix(model, q), oracle.mass_matrix(model, q), CLOSE)


@trees
def test_mass_matrix_of_random_trees_equals_oracle(seed):
    model = tree(seed)
    q = random_state(model, seed)[0]
    assert_close(kg.mass_matrix(model, q), oracle.mass_matrix(model, q), CLOSE)


@small_trees
def test_mass_matrix_of_many_small_trees_equals_oracle(first):
    for seed in range(first, first + 20):
        model = tree(seed, largest=8)
        q = random_state(model, seed)[0]
        assert_close(kg.mass_matrix(model, q), oracle.mass_matrix(model, q), CLOSE)


def check_mass_matrix_structure(model, q):
    M = kg.mass_matrix(model, q)
    assert np.array_equal(M, np.swapaxes(M, -1, -2)), "an entry is computed once and written twice"
    apart = np.ones((model.n, model.n), dtype=bool)
    apart[model.topology.pattern] = False
    assert not M[..., apart].any(), "joints of different branches do not feel each other: exactly zero"
    return M


@models
def test_mass_matrix_is_symmetric_and_zero_across_branches(model):
    check_mass_matrix_structure(model, random_state(model, batch=(3,))[0])


@trees
def test_mass_matrix_of_random_trees_is_positive(seed):
    """Every leaf has mass and no more than two massless links are in a row, so every motion takes energy."""
    model = tree(seed)
    np.linalg.cholesky(check_mass_matrix_structure(model, random_state(model, seed)[0]))


@pytest.mark.parametrize(
    "model",
    [samples.human43(thickness=0.1), samples.puma560(), samples.two_link(), *CHAINS.values()],
    ids=lambda model: f"{model.name}({model.n})",
)
def test_mass_matrix_is_positive(model):
    """Cholesky fails on a matrix that is not; the limbs of this human are thick, unlike the default's."""
    np.linalg.cholesky(kg.mass_matrix(model, random_state(model, batch=(3,))[0]))


def test_mass_matrix_of_thin_human_has_rank_40():
    """Slender hands and head feel two of the three hinges that turn them; rounding leaves 1e-16."""
    M = kg.mass_matrix(samples.human43(), random_state(samples.human43())[0])
    values = np.linalg.eigvalsh(M)
    assert (np.abs(values[:3]) < 1e-13 * values[-1]).all()
    assert values[3] > 1e-8 * values[-1]


# --- identities ---------------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("method", METHODS)
def test_mass_matrix_times_acceleration_plus_bias_is_torque(model, method):
    q, v, a = random_state(model, batch=(3,))
    loads = random_loads(model, batch=(3,))
    tau = np.einsum("sij,sj->si", kg.mass_matrix(model, q), a) + kg.bias_forces(model, q, v, loads=loads)
    assert_close(kg.inverse_dynamics(model, q, v, a, loads=loads, method=method), tau, CLOSE)


@trees
def test_mass_matrix_times_acceleration_plus_bias_is_torque_of_random_trees(seed):
    model, loads = tree(seed), random_loads(tree(seed), seed)
    q, v, a = random_state(model, seed)
    tau = kg.mass_matrix(model, q) @ a + kg.bias_forces(model, q, v, loads=loads)
    assert_close(kg.inverse_dynamics(model, q, v, a, loads=loads), tau, CLOSE)


@trees
def test_gravity_forces_are_the_slope_of_potential_energy(seed):
    """Without the springs, which have forces of their own."""
    model = tree(seed)
    q = random_state(model, seed)[0]
    slack = oracle.with_constants(model, stiffness=np.zeros(model.n))
    slope = oracle.numerical_derivative(lambda q: oracle.potential_energy(slack, q), q)
    assert_close(kg.gravity_forces(model, q), slope, CLOSE)


@models
def test_gravity_forces_of_samples_are_the_slope_of_potential_energy(model):
    q = random_state(model)[0]
    slope = oracle.numerical_derivative(lambda q: oracle.potential_energy(model, q), q)
    assert_close(kg.gravity_forces(model, q), slope, CLOSE)


def check_power(model, seed):
    """d(T + V)/dt is the power of motors and loads, less what the dampers take.

    The rate on the left is exact (complex step); both sides are compared by the sum of the powers' sizes,
    since the powers of single joints and loads may cancel.
    """
    q, v, a = random_state(model, seed)
    loads = random_loads(model, seed)
    tau = kg.inverse_dynamics(model, q, v, a, loads=loads)
    where = kg.point_motion(model, q, v, link=model.link_names, point=loads.point)
    turning = kg.forward_kinematics(model, q, v).angular_velocity
    powers = np.concatenate(
        [tau * v, -model.damping * v**2, *(loads.force * where.velocity), *(loads.torque * turning)]
    )
    rate = oracle.rate(
        lambda q, v: oracle.kinetic_energy(model, q, v) + oracle.potential_energy(model, q), (q, v), (v, a)
    )
    assert abs(rate - powers.sum()) <= CLOSE * np.abs(powers).sum()


@models
def test_power_balance(model):
    check_power(model, seed=3)


@trees
def test_power_balance_of_random_trees(seed):
    check_power(tree(seed), seed)


@trees
def test_velocity_forces_do_no_work(seed):
    """Ṁ − 2C is skew: vᵀ Ṁ v = 2 vᵀ c, with c = C v the velocity forces and Ṁ exact, by complex step."""
    model = tree(seed)
    q, v, _ = random_state(model, seed)
    c = kg.bias_forces(only_motion(model), q, v)
    dM = oracle.rate(lambda q: oracle.mass_matrix(model, q), (q, v))
    scale = np.abs(oracle.mass_matrix(model, q)).max() * np.abs(v).sum() ** 3  # both sides may vanish, as for n = 1
    assert abs(v @ dM @ v - 2 * v @ c) <= CLOSE * scale


@models
def test_velocity_forces_are_quadratic_in_speed(model):
    """Twice the speed, four times the force: to the last bit, for 2 and 4 only shift exponents."""
    q, v, _ = random_state(model)
    model = only_motion(model)
    assert np.array_equal(kg.bias_forces(model, q, 2 * v), 4 * kg.bias_forces(model, q, v))


# --- formulas on paper --------------------------------------------------------------------------------------


def xiang_torques(theta, dtheta, ddtheta, f, g=9.8062):
    """[xiang2008] (52), (53): the two-link arm with a force f down at its tip."""
    L1 = L2 = 0.4
    l1 = l2 = 0.2
    m1 = m2 = 0.5
    I1 = I2 = 0.1
    (t1, t2), (d1, d2), (a1, a2) = theta, dtheta, ddtheta
    c1, c2, s2, c12 = np.cos(t1), np.cos(t2), np.sin(t2), np.cos(t1 + t2)
    tau1 = (
        (I1 + I2 + m1 * l1**2 + m2 * (L1**2 + l2**2 + 2 * L1 * l2 * c2)) * a1
        + (I2 + m2 * l2**2 + m2 * L1 * l2 * c2) * a2
        - 2 * m2 * L1 * l2 * d1 * d2 * s2
        - m2 * L1 * l2 * d2**2 * s2
        + m2 * g * l2 * c12 + m1 * g * l1 * c1 + m2 * g * L1 * c1
        + f * L2 * c12 + f * L1 * c1
    )  # fmt: skip
    tau2 = (
        (I2 + m2 * l2**2) * a2
        + (I2 + m2 * l2**2 + m2 * L1 * l2 * c2) * a1
        + m2 * L1 * l2 * d1**2 * s2
        + m2 * g * l2 * c12
        + f * L2 * c12
    )
    return np.array([tau1, tau2])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_two_link_arm_follows_the_paper(method, seed):
    arm = samples.two_link()
    q, v, a = random_state(arm, seed)
    f = 7.0 + seed
    loads = kg.Loads(force={"forearm": [0, -f, 0]})  # at the origin of the distal frame: the tip
    tau = kg.inverse_dynamics(arm, q, v, a, loads=loads, method=method)
    assert_close(tau, xiang_torques(q, v, a, f), 1e-14)  # a dozen terms


@pytest.mark.parametrize("method", METHODS)
def test_pelvis_carries_the_weight_of_a_standing_human(method):
    """q of pelvis.tz points up, so what holds the person there is +m g; nothing pushes sideways."""
    human, zero = samples.human43(), np.zeros(43)
    assert kg.point_motion(human, np.eye(43)[0], link="trunk").position[2] == pytest.approx(1 + 0.49)
    tau = kg.inverse_dynamics(human, zero, zero, zero, method=method)
    weight = 77.5 * 9.81  # [zhakatayev2023] Table 2, summed
    assert tau[human.joint_index("pelvis.tz")] == pytest.approx(weight, rel=1e-14)
    for joint in ("pelvis.ty", "pelvis.tx"):
        assert abs(tau[human.joint_index(joint)]) < 1e-13 * weight


@pytest.mark.parametrize("method", METHODS)
def test_load_in_the_hand_reaches_the_shoulder(method):
    """A force f at x in the hand changes the torque of a hinge z through o by −z·((x − o) × f)."""
    human = samples.human43()
    q, v, a = random_state(human, 4)
    force, point = np.array([3.0, -8.0, -100.0]), [-0.05, 0.02, 0.01]
    loads = kg.Loads(force={"right_hand": force}, point={"right_hand": point})
    change = kg.inverse_dynamics(human, q, v, a, loads=loads, method=method) - kg.inverse_dynamics(
        human, q, v, a, method=method
    )
    T = oracle.transforms(human, q)
    x = (T[human.link_index("right_hand")] @ [*point, 1.0])[:3]
    shoulder = T[human.link_index("right_clavicle")][:3, 3]  # distal frames: the clavicle ends at the shoulder
    for letter in "zyx":
        i = human.joint_index(f"right_shoulder.{letter}")
        z = T[human.parents[i]][:3, 2]  # distal DH: a joint turns about z of the frame before
        # A difference of torques that are some hundred newton metres large: 1e-13 of them
        assert change[i] == pytest.approx(-z @ np.cross(x - shoulder, force), abs=1e-11)
    for joint in ("left_shoulder.x", "neck.y", "right_hip.x"):
        assert change[human.joint_index(joint)] == 0.0, "other limbs do not feel it"


# --- far from the origin ------------------------------------------------------------------------------------

# Taken about the world's origin, moments of forces are x times larger at x metres, moments of inertia x² times:
# of a torque, 2e-13 is lost at 1 km and 4e-10 at 1000 km; of the mass matrix, 8e-10 and everything. With a reference
# point for each link nothing is (tests/test_rounding.py has links far from each other).
FAR = 1e-13
far_away = pytest.mark.parametrize("distance", [1e3, 1e6])


@pytest.mark.parametrize("method", METHODS)
@far_away
def test_torques_do_not_depend_on_where_the_human_walks(method, distance):
    human = samples.human43()
    q, v, a = random_state(human, 5)
    loads = random_loads(human, 5)
    far = q.copy()
    far[:3] += np.array([1.0001, -2.0002, 3.0003]) * distance  # pelvis.tz, ty, tx
    near_torques, far_torques = (kg.inverse_dynamics(human, x, v, a, loads=loads, method=method) for x in (q, far))
    assert_close(far_torques, near_torques, FAR)
    assert_close(kg.mass_matrix(human, far), kg.mass_matrix(human, q), FAR)


@pytest.mark.parametrize("method", METHODS)
@far_away
def test_torques_do_not_depend_on_where_a_machine_is_bolted(method, distance):
    """The same by the placement of the root, turned about the vertical too, so that nothing stays aligned."""
    near = samples.puma560()
    there = kg.translate(distance, -0.7 * distance, 0.3 * distance) @ kg.rotate("z", 0.7)
    far = near.replace(placement={near.joint_names[0]: there @ near.placement[0]})
    state = random_state(near, 6)
    torques = (kg.inverse_dynamics(model, *state, method=method) for model in (far, near))
    assert_close(*torques, FAR)


# --- arguments ----------------------------------------------------------------------------------------------


def test_batch_axes_broadcast_and_change_nothing():
    """Any batch shape, any position in it: the same bits as one state alone."""
    model = tree(3)
    q, v, a = random_state(model, batch=(3, 4))
    tau = kg.inverse_dynamics(model, q, v[0], a[:, :1])
    assert tau.shape == (3, 4, model.n)
    for i, j in np.ndindex(3, 4):
        assert np.array_equal(tau[i, j], kg.inverse_dynamics(model, q[i, j], v[0, j], a[i, 0]))


def test_empty_batch_gives_empty_result():
    model = tree(3)
    nothing = np.empty((0, model.n))
    assert kg.inverse_dynamics(model, nothing, nothing, nothing).shape == (0, model.n)
    assert kg.mass_matrix(model, nothing).shape == (0, model.n, model.n)


def test_unknown_method_is_named():
    arm, zero = samples.two_link(), [0, 0]
    with pytest.raises(kg.InputError, match=r"`method` is 'newton'; expected 'spatial' or 'lagrange'"):
        kg.inverse_dynamics(arm, zero, zero, zero, method="newton")


def test_out_is_filled_and_returned_even_over_an_input():
    model = tree(5)
    q, v, a = random_state(model, batch=(4,))
    desired = kg.inverse_dynamics(model, q, v, a)
    assert kg.inverse_dynamics(model, q, v, a, out=a) is a
    assert np.array_equal(a, desired)


@pytest.mark.parametrize("batch", [(), (1,), (4,), (9,), (3, 11)])
@pytest.mark.parametrize("name", ["human43", "tree", "chain"])
def test_mass_matrix_fills_all_of_out(name, batch):
    """Its zeros, too, whatever was there before."""
    model = {"human43": samples.human43, "tree": lambda: tree(5), "chain": lambda: samples.spatial_chain(5)}[name]()
    q = random_state(model, batch=batch)[0]
    M = np.full((*batch, model.n, model.n), np.nan)
    kg.mass_matrix(model, q, out=M)
    expected = kg.inverse_dynamics_derivatives(model, q, 0 * q, 0 * q).dtau_da
    np.testing.assert_allclose(M, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    apart = np.ones((model.n, model.n), bool)
    apart[model.topology.pattern.rows, model.topology.pattern.cols] = False
    assert not M[..., apart].any()
