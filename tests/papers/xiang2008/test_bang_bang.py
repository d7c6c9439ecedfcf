"""The least time without splines."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.papers.xiang2008.bang_bang import bang_bang


def test_the_switched_torques_bring_the_arm_there():
    """By another integrator: fixed steps between switches, forward dynamics by the kernels."""
    found = bang_bang()
    assert found.final_time == pytest.approx(0.3919, abs=5e-5)
    assert found.residual < 1e-10
    arm = kg.samples.two_link(gravity=(0, 0, 0))
    q, v, tau, time = np.array([0.0, -2.0]), np.zeros(2), np.array([10.0, -10.0]), 0.0
    switches = sorted([(found.shoulder, 0), (found.elbow[0], 1), (found.elbow[1], 1), (found.final_time, None)],
                      key=lambda pair: pair[0])  # fmt: skip
    for until, joint in switches:
        h = (until - time) / 80
        for _ in range(80):  # Runge and Kutta
            k1 = kg.forward_dynamics(arm, q, v, tau)
            k2 = kg.forward_dynamics(arm, q + h / 2 * v, v + h / 2 * k1, tau)
            k3 = kg.forward_dynamics(arm, q + h / 2 * v + h**2 / 4 * k1, v + h / 2 * k2, tau)
            k4 = kg.forward_dynamics(arm, q + h * v + h**2 / 2 * k2, v + h * k3, tau)
            q, v = q + h * v + h**2 / 6 * (k1 + k2 + k3), v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        time = until
        if joint is not None:
            tau[joint] *= -1
    np.testing.assert_allclose(q, [1, -1], atol=1e-6)
    np.testing.assert_allclose(v, 0, atol=1e-6)
