"""Sensitivities of inverse dynamics as they are called: packed, batches, `out=`, and what is refused."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, InverseDynamicsDerivatives, PackedMatrix, samples
from kinegrad._kernels.compiler.width import WIDTH
from tests.conftest import random_loads, random_state, tree
from tests.sensitivities import FIELDS, MATRICES, METHODS, methods, same_bits


def fields(result):
    return [getattr(result, name) for name in FIELDS]


@methods
@pytest.mark.parametrize("batch", [(), (5,), (2, WIDTH + 1), (0,)])
def test_packed_is_dense_bit_for_bit(method, batch):
    for model in (samples.human43(), tree(2), tree(5), tree(7)):  # the last has one joint
        state, loads = random_state(model, 1, batch), random_loads(model, 1, batch)
        dense, packed = (
            kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method, packed=x) for x in (False, True)
        )
        same_bits(packed.tau, dense.tau)
        for name in MATRICES:
            matrix, whole = getattr(packed, name), getattr(dense, name)
            assert isinstance(matrix, PackedMatrix)
            assert matrix.values.shape == (*batch, model.topology.nonzeros)
            same_bits(matrix.values, whole[..., matrix.rows, matrix.cols])
            same_bits(matrix.to_dense(), whole)
            for k in np.ndindex(batch):
                assert np.array_equal(matrix.to_sparse(k).toarray(), whole[k])


def test_one_state_of_a_packed_batch():
    model = tree(2)
    result = kg.inverse_dynamics_derivatives(model, *random_state(model, 1, (4,)), packed=True)
    sparse = result.dtau_dq.to_sparse(-1)
    assert sparse.shape == (model.n, model.n)
    assert np.array_equal(sparse.toarray(), result.dtau_dq.to_dense()[-1])
    with pytest.raises(InputError, match=r"`k` is \(\), which leaves a batch of shape \(4,\); expected one state"):
        result.dtau_dq.to_sparse()


@methods
def test_batch_shapes_broadcast(method):
    """(5, 1) × (1, 7) × one state × (7,) of loads: the same bits as each state alone."""
    model = tree(5)
    q, v, a = random_state(model, 1, (5, 7))
    q, v, a, force = q[:, :1], v[:1], a[0, 0], random_loads(model, 1, (7,)).force
    result = kg.inverse_dynamics_derivatives(model, q, v, a, loads=kg.Loads(force=force), method=method)
    assert result.tau.shape == (5, 7, model.n)
    assert all(getattr(result, name).shape == (5, 7, model.n, model.n) for name in MATRICES)
    w = random_state(model, 2, (5, 1))[0]
    change = kg.inverse_dynamics_jvp(model, q, v, a, w, a, v, loads=kg.Loads(force=force))
    gradient = kg.inverse_dynamics_vjp(model, q, v, a, w, loads=kg.Loads(force=force))
    by_load = kg.inverse_dynamics_load_derivatives(model, q, loads=kg.Loads(force=force))
    for i, j in np.ndindex(5, 7):
        one, load = (q[i, 0], v[0, j], a), kg.Loads(force=force[j])
        alone = kg.inverse_dynamics_derivatives(model, *one, loads=load, method=method)
        for x, y in zip(fields(result), fields(alone), strict=True):
            same_bits(x[i, j], y)
        same_bits(change[i, j], kg.inverse_dynamics_jvp(model, *one, w[i, 0], a, v[0, j], loads=load))
        same_bits(gradient.dq[i, j], kg.inverse_dynamics_vjp(model, *one, w[i, 0], loads=load).dq)
        same_bits(
            by_load.dtau_dpoint[i, j], kg.inverse_dynamics_load_derivatives(model, q[i, 0], loads=load).dtau_dpoint
        )


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
@pytest.mark.parametrize("threads", [1, 3])
def test_no_states_give_no_results(shape, threads):
    model = tree(5)
    n, options = model.n, {"threads": threads}
    x = np.empty((*shape, n))
    for method in METHODS:
        result = kg.inverse_dynamics_derivatives(model, x, np.zeros(n), x, method=method, **options)
        assert [y.shape for y in fields(result)] == [(*shape, n), *[(*shape, n, n)] * 3]
    packed = kg.inverse_dynamics_derivatives(model, x, x, x, packed=True, **options)
    assert packed.dtau_dv.to_dense().shape == (*shape, n, n)
    assert kg.inverse_dynamics_jvp(model, x, x, x, x, x, x, **options).shape == (*shape, n)
    assert kg.inverse_dynamics_vjp(model, x, x, x, x, **options).dv.shape == (*shape, n)
    assert kg.inverse_dynamics_load_derivatives(model, x, **options).dtau_dforce.shape == (*shape, n, n, 3)


def empty_out(model, batch, packed=False, new=lambda shape: np.full(shape, np.nan)):
    core = (model.topology.nonzeros,) if packed else (model.n, model.n)
    return InverseDynamicsDerivatives(new((*batch, model.n)), *(new(batch + core) for _ in range(3)))


@methods
@pytest.mark.parametrize("packed", [False, True])
def test_out_is_filled_and_returned(method, packed):
    """Every entry, those that topology makes zero too; packed, in bare arrays or in PackedMatrix."""
    model = tree(5)
    state = random_state(model, 1, (4,))
    options = {"method": method, "packed": packed}
    desired = kg.inverse_dynamics_derivatives(model, *state, **options)
    out = empty_out(model, (4,), packed)
    assert kg.inverse_dynamics_derivatives(model, *state, out=out, **options) is out
    for x, y in zip(fields(out), fields(desired), strict=True):
        same_bits(x, y.values if isinstance(y, PackedMatrix) else y)
    for x in fields(desired):
        (x.values if isinstance(x, PackedMatrix) else x).fill(np.nan)
    assert kg.inverse_dynamics_derivatives(model, *state, out=desired, **options) is desired
    for x, y in zip(fields(out), fields(desired), strict=True):
        same_bits(x, y.values if isinstance(y, PackedMatrix) else y)


LAYOUTS = {
    "Fortran order": lambda shape: np.full(shape, np.nan, order="F"),
    "every second": lambda shape: np.full([2 * k for k in shape], np.nan)[tuple(slice(None, None, 2) for _ in shape)],
    "reversed": lambda shape: np.full(shape, np.nan)[::-1],
}


@pytest.mark.parametrize("new", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_out_of_any_layout(new):
    model = tree(5)
    state = random_state(model, 1, (4,))
    out = empty_out(model, (4,), new=new)
    kg.inverse_dynamics_derivatives(model, *state, out=out)
    for x, y in zip(fields(out), fields(kg.inverse_dynamics_derivatives(model, *state)), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", FIELDS)
def test_out_may_overlap_an_input(small_grain, name, threads):
    """q in the very memory of a result, at its beginning and one state further on."""
    model = tree(5)
    q, v, a = random_state(model, 1, (11,))
    desired = kg.inverse_dynamics_derivatives(model, q, v, a)
    for skip in (0, model.n):
        out = empty_out(model, (11,))
        # one state more than the result has
        buffer = np.full(getattr(out, name).size + model.n, np.nan)
        shape = getattr(out, name).shape
        overlapping = buffer[: getattr(out, name).size].reshape(shape)
        q_there = buffer[skip : skip + q.size].reshape(q.shape)
        q_there[...] = q
        out = InverseDynamicsDerivatives(**(vars(out) | {name: overlapping}))
        kg.inverse_dynamics_derivatives(model, q_there, v, a, out=out, threads=threads)
        for x, y in zip(fields(out), fields(desired), strict=True):
            same_bits(x, y)


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float32), "float32 array of shape .*; expected a float64 array of shape"),
        (lambda x: x[:-1].copy(), r"float64 array of shape \(3, .*; expected a float64 array of shape \(4, "),
        (lambda x: x[0].copy(), r"float64 array of shape .*; expected a float64 array of shape \(4, "),
        (np.ndarray.tolist, "list; expected a float64 array"),
        (read_only, "read-only; expected a writable array"),
    ],
)
def test_out_that_cannot_be_filled(name, change, message):
    model = tree(5)
    out = empty_out(model, (4,))
    out = InverseDynamicsDerivatives(**(vars(out) | {name: change(getattr(out, name))}))
    with pytest.raises(InputError, match=rf"`out\.{name}` is (a )?{message}"):
        kg.inverse_dynamics_derivatives(model, *random_state(model, 1, (4,)), out=out)


@pytest.mark.parametrize("out", [np.empty((4, 3)), (1, 2, 3, 4), {}, "out"])
def test_out_of_another_kind(out):
    model = tree(5)
    message = rf"`out` is a {type(out).__name__}; expected an InverseDynamicsDerivatives of arrays"
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_derivatives(model, *random_state(model), out=out)


def test_dense_out_for_packed_results_and_the_other_way_round():
    model = tree(5)
    state, n, k = random_state(model, 1, (4,)), model.n, model.topology.nonzeros
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {n}, {n}\); expected .* \(4, {k}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=empty_out(model, (4,)), packed=True)
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {k}\); expected .* \(4, {n}, {n}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=empty_out(model, (4,), packed=True))
    ready = kg.inverse_dynamics_derivatives(model, *state, packed=True)
    with pytest.raises(InputError, match=rf"`out\.dtau_dq` .* \(4, {k}\); expected .* \(4, {n}, {n}\)"):
        kg.inverse_dynamics_derivatives(model, *state, out=ready)


@pytest.mark.parametrize("method", ["newton", "Spatial", "", None, 0])
def test_unknown_method_is_named(method):
    arm, zero = samples.two_link(), [0, 0]
    message = rf"`method` is {method!r}; expected 'spatial' or 'lagrange'"
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_derivatives(arm, zero, zero, zero, method=method)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("threads", [1, 3])
def test_not_finite_says_where(small_grain, bad, threads):
    """Every argument of every function; the last state, so that another thread than the first finds it."""
    model = tree(5)
    functions = {
        kg.inverse_dynamics_derivatives: ("q", "v", "a"),
        lambda *x, **o: kg.inverse_dynamics_derivatives(*x, method="lagrange", **o): ("q", "v", "a"),
        kg.inverse_dynamics_jvp: ("q", "v", "a", "dq", "dv", "da"),
        kg.inverse_dynamics_vjp: ("q", "v", "a", "w"),
        kg.inverse_dynamics_load_derivatives: ("q",),
    }
    for function, names in functions.items():
        for k, name in enumerate(names):
            arguments = np.random.default_rng(1).normal(size=(len(names), 30, model.n))
            arguments[k, 29, 1] = bad
            with pytest.raises(InputError, match=rf"`{name}` at index \(29, 1\) is {bad}; expected finite numbers"):
                function(model, *arguments, threads=threads)
        # ∂τ/∂(loads) does not depend on torques, and does not look at them
        for name in ("force", "point", "torque")[: 3 if len(names) > 1 else 2]:
            arguments = np.zeros((len(names), 30, model.n))
            loads = {name: np.zeros((30, model.n, 3))}
            loads[name][29, 1, 2] = bad
            with pytest.raises(InputError, match=rf"`loads\.{name}` at index \(29, 1, 2\) is {bad}"):
                function(model, *arguments, loads=kg.Loads(**loads), threads=threads)


@pytest.mark.parametrize("name", ["q", "v", "a", "dq", "dv", "da"])
def test_wrong_shape_is_named(name):
    model = tree(5)
    n = model.n
    arguments = dict.fromkeys(("q", "v", "a", "dq", "dv", "da"), np.zeros((3, n)))
    message = rf"`{name}` has shape \(3, {n + 1}\); model .* has {n} degrees of freedom, .* must be {n}"
    wrong = arguments | {name: np.zeros((3, n + 1))}
    with pytest.raises(InputError, match=message):
        kg.inverse_dynamics_jvp(model, **wrong)
    with pytest.raises(InputError, match=rf"`{name}` \(4,\)"):
        kg.inverse_dynamics_jvp(model, **arguments | {name: np.zeros((4, n))})
