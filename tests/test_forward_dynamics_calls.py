"""Forward dynamics as it is called: batches, threads, `out=`, and what is refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import random_loads, random_state, tree
from tests.test_forward_dynamics import METHODS, WAYS, crane, fields, methods, same_bits, ways


def test_batch_shapes_broadcast():
    """(5, 1) × (1, 7) × one state × (7,) of loads: the same bits as each state alone, whichever argument is it."""
    model = tree(5)
    x = random_state(model, 1, (5, 7))
    force = random_loads(model, 1, (7,)).force
    for k in range(3):
        shapes = [x[0][:, :1], x[1][:1], x[2][0, 0]]
        q, v, tau = shapes[k:] + shapes[:k]
        loads = kg.Loads(force=force)
        by_method = [kg.forward_dynamics(model, q, v, tau, loads=loads, method=m) for m in METHODS]
        result = kg.forward_dynamics_derivatives(model, q, v, tau, loads=loads)
        assert by_method[0].shape == by_method[1].shape == result.a.shape == (5, 7, model.n)
        assert all(y.shape == (5, 7, model.n, model.n) for y in fields(result)[1:])
        full = [np.broadcast_to(y, (5, 7, model.n)) for y in (q, v, tau)]
        for i, j in np.ndindex(5, 7):
            one, load = [y[i, j] for y in full], kg.Loads(force=force[j])
            for method, y in zip(METHODS, by_method, strict=True):
                same_bits(y[i, j], kg.forward_dynamics(model, *one, loads=load, method=method))
            alone = kg.forward_dynamics_derivatives(model, *one, loads=load)
            for y, z in zip(fields(result), fields(alone), strict=True):
                same_bits(y[i, j], z)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
@pytest.mark.parametrize("threads", [1, 3])
def test_no_states_give_no_results(shape, threads):
    model = tree(5)
    n = model.n
    x = np.empty((*shape, n))
    for method in METHODS:
        assert kg.forward_dynamics(model, x, np.zeros(n), x, method=method, threads=threads).shape == (*shape, n)
        assert kg.forward_dynamics(model, np.zeros(n), x, np.zeros(n), method=method).shape == (*shape, n)
    result = kg.forward_dynamics_derivatives(model, x, x, np.zeros(n), threads=threads)
    assert [y.shape for y in fields(result)] == [(*shape, n), *[(*shape, n, n)] * 3]


# --- arguments ----------------------------------------------------------------------------------------------


@methods
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("k", range(3))
def test_out_may_overlap_an_input(small_grain, method, threads, k):
    """An argument in the very memory of the result, and one state further on."""
    model = tree(5)
    state = random_state(model, 1, (11,))
    desired = kg.forward_dynamics(model, *state, method=method)
    for skip in (0, model.n):
        buffer = np.full(desired.size + model.n, np.nan)
        out, given = (buffer[s : s + desired.size].reshape(desired.shape) for s in (0, skip))
        given[...] = state[k]
        arguments = [*state[:k], given, *state[k + 1 :]]
        assert kg.forward_dynamics(model, *arguments, method=method, out=out, threads=threads) is out
        same_bits(out, desired)


@methods
def test_out_of_any_layout(method):
    model = tree(5)
    state = random_state(model, 1, (4,))
    desired = kg.forward_dynamics(model, *state, method=method)
    for out in (
        np.full((4, model.n), np.nan),
        np.full((4, model.n), np.nan, order="F"),
        np.full((8, 2 * model.n), np.nan)[::2, ::2],
        np.full((4, model.n), np.nan)[::-1],
    ):
        assert kg.forward_dynamics(model, *state, method=method, out=out) is out
        assert np.array_equal(out, desired)
    with pytest.raises(InputError, match=rf"`out` is a float64 array of shape \(3, .* of shape \(4, {model.n}\)"):
        kg.forward_dynamics(model, *state, method=method, out=np.empty((3, model.n)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 3])
@ways
def test_not_finite_says_where(small_grain, way, bad, threads):
    """Every argument; in the last state, so that another thread than the first finds it."""
    model = tree(5)
    for k, name in enumerate(("q", "v", "tau")):
        arguments = np.random.default_rng(1).normal(size=(3, 30, model.n))
        arguments[k, 29, 1] = bad
        with pytest.raises(InputError, match=rf"`{name}` at index \(29, 1\) is {bad}; expected finite numbers"):
            way(model, *arguments, threads=threads)
    for name in ("force", "point", "torque"):
        loads = {name: np.zeros((30, model.n, 3))}
        loads[name][29, 1, 2] = bad
        with pytest.raises(InputError, match=rf"`loads\.{name}` at index \(29, 1, 2\) is {bad}"):
            way(model, *np.zeros((3, 30, model.n)), loads=kg.Loads(**loads), threads=threads)


@pytest.mark.parametrize("name", ["aba", "crba", "derivatives"])
def test_overflow_is_no_crash(name):
    """Finite speeds whose squares are not: as with inverse dynamics, an error says so."""
    with pytest.raises(InputError, match=r"the results are not finite: they overflow float64, where `v` has"):
        WAYS[name](samples.two_link(), [0.1, 0.2], [1e200, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("name", ["q", "v", "tau"])
@ways
def test_wrong_shape_is_named(way, name):
    model = tree(5)
    n = model.n
    arguments = dict.fromkeys(("q", "v", "tau"), np.zeros((3, n)))
    message = rf"`{name}` has shape \(3, {n + 1}\); model .* has {n} degrees of freedom, .* must be {n}"
    with pytest.raises(InputError, match=message):
        way(model, *(arguments | {name: np.zeros((3, n + 1))}).values())
    with pytest.raises(InputError, match=rf"`{name}` \(4,\)"):
        way(model, *(arguments | {name: np.zeros((4, n))}).values())


@pytest.mark.parametrize("method", ["spatial", None, ["aba"]])
def test_unknown_method_is_named(method):
    zero = [0, 0]
    with pytest.raises(InputError, match=r"`method` is .*; expected 'aba' or 'crba'"):
        kg.forward_dynamics(samples.two_link(), zero, zero, zero, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_what_out_holds_beforehand_does_not_matter(method):
    """Where results have to be looked at, for large numbers or extreme constants, only what was written is."""
    usual = samples.random_tree(3, seed=1)
    for model, size in ((usual, 1e20), (usual.replace(gravity=[0, 0, 1e20]), 1.0)):
        q, v, tau = random_state(model, 0, (4,))
        wanted = kg.forward_dynamics(model, q, v, size * tau, method=method)
        out = kg.forward_dynamics(model, q, v, size * tau, method=method, out=np.full((4, 3), np.nan))
        assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_numbers_that_are_not_finite_are_told_before_singular_states(small_grain, threads):
    """Wherever they are: the part of the call that finds the one may end it before another finds the other."""
    model = crane()
    q, v, tau = np.zeros((3, 50 * WIDTH, model.n))
    tau[-1, 0] = np.nan
    bare = model.replace(mass=np.zeros(model.n), inertia=np.zeros((model.n, 3, 3)))
    with pytest.raises(InputError, match=r"`tau` at index .* is nan"):
        kg.forward_dynamics(bare, q, v, tau, threads=threads)
