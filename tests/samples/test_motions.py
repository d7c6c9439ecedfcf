"""The synthetic motions: speeds and accelerations are derivatives of positions, and limits are kept."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.samples import human43, puma560, sample_motion


def geared():
    """A floating base with a quaternion, a gear of two joints, and a joint whose range does not contain zero."""
    builder = kg.ModelBuilder("geared")
    body = kg.Inertia.sphere(1.0, 0.1)
    builder.add("base", None, kg.free(quaternion=True), link="trunk", inertia=body)
    builder.add("bent", "trunk", kg.revolute("x"), link="arm", inertia=body, position_limits=(1.0, 2.0))
    builder.add("left", "arm", kg.revolute("y"), link="left", inertia=body)
    builder.add("right", "arm", kg.revolute("y"), link="right", inertia=body)
    builder.couple("grip", {"left": 1.0, "right": -1.0})
    return builder.build()


@pytest.mark.parametrize("model", [human43(), puma560(), geared()], ids=lambda model: model.name)
def test_speeds_and_accelerations_are_derivatives(model):
    h = 1e-4
    t = np.arange(50) / 25
    motion, before, after = (sample_motion(model, t + shift) for shift in (0, -h, h))
    # central differences: h² ω³/6 of 0.5 m or rad is 2e-7
    np.testing.assert_allclose(kg.difference(model, before.q, after.q) / (2 * h), motion.v, rtol=0, atol=1e-6)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), motion.a, rtol=0, atol=1e-5)


def test_limits_are_kept_where_zero_is_beyond_them():
    model = geared()
    bent = sample_motion(model).q[:, model.coordinate_index("bent")]
    assert 1.0 <= bent.min() < bent.max() <= 2.0
    assert np.ptp(bent) > 0.1
