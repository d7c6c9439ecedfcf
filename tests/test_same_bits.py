"""The same numbers give the same bits: anywhere in a batch, on any number of threads, whatever was before."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import _engine as engine
from kinegrad import samples
from kinegrad._kernels.compiler.width import NARROW, WIDTH
from tests.conftest import parts, random_loads, random_state, tree
from tests.kernels.everything import everything as all_functions
from tests.kernels.everything import models


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
@pytest.mark.parametrize("size", sorted({1, NARROW, NARROW + 1, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 1, 23}))
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
    for buffer in (engine.scratch(1), engine.threads.few(1)):
        buffer[...] = np.nan
    same_bits(everything(model, *state, loads), before)


@both
def test_arguments_are_left_as_they_are(everything):
    model = tree(5)
    state, loads = random_state(model, 1, (WIDTH + 1,)), random_loads(model, 1, (WIDTH + 1,))
    given = [*state, *parts(loads)]
    before = [x.tobytes() for x in given]
    everything(model, *state, loads)
    assert [x.tobytes() for x in given] == before


def test_one_state_few_and_many():
    """Calls of few states have kernels of their own where registers hold more than four: 20 trees, each state alone,
    as an array (n,) and as a batch, three at a time, and all at once."""
    for seed in range(20):
        model = tree(seed)
        model = model.replace(armature=model.armature + 0.5)
        q, v, a = random_state(model, seed, (2 * WIDTH + 1,))

        def found(k, model=model, q=q, v=v, a=a):
            state = q[k], v[k], a[k]
            return [
                kg.inverse_dynamics(model, *state),
                kg.mass_matrix(model, q[k]),
                kg.forward_dynamics(model, *state),
                *vars(kg.inverse_dynamics_derivatives(model, *state)).values(),
                *vars(kg.forward_dynamics_derivatives(model, *state)).values(),
            ]

        whole = found(slice(None))
        for k in range(0, len(q), 3):
            for x, y in zip(found(k), whole, strict=True):
                same_bits(x, y[k])
            for x, y in zip(found(slice(k, k + 3)), whole, strict=True):
                same_bits(x, y[k : k + 3])


@pytest.mark.slow
@pytest.mark.skipif(NARROW == WIDTH, reason="registers hold four states at most: there is one kernel of each")
@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_few_states_have_the_bits_of_many_in_every_function(model, monkeypatch):
    """All that everything.py computes, by both kernels of each function."""
    few = all_functions(model, NARROW - 1)
    ran = []

    def wide(kernel, slots, states):
        ran.append(kernel)
        return kernel, engine.scratch(slots)

    monkeypatch.setattr(engine.threads, "fitting", wide)
    many = all_functions(model, NARROW - 1)
    assert len(set(ran)) > 20
    assert few.keys() == many.keys()
    for name, x in few.items():
        assert x.tobytes() == many[name].tobytes(), name
