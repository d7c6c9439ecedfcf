"""B-splines, their derivatives with respect to control points, time and knots, and torques through them."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import BSpline

import kinegrad as kg
from kinegrad.errors import InputError
from kinegrad.motion import Motion, SplineBasis
from kinegrad.motion.spline_torques import spline_torque_derivatives

EDGES = [0, 0.13, 0.3, 0.42, 0.77, 1]


@pytest.fixture(params=[3, 4, 5])
def basis(request):
    return SplineBasis(EDGES, request.param)


def test_values_are_scipys(basis):
    """Every basis function, and its derivatives, by SciPy one at a time."""
    s = np.linspace(0, 1, 23)
    for order in range(4):
        for j in range(basis.control_points):
            one = BSpline(basis.knots, np.eye(basis.control_points)[j], basis.degree)
            expected = one.derivative(order)(s) if order else one(s)
            np.testing.assert_allclose(basis.values(s, order)[:, j], expected, atol=1e-9 * 10**order)


def test_window_has_all_that_counts(basis):
    s = np.linspace(0, 1, 31)
    columns, values = basis.window(s, 3)
    for order in range(3):
        whole = np.zeros((len(s), basis.control_points))
        np.put_along_axis(whole, columns, values[order], axis=1)
        np.testing.assert_allclose(whole, basis.values(s, order), atol=1e-12)


def test_knots_by_differences(basis):
    """(3): at fixed control points; central differences with steps of 1e-6."""
    rng = np.random.default_rng(2)
    p, s, h = rng.standard_normal((basis.control_points, 2)), np.array([0.05, 0.2, 0.35, 0.6, 0.9]), 1e-6
    for order in range(3):
        exact = basis.knot_derivatives(p, s, [1, 2, 4], order)
        for column, i in enumerate((1, 2, 4)):
            sides = []
            for way in (1, -1):
                edges = np.array(EDGES, dtype=float)
                edges[i] += way * h
                sides.append(SplineBasis(edges, basis.degree).values(s, order) @ p)
            difference = (sides[0] - sides[1]) / (2 * h)
            np.testing.assert_allclose(exact[..., column], difference, atol=1e-7 * np.abs(difference).max())


def test_hull_holds_derivatives(basis):
    """Values are convex combinations of the derivative's control points, which sum to them exactly."""
    p = np.random.default_rng(3).standard_normal((basis.control_points, 1))
    s = np.linspace(0, 1, 201)
    for order in (1, 2):
        points = basis.hull(order) @ p
        inner = BSpline(basis.knots[order:-order], points, basis.degree - order)
        np.testing.assert_allclose(inner(s), basis.values(s, order) @ p, atol=1e-9)
        assert (basis.values(s, order) @ p).max() <= points.max() + 1e-9


def test_a_finer_basis_holds_the_same_motion(basis):
    p = np.random.default_rng(4).standard_normal((basis.control_points, 3))
    fine, s = basis.refined(), np.linspace(0, 1, 40)
    moved = basis.carried(p, fine)
    for order in range(3):
        np.testing.assert_allclose(fine.values(s, order) @ moved, basis.values(s, order) @ p, atol=1e-8)


def test_torques_through_a_spline():
    """(41), (42): by control points, final time and knots, against differences; only entries that topology has."""
    tree = kg.samples.random_tree(6, seed=3)
    basis, T = SplineBasis([0, 0.3, 0.5, 1], 4), 1.3
    rng = np.random.default_rng(5)
    p, s = 0.5 * rng.standard_normal((basis.control_points, 6)), np.array([0.0, 0.15, 0.4, 0.9, 1.0])
    found = spline_torque_derivatives(tree, basis, p, T, s, knots=[1, 2])

    def tau(p=p, T=T, basis=basis):
        return kg.inverse_dynamics(tree, *basis.evaluate(p, T, s))

    np.testing.assert_allclose(found.tau, tau(), atol=1e-12)
    h = 1e-6
    dense = found.dtau_dpoints.toarray().reshape(len(s), 6, basis.control_points, 6)
    for j in range(basis.control_points):
        for i in range(6):
            d = np.zeros_like(p)
            d[j, i] = h
            difference = (tau(p + d) - tau(p - d)) / (2 * h)
            np.testing.assert_allclose(dense[:, :, j, i], difference, atol=1e-6)
    np.testing.assert_allclose(found.dtau_dT, (tau(T=T + h) - tau(T=T - h)) / (2 * h), atol=1e-6)
    for column, i in enumerate((1, 2)):
        sides = []
        for way in (1, -1):
            edges = np.array([0, 0.3, 0.5, 1])
            edges[i] += way * h
            sides.append(tau(basis=SplineBasis(edges, 4)))
        np.testing.assert_allclose(found.dtau_dknots[..., column], (sides[0] - sides[1]) / (2 * h), atol=1e-5)
    rows, _ = tree.pattern
    assert found.dtau_dpoints.nnz <= len(s) * len(rows) * (basis.degree + 1)


def test_a_spline_is_a_motion():
    """As of SciPy, over T."""
    arm, basis = kg.samples.two_link(), SplineBasis(5)
    p = np.random.default_rng(1).standard_normal((basis.control_points, 2))
    motion = Motion.from_spline(arm, BSpline(2.0 * basis.knots, p, 3))
    q, v, a = basis.evaluate(p, 2.0, motion.t / 2)
    for one, two in ((motion.q, q), (motion.v, v), (motion.a, a)):
        np.testing.assert_allclose(one, two, atol=1e-9)


def test_it_compares_and_pickles(basis):
    assert pickle.loads(pickle.dumps(basis)) == basis == SplineBasis(EDGES, basis.degree)
    assert hash(basis) == hash(SplineBasis(EDGES, basis.degree))
    assert basis != SplineBasis(5, basis.degree)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SplineBasis(0), "from 1 to"),
        (lambda: SplineBasis(3, 6), "expected 3, 4 or 5"),
        (lambda: SplineBasis("many"), "'many'"),
        (lambda: SplineBasis([0, 1, 0.5]), "increase from 0 to 1"),
        (lambda: SplineBasis([[0, 1]]), "shape (1, 2)"),
        (lambda: SplineBasis(3).values([2.0]), "from 0 to 1"),
        (lambda: SplineBasis(3).values([0.5], 9), "`order` is 9"),
        (lambda: SplineBasis(3).evaluate(np.zeros((4, 2)), 1.0, [0.5]), "expected (6, n)"),
        (lambda: SplineBasis(3).knot_derivatives(np.zeros((6, 1)), [0.5], [0]), "inner breakpoints"),
        (lambda: SplineBasis(3).hull(9), "`order` is 9"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InputError) as error:
        make()
    assert words in str(error.value)
