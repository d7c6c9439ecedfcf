"""Couplings and quaternions of a model: functions with their derivatives, names, values, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly, make_interp_spline

import kinegrad as kg
from kinegrad import (
    CoupledCoordinate,
    Inertia,
    LinearFunction,
    ModelBuilder,
    ModelError,
    PolynomialFunction,
    Quaternion,
    SplineFunction,
)
from tests.mixed import mixed_tree
from tests.reference.oracle import STEP

FUNCTIONS = {
    "linear": LinearFunction(-2.0, 0.3),
    "polynomial": PolynomialFunction([0.1, -0.2, 0.3, 0.4, -0.1]),
    "natural": SplineFunction([-1.0, 0.0, 0.5, 2.0], [0.1, 0.4, -0.3, 0.2]),
    "two points": SplineFunction([0.0, 1.0], [1.0, 3.0]),
    "not a knot": SplineFunction.from_scipy(CubicSpline([-1.0, 0.0, 0.5, 2.0], [0.1, 0.4, -0.3, 0.2])),
    "quintic": SplineFunction.from_scipy(make_interp_spline(np.linspace(-1, 2, 9), np.sin(np.arange(9.0)), k=5)),
}


# --- functions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_exact(name):
    """Each order is the derivative of the one before, by complex step; inside, at and beyond the knots."""
    f, x = FUNCTIONS[name], np.linspace(-2.03, 3.11, 41)
    found = f.derivatives(x, 3)
    for order in range(3):
        by_step = np.imag(f.derivatives(x + 1j * STEP, order)[order]) / STEP
        np.testing.assert_allclose(found[order + 1], by_step, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["natural", "not a knot", "quintic"])
def test_splines_are_those_of_scipy_and_go_on_straight(name):
    f, x = FUNCTIONS[name], np.linspace(-1, 2, 33)
    knots, values = f.knots, f.values
    scipy = {
        "natural": lambda: CubicSpline(knots, values, bc_type="natural"),
        "not a knot": lambda: CubicSpline(knots, values),
        "quintic": lambda: make_interp_spline(np.linspace(-1, 2, 9), np.sin(np.arange(9.0)), k=5),
    }[name]()
    for order in range(4):
        inside = x[1:-1]
        np.testing.assert_allclose(
            f.derivatives(inside, 3)[order], scipy.derivative(order)(inside) if order else scipy(inside), atol=1e-9
        )
    beyond = f.derivatives(np.array([-3.0, 4.0]), 2)
    ends, slopes = scipy(np.array([-1.0, 2.0])), scipy.derivative()(np.array([-1.0, 2.0]))
    np.testing.assert_allclose(beyond[0], ends + slopes * [-2.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(beyond[1], slopes, atol=1e-12)
    assert not beyond[2].any()


def test_functions_are_values():
    for f in FUNCTIONS.values():
        assert pickle.loads(pickle.dumps(f)) == f
        assert hash(pickle.loads(pickle.dumps(f))) == hash(f)
    assert len(set(FUNCTIONS.values())) == len(FUNCTIONS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearFunction(np.nan), "`multiplier` of a LinearFunction is"),
        (lambda: PolynomialFunction([]), "`coefficients` of a PolynomialFunction is empty"),
        (lambda: PolynomialFunction("no"), "`coefficients` is 'no'; expected numbers"),
        (lambda: SplineFunction([0], [1]), "has 1 knots and 1 values; expected at least two knots"),
        (lambda: SplineFunction([0, 0], [1, 2]), "expected increasing numbers"),
        (lambda: SplineFunction.from_scipy(np.sin), "a function is a ufunc; expected a number"),
        (lambda: SplineFunction.from_scipy(PPoly([[0.0, 1.0]], [0, 1, 2])), "the value of a spline jumps from 0 to 1"),
        (lambda: SplineFunction.from_scipy(CubicSpline([0, 1], [[1, 2], [3, 4]])), "expected one real number each"),
    ],
)  # fmt: skip
def test_what_is_no_smooth_function_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


# --- models ---------------------------------------------------------------------------------------------------------


BALL = kg.spherical(quaternion=True)


def two_arms():
    builder = ModelBuilder("arms")
    for name in "abc":
        builder.add(name, None, kg.revolute("z"), inertia=Inertia.point(1.0, [0.1, 0, 0]))
    return builder


def test_names_and_numbers():
    builder = two_arms()
    builder.add("ball", "a", kg.spherical(quaternion=True), link="hand", inertia=Inertia.sphere(1.0, 0.1))
    builder.couple("both", {"b": 1.0, "c": LinearFunction(2.0, 0.1)})
    model = builder.build()
    assert (model.n, model.nq, model.nv) == (9, 6, 5)
    assert model.coordinate_names == ("a", "both", "ball.w", "ball.x", "ball.y", "ball.z")
    assert model.speed_names == ("a", "both", "ball.wx", "ball.wy", "ball.wz")
    assert model.coordinate_index("ball.x") == 3
    assert model.speed_index("ball.wz") == 4
    assert model.primitive.nq == model.primitive.nv == 9
    assert model.primitive.primitive is model.primitive
    assert "coupled 'both' moves b, c" in repr(model)
    assert "5 degrees of freedom, 9 joints" in repr(model)
    plain = two_arms().build()
    assert (plain.nq, plain.nv, plain.coordinate_names) == (3, 3, ("a", "b", "c"))


def test_models_are_values():
    model = mixed_tree(2)
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(pickle.loads(pickle.dumps(model))) == hash(model)
    assert model.replace(gravity=(0, 0, 0)).coordinates == model.coordinates
    assert model.replace(coordinates=()) == model.primitive != model
    assert mixed_tree(2) == model


def test_mimic_is_a_coupling():
    one, two = two_arms(), two_arms()
    one.mimic("b", "a", multiplier=2.0, offset=0.1)
    one.mimic("c", "a")
    two.couple("a", {"a": 1.0, "b": LinearFunction(2.0, 0.1), "c": 1.0})
    assert one.build() == two.build()


def test_dampers_of_a_ball_are_about_its_own_axes():
    builder = ModelBuilder("body", gravity=(0, 0, 0))
    body = Inertia.sphere(1.0, 0.1)
    builder.add("base", None, kg.free(quaternion=True), inertia=body, damping=[1, 2, 3, 4, 5, 6])
    model = builder.build()
    v = np.ones(6)
    assert kg.bias_forces(model, kg.neutral(model), v).tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: b.couple("x", {"z": 1.0}), "joint 'z' does not exist in model 'arms'"),
        (lambda b: b.couple("x", {}), "`joints` of coordinate 'x' is {}; expected a dictionary"),
        (lambda b: b.couple("x", {"a": "fast"}), "the function of joint 'a' is 'fast'; expected a number"),
        (lambda b: b.couple("a", {"b": 1.0}), "coordinate 'a' has the name of a joint that it does not move"),
        (lambda b: [b.couple("x", {"a": 1.0}), b.couple("x", {"b": 1.0})], "coordinate 'x' is coupled already"),
        (lambda b: [b.couple("x", {"a": 1.0}), b.couple("y", {"a": 2.0})], "'a' is moved by coordinates 'x' and 'y'"),
        (lambda b: [b.mimic("a", "b"), b.mimic("a", "b")], "joint 'a' follows 'b' already"),
        (lambda b: b.mimic("a", "b", multiplier="x"), "`multiplier` of a LinearFunction is"),
        (lambda b: b.add("q", None, BALL, stiffness=1.0), "`stiffness` of joint 'q.wx' is 1, and a ball"),
        (lambda b: b.add("q", None, BALL, armature=1.0), "`armature` of joint 'q.wx' is 1, and a ball"),
        (lambda b: b.add("q", None, BALL, position_limits=(-1, 1)), "has no angles to limit"),
        (lambda b: b.add("q", None, kg.spherical(quaternion=1)), "`quaternion` is 1; expected True or False"),
        (lambda b: [b.add("q", None, BALL), b.add("r", "q.pose_x", kg.revolute())], "a link is attached within"),
        (lambda b: [b.add("q", None, BALL), b.add("q.w", None, kg.revolute())], "two coordinates are called 'q.w'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make, message):
    builder = two_arms()
    with pytest.raises(kg.KinegradError, match=message):
        [make(builder), builder.build()]


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        (3, "`coordinates` is 3; expected CoupledCoordinate and Quaternion objects"),
        ([1], "`coordinates` holds 1"),
        (
            [CoupledCoordinate("x", (0, 7), (LinearFunction(),) * 2)],
            "a joint of coupling 'x' is 7; expected a number from 0 to 2",
        ),
        ([CoupledCoordinate("x", (0,), ())], "coupling 'x' has 1 joints and 0 functions"),
        ([CoupledCoordinate("x", (0,), (np.sin,))], "a function of coupling 'x' is"),
        ([CoupledCoordinate("", (0,), (LinearFunction(),))], "`name` of a coupling is empty"),
        ([Quaternion("x", 0)], "quaternion 'x' begins at joint 0 of 3; expected six hinges"),
        ([Quaternion("x", True)], "a joint of quaternion 'x' is True"),
    ],
)
def test_coordinates_of_a_model_are_checked(coordinates, message):
    with pytest.raises(ModelError, match=message):
        two_arms().build().replace(coordinates=coordinates)


def test_a_knee_angle_is_an_angle_though_its_first_joint_slides():
    """The coordinate is measured as the joint that it moves one to one: files in degrees were read as metres."""
    leg = kg.ModelBuilder("leg")
    leg.add("knee", None, kg.planar("z"), link="shank", inertia=kg.Inertia.rod(3.7, [0, 0, 0], [0, -0.43, 0]))
    slide = kg.SplineFunction([-2.1, -1.0, 0.0], [-0.003, 0.004, -0.005])
    leg.couple("knee_angle", {"knee.tx": slide, "knee.ty": 0.01, "knee.rz": 1.0})
    assert leg.build().layout.speed_kinds == ["revolute"]
