"""One state of plain arrays goes straight to the kernel: the same bits as the long way, the same errors."""

import itertools
import weakref

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, SingularError, samples
from kinegrad import _engine as engine
from kinegrad._engine.memory import certainly_apart
from tests.conftest import random_state, tree
from tests.mixed import mixed_state, mixed_tree

FUNCTIONS = {
    "inverse_dynamics": (kg.inverse_dynamics, 3),
    "lagrange": (lambda *x: kg.inverse_dynamics(*x, method="lagrange"), 3),
    "forward_dynamics": (kg.forward_dynamics, 3),
    "mass_matrix": (kg.mass_matrix, 1),
    "inverse_dynamics_derivatives": (kg.inverse_dynamics_derivatives, 3),
    "lagrange_derivatives": (lambda *x: kg.inverse_dynamics_derivatives(*x, method="lagrange"), 3),
    "forward_dynamics_derivatives": (kg.forward_dynamics_derivatives, 3),
    "packed": (lambda *x: kg.inverse_dynamics_derivatives(*x, packed=True).dtau_dq.values, 3),
    "jvp": (lambda model, q, v, a: kg.inverse_dynamics_jvp(model, q, v, a, a, q, v), 3),
    "vjp": (lambda model, q, v, a: kg.inverse_dynamics_vjp(model, q, v, a, v), 3),
    "regressor": (kg.inverse_dynamics_regressor, 3),
    "forward_kinematics": (lambda model, q: kg.forward_kinematics(model, q).transform, 1),
    "kinetic_energy": (kg.kinetic_energy, 2),
    "potential_energy": (kg.potential_energy, 1),
}
FLAT = {name: x for name, x in FUNCTIONS.items() if name != "jvp"}  # where q does not stand for a direction, too
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


# --- `out` of one state -----------------------------------------------------------------------------------------


def out_like(model, *, of=np.empty):
    n = model.n
    return kg.InverseDynamicsDerivatives(of(n), *(of((n, n)) for _ in range(3)))


def through(memory):
    """An array of the same memory whose owner is no array."""
    return np.frombuffer(memoryview(memory), dtype=float).reshape(memory.shape)


@pytest.mark.parametrize("method", ["spatial", "lagrange"])
@pytest.mark.parametrize("of", [np.empty, lambda shape: through(np.empty(shape))], ids=["arrays", "buffers"])
def test_out_is_filled_with_the_same_bits(method, of):
    model = tree(3)
    state = random_state(model, 3)
    expected = kg.inverse_dynamics_derivatives(model, *state, method=method)
    for out in (out_like(model, of=of), kg.inverse_dynamics_derivatives(model, *random_state(model, 4))):
        fields = arrays(out)
        assert kg.inverse_dynamics_derivatives(model, *state, method=method, out=out) is out
        assert all(x is y for x, y in zip(arrays(out), fields, strict=True))
        assert [x.tobytes() for x in arrays(out)] == [x.tobytes() for x in arrays(expected)]


@pytest.mark.parametrize("field", range(4))
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("view", [lambda x: x, through], ids=["array", "buffer"])
def test_out_may_hold_the_state(field, which, view):
    """All is read before anything is written there, and whoever owns the memory."""
    model = tree(3)
    state = list(random_state(model, 3))
    expected = [x.tobytes() for x in arrays(kg.inverse_dynamics_derivatives(model, *state))]
    out = out_like(model, of=np.zeros)
    room = view(arrays(out)[field].reshape(-1)[: model.n])
    room[...] = state[which]
    state[which] = room
    kg.inverse_dynamics_derivatives(model, *state, out=out)
    assert [x.tobytes() for x in arrays(out)] == expected


def test_out_that_cannot_be_filled():
    model = tree(3)
    state, n = random_state(model, 3), model.n
    one, good = np.empty((n, n)), out_like(model)
    for other in (one, one.T, through(one)):
        out = kg.InverseDynamicsDerivatives(np.empty(n), one, np.empty((n, n)), other)
        with pytest.raises(InputError, match=r"`out.dtau_dq` and `out.dtau_da` share memory"):
            kg.inverse_dynamics_derivatives(model, *state, out=out)
    frozen = np.empty((n, n))
    frozen.flags.writeable = False
    with pytest.raises(InputError, match=r"`out.dtau_dq` is read-only"):
        kg.inverse_dynamics_derivatives(
            model, *state, out=kg.InverseDynamicsDerivatives(np.empty(n), frozen, one, one.copy())
        )
    with pytest.raises(InputError, match=r"`out.tau` is a float64 array of shape \(1, \d+\); expected"):
        kg.inverse_dynamics_derivatives(
            model, *state, out=kg.InverseDynamicsDerivatives(np.empty((1, n)), *arrays(good)[1:])
        )
    with pytest.raises(InputError, match="`out` is a tuple"):
        kg.inverse_dynamics_derivatives(model, *state, out=tuple(arrays(good)))
    with pytest.raises(InputError, match=r"`a` at index \(0,\) is nan"):
        kg.inverse_dynamics_derivatives(model, *state[:2], np.full(n, np.nan), out=good)


def test_out_of_any_layout():
    """What a kernel cannot fill in place: rows of Fortran, every second number, a memory-mapped file's class."""
    model = tree(3)
    state, n = random_state(model, 3), model.n
    expected = kg.inverse_dynamics_derivatives(model, *state)
    fields = (
        np.empty(2 * n)[::2],
        np.empty((n, n), order="F"),
        np.empty((n, 2 * n))[:, ::2],
        np.empty((n, n)).view(np.memmap),
    )
    out = kg.InverseDynamicsDerivatives(*fields)
    assert kg.inverse_dynamics_derivatives(model, *state, out=out) is out
    for x, y in zip(arrays(out), arrays(expected), strict=True):
        np.testing.assert_array_equal(x, y)


def test_certainly_apart_is_never_wrong():
    """Views of two memories, directly and through buffers: apart only if NumPy's exact search finds nothing shared."""
    one, other = np.zeros(12), np.zeros(12)
    pieces = [m[a:b] for m in (one, through(one), other) for a, b in ((0, 12), (0, 4), (4, 8), (3, 5))]
    found = {True: 0, False: 0}
    for x, y in itertools.product([one, *pieces], pieces):
        apart = certainly_apart([x], [y])
        assert apart == certainly_apart([x, y], []) == (not np.shares_memory(x, y))
        found[apart] += 1
    assert all(found.values())


@functions
def test_a_fault_is_found_without_running_the_kernel_again(function, count, monkeypatch):
    """What the kernel found of one state is judged as it is: its errors cost no second evaluation."""
    model = tree(2)
    state = list(random_state(model, 2)[:count])
    function(model, *state)
    runs = []
    monkeypatch.setattr(engine.call, "run", lambda *_, **__: runs.append(1))
    state[0][0] = np.inf
    with pytest.raises(InputError, match=r"at index \(0,\) is inf"):
        function(model, *state)
    assert not runs


def test_results_of_large_numbers_are_looked_at():
    """Numbers beyond what is ordinary may overflow, and need not."""
    model = tree(3)
    q, v, a = random_state(model, 3)
    assert np.isfinite(kg.inverse_dynamics(model, q, v * 1e20, a)).all()
    with pytest.raises(InputError, match="overflow float64, where `v`"):
        kg.inverse_dynamics(model, q, v * 1e200, a)
    with pytest.raises(InputError, match="overflow float64, where `v`"):
        kg.kinetic_energy(model, q, v * 1e200)
    assert np.isfinite(kg.potential_energy(model, q * 1e20)).all()


def test_out_that_overlaps_goes_the_long_way():
    model = tree(4)
    q, v, a = random_state(model, 4)
    wanted = kg.inverse_dynamics(model, q, v, a)
    assert kg.inverse_dynamics(model, q, v, a, out=a) is a
    assert a.tobytes() == wanted.tobytes()
    M = np.full((model.n, model.n), 7.0)
    assert kg.mass_matrix(model, q, out=M) is M
    assert M.tobytes() == kg.mass_matrix(model, q).tobytes()


@pytest.mark.parametrize("states", [1, 3, 40])
@pytest.mark.parametrize("threads", [1, 2])
def test_design_derivatives_name_the_joint_and_the_state(states, threads):
    """Along directions, too, the kernel says which joint is free; lanes are directions where there are few states."""
    builder = kg.ModelBuilder("arm")
    upper = builder.add("shoulder", None, kg.revolute("z"), inertia=kg.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0]))
    builder.add("twist", upper, kg.revolute("x"), inertia=kg.Inertia.rod(1.0, [0, 0, 0], [0, 1, 0]))
    model = builder.build()
    design = kg.Design(model, [f"{link}.mass" for link in model.link_names])
    q = np.full((states, 2), 0.3)
    still = np.zeros((states, 2))
    kg.forward_dynamics_design_derivatives(design, q, still, still, threads=threads)
    free = model.replace(inertia=np.zeros((2, 3, 3)), com=np.array([[0.5, 0, 0], [0.5, 0, 0]]))
    design = kg.Design(free, [f"{link}.mass" for link in model.link_names])
    at = " in state 0" if states > 1 else ""
    for function in (
        lambda: kg.forward_dynamics_design_derivatives(design, q.squeeze(), still.squeeze(), still.squeeze()),
        lambda: kg.hybrid_dynamics_design_derivatives(
            design, q.squeeze(), still.squeeze(), still.squeeze(), still.squeeze(), prescribed=["shoulder"]
        ),
    ):
        with pytest.raises(SingularError, match=f"nothing resists joint 'twist' of model 'arm'{at}:"):
            function()


def test_models_are_freed_at_once():
    """What is kept with a model for its next call does not hold the model."""
    model = samples.random_tree(6, seed=1)
    for function, count in FUNCTIONS.values():
        function(model, *random_state(model, 1)[:count])
    alive = weakref.ref(model)
    del model
    assert alive() is None


@pytest.mark.parametrize("out", [{}, {"tau": np.zeros(2)}, [0.0, 0.0], "tau"], ids=repr)
@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "batch"])
def test_out_that_is_no_array_is_refused(out, batch):
    """Also a dictionary, which is how functions with several results pass theirs on."""
    x = np.zeros((*batch, 2))
    with pytest.raises(InputError, match=f"`out` is a {type(out).__name__}; expected a float64 array of shape"):
        kg.inverse_dynamics(samples.two_link(), x, x, x, out=out)


@pytest.mark.parametrize(("function", "count"), FLAT.values(), ids=FLAT.keys())
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_coordinates_that_are_not_joints(function, count, seed):
    """The same bits as the long way, and the same errors."""
    model = mixed_tree(seed, joints=4)
    state = list(mixed_state(model, seed)[:count])
    short, long = arrays(function(model, *state)), arrays(function(model, *(x.tolist() for x in state)))
    assert all(x.tobytes() == y.tobytes() for x, y in zip(short, long, strict=True))
    state[-1][0] = np.nan
    with pytest.raises(InputError, match=r"at index \(0,\) is nan"):
        function(model, *state)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 0)])
def test_a_batch_on_one_thread_has_the_bits_of_the_long_way(shape):
    """Plain arrays of a batch go straight to kernels of one result; read-only ones go through the gate."""
    model = samples.random_tree(6, seed=3)
    q, v, a = np.random.default_rng(3).normal(size=(3, *shape, 6))
    slow = [x.copy() for x in (q, v, a)]
    for x in slow:
        x.flags.writeable = False
    for function, count in ((kg.inverse_dynamics, 3), (kg.mass_matrix, 1), (kg.kinetic_energy, 2), (kg.bias_forces, 2)):
        found, expected = (function(model, *x[:count], threads=1) for x in ((q, v, a), slow))
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


def test_mistakes_in_a_batch_on_one_thread_are_told():
    model = samples.two_link()
    q = np.zeros((4, 2))
    v = q.copy()
    v[2, 1] = np.nan
    with pytest.raises(kg.InputError, match=r"`v` at index \(2, 1\) is nan"):
        kg.inverse_dynamics(model, q, v, q, threads=1)
    with pytest.raises(kg.InputError, match="overflow"):
        kg.inverse_dynamics(model, q, q + 1e200, q, threads=1)
    with pytest.raises(kg.InputError, match=r"`q` has shape \(4, 3\)"):
        kg.inverse_dynamics(model, np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3)), threads=1)
