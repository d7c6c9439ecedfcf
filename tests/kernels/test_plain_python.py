"""The kernels as plain Python (NUMBA_DISABLE_JIT=1): the same numbers, and complex-step derivatives."""

from pathlib import Path

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.dynamics import METHODS
from tests.kernels.child import child, output
from tests.kernels.everything import everything, models

EVERYTHING = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kinegrad._kernels import rnea
from kinegrad._kernels.compiler import jit
from tests.kernels.everything import everything, models

assert not jit.JIT and not hasattr(rnea.rnea, "py_func")
results = [everything(model, 3) for model in models()]
np.savez(sys.argv[2], **{f"{i} {name}": x for i, result in enumerate(results) for name, x in result.items()})
"""

# Each kernel's output with q + ih e_j (or v, or a) in place of q, over h, for every j.
COMPLEX_STEP = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from kinegrad import _engine as engine
from kinegrad._kernels import crba, energy, kinematics, lagrange, rnea
from kinegrad._kernels.compiler.width import WIDTH
from tests.kernels.everything import models

h = 1e-30
results = {}
for number, model in enumerate(models()):
    n, states = model.n, 3
    rng = np.random.default_rng(6)
    q, v, a = rng.normal(size=(3, states, n))
    loads = rng.normal(size=(3, states, 3 * n))
    m = engine.mechanism(model)

    def outputs(q, v, a):
        scratch = lambda kernels: np.full(((n + 1) * kernels.N, WIDTH), np.nan, complex)
        new = lambda columns: np.zeros((states, columns), complex)
        tau, tau_lagrange, M, sums, T = new(n), new(n), new(n * n), new(energy.COLUMNS), new(16 * n)
        fields = [new(3 * n) for _ in range(4)]
        rnea.rnea(m, q, v, a, *loads, tau, scratch(rnea), 0, states)
        lagrange.lagrange(m, q, v, a, *loads, tau_lagrange, scratch(lagrange), 0, states)
        crba.crba(m, q, M, scratch(crba), 0, states)
        energy.energies(m, q, v, sums, scratch(energy), 0, states)
        kinematics.motion(m, q, v, a, T, *fields, scratch(kinematics), 0, states)
        return np.concatenate([tau, tau_lagrange, M, sums, T, *fields], axis=1)

    for k, name in enumerate("qva"):
        for j in range(n):
            x = [q.astype(complex), v.astype(complex), a.astype(complex)]
            x[k][:, j] += 1j * h
            results[f"{number} {name} {j}"] = outputs(*x).imag / h
np.savez(sys.argv[2], **results)
"""

ROOT = Path(__file__).parents[2]


def plain_python(script, folder):
    output(child(script, ROOT, folder / "results.npz", NUMBA_DISABLE_JIT="1"))
    return np.load(folder / "results.npz")


@pytest.mark.slow
def test_plain_python_computes_the_same(tmp_path):
    interpreted = plain_python(EVERYTHING, tmp_path)
    compiled = {f"{i} {k}": x for i, model in enumerate(models()) for k, x in everything(model, 3).items()}
    assert set(interpreted) == set(compiled)
    for name, x in compiled.items():
        # contraction and order of summation differ: a few roundings of the largest term
        size = np.abs(x).max()
        np.testing.assert_allclose(interpreted[name], x, rtol=1e-13, atol=1e-13 * size, err_msg=name)


def test_the_source_is_complex_step_differentiable(tmp_path):
    """Imaginary parts of kernels called on complex arrays, against central differences."""
    derivatives = plain_python(COMPLEX_STEP, tmp_path)
    for number, model in enumerate(models()):
        n, states = model.n, 3
        rng = np.random.default_rng(6)
        state = rng.normal(size=(3, states, n))
        force, point, torque = rng.normal(size=(3, states, 3 * n)).reshape(3, states, n, 3)
        loads = kg.Loads(force, point, torque)

        def outputs(q, v, a, model=model, loads=loads):
            kinematics, momentum = kg.forward_kinematics(model, q, v, a), kg.momentum(model, q, v)
            parts = [kg.inverse_dynamics(model, q, v, a, loads=loads, method=m) for m in METHODS]
            parts += [kg.mass_matrix(model, q), kg.kinetic_energy(model, q, v), kg.potential_energy(model, q)]
            parts += [kg.center_of_mass(model, q), momentum.linear, momentum.angular, kinematics.transform]
            parts += [kinematics.linear_velocity, kinematics.angular_velocity]
            parts += [kinematics.linear_acceleration, kinematics.angular_acceleration]
            return np.concatenate([x.reshape(len(q), -1) for x in parts], axis=1)

        h = 1e-5  # truncation h² and rounding ε/h are both about 1e-10 of the largest term
        for k, name in enumerate("qva"):
            for j in range(n):
                step = np.zeros((3, states, n))
                step[k, :, j] = h
                central = (outputs(*(state + step)) - outputs(*(state - step))) / (2 * h)
                exact = derivatives[f"{number} {name} {j}"]
                size = np.abs(outputs(*state)).max()
                np.testing.assert_allclose(exact, central, rtol=1e-6, atol=1e-8 * size, err_msg=f"{name} {j}")
                assert np.abs(exact).max() > 0


SINGULAR_AND_SLOPES = """
import warnings
import numpy as np
import kinegrad as kg

warnings.simplefilter("error")
cart = kg.samples.cart_pendulum()
try:
    kg.hybrid_dynamics(kg.samples.human43(), *np.zeros((4, 43)), prescribed=["left_knee"])
except kg.SingularError as error:
    print("nothing resists" in str(error))
da = np.array([[0.1, 1 / 3], [0.0, 0.0]])
change = kg.hybrid_dynamics_design_derivatives(
    kg.Design(cart, ["cart.mass", "rod.mass"]), *np.ones((4, 2)), prescribed=["track"], da_dp=da
)
print(np.array_equal(change.da_dp[0], da[0]))
"""


def test_plain_python_is_as_quiet_and_as_exact_as_compiled_code():
    """No warnings of divisions that a status tells of; slopes that are handed through keep their bits."""
    assert output(child(SINGULAR_AND_SLOPES, NUMBA_DISABLE_JIT="1")) == "True\nTrue\n"
