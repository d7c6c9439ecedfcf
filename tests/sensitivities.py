"""Models, states and comparisons that tests of the sensitivities of inverse dynamics share."""

import numpy as np
import pytest

from kinegrad import samples
from tests.conftest import random_loads, random_state

# Sums of some hundred terms, each right to a few 1e-16 of the largest; 3e-15 is the worst seen.  1e-12 leaves room for
# other processors and longer chains, and is still nine digits below a wrong term.
CLOSE = 1e-12
METHODS = ("spatial", "lagrange")
MATRICES = ("dtau_dq", "dtau_dv", "dtau_da")
FIELDS = ("tau", *MATRICES)
MODELS = {
    **{name: make() for name, make in samples.SAMPLES.items()},
    "multi_pendulum(40)": samples.multi_pendulum(40),
    "spatial_chain(3)": samples.spatial_chain(3),
    "spatial_chain(24)": samples.spatial_chain(24),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
methods = pytest.mark.parametrize("method", METHODS)


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


# Taken about the world's origin, moments of inertia are x² times larger at x metres, and derivatives with them:
# nothing would be left at 1000 km.  About a point of the mechanism, nothing is lost.
far_away = pytest.mark.parametrize("distance", [1e3, 1e6])


def walk(distance):
    """A human's state near the origin and far away, and loads."""
    human = samples.human43()
    q, v, a = random_state(human, 5)
    far = q.copy()
    far[:3] += np.array([1.0001, -2.0002, 3.0003]) * distance  # pelvis.tz, ty, tx
    return human, (q, far), (v, a), random_loads(human, 5)
