"""The map from coordinates to joints, state by state: functions, poses of balls, and what it says of wrong numbers."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad import LinearFunction, PolynomialFunction, SplineFunction
from kinegrad._engine.coordinates import map_table
from kinegrad._kernels.coordinates import NOT_UNIT, UNIT, expand
from kinegrad._kernels.lanes.finite import FINE, LARGE, NOT_FINITE

KNOTS = np.array([-1.0, -0.2, 0.1, 0.5, 2.0])
FUNCTIONS = [
    LinearFunction(-1.5, 0.3),
    PolynomialFunction([0.5]),
    PolynomialFunction([0.1, -0.2, 0.3, 0.4, -0.5, 0.02, 0.01]),
    SplineFunction(KNOTS, [0.1, 0.3, -0.2, 0.0, 0.4]),
    SplineFunction(KNOTS[:2], [0.0, 1.0]),
    SplineFunction.from_scipy(CubicSpline(KNOTS, [0.1, 0.3, -0.2, 0.0, 0.4], bc_type="clamped")),
]


def model_of(functions):
    builder = kg.ModelBuilder("model")
    for k in range(len(functions)):
        builder.add(
            f"j{k}",
            f"l{k - 1}" if k else None,
            kg.prismatic("x"),
            link=f"l{k}",
            inertia=kg.Inertia.point(1.0, [0, 0, 0]),
        )
    builder.couple("q", {f"j{k}": f for k, f in enumerate(functions)})
    return builder.build()


def expanded(model, q, v, a):
    n, k = model.n, len(model.layout.coupled)
    joints, bend = np.full((4, len(q), n), np.nan), np.full((len(q), 2 * k), np.nan)
    status = expand(map_table(model)[0], q, v, a, *joints, bend, 0, len(q))
    return status, joints, bend


def test_functions_have_their_values_and_derivatives():
    """At knots, between them and beyond both ends; to rounding, which differs by the order of operations."""
    x = np.sort(np.concatenate([KNOTS, np.nextafter(KNOTS, 9), np.linspace(-3, 4, 40)]))
    v, a = np.full((1, 1), 1.3), np.full((1, 1), -0.7)
    status, (q_hat, v_hat, a_hat, slope), bend = expanded(model_of(FUNCTIONS), x[:, None], v, a)
    assert status == FINE
    for k, function in enumerate(FUNCTIONS):
        f, df, ddf, dddf = function.derivatives(x, 3)
        close = {"rtol": 1e-14, "atol": 1e-13 * max(1.0, np.abs(f).max())}
        np.testing.assert_allclose(q_hat[:, k], f, **close)
        np.testing.assert_allclose(slope[:, k], df, **close)
        np.testing.assert_allclose(bend[:, k], ddf, **close)
        np.testing.assert_allclose(bend[:, len(FUNCTIONS) + k], dddf, **close)
        np.testing.assert_allclose(v_hat[:, k], 1.3 * df, **close)
        np.testing.assert_allclose(a_hat[:, k], -0.7 * df + 1.69 * ddf, **close)


def test_poses_turn_as_their_quaternions_do():
    """Everywhere, singular positions of the hinges and q and −q included: x_parent = R(q) x_child."""
    builder = kg.ModelBuilder("ball")
    builder.add("ball", None, kg.spherical(quaternion=True), inertia=kg.Inertia.box(1.0, [0.1, 0.2, 0.3]))
    model = builder.build()
    rng = np.random.default_rng(2)
    q = np.concatenate([rng.normal(size=(50, 4)), np.eye(4), -np.eye(4), [[1, 0, 1, 0], [1, 0, -1, 0], [0, 1, 0, -1]]])
    q = np.concatenate([q, q[-3:] + 1e-9 * rng.normal(size=(3, 4))])
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    w, x, y, z = q.T
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])  # fmt: skip
    found = kg.forward_kinematics(model, q).transform[:, -1, :3, :3]
    np.testing.assert_allclose(found, np.moveaxis(R, -1, 0), atol=1e-15 * 4)


@pytest.mark.parametrize(
    ("length", "first", "status"),
    [(1.0, 1.0, FINE), (1 + 2 * UNIT, 1.0, NOT_UNIT), (np.nan, 1.0, NOT_FINITE), (1.0, 1e13, LARGE)],
)
def test_what_it_says_of_numbers(length, first, status):
    builder = kg.ModelBuilder("body")
    builder.add("base", None, kg.free(quaternion=True), inertia=kg.Inertia.box(1.0, [0.1, 0.2, 0.3]))
    model = builder.build()
    q = np.tile(kg.neutral(model), (3, 1))
    q[2, 3], q[1, 0] = length, first
    assert expanded(model, q, np.zeros((1, 6)), np.zeros((1, 6)))[0] == status
