"""Sensitivities of kinematics, centre of mass and momentum: complex steps of the oracle, and identities."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, random_state, tree
from tests.reference import oracle

# A complex step has no truncation error. Both sides multiply and add up to 43 transforms, and accelerations
# square the speeds: some hundred roundings of 1e-16 of the largest entry.
CLOSE = 1e-12
trees = pytest.mark.parametrize("seed", range(20))
fields_of = vars


def points_of(model, seed):
    """Some links, their names, and points away from their frames' origins, so that turning moves them."""
    links = [*range(0, model.n, 7), model.n - 1]
    points = np.random.default_rng(seed).normal(size=(len(links), 3))
    return links, [model.link_names[j] for j in links], points


def by_each(f, q, v, a):
    """∂f/∂q, ∂f/∂v, ∂f/∂a of f(q, v, a), by complex step."""
    return (
        oracle.numerical_derivative(lambda x: f(x, v, a), q),
        oracle.numerical_derivative(lambda x: f(q, x, a), v),
        oracle.numerical_derivative(lambda x: f(q, v, x), a),
    )


def errors(actual, desired):
    """The largest error of each field, by its largest entry, or by 1 if that is less.

    A derivative may be zero but for rounding (that of ω by q in a plane); states and models are of order one.
    """
    assert actual.keys() == desired.keys()
    found = {}
    for name, x in desired.items():
        assert actual[name].shape == x.shape, name
        found[name] = np.abs(actual[name] - x).max() / max(np.abs(x).max(), 1.0)
    return found


def link_errors(model, seed):
    q, v, a = random_state(model, seed)

    def motion(q, v, a):
        """Velocity, angular velocity, acceleration, angular acceleration of all links, as in the oracle."""
        T, dT, ddT = oracle.transform_motion(model, q, v, a)
        R, dR, ddR = T[:, :3, :3], dT[:, :3, :3], ddT[:, :3, :3]
        back, dback = np.swapaxes(R, 1, 2), np.swapaxes(dR, 1, 2)
        w, dw = oracle.unskew(dR @ back), oracle.unskew(ddR @ back + dR @ dback)
        return np.array([dT[:, :3, 3], w, ddT[:, :3, 3], dw])

    assert_close(motion(q, v, a)[1::2, -1], oracle.angular_motion(model, q, v, a, model.n - 1), 1e-14)
    by_q, by_v, by_a = by_each(motion, q, v, a)
    desired = {
        "dtransform_dq": oracle.numerical_derivative(lambda q: oracle.transforms(model, q), q),
        "dlinear_velocity_dq": by_q[0],
        "dlinear_velocity_dv": by_v[0],
        "dangular_velocity_dq": by_q[1],
        "dangular_velocity_dv": by_v[1],
        "dlinear_acceleration_dq": by_q[2],
        "dlinear_acceleration_dv": by_v[2],
        "dlinear_acceleration_da": by_a[2],
        "dangular_acceleration_dq": by_q[3],
        "dangular_acceleration_dv": by_v[3],
        "dangular_acceleration_da": by_a[3],
    }
    return errors(fields_of(kg.forward_kinematics_derivatives(model, q, v, a)), desired)


def point_errors(model, seed):
    q, v, a = random_state(model, seed)
    links, names, points = points_of(model, seed)

    def motion(q, v, a):
        """Position, velocity, acceleration of all points: oracle.point_motion, but T, Ṫ, T̈ computed once."""
        T = np.array(oracle.transform_motion(model, q, v, a))[:, links, :3]
        return np.einsum("dkab,kb->dka", T, np.column_stack([points, np.ones(len(points))]))

    assert_close(motion(q, v, a)[:, -1], oracle.point_motion(model, q, v, a, links[-1], points[-1]), 1e-14)
    by_q, by_v, by_a = by_each(motion, q, v, a)
    desired = {
        "dposition_dq": by_q[0],
        "dvelocity_dq": by_q[1],
        "dvelocity_dv": by_v[1],
        "dacceleration_dq": by_q[2],
        "dacceleration_dv": by_v[2],
        "dacceleration_da": by_a[2],
    }
    return errors(fields_of(kg.point_motion_derivatives(model, q, v, a, link=names, point=points)), desired)


def momentum_errors(model, seed):
    q, v, _ = random_state(model, seed)
    by_q = oracle.numerical_derivative(lambda q: np.array(oracle.momentum(model, q, v)), q)
    by_v = oracle.numerical_derivative(lambda v: np.array(oracle.momentum(model, q, v)), v)
    desired = {
        "dcom_dq": oracle.numerical_derivative(lambda q: oracle.com(model, q), q),
        "dlinear_dq": by_q[0],
        "dlinear_dv": by_v[0],
        "dangular_dq": by_q[1],
        "dangular_dv": by_v[1],
    }
    actual = {"dcom_dq": kg.center_of_mass_derivatives(model, q)}
    return errors(actual | fields_of(kg.momentum_derivatives(model, q, v)), desired)


checks = pytest.mark.parametrize("errors_of", [link_errors, point_errors, momentum_errors])


@checks
def test_samples_equal_complex_step(sample, errors_of):
    found = errors_of(sample, 1)
    assert max(found.values()) <= CLOSE, found


@checks
@trees
def test_random_trees_equal_complex_step(seed, errors_of):
    found = errors_of(tree(seed), seed)
    assert max(found.values()) <= CLOSE, found


# --- identities ---------------------------------------------------------------------------------------------


@trees
def test_along_the_motion_they_are_rates(seed):
    """Ṫ = ∂T/∂q v, ẍ = ∂ẋ/∂q v + ∂ẋ/∂v a, and so for ω: what forward_kinematics says."""
    model = tree(seed)
    q, v, a = random_state(model, seed)
    motion = kg.forward_kinematics(model, q, v, a)
    d = kg.forward_kinematics_derivatives(model, q, v, a)
    dT = d.dtransform_dq @ v
    assert_close(dT, oracle.transform_motion(model, q, v, a)[1], CLOSE)
    assert_close(dT[:, :3, 3], motion.linear_velocity, CLOSE)
    assert_close(d.dlinear_velocity_dq @ v + d.dlinear_velocity_dv @ a, motion.linear_acceleration, CLOSE)
    assert_close(d.dangular_velocity_dq @ v + d.dangular_velocity_dv @ a, motion.angular_acceleration, CLOSE)
    momentum, centre = kg.momentum_derivatives(model, q, v), kg.center_of_mass_derivatives(model, q)
    moving = kg.momentum(model, q, v)
    assert_close(model.total_mass * (centre @ v), moving.linear, CLOSE)
    assert_close(momentum.dlinear_dv @ v, moving.linear, CLOSE)
    assert_close(momentum.dangular_dv @ v, moving.angular, CLOSE)


@trees
def test_points_obey_the_identities_of_coordinates(seed):
    """∂ẋ/∂v = ∂ẍ/∂a = ∂x/∂q is the Jacobian, ∂ẍ/∂v = 2 ∂ẋ/∂q; origins move as the link frames do."""
    model = tree(seed)
    q, v, a = random_state(model, seed)
    links, names, points = points_of(model, seed)
    d = kg.point_motion_derivatives(model, q, v, a, link=names, point=points)
    J = kg.jacobian(model, q, link=names, point=points)
    assert_close(d.dposition_dq, J.linear, 1e-13)
    assert np.array_equal(d.dvelocity_dv, d.dposition_dq)
    assert np.array_equal(d.dacceleration_da, d.dposition_dq)
    assert np.array_equal(d.dacceleration_dv, 2 * d.dvelocity_dq)
    frames = kg.forward_kinematics_derivatives(model, q, v, a)
    assert_close(frames.dangular_velocity_dv[links], J.angular, 1e-13)
    origins = kg.point_motion_derivatives(model, q, v, a, link=names)
    assert_close(origins.dposition_dq, frames.dtransform_dq[links, :3, 3], 1e-14)
    assert_close(origins.dvelocity_dq, frames.dlinear_velocity_dq[links], 1e-14)
    assert_close(origins.dacceleration_dq, frames.dlinear_acceleration_dq[links], 1e-14)


@pytest.mark.parametrize("model", [samples.human43(), tree(5), tree(8)], ids=lambda model: model.name)
def test_a_joint_that_does_not_move_a_link_has_exact_zeros(model):
    q, v, a = random_state(model, 4, batch=(5,))
    still = ~model.topology.support  # [i, j]: joint j does not carry link i
    frames = kg.forward_kinematics_derivatives(model, q, v, a)
    assert not frames.dtransform_dq[..., 3, :, :].any()
    for name, x in fields_of(frames).items():
        assert not np.moveaxis(x, 1, -2)[..., still].any(), name
    points = kg.point_motion_derivatives(model, q, v, a, link=model.link_names, point=[0.1, 0.2, 0.3])
    for name, x in fields_of(points).items():
        assert not np.moveaxis(x, 1, -2)[..., still].any(), name
    assert np.moveaxis(points.dposition_dq, 1, -2)[..., ~still].any(axis=(0, 1)).all(), "and nowhere else"


def test_a_joint_that_moves_no_mass_does_not_move_the_center():
    builder = kg.ModelBuilder("pointer")
    body = kg.Inertia.box(2.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0.2])
    builder.add("arm", None, kg.revolute("z"), inertia=body)
    builder.add("needle", "arm", kg.revolute("x"), placement=[0.2, 0, 0], armature=0.1)
    model = builder.build()
    q, v, _ = random_state(model)
    assert not kg.center_of_mass_derivatives(model, q)[:, 1].any()
    for x in fields_of(kg.momentum_derivatives(model, q, v)).values():
        assert x[:, 0].any()
        assert not x[:, 1].any()


def test_far_away_they_are_the_same():
    """1 to 3 km from the world's origin only positions are rounded, to 4e-13 m; speeds are of order one."""
    human = samples.human43()
    q, v, a = random_state(human, 3)
    far = q.copy()
    far[:3] += [1000.1, -2000.2, 3000.3]
    for call in (
        lambda q: kg.forward_kinematics_derivatives(human, q, v, a),
        lambda q: kg.point_motion_derivatives(human, q, v, a, link="head", point=[0.1, 0.2, 0.3]),
        lambda q: kg.momentum_derivatives(human, q, v),
    ):
        away = call(far)
        for name, x in fields_of(call(q)).items():
            assert_close(getattr(away, name), x, 1e-11)
    assert_close(kg.center_of_mass_derivatives(human, far), kg.center_of_mass_derivatives(human, q), 1e-11)


# --- batches, results ---------------------------------------------------------------------------------------


def everything(model, q, v, a, **options):
    """Every result array, by name."""
    names = [model.link_names[-1], model.link_names[0]]
    found = {"com": kg.center_of_mass_derivatives(model, q, **options)}
    for result in (
        kg.forward_kinematics_derivatives(model, q, v, a, **options),
        kg.point_motion_derivatives(model, q, v, a, link=names, point=[[1, 2, 3], [4, 5, 6]], **options),
        kg.momentum_derivatives(model, q, v, **options),
    ):
        found |= fields_of(result)
    return found


def test_shapes_and_layout_follow_the_batch():
    model = tree(9)
    n = model.n
    q, v, a = random_state(model, batch=(2, 3))
    for name, x in everything(model, q, v, a).items():
        frames = name == "dtransform_dq"
        links = name.startswith(("dlinear_velocity", "dangular_velocity", "dlinear_acc", "dangular_acc"))
        points = name.startswith(("dposition", "dvelocity", "dacceleration"))
        core = (n, 4, 4, n) if frames else (n, 3, n) if links else (2, 3, n) if points else (3, n)
        assert x.shape == (2, 3, *core), name
        assert x.flags.c_contiguous, name
        assert x.dtype == np.float64
    one = kg.point_motion_derivatives(model, q, link=model.link_names[-1]).dposition_dq
    assert one.shape == (2, 3, 3, n)
    assert kg.point_motion_derivatives(model, q, link=[]).dposition_dq.shape == (2, 3, 0, 3, n)
    empty = everything(model, q[:0], v[:0], a[:0])
    assert all(x.shape[:2] == (0, 3) for x in empty.values())


def test_results_share_no_memory():
    model = tree(9)
    q, v, a = random_state(model)
    found = list(everything(model, q, v, a).values())
    for k, x in enumerate(found):
        assert x.flags.writeable
        assert not any(np.shares_memory(x, y) for y in (*found[:k], q, v, a))


def test_same_bits_in_any_batch_with_any_threads():
    human = samples.human43()
    q, v, a = random_state(human, 6, batch=(203,))
    first = everything(human, q, v, a, threads=1)
    for name, x in everything(human, q, v, a, threads=3).items():
        assert np.array_equal(x, first[name]), name
    for k in (0, 1, 102, 202):
        for name, x in everything(human, q[k], v[k], a[k]).items():
            assert np.array_equal(x, first[name][k]), name


def test_batches_broadcast_to_the_same_bits():
    model = tree(11)
    q, v, a = random_state(model, batch=(3, 4))
    alone = everything(model, q[2, 3], v[0, 3], a[0, 0])
    for name, x in everything(model, q, v[:1], a[0, 0]).items():
        if name == "com":
            x = x.reshape(3, 4, 3, model.n)
        assert np.array_equal(x[2, 3], alone[name]), name


def test_what_is_given_does_not_change_what_else_is_computed():
    """Fields that were not asked for are None; the others have the same bits."""
    model = tree(12)
    q, v, a = random_state(model, batch=(5,))
    for call in (
        kg.forward_kinematics_derivatives,
        lambda *state: kg.point_motion_derivatives(*state, link=model.link_names[-1], point=[1, 2, 3]),
    ):
        whole = fields_of(call(model, q, v, a))
        for given, missing in (((), ("velocity", "acceleration")), ((v,), ("acceleration",))):
            for name, x in fields_of(call(model, q, *given)).items():
                if any(word in name for word in missing):
                    assert x is None, name
                else:
                    assert np.array_equal(x, whole[name]), name


# --- errors -------------------------------------------------------------------------------------------------


def test_acceleration_needs_velocity():
    arm, zero = samples.two_link(), [0, 0]
    with pytest.raises(kg.InputError, match="`a` is given without `v`"):
        kg.forward_kinematics_derivatives(arm, zero, a=zero)
    with pytest.raises(kg.InputError, match="`a` is given without `v`"):
        kg.point_motion_derivatives(arm, zero, a=zero, link="forearm")


@pytest.mark.parametrize(
    ("link", "point", "message"),
    [
        ("foream", [0, 0, 0], r"link 'foream' does not exist in model 'two_link'.*'forearm'"),
        ("forearm", [0, 0], r"`point` has shape \(2,\); expected \(3,\)"),
        (
            ["forearm", "upper_arm"],
            np.zeros((3, 3)),
            r"`point` has shape \(3, 3\); expected \(3,\) or \(2, 3\)",
        ),
        ("forearm", [0, np.nan, 0], r"`point` at index \(1,\) is nan; expected finite numbers"),
    ],
)
def test_wrong_points_are_described(link, point, message):
    with pytest.raises(kg.InputError, match=message):
        kg.point_motion_derivatives(samples.two_link(), [0, 0], link=link, point=point)


def test_wrong_states_and_threads_are_described():
    arm = samples.two_link()
    calls = [
        lambda q, **k: kg.forward_kinematics_derivatives(arm, q, **k),
        lambda q, **k: kg.point_motion_derivatives(arm, q, link="forearm", **k),
        lambda q, **k: kg.center_of_mass_derivatives(arm, q, **k),
        lambda q, **k: kg.momentum_derivatives(arm, q, [0, 0], **k),
    ]
    for call in calls:
        with pytest.raises(kg.InputError, match=r"`q` has shape \(3,\); model 'two_link' has 2 degrees"):
            call([0, 0, 0])
        with pytest.raises(kg.InputError, match=r"`q` at index \(1,\) is inf; expected finite numbers"):
            call([0, np.inf])
        with pytest.raises(kg.InputError, match="`threads` is 0"):
            call([0, 0], threads=0)


def test_a_model_without_mass_has_no_center():
    builder = kg.ModelBuilder("ghost")
    builder.add("hinge", None, kg.revolute("y"), armature=0.5)
    ghost = builder.build()
    for call in (
        lambda: kg.center_of_mass_derivatives(ghost, [0]),
        lambda: kg.momentum_derivatives(ghost, [0], [0]),
    ):
        with pytest.raises(kg.ModelError, match="model 'ghost' has no mass"):
            call()
    assert kg.point_motion_derivatives(ghost, [0], link="hinge").dposition_dq.shape == (3, 1)
