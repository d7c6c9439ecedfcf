"""Derivatives of torques with respect to forces, torques and points of loads."""

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import assert_close, difference, parts, random_loads, random_state, tree
from tests.reference import oracle
from tests.sensitivities import CLOSE, MODELS, far_away, models, same_bits, walk


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


@far_away
def test_load_derivatives_do_not_depend_on_where_the_human_walks(distance):
    human, places, _, loads = walk(distance)
    near, far = (kg.inverse_dynamics_load_derivatives(human, q, loads=loads) for q in places)
    for name in ("dtau_dforce", "dtau_dtorque", "dtau_dpoint"):
        assert difference(getattr(far, name), getattr(near, name)) <= 1e-13, name
