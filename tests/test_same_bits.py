"""The same numbers give the same bits: anywhere in a batch, on any number of threads, whatever was before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import samples
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import parts, random_loads, random_state, tree


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.tobytes() == y.tobytes()


def inverse(model, q, v, a, loads, threads=None):
    """One row of all that inverse dynamics gives of each state."""
    options = {"loads": loads, "threads": threads}
    found = []
    for method in ("spatial", "lagrange"):
        found += vars(kg.inverse_dynamics_derivatives(model, q, v, a, method=method, **options)).values()
    packed = kg.inverse_dynamics_derivatives(model, q, v, a, packed=True, **options)
    found += [getattr(packed, name).values for name in ("dtau_dq", "dtau_dv", "dtau_da")]
    found.append(kg.inverse_dynamics_jvp(model, q, v, a, a, q, v, **options))
    found += vars(kg.inverse_dynamics_vjp(model, q, v, a, a, **options)).values()
    found += vars(kg.inverse_dynamics_load_derivatives(model, q, **options)).values()
    found += vars(kg.inverse_dynamics_hessian(model, q, v, a, a, **options)).values()
    found += vars(kg.inverse_dynamics_second_order(model, q, v, a, a, **options)).values()
    for method in ("spatial", "dual"):
        found += vars(kg.inverse_dynamics_hvp(model, q, v, a, a, q, a, v, method=method, **options)).values()
    return np.concatenate([x.reshape(len(q), -1) for x in found], axis=1)


def forward(model, q, v, tau, loads, threads=None):
    """And of forward dynamics."""
    options = {"loads": loads, "threads": threads}
    found = [kg.forward_dynamics(model, q, v, tau, method=method, **options) for method in ("aba", "crba")]
    found += vars(kg.forward_dynamics_derivatives(model, q, v, tau, **options)).values()
    return np.concatenate([x.reshape(len(q), -1) for x in found], axis=1)


both = pytest.mark.parametrize("everything", [inverse, forward])


@both
@pytest.mark.parametrize("size", [1, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 1, 23])
def test_the_place_in_a_batch_does_not_matter(everything, size):
    model = tree(5)
    state, loads = np.array(random_state(model, 1, (41,))), random_loads(model, 1, (41,))
    whole = everything(model, *state, loads)
    for start in range(0, 42 - size, 7):
        part = slice(start, start + size)
        some = kg.Loads(*(x[part] for x in parts(loads)))
        same_bits(everything(model, *state[:, part], some), whole[part])


@both
@pytest.mark.parametrize("threads", [2, 3, 50])
def test_the_number_of_threads_does_not_matter(small_grain, everything, threads):
    model = tree(9)
    state, loads = random_state(model, 1, (97,)), random_loads(model, 1, (97,))
    same_bits(everything(model, *state, loads, threads), everything(model, *state, loads, 1))


@both
def test_calls_from_many_threads_with_two_models(small_grain, everything):
    """Scratch memory is each thread's own, and what one model left there does not matter to another."""
    cases = []
    for model in (tree(9), samples.spatial_chain(5)):
        state, loads = random_state(model, 2, (19,)), random_loads(model, 2, (19,))
        cases.append(((model, *state, loads, 2), everything(model, *state, loads, 1)))

    def call(k):
        arguments, wanted = cases[k % 2]
        same_bits(everything(*arguments), wanted)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(24)))


@both
def test_stale_scratch_does_not_matter(everything):
    """What another model, or NaN, left there; more slots than this model needs, or fewer."""
    model = tree(5)
    state, loads = random_state(model, 1, (WIDTH + 1,)), random_loads(model, 1, (WIDTH + 1,))
    before = everything(model, *state, loads)
    forward(tree(9), *random_state(tree(9), 2, (3,)), None)
    same_bits(everything(model, *state, loads), before)
    engine.threads._local.buffer[...] = np.nan
    same_bits(everything(model, *state, loads), before)


@both
def test_arguments_are_left_as_they_are(everything):
    model = tree(5)
    state, loads = random_state(model, 1, (WIDTH + 1,)), random_loads(model, 1, (WIDTH + 1,))
    given = [*state, *parts(loads)]
    before = [x.tobytes() for x in given]
    everything(model, *state, loads)
    assert [x.tobytes() for x in given] == before
