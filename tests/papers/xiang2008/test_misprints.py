"""Formulas of [xiang2008] as printed and put right, against complex steps and the kernels."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.papers.xiang2008.closed_form import ClosedForm
from kinegrad.papers.xiang2008.misprints import MISPRINTS

H = 1e-30  # of the complex step
STATE = np.array([[0.3, -1.1], [2.0, -3.0], [5.0, 4.0]])
G, F = 9.8062, 10.0


def turn(angle, order=0):
    """T of (43) and its derivatives; the angle may be complex."""
    c, s = np.cos(angle + order * np.pi / 2), np.sin(angle + order * np.pi / 2)
    rest = float(order == 0)
    return np.array([[c, -s, 0, 0.4 * c], [s, c, 0, 0.4 * s], [0, 0, rest, 0], [0, 0, 0, rest]])


def recursions(q, v, a):
    """A, B, C of (12) to (14) of both links."""
    A, B, C = [np.eye(4)], [np.zeros((4, 4))], [np.zeros((4, 4))]
    for j in range(2):
        T, dT, ddT = (turn(q[j], k) for k in range(3))
        C.append(C[-1] @ T + 2 * B[-1] @ dT * v[j] + A[-1] @ ddT * v[j] ** 2 + A[-1] @ dT * a[j])
        B.append(B[-1] @ T + A[-1] @ dT * v[j])
        A.append(A[-1] @ T)
    return A[1:], B[1:], C[1:]


def stepped(which, k):
    """∂(A, B, C)/∂(q, v or a)_k by complex step."""
    state = STATE.astype(complex)
    state[which, k] += 1j * H
    return [[np.imag(x) / H for x in kind] for kind in recursions(*state)]


def test_23_and_26_have_the_derivative_by_q():
    A, _, _ = recursions(*STATE)
    before = [np.eye(4), A[0]]
    for i in range(2):
        right = before[i] @ turn(STATE[0, i], 1)
        assert np.abs(right).max() > 0.1  # and not zero, as ∂T/∂q̇ is
        np.testing.assert_allclose(stepped(1, i)[1][i], right, atol=1e-14)  # (23)
        np.testing.assert_allclose(stepped(2, i)[2][i], right, atol=1e-14)  # (26)


def test_15_has_the_point_itself():
    """Speed and acceleration of the tip are B r and C r with the constant r, not with its vanishing derivatives."""
    _, B, C = recursions(*STATE)
    arm = kg.samples.two_link()
    tip = kg.point_motion(arm, *STATE, link="forearm", point=[0, 0, 0])
    np.testing.assert_allclose((B[1] @ [0, 0, 0, 1])[:3], tip.velocity, atol=1e-14)
    np.testing.assert_allclose((C[1] @ [0, 0, 0, 1])[:3], tip.acceleration, atol=1e-13)
    assert np.linalg.norm(tip.velocity) > 0.1


def test_6_has_minus_signs_and_9_all_joints():
    arm = kg.samples.two_link()
    loads = kg.Loads(force={"forearm": [0, -F, 0]})
    tau = kg.inverse_dynamics(arm, *STATE, loads=loads)
    still = kg.inverse_dynamics(arm.replace(gravity=(0, 0, 0)), *STATE)
    down, load = np.array([0, -G, 0]), np.array([0, -F, 0])
    centres = [kg.jacobian(arm, STATE[0], link=name, point=[-0.2, 0, 0]).linear for name in arm.link_names]
    tip = kg.jacobian(arm, STATE[0], link="forearm", point=[0, 0, 0]).linear
    weights = sum(0.5 * J.T @ down for J in centres) + tip.T @ load
    np.testing.assert_allclose(still - weights, tau, atol=1e-13)
    assert np.abs(still + weights - tau).max() > 1  # as printed
    own = np.array([0.5 * (J.T @ down)[i] for i, J in enumerate(centres)])  # ∂/∂qᵢ of link i alone
    assert np.abs(own - sum(0.5 * J.T @ down for J in centres)).max() > 0.1


def test_61_75_and_76_name_the_other_derivative():
    closed = ClosedForm(gravity=G, load=F)
    dq, _, da = closed.derivatives(*STATE)
    assert dq[1, 1] != pytest.approx(da[1, 1])  # (61) is (78), not (65)
    assert dq[0, 0] != pytest.approx(da[0, 0])
    assert dq[0, 1] != pytest.approx(da[0, 1])


def test_closed_form_is_that_of_the_kernels_and_its_derivatives_those_of_complex_steps():
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 50, 2))
    closed = ClosedForm(gravity=G, load=F)
    arm, loads = kg.samples.two_link(), kg.Loads(force={"forearm": [0, -F, 0]})
    for method in ("spatial", "lagrange"):
        found = kg.inverse_dynamics_derivatives(arm, q, v, a, loads=loads, method=method)
        np.testing.assert_allclose(found.tau, closed.torques(q, v, a), atol=1e-12)
        for ours, theirs in zip(
            (found.dtau_dq, found.dtau_dv, found.dtau_da), closed.derivatives(q, v, a), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
    for which, slope in enumerate(closed.derivatives(q, v, a)):
        for k in range(2):
            state = np.array([q, v, a], dtype=complex)
            state[which, :, k] += 1j * H
            np.testing.assert_allclose(np.imag(closed.torques(*state)) / H, slope[..., k], atol=1e-13)


def test_every_marked_misprint_is_evaluated_above():
    tested = [each.place for each in MISPRINTS if each.tested]
    assert len(tested) == 7
