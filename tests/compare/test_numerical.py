"""Numerical differentiation: as accurate as its theory says, one interface for all, mistakes named.

Against derivatives worked out on paper, and against the exact derivatives of inverse dynamics.
"""

import re

import numpy as np
import pytest

from kinegrad import InputError, inverse_dynamics, inverse_dynamics_derivatives, samples
from kinegrad.compare import numerical_jacobian
from tests.conftest import difference, random_loads, random_state

# What a method leaves, by the theory in the module's docstring, times 100 for factors f″/f, f‴/f and the |x| > 1 of
# these functions.  Each bound is still a hundredfold below the next worse method, so a swapped method is found.
LEAVES = {"forward": 1e-6, "central": 1e-8, "complex": 1e-15, "adaptive": 1e-9}
methods = pytest.mark.parametrize("method", LEAVES)
X = np.array([1.3, 0.7])


def smooth(x):
    """R² → R³, of any batch shape, real or complex."""
    u, w = x[..., 0], x[..., 1]
    return np.stack([np.sin(u) * w, np.exp(w) / u, u**3], axis=-1)


def smooth_jacobian(x):
    u, w = x
    return np.array(
        [[np.cos(u) * w, np.sin(u)], [-np.exp(w) / u**2, np.exp(w) / u], [3 * u**2, 0.0]],
    )


@methods
@pytest.mark.parametrize("batched", [False, True])
def test_matches_the_derivative_on_paper(method, batched):
    assert difference(numerical_jacobian(smooth, X, method, batched=batched), smooth_jacobian(X)) < LEAVES[method]


@pytest.mark.parametrize(("method", "order"), [("forward", 1), ("central", 2)])
def test_error_shrinks_with_the_order_of_the_method(method, order):
    # Steps large enough that rounding, 1e-16/h, stays a thousandth of the truncation.
    error = [np.abs(numerical_jacobian(np.exp, 0.5, method, step=h) - np.exp(0.5)) for h in (1e-2, 5e-3)]
    assert np.log2(error[0] / error[1]) == pytest.approx(order, abs=0.02)  # the next term of the series: h/3


@methods
def test_large_and_small_components_get_their_own_steps(method):
    x = np.array([1e6, 1.0, 1e-9, 0.0])
    jacobian = numerical_jacobian(lambda x: x**2 / 2, x, method)
    # Relative to each component, but absolute below 1, as the steps are.
    error = np.abs(jacobian - np.diag(x)) / np.maximum(1, np.abs(x))[:, None]
    assert error.max() < LEAVES[method]


@methods
def test_shapes_are_those_of_the_function_then_of_x(method):
    x = np.arange(1.0, 7.0).reshape(2, 3)
    assert numerical_jacobian(np.sum, x, method).shape == (2, 3)
    assert numerical_jacobian(lambda x: x @ x.T, x, method).shape == (2, 2, 2, 3)
    assert numerical_jacobian(np.sin, 1.0, method).shape == ()
    outer = numerical_jacobian(lambda x: x[:, 0], x, method)
    np.testing.assert_allclose(outer, np.eye(2)[:, :, None] * np.eye(3)[0], atol=LEAVES[method])


@pytest.mark.parametrize("method", ["forward", "central", "complex"])
def test_batched_is_unbatched_in_one_call(method):
    shapes = []

    def counted(x):
        shapes.append(x.shape)
        return smooth(x)

    batched = numerical_jacobian(counted, X, method, batched=True)
    np.testing.assert_array_equal(batched, numerical_jacobian(smooth, X, method))
    expected = {"forward": [(3, 2)], "central": [(4, 2)], "complex": [(1, 2), (2, 2)]}  # complex looks at real x first
    assert shapes == expected[method]


def test_step_by_component():
    # (x + h)² − x² = 2xh + h²: the forward difference of a square is off by exactly h.
    jacobian = numerical_jacobian(np.square, [1.0, 1.0], "forward", step=[0.5, 0.25])
    np.testing.assert_array_equal(jacobian, [[2.5, 0.0], [0.0, 2.25]])


def test_step_is_the_one_that_is_represented():
    # 1e-8 cannot be added to 0.1 exactly; divided by the step that was taken, a linear function has no error.
    assert numerical_jacobian(lambda x: x, 0.1, "forward", step=1e-8) == 1.0


@pytest.mark.parametrize(("method", "tolerance"), [("forward", 1e-6), ("central", 1e-8), ("adaptive", 1e-9)])
@pytest.mark.parametrize("batched", [False, True])
def test_inverse_dynamics_of_an_arm(method, tolerance, batched):
    # Rounding is that of τ, which may be larger than the derivative: hence relative to the larger of the two.
    arm = samples.two_link(gravity=(0, -9.81, 0))
    q, v, a = random_state(arm, 3)
    loads = random_loads(arm, 3)
    exact = inverse_dynamics_derivatives(arm, q, v, a, loads=loads)
    state = {"q": q, "v": v, "a": a}
    for name in state:
        numerical = numerical_jacobian(
            lambda x, name=name: inverse_dynamics(arm, **(state | {name: x}), loads=loads),
            state[name], method, batched=batched,
        )  # fmt: skip
        desired = getattr(exact, f"dtau_d{name}")
        error = np.abs(numerical - desired).max() / max(np.abs(desired).max(), np.abs(exact.tau).max())
        assert error < tolerance


def test_a_whole_trajectory_at_once():
    arm = samples.two_link()
    q, v, a = random_state(arm, 4, (5,))
    jacobian = numerical_jacobian(lambda q: inverse_dynamics(arm, q, v, a), q, batched=True)
    assert jacobian.shape == (5, 2, 5, 2)
    exact = inverse_dynamics_derivatives(arm, q, v, a).dtau_dq
    assert difference(jacobian[range(5), :, range(5)], exact) < LEAVES["central"]
    jacobian[range(5), :, range(5)] = 0
    assert not jacobian.any()  # one instant does not know of another


def test_x_is_left_alone():
    x = X.copy()

    def careless(x):
        x *= 2
        return x

    for method in LEAVES:
        numerical_jacobian(careless, x, method)
        np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "exact"}, "`method` is 'exact'; expected one of 'central', 'forward', 'complex', 'adaptive'"),
        ({"x": [1.0, np.nan]}, "`x` at index (1,) is nan; expected finite numbers"),
        ({"x": [1j]}, "`x` holds complex numbers; expected real numbers"),
        ({"x": []}, "`x` has shape (0,), no component"),
        ({"step": 0.0}, "`step` is 0.0; expected positive finite numbers"),
        ({"step": [1.0, -1.0]}, "`step` is [1.0, -1.0]; expected positive finite numbers"),
        ({"step": [1.0] * 3}, "`step` has shape (3,); expected one number, or the shape (2,) of `x`"),
        ({"step": 1e-30}, "`step` at index (0,) is 1e-30, which does not move x = 1.3"),
        ({"x": [1.0, 1e308], "step": 1e308}, "`step` at index (1,) is 1e+308, which does not move x = 1e+308"),
        ({"step": 1e-3, "method": "adaptive"}, "`step` is 0.001; the adaptive method chooses its steps by itself"),
        ({"function": lambda x: x.sum(), "batched": True}, "returned shape () for a batch of 4 points; expected (4,"),
        ({"function": lambda x: x[x > 1.3]}, "`function` returned shapes (1,) and (0,); expected one shape"),
        ({"function": lambda x: ["a"]}, "`function(x)` holds"),
    ],
)
def test_mistakes_are_named(change, message):
    arguments = {"function": smooth, "x": X} | change
    with pytest.raises(InputError, match=re.escape(message)):
        numerical_jacobian(arguments.pop("function"), arguments.pop("x"), **arguments)


@methods
def test_not_finite_names_the_component(method):
    def broken(x):
        return np.array([x[0], np.where(x[1].real > 1, np.nan, x[1])])

    with pytest.raises(InputError, match=r"`function` at index \(1,\) is nan for x; expected finite numbers"):
        numerical_jacobian(broken, [0.0, 2.0], "forward" if method == "central" else method)
    if method != "complex":
        with pytest.raises(InputError, match=r"at index \(1,\) is nan for x moved at index \(1,\)"):
            numerical_jacobian(broken, [0.0, 1.0], method)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: inverse_dynamics(samples.two_link(), x, [0, 0], [0, 0]),
        lambda x: [float(x[0])],
        lambda x: x.astype(float),
        np.abs,
    ],
    ids=("kinegrad", "float", "astype", "abs"),
)
def test_complex_step_needs_a_complex_function(function):
    with pytest.raises(InputError, match=r"complex.*kinegrad's own functions take real numbers only: use its exact"):
        numerical_jacobian(function, X, "complex")


def test_errors_of_the_function_are_its_own():
    def failing(x):
        raise ValueError("out of clay")

    for method in LEAVES:
        with pytest.raises(ValueError, match=r"^out of clay$"):
            numerical_jacobian(failing, X, method)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda x: [[1], [2, 3]], {}, "`function` returned a list of uneven rows; expected one shape"),
        (lambda x: np.sign(x) * 1.7e308, {}, "`function` changes by more than the largest number"),
        (lambda x: np.sign(x) * 1.7e308, {"batched": True}, "`function` changes by more than the largest number"),
        (np.sin, {"step": -np.arange(1.0, 301.0)}, r"`step` is array\(.*\); expected positive finite numbers"),
        (np.sin, {"step": [1.0] * 300, "method": "adaptive"}, r"`step` is \[1.0, .*\]; the adaptive method chooses"),
    ],
)
def test_no_raw_errors_no_warnings_no_long_messages(function, options, message):
    with pytest.raises(InputError, match=message) as error:
        numerical_jacobian(function, np.zeros(300), **options)
    assert len(str(error.value)) < 200
