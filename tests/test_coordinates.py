"""Coordinates that are not joints: every public function against an oracle that takes another route, identities, and
what may not happen: gimbal lock, other bits in other batches, silence about what is wrong."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, Inertia, InputError, ModelBuilder, SingularError
from kinegrad.compare.pinocchio_model import pinocchio_model
from tests.conftest import assert_close, parts, some_now
from tests.mixed import mixed_loads, mixed_state, mixed_tree
from tests.reference import coordinates as reference

CLOSE = 1e-12  # of the largest entry: some thousand products in double precision, here and in the oracle
SEEDS = range(100)
FEW = range(0, 100, 9)


def by_differences(model, function, q, v, a, dx):
    """Derivatives of a function along directions of q (in the tangent), v and a, each (..., directions).

    Central differences of two steps, extrapolated: exact to some 1e-10 of the function's size.
    """
    columns = []
    for direction in np.moveaxis(dx, -1, 0):
        dq, dv, da = np.split(direction, 3)
        found = []
        for h in (2e-3, 1e-3):
            ends = [function(kg.integrate(model, q, s * h * dq), v + s * h * dv, a + s * h * da) for s in (1, -1)]
            found.append((ends[0] - ends[1]) / (2 * h))
        columns.append((4 * found[1] - found[0]) / 3)
    return np.stack(columns, axis=-1)


# --- a hundred trees ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_torques_and_derivatives_are_those_of_the_oracle(seed):
    model = mixed_tree(seed, joints=2 + seed % 5)
    q, v, a = mixed_state(model, seed)
    loads = mixed_loads(model, seed)
    found = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
    expected = reference.inverse_dynamics(model, q, v, a, *parts(loads)).real
    assert_close(found.tau, expected, CLOSE)
    assert_close(kg.inverse_dynamics(model, q, v, a, loads=loads, method="lagrange"), expected, CLOSE)
    for mine, theirs in zip(
        (found.dtau_dq, found.dtau_dv, found.dtau_da), reference.derivatives(model, q, v, a, *parts(loads)), strict=True
    ):
        assert_close(mine, theirs, CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_identities(seed):
    """M a + bias = τ, forward dynamics undoes inverse by both methods, products are those of matrices, powers agree."""
    model = mixed_tree(seed, joints=3 + seed % 5)
    q, v, a = mixed_state(model, seed, (3,))
    loads = mixed_loads(model, seed)
    d = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
    M, bias = kg.mass_matrix(model, q), kg.bias_forces(model, q, v, loads=loads)
    assert_close(M, d.dtau_da, CLOSE)
    assert_close((M @ a[..., None])[..., 0] + bias, d.tau, CLOSE)
    condition = np.linalg.cond(M).max()
    for method in ("aba", "crba"):
        back = kg.forward_dynamics(model, q, v, d.tau, loads=loads, method=method)
        assert_close(back, a, 1e-14 * condition + CLOSE)
    dq, dv, da, w = np.random.default_rng(seed).normal(size=(4, 3, model.nv))
    along = sum((D @ x[..., None])[..., 0] for D, x in ((d.dtau_dq, dq), (d.dtau_dv, dv), (d.dtau_da, da)))
    assert_close(kg.inverse_dynamics_jvp(model, q, v, a, dq, dv, da, loads=loads), along, CLOSE)
    gradient = kg.inverse_dynamics_vjp(model, q, v, a, w, loads=loads)
    for mine, D in ((gradient.dq, d.dtau_dq), (gradient.dv, d.dtau_dv), (gradient.da, d.dtau_da)):
        assert_close(mine, (w[..., None, :] @ D)[..., 0, :], CLOSE)
    packed = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads, packed=True)
    for mine, D in ((packed.dtau_dq, d.dtau_dq), (packed.dtau_dv, d.dtau_dv), (packed.dtau_da, d.dtau_da)):
        assert np.array_equal(mine.to_dense(), D)
    assert_close(kg.kinetic_energy(model, q, v), (v * (M @ v[..., None])[..., 0]).sum(axis=-1) / 2, CLOSE)


@pytest.mark.parametrize("seed", FEW)
def test_forward_dynamics_derivatives(seed):
    """∂a = −M⁻¹ ∂τ, and what differences of forward dynamics say."""
    model = mixed_tree(seed)
    q, v, a = mixed_state(model, seed)
    d = kg.inverse_dynamics_derivatives(model, q, v, a)
    f = kg.forward_dynamics_derivatives(model, q, v, d.tau)
    limit = 1e-13 * np.linalg.cond(d.dtau_da) + CLOSE
    assert_close(f.da_dq, -np.linalg.solve(d.dtau_da, d.dtau_dq), limit)
    assert_close(f.da_dv, -np.linalg.solve(d.dtau_da, d.dtau_dv), limit)
    assert_close(f.da_dtau @ d.dtau_da, np.eye(model.nv), limit)
    dx = np.random.default_rng(seed).normal(size=(3 * model.nv, 4)) / np.sqrt(model.nv)
    numerical = by_differences(model, lambda q, v, tau: kg.forward_dynamics(model, q, v, tau), q, v, d.tau, dx)
    assert_close(np.hstack([f.da_dq, f.da_dv, f.da_dtau]) @ dx, numerical, 1e-7)


@pytest.mark.parametrize("seed", FEW)
def test_kinematics_momentum_and_their_derivatives(seed):
    """Of links that are bodies; Jacobians give velocities."""
    model = mixed_tree(seed)
    q, v, a = mixed_state(model, seed)
    solid = model.mass > 0
    dx = np.random.default_rng(seed).normal(size=(3 * model.nv, 3)) / np.sqrt(model.nv)
    parts_of = {"q": slice(0, model.nv), "v": slice(model.nv, 2 * model.nv), "a": slice(2 * model.nv, None)}

    def check(change, function, what, rows=slice(None)):
        total = 0.0
        for x, part in parts_of.items():
            D = getattr(change, f"d{what}_d{x}", None)
            if D is not None:
                total = total + D[rows] @ dx[part]
        assert_close(total, by_differences(model, function, q, v, a, dx), 1e-8)

    links = kg.forward_kinematics_derivatives(model, q, v, a)
    for what in ("transform", "linear_velocity", "angular_velocity", "linear_acceleration", "angular_acceleration"):
        check(
            links, lambda q, v, a, what=what: getattr(kg.forward_kinematics(model, q, v, a), what)[solid], what, solid
        )
    last = model.link_names[int(np.flatnonzero(solid)[-1])]
    named = {"link": [last, last], "point": [[0.1, 0.2, 0.3], [0, 0, 0]]}
    points = kg.point_motion_derivatives(model, q, v, a, **named)
    for what in ("position", "velocity", "acceleration"):
        check(points, lambda q, v, a, what=what: getattr(kg.point_motion(model, q, v, a, **named), what), what)
    momentum = kg.momentum_derivatives(model, q, v)
    for what in ("linear", "angular"):
        check(momentum, lambda q, v, a, what=what: getattr(kg.momentum(model, q, v), what), what)
    centre = kg.center_of_mass_derivatives(model, q)
    total = by_differences(model, lambda q, v, a: kg.center_of_mass(model, q), q, v, a, dx)
    assert_close(centre @ dx[: model.nv], total, 1e-8)
    J, motion = kg.jacobian(model, q, **named), kg.point_motion(model, q, v, **named)
    assert_close(J.linear @ v, motion.velocity, CLOSE)
    assert_close(centre @ v * model.total_mass, kg.momentum(model, q, v).linear, CLOSE)


@pytest.mark.parametrize("seed", FEW)
def test_regressor_loads_and_hybrid_dynamics(seed):
    model = mixed_tree(seed, passive=False)
    q, v, a = mixed_state(model, seed)
    Y = kg.inverse_dynamics_regressor(model, q, v, a)
    assert_close(Y @ kg.inertial_parameters(model), kg.inverse_dynamics(model, q, v, a), CLOSE)
    loads = mixed_loads(model, seed)
    change, (force, _, torque) = kg.inverse_dynamics_load_derivatives(model, q, loads=loads), parts(loads)
    tau = kg.inverse_dynamics(model, q, v, a, loads=loads)
    linear = np.einsum("ilx,lx->i", change.dtau_dforce, force) + np.einsum("ilx,lx->i", change.dtau_dtorque, torque)
    assert_close(linear, tau - kg.inverse_dynamics(model, q, v, a), CLOSE)
    held = [name for k, name in enumerate(model.speed_names) if k % 2]
    flags = np.isin(model.speed_names, held)
    unknown = np.where(flags, a, np.nan), np.where(flags, np.nan, tau)
    found = kg.hybrid_dynamics(model, q, v, unknown[1], unknown[0], prescribed=held, loads=loads)
    assert_close(found.a, a, 1e-9)
    assert_close(found.tau, tau, 1e-9)


def design_of(model, seed):
    """Constants of links and joints that are not inside a ball."""
    rng = np.random.default_rng([seed, 80])
    solid = [name for name, mass in zip(model.link_names, model.mass, strict=True) if mass > 0]
    inside = {first + k for first, _, _ in model.layout.balls for k in range(6)}
    joints = [name for i, name in enumerate(model.joint_names) if i not in inside]
    names = [
        f"{rng.choice(solid)}.mass",
        f"{rng.choice(solid)}.com.y",
        f"{rng.choice(joints)}.placement.x",
        "gravity.z",
    ]
    return Design(model, list(dict.fromkeys(names)))


@pytest.mark.parametrize("seed", some_now(FEW, 5))
def test_design_derivatives(seed):
    """At a fixed state by differences of models; in total by the chain rule; backwards by the transposed."""
    model = mixed_tree(seed)
    design = design_of(model, seed)
    (q, v, a), loads = mixed_state(model, seed), mixed_loads(model, seed)
    tau = kg.inverse_dynamics(model, q, v, a, loads=loads)
    held = [model.speed_names[0]]

    def differences(function):
        columns = []
        for e in np.eye(design.p):
            found = []
            for h in (2e-4, 1e-4):
                ends = [function(design.at(design.values + s * h * e).model) for s in (1, -1)]
                found.append((ends[0] - ends[1]) / (2 * h))
            columns.append((4 * found[1] - found[0]) / 3)
        return np.stack(columns, axis=-1)

    by_p = kg.inverse_dynamics_design_derivatives(design, q, v, a, loads=loads)
    assert_close(by_p, differences(lambda m: kg.inverse_dynamics(m, q, v, a, loads=loads)), 1e-8)
    a_p = kg.forward_dynamics_design_derivatives(design, q, v, tau, loads=loads)
    assert_close(a_p, differences(lambda m: kg.forward_dynamics(m, q, v, tau, loads=loads)), 1e-6)
    both = kg.hybrid_dynamics_design_derivatives(design, q, v, tau, a, prescribed=held, loads=loads)
    for what in ("a", "tau"):
        expected = differences(
            lambda m, what=what: getattr(kg.hybrid_dynamics(m, q, v, tau, a, prescribed=held, loads=loads), what)
        )
        assert_close(getattr(both, f"d{what}_dp"), expected, 1e-6)
    assert_close(kg.mass_matrix_design_derivatives(design, q), differences(lambda m: kg.mass_matrix(m, q)), 1e-8)
    energy = kg.energy_design_derivatives(design, q, v)
    assert_close(energy.dkinetic_dp, differences(lambda m: kg.kinetic_energy(m, q, v)), 1e-8)
    assert_close(energy.dpotential_dp, differences(lambda m: kg.potential_energy(m, q)), 1e-8)
    link = model.link_names[-1]
    moved = kg.point_motion_design_derivatives(design, q, v, a, link=link).dacceleration_dp
    assert_close(moved, differences(lambda m: kg.point_motion(m, q, v, a, link=link).acceleration), 1e-8)
    solid = model.mass > 0
    poses = kg.transform_design_derivatives(design, q)[solid]
    assert_close(poses, differences(lambda m: kg.forward_kinematics(m, q).transform[solid]), 1e-8)
    w = np.random.default_rng(seed).normal(size=model.nv)
    assert_close(kg.inverse_dynamics_design_vjp(design, q, v, a, w, loads=loads), w @ by_p, CLOSE)
    dq, dv, dtau = np.random.default_rng(seed).normal(size=(3, model.nv, design.p))
    total = kg.forward_dynamics_design_derivatives(design, q, v, tau, dq_dp=dq, dv_dp=dv, dtau_dp=dtau, loads=loads)
    f = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
    assert_close(total, a_p + f.da_dq @ dq + f.da_dv @ dv + f.da_dtau @ dtau, 1e-10)


# --- quaternions ----------------------------------------------------------------------------------------------------


def quaternion_of(R):
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])


@pytest.mark.parametrize("away", [0.0, 1e-17, 1e-12, 1e-8, 1e-3])
@pytest.mark.parametrize("sign", [1, -1])
def test_nothing_happens_at_gimbal_lock_of_the_pose(away, sign):
    """The second hinge of the pose at ±90°, or near: the same numbers as with the parent's frame turned elsewhere,
    so that the pose stands at ordinary angles."""

    def body(frame):
        builder = ModelBuilder("top")
        place = np.eye(4)
        place[:3, :3] = frame
        inertia = Inertia.box(2.0, [0.1, 0.2, 0.3], com=[0.1, 0.0, 0.2])
        builder.add("ball", None, kg.spherical(quaternion=True), link="top", placement=place, inertia=inertia)
        builder.add("arm", "top", kg.revolute("x"), placement=[0, 0.1, 0.3], inertia=Inertia.box(1.0, [0.1, 0.1, 0.3]))
        return builder.build()

    turn = kg.rotate([1.0, 2.0, -0.5], 1.1)[:3, :3]
    locked = (kg.rotate("z", 0.7) @ kg.rotate("y", sign * (np.pi / 2 - away)) @ kg.rotate("x", -0.4))[:3, :3]
    here, there = body(np.eye(3)), body(turn)
    (v, a), arm = np.random.default_rng(3).normal(size=(2, 4)), [0.3]
    state = np.r_[quaternion_of(locked), arm], np.r_[quaternion_of(turn.T @ locked), arm]
    one, two = (kg.inverse_dynamics_derivatives(model, q, v, a) for model, q in zip((here, there), state, strict=True))
    for x in ("tau", "dtau_dq", "dtau_dv", "dtau_da"):
        assert_close(getattr(one, x), getattr(two, x), 1e-14)
    link = [kg.forward_kinematics(model, q).transform[5] for model, q in zip((here, there), state, strict=True)]
    assert_close(link[0], link[1], 1e-15)
    forward = [kg.forward_dynamics(model, q, v, a) for model, q in zip((here, there), state, strict=True)]
    assert_close(*forward, 1e-13)


def test_orientation_and_angular_velocity_are_in_the_frames_that_are_said():
    """x_parent = R(q) x_child, and speeds are along the child's axes."""
    builder = ModelBuilder("body")
    builder.add("base", None, kg.free(quaternion=True), link="body", inertia=Inertia.box(1.0, [0.1, 0.2, 0.3]))
    model = builder.build()
    assert (model.nq, model.nv, model.n) == (7, 6, 9)
    q, v, _ = mixed_state(model, 5)
    R = reference.rotation(q[3:])
    found = kg.forward_kinematics(model, q, v)
    assert_close(found.transform[-1, :3, :3], R, 1e-15)
    assert_close(found.transform[-1, :3, 3], q[:3], 1e-15)
    assert_close(found.linear_velocity[-1], v[:3], 1e-15)
    assert_close(found.angular_velocity[-1], R @ v[3:], 1e-14)


def test_a_quaternion_and_its_negative_are_one_orientation(rng):
    model = mixed_tree(3)
    q, v, a = mixed_state(model, 3)
    other = q.copy()
    for _, k, _ in model.layout.balls:
        other[k : k + 4] *= -1
    assert np.array_equal(kg.inverse_dynamics(model, q, v, a), kg.inverse_dynamics(model, other, v, a))


def test_quaternions_that_are_not_of_unit_length_are_refused():
    builder = ModelBuilder("body")
    builder.add("base", None, kg.free(quaternion=True), inertia=Inertia.box(1.0, [0.1, 0.2, 0.3]))
    model, q = builder.build(), np.zeros((4, 7))
    q[:, 3] = 1.0
    q[2, 4] = 1e-3
    expected = r"`q` of state 2 has a quaternion of length 1\.0000005 at joint 'base'; expected length 1 to 1e-09"
    for function in (kg.forward_kinematics, kg.potential_energy, kg.mass_matrix, kg.center_of_mass_derivatives):
        with pytest.raises(InputError, match=expected):
            function(model, q)


# --- configurations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", FEW)
def test_integrate_and_difference_undo_each_other(seed):
    model = mixed_tree(seed)
    q, d, _ = mixed_state(model, seed, (4, 3))
    d = np.clip(d, -1.7, 1.7)  # turns of less than π, the shorter way round
    moved = kg.integrate(model, q, d)
    assert_close(kg.difference(model, q, moved), d, 1e-14)
    assert_close(kg.integrate(model, q, kg.difference(model, q, moved)), moved, 1e-14)
    assert_close(kg.difference(model, q, kg.integrate(model, q, 1e-9 * d)), 1e-9 * d, 1e-6)
    assert np.abs(kg.difference(model, q, q)).max() <= 1e-15  # products of a quaternion with itself, each rounded


def test_integrate_moves_as_speeds_do():
    """q ⊕ h v changes places as their velocities say."""
    model = mixed_tree(8)
    q, v, _ = mixed_state(model, 8)
    link, h = model.link_names[-1], 1e-6
    ends = [kg.point_motion(model, kg.integrate(model, q, s * h * v), link=link).position for s in (1, -1)]
    assert_close((ends[0] - ends[1]) / (2 * h), kg.point_motion(model, q, v, link=link).velocity, 1e-8)


def test_neutral_and_random_configurations():
    model = mixed_tree(4, joints=8)
    assert kg.kinetic_energy(model, kg.neutral(model), np.zeros(model.nv)) == 0
    many = kg.random_configuration(model, 1, shape=(200,))
    assert many.shape == (200, model.nq)
    assert np.array_equal(many, kg.random_configuration(model, 1, shape=(200,)))
    assert not np.array_equal(many, kg.random_configuration(model, 2, shape=(200,)))
    kg.forward_kinematics(model, many)  # unit quaternions
    limited = model.replace(position_limits={model.joint_names[int(model.layout.plain[0])]: (0.1, 0.2)})
    k = int(model.layout.plain_q[0])
    inside = kg.random_configuration(limited, 1, shape=(200,))[:, k]
    assert 0.1 <= inside.min() < inside.max() <= 0.2
    with pytest.raises(InputError, match="`seed` is 'x'"):
        kg.random_configuration(model, "x")


# --- couplings ------------------------------------------------------------------------------------------------------


def knee(*, coupled):
    """A knee whose shank slides and turns out while it bends, with a foot; and its functions."""
    x = np.linspace(-2.1, 0.2, 8)
    functions = {
        "knee.tx": kg.SplineFunction(x, 0.01 * np.sin(2 * x)),
        "knee.ty": kg.SplineFunction(x, 0.02 * np.cos(x) - 0.4),
        "knee.rz": kg.LinearFunction(1.0),
        "tibia": kg.SplineFunction(x, 0.1 * x**2),
    }
    leg = ModelBuilder("leg", gravity=(0, -9.81, 0))
    leg.add("hip", None, kg.revolute("z"), link="thigh", inertia=Inertia.box(9.0, [0.1, 0.4, 0.1], com=[0, -0.2, 0]))
    leg.add("knee", "thigh", kg.planar("z"), link="carrier")
    shank = Inertia.box(3.7, [0.1, 0.4, 0.1], com=[0, -0.2, 0])
    leg.add("tibia", "carrier", kg.revolute("y"), link="shank", inertia=shank)
    leg.add(
        "ankle", "shank", kg.revolute("z"), link="foot", placement=[0, -0.4, 0], inertia=Inertia.box(1, [0.2, 0.1, 0.1])
    )
    if coupled:
        leg.couple("knee_angle", functions)
    return leg.build(), functions


def test_a_spline_knee_is_its_joints_moved_by_functions():
    """Against the same knee as plain joints that are prescribed the values, rates and accelerations of the splines,
    by torques, energies, places and what does the same work."""
    (model, functions), (plain, _) = knee(coupled=True), knee(coupled=False)
    assert model.coordinate_names == ("hip", "knee_angle", "ankle")
    q, v, a = np.random.default_rng(5).normal(size=(3, 40, 3))
    q[:, 1] = np.linspace(-2.5, 0.6, 40)  # beyond the knots, too
    Q, V, A = np.zeros((3, 40, plain.n))
    slopes = np.zeros((40, plain.n))
    for name in plain.joint_names:
        i = plain.joint_index(name)
        if name in functions:
            f = functions[name].derivatives(q[:, 1], 2)
            Q[:, i], V[:, i], A[:, i] = f[0], f[1] * v[:, 1], f[1] * a[:, 1] + f[2] * v[:, 1] ** 2
            slopes[:, i] = f[1]
        else:
            k = model.coordinate_index(name)
            Q[:, i], V[:, i], A[:, i] = q[:, k], v[:, k], a[:, k]
    tau = kg.inverse_dynamics(plain, Q, V, A)
    found = kg.inverse_dynamics(model, q, v, a)
    moved = [plain.joint_index(name) for name in functions]
    assert_close(found[:, 1], (slopes * tau)[:, moved].sum(axis=1), 1e-14)
    for name in ("hip", "ankle"):
        assert_close(found[:, model.speed_index(name)], tau[:, plain.joint_index(name)], 1e-14)
    assert_close(kg.kinetic_energy(model, q, v), kg.kinetic_energy(plain, Q, V), 1e-14)
    assert_close(
        kg.forward_kinematics(model, q, v, a).linear_acceleration,
        kg.forward_kinematics(plain, Q, V, A).linear_acceleration,
        1e-14,
    )
    prescribed = kg.hybrid_dynamics(plain, Q, V, tau, A, prescribed=list(functions))
    free = kg.forward_dynamics(model, q, v, found)
    assert_close(free[:, [0, 2]], prescribed.a[:, [plain.joint_index("hip"), plain.joint_index("ankle")]], 1e-11)


def test_power_is_the_same_in_coordinates_and_joints():
    model = mixed_tree(7)
    q, v, a = mixed_state(model, 7)
    plain = model.primitive
    still = model.replace(gravity=(0, 0, 0))
    energy = [kg.kinetic_energy(still, kg.integrate(model, q, s * 1e-5 * v), v + s * 1e-5 * a) for s in (1, -1)]
    power = (energy[0] - energy[1]) / 2e-5
    zero = np.zeros(model.n)
    bare = still.replace(stiffness=zero, damping=zero)
    assert abs(kg.inverse_dynamics(bare, q, v, a) @ v - power) < 1e-6 * abs(power)
    assert plain.nq == plain.nv == plain.n == model.n


# --- batches, errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", FEW)
def test_a_state_gives_the_same_bits_in_any_batch(seed):
    model = mixed_tree(seed)
    q, v, a = mixed_state(model, seed, (7,))
    loads = mixed_loads(model, seed)
    for function in (kg.inverse_dynamics, kg.forward_dynamics):
        all_of_them = function(model, q, v, a, loads=loads)
        for k in range(7):
            assert np.array_equal(function(model, q[k], v[k], a[k], loads=loads), all_of_them[k])
        assert np.array_equal(function(model, q[0], v, a[:, None], loads=loads).shape, (7, 7, model.nv))
    many = kg.inverse_dynamics_derivatives(model, q, v, a, loads=loads)
    one = kg.inverse_dynamics_derivatives(model, q[3], v[3], a[3], loads=loads)
    for x in ("tau", "dtau_dq", "dtau_dv", "dtau_da"):
        assert np.array_equal(getattr(one, x), getattr(many, x)[3])
    out = np.empty_like(v)
    assert kg.inverse_dynamics(model, q, v, a, out=out) is out
    assert kg.inverse_dynamics(model, np.empty((0, model.nq)), v[:0], a[:0]).shape == (0, model.nv)


def test_wrong_arguments_are_named():
    model = mixed_tree(0)
    q, v, a = mixed_state(model, 0)
    with pytest.raises(InputError, match=rf"`q` has shape \({model.nv},\); model 'mixed0' has {model.nq} coordinates"):
        kg.inverse_dynamics(model, v, v, a)
    with pytest.raises(InputError, match=rf"`v` has shape \({model.nq},\); model 'mixed0' has {model.nv} speeds"):
        kg.inverse_dynamics(model, q, q, a)
    with pytest.raises(InputError, match=r"`a` at index \(0,\) is nan"):
        kg.inverse_dynamics(model, q, v, np.r_[np.nan, a[1:]])
    with pytest.raises(InputError, match=r"they overflow float64, where `v` has numbers of up to 1e\+200"):
        kg.inverse_dynamics(model, q, np.full(model.nv, 1e200), a)
    inner = model.link_names[model.layout.balls[0][0]]
    with pytest.raises(InputError, match="which is inside a ball joint and not a body; expected loads on links only"):
        kg.inverse_dynamics(model, q, v, a, loads=kg.Loads(force={inner: [1, 0, 0]}))
    with pytest.raises(InputError, match="has coordinates that are not its joints"):
        pinocchio_model(model)


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_a_coordinate_that_nothing_resists_is_named(method):
    builder = ModelBuilder("loose")
    builder.add("arm", None, kg.revolute("z"), inertia=Inertia.box(1.0, [0.1, 0.1, 0.1]))
    for name in "ab":
        builder.add(name, "arm", kg.revolute("x"))
    builder.couple("both", {"a": 1.0, "b": -2.0})
    with pytest.raises(SingularError, match="nothing resists coordinate 'both' of model 'loose'"):
        kg.forward_dynamics(builder.build(), [0, 0], [0, 0], [0, 0], method=method)
