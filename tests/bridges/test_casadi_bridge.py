"""The CasADi bridge: values and sparse Jacobians are kinegrad's, and IPOPT finds what it should."""

import gc
import re

import numpy as np
import pytest

from kinegrad import (
    InputError,
    Loads,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_hessian,
    samples,
)
from kinegrad.bridges import to_casadi
from tests.conftest import assert_close, random_loads, random_state

casadi = pytest.importorskip("casadi")
CLOSE = 1e-12  # the same kernels
MODEL = samples.puma560()
HUMAN = samples.human43()
FIELDS = ("dtau_dq", "dtau_dv", "dtau_da")
QUIET = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes"}
FIRST_ORDER = QUIET | {"ipopt.hessian_approximation": "limited-memory"}


@pytest.mark.parametrize("model", [MODEL, HUMAN], ids=("puma560", "human43"))
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("states", [1, 3])
def test_values_and_jacobians(model, loaded, states):
    n = model.n
    loads = random_loads(model, 0, (states,)) if loaded else None
    state = random_state(model, 0, (states,))
    columns = [x.T for x in state]
    tau = to_casadi(model, loads=loads, states=states)
    assert (tau.name_in(), tau.name_out(), tau.size_in(0)) == (["q", "v", "a"], ["tau"], (n, states))
    exact = inverse_dynamics_derivatives(model, *state, loads=loads)
    assert_close(tau(*columns).full(), exact.tau.T, CLOSE)
    for jacobian, field in zip(tau.jacobian()(*columns, 0), FIELDS, strict=True):
        assert jacobian.nnz() == states * model.topology.nonzeros
        blocks = jacobian.full().reshape(states, n, states, n)
        assert_close(blocks[range(states), :, range(states)], getattr(exact, field), CLOSE)


def test_chain_rule_through_an_expression():
    q, v, a = random_state(HUMAN, 1)
    x = casadi.MX.sym("x", HUMAN.n)
    loss = casadi.sumsqr(to_casadi(HUMAN)(casadi.sin(x), 2 * x, a)) / 2
    exact = inverse_dynamics_derivatives(HUMAN, np.sin(q), 2 * q, a)
    desired = exact.tau @ (exact.dtau_dq * np.cos(q) + 2 * exact.dtau_dv)
    assert_close(casadi.Function("f", [x], [casadi.gradient(loss, x)])(q).full().ravel(), desired, CLOSE)
    forward = casadi.Function("f", [x], [casadi.jtimes(loss, x, v)])(q)
    assert_close(float(forward), desired @ v, CLOSE)


def test_sparsity_is_seen_through_expressions():
    x = casadi.MX.sym("x", HUMAN.n, 3)
    zero = np.zeros((HUMAN.n, 3))
    jacobian = casadi.jacobian(casadi.vec(to_casadi(HUMAN, states=3)(casadi.sin(x), zero, zero)), casadi.vec(x))
    assert jacobian.nnz() == 3 * HUMAN.topology.nonzeros


def test_constants_may_be_zeros_that_are_not_stored():
    q = random_state(MODEL)[0]
    sparse_zero = casadi.DM(MODEL.n, 1)
    zero = np.zeros(MODEL.n)
    assert_close(to_casadi(MODEL)(q, sparse_zero, 0).full().ravel(), inverse_dynamics(MODEL, q, zero, zero), CLOSE)


def test_ipopt_finds_the_acceleration_of_given_torques():
    q, v, a = random_state(MODEL, 2)
    desired = inverse_dynamics(MODEL, q, v, a)
    x = casadi.MX.sym("x", MODEL.n)
    problem = {"x": x, "f": 0, "g": to_casadi(MODEL)(q, v, x)}
    solver = casadi.nlpsol("solver", "ipopt", problem, FIRST_ORDER)
    solution = solver(x0=np.zeros(MODEL.n), lbg=desired, ubg=desired)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 2  # τ is linear in a: one step of Newton, and one to see that it is there
    assert_close(solution["x"].full().ravel(), a, 1e-8)  # IPOPT's own tolerance


def swing(arm, instants=21, duration=1.0):
    """Swing an arm by a quarter turn from rest to rest, with the least ∫τ²: x, residuals √h τ, constraints."""
    h = duration / (instants - 1)
    x = casadi.MX.sym("x", arm.n * instants)
    q = casadi.reshape(x, arm.n, instants)
    padded = casadi.horzcat(q[:, 0], q, q[:, -1])  # at rest before and after
    v = (padded[:, 2:] - padded[:, :-2]) / (2 * h)
    a = (padded[:, 2:] - 2 * q + padded[:, :-2]) / h**2
    tau = to_casadi(arm, states=instants)(q, v, a)
    ends = casadi.vertcat(q[:, 0], q[:, -1] - np.array([np.pi / 2, 0]))
    return x, np.sqrt(h) * casadi.vec(tau), ends


def test_ipopt_finds_a_motion_of_least_effort():
    x, residuals, ends = swing(samples.two_link(gravity=(0, -9.81, 0)))
    gc.collect()  # CasADi does not keep callbacks alive; the bridge must, with no name left that holds it
    J = casadi.jacobian(residuals, x)
    assert (
        J.nnz() == (3 * 21 - 2) * 2 * 2
    )  # an instant depends on itself and its neighbours, of which the ends have one
    p, scale, multipliers = casadi.MX.sym("p", 0), casadi.MX.sym("s"), casadi.MX.sym("l", 4)
    hessian = casadi.Function("gauss_newton", [x, p, scale, multipliers], [casadi.triu(2 * scale * J.T @ J)])
    effort = casadi.sumsqr(residuals)
    problem = {"x": x, "f": effort, "g": ends}
    solver = casadi.nlpsol("solver", "ipopt", problem, QUIET | {"hess_lag": hessian, "ipopt.tol": 1e-8})
    line = np.linspace([0, 0], [np.pi / 2, 0], 21).ravel()
    solution = solver(x0=line, lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] < 25  # Gauss–Newton gains a digit an iteration: 14 here
    gradient = casadi.Function("gradient", [x], [casadi.gradient(effort, x)])
    inner = gradient(solution["x"]).full().ravel()[2:-2]  # what the ends do not hold
    assert np.abs(inner).max() < 1e-6  # IPOPT's tolerance, scaled back
    straight = casadi.Function("effort", [x], [effort])(line)
    assert float(solution["f"]) < 0.6 * float(straight)


def test_opti():
    arm = samples.two_link(gravity=(0, -9.81, 0))
    opti = casadi.Opti()
    q = opti.variable(2)
    opti.minimize(casadi.sumsqr(to_casadi(arm)(q, 0, 0)))
    opti.set_initial(q, [-1.0, 0.3])
    opti.solver("ipopt", QUIET, {"hessian_approximation": "limited-memory"})
    hanging = opti.solve().value(q)
    assert_close(np.cos([hanging[0], hanging.sum()]), np.zeros(2), 1e-4)  # τ ≈ cos, and τ² < IPOPT's 1e-8


def test_same_arguments_same_function():
    assert to_casadi(MODEL) is to_casadi(samples.puma560())
    assert to_casadi(MODEL) is not to_casadi(MODEL, states=2)
    assert to_casadi(MODEL) is not to_casadi(MODEL, loads=Loads())


@pytest.mark.parametrize("states", [1, 3])
def test_hessians(states):
    """Of a weighted sum of torques, with respect to the whole state at once, and no entry more than there can be."""
    n, state = HUMAN.n, random_state(HUMAN, 0, (states,))
    w = random_state(HUMAN, 1, (states,))[0]
    tau = to_casadi(HUMAN, states=states)
    y = casadi.MX.sym("y", 3 * n * states)
    moved = tau(*casadi.vertsplit(casadi.reshape(y, 3 * n, states), n))
    hessian, _ = casadi.hessian(casadi.dot(casadi.DM(w.T), moved), y)
    assert hessian.nnz() == states * 6 * HUMAN.topology.nonzeros  # qq, vv, and qv, qa twice
    found = casadi.Function("H", [y], [hessian])(np.concatenate(state, axis=1).ravel()).full()
    exact = inverse_dynamics_hessian(HUMAN, *state, w)
    for k in range(states):
        block = found[3 * n * k : 3 * n * (k + 1), 3 * n * k : 3 * n * (k + 1)].reshape(3, n, 3, n)
        for (i, j), field in {(0, 0): "dqdq", (0, 1): "dqdv", (0, 2): "dqda", (1, 1): "dvdv"}.items():
            desired = getattr(exact, f"d2_{field}")[k]
            assert_close(block[i, :, j], desired, CLOSE)
            assert_close(block[j, :, i], desired.T, CLOSE)


def test_ipopt_with_the_exact_hessian():
    """Newton's method needs half the iterations of Gauss–Newton above; quasi-Newton does not get there in 3000."""
    x, residuals, ends = swing(samples.two_link(gravity=(0, -9.81, 0)))
    effort = casadi.sumsqr(residuals)
    solver = casadi.nlpsol("solver", "ipopt", {"x": x, "f": effort, "g": ends}, QUIET | {"ipopt.tol": 1e-8})
    solution = solver(x0=np.linspace([0, 0], [np.pi / 2, 0], 21).ravel(), lbg=0, ubg=0)
    assert solver.stats()["success"]
    assert solver.stats()["iter_count"] <= 10  # 8 here
    gradient = casadi.Function("gradient", [x], [casadi.gradient(effort, x)])
    inner = gradient(solution["x"]).full().ravel()[2:-2]  # what the ends do not hold
    assert np.abs(inner).max() < 1e-6  # IPOPT's tolerance, scaled back


def test_ipopt_with_and_without_the_exact_hessian():
    """A motion of seven instants, which both find: Newton in 7 iterations, limited memory in 151 here."""
    x, residuals, ends = swing(samples.two_link(gravity=(0, -9.81, 0)), instants=7)
    problem = {"x": x, "f": casadi.sumsqr(residuals), "g": ends}
    iterations, found = [], []
    for options in (QUIET, FIRST_ORDER):
        solver = casadi.nlpsol("solver", "ipopt", problem, options | {"ipopt.tol": 1e-8, "ipopt.max_iter": 1000})
        solution = solver(x0=np.linspace([0, 0], [np.pi / 2, 0], 7).ravel(), lbg=0, ubg=0)
        assert solver.stats()["success"]
        iterations.append(solver.stats()["iter_count"])
        found.append(solution["x"].full().ravel())
    assert iterations[0] <= 10
    assert iterations[1] >= 3 * iterations[0]
    assert_close(found[1], found[0], 1e-6)  # 2e-9 here; the effort is flat at its least


def test_third_derivatives_are_refused():
    x = casadi.MX.sym("x", MODEL.n)
    hessian, _ = casadi.hessian(casadi.sum1(to_casadi(MODEL)(x, 0, 0)), x)
    with pytest.raises(RuntimeError, match="Derivatives cannot be calculated for"):
        casadi.jacobian(casadi.sum1(casadi.sum2(hessian)), x)


def test_errors_come_through():
    with pytest.raises(RuntimeError, match=re.escape("`q` at index (0, 0) is nan")):
        to_casadi(MODEL)(np.full(MODEL.n, np.nan), 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 0}, "`states` is 0; expected a whole number of at least 1"),
        ({"states": 2.0}, "`states` is 2.0; expected a whole number"),
        ({"loads": random_loads(MODEL, 0, (3,))}, "`loads` have more states than the 1 of `states`"),
        ({"loads": random_loads(MODEL, 0, (3,)), "states": 2}, "batch shapes do not broadcast"),
        ({"loads": {}}, "`loads` is a dict; expected Loads"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(InputError, match=message):
        to_casadi(MODEL, **options)
