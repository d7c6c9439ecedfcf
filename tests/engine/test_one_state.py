"""One state of plain arrays goes straight to the kernel: the same bits as the long way, the same errors."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, samples
from tests.conftest import random_state, tree

FUNCTIONS = {
    "inverse_dynamics": (kg.inverse_dynamics, 3),
    "lagrange": (lambda *x: kg.inverse_dynamics(*x, method="lagrange"), 3),
    "forward_dynamics": (kg.forward_dynamics, 3),
    "mass_matrix": (kg.mass_matrix, 1),
    "inverse_dynamics_derivatives": (kg.inverse_dynamics_derivatives, 3),
    "lagrange_derivatives": (lambda *x: kg.inverse_dynamics_derivatives(*x, method="lagrange"), 3),
    "forward_dynamics_derivatives": (kg.forward_dynamics_derivatives, 3),
}
functions = pytest.mark.parametrize(("function", "count"), FUNCTIONS.values(), ids=FUNCTIONS.keys())


def arrays(result):
    return [result] if isinstance(result, np.ndarray) else list(vars(result).values())


@functions
@pytest.mark.parametrize("seed", range(5))
def test_the_same_bits_as_the_long_way(function, count, seed):
    model = tree(seed)
    state = random_state(model, seed)[:count]
    before = [x.copy() for x in state]
    short, long = arrays(function(model, *state)), arrays(function(model, *(x.tolist() for x in state)))
    for x, y in zip(short, long, strict=True):
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()
        assert x.flags.writeable
    again = arrays(function(model, *state))
    assert not any(np.shares_memory(x, y) for x, y in zip(short, again, strict=True))
    assert all(np.array_equal(x, y) for x, y in zip(state, before, strict=True))


@functions
def test_the_same_errors(function, count):
    model = tree(1)
    state = list(random_state(model, 1)[:count])
    state[-1][0] = np.nan
    with pytest.raises(InputError, match=r"at index \(0,\) is nan"):
        function(model, *state)
    with pytest.raises(InputError, match="has shape"):
        function(model, *(np.zeros(model.n + 1) for _ in range(count)))
    with pytest.raises(InputError, match="`model` is a str"):
        function("human43", *state)


@pytest.mark.parametrize("function", [kg.forward_dynamics, kg.forward_dynamics_derivatives])
def test_a_joint_that_nothing_resists(function):
    with pytest.raises(SingularError, match=r"nothing resists joint"):
        function(samples.human43(), *random_state(samples.human43(), 1))
