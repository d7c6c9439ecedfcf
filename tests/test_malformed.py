"""Whatever is thrown at kinegrad ends in a named error or a right answer: no crash, no hang, no wrong number.

Good arguments are disguised (other types, orders, strides) or spoiled (shapes, types, values), some at random.
Then either a :class:`KinegradError` says so, or the answer is that of the clean float64 arguments, bit by bit; on
ordinary numbers it is the oracle's, too. Any other exception is a bug of kinegrad.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, parts, random_loads, random_state
from tests.disguises import (
    CLOSE,
    MANY,
    MODEL,
    THINGS,
    N,
    attempt,
    attempt_to_build,
    disguised,
    nonsense,
    read_only,
    spaced,
    things,
    unaligned,
)
from tests.reference import oracle


def clean(x):
    return None if x is None else np.array(x, dtype=np.float64, order="C")


def arrays_of(result):
    """The arrays of a result, whatever it is."""
    if isinstance(result, np.ndarray | np.floating | float):
        return [np.asarray(result)]
    fields = [x for x in vars(result).values() if x is not None]
    return [x.values if isinstance(x, kg.PackedMatrix) else x for x in fields]


def assert_same(actual, desired):
    for one, other in zip(arrays_of(actual), arrays_of(desired), strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)


def ordinary(*arrays):
    return all(np.abs(x).max(initial=0.0) < 100 and x.size <= 60 for x in arrays if x is not None)


POINTS = {"link": ["link1", "link2"], "point": [0.1, 0.2, 0.3]}
LOADS = random_loads(MODEL, 8)
# every public function of a state, and how many arrays of shape (..., n) it takes


def design_of(model, *_):
    return kg.Design(model, ["gravity.x", "gravity.z"])


FUNCTIONS = {
    "inverse_dynamics": (kg.inverse_dynamics, 3),
    "lagrange": (lambda *args: kg.inverse_dynamics(*args, method="lagrange"), 3),
    "mass_matrix": (kg.mass_matrix, 1),
    "bias_forces": (kg.bias_forces, 2),
    "gravity_forces": (kg.gravity_forces, 1),
    "forward_kinematics": (kg.forward_kinematics, 3),
    "point_motion": (lambda *args: kg.point_motion(*args, **POINTS), 3),
    "jacobian": (lambda *args: kg.jacobian(*args, link="link2", point=[0.1, 0.2, 0.3]), 1),
    "kinetic_energy": (kg.kinetic_energy, 2),
    "potential_energy": (kg.potential_energy, 1),
    "center_of_mass": (kg.center_of_mass, 1),
    "momentum": (kg.momentum, 2),
    "inverse_dynamics_derivatives": (kg.inverse_dynamics_derivatives, 3),
    "lagrange_derivatives": (lambda *args: kg.inverse_dynamics_derivatives(*args, method="lagrange"), 3),
    "packed_derivatives": (lambda *args: kg.inverse_dynamics_derivatives(*args, packed=True, loads=LOADS), 3),
    "inverse_dynamics_jvp": (kg.inverse_dynamics_jvp, 6),
    "inverse_dynamics_vjp": (kg.inverse_dynamics_vjp, 4),
    "inverse_dynamics_hessian": (kg.inverse_dynamics_hessian, 4),
    "packed_second_order": (lambda *args: kg.inverse_dynamics_second_order(*args, packed=True, loads=LOADS), 4),
    "inverse_dynamics_load_derivatives": (lambda *args: kg.inverse_dynamics_load_derivatives(*args, loads=LOADS), 1),
    "forward_dynamics_hessian": (kg.forward_dynamics_hessian, 4),
    "forward_dynamics": (kg.forward_dynamics, 3),
    "forward_dynamics_crba": (lambda *args: kg.forward_dynamics(*args, method="crba"), 3),
    "forward_dynamics_derivatives": (kg.forward_dynamics_derivatives, 3),
    "hybrid_dynamics": (lambda *args: kg.hybrid_dynamics(*args, prescribed=MODEL.joint_names[1:2], loads=LOADS), 4),
    "inverse_dynamics_design_vjp": (lambda *args: kg.inverse_dynamics_design_vjp(design_of(*args), *args[1:]), 4),
    "forward_dynamics_design_derivatives": (
        lambda *args: kg.forward_dynamics_design_derivatives(design_of(*args), *args[1:]),
        3,
    ),
    "forward_kinematics_derivatives": (kg.forward_kinematics_derivatives, 3),
    "point_motion_derivatives": (lambda *args: kg.point_motion_derivatives(*args, **POINTS), 3),
    "center_of_mass_derivatives": (kg.center_of_mass_derivatives, 1),
    "momentum_derivatives": (kg.momentum_derivatives, 2),
}


def good_arguments(count, seed, batch=()):
    """State, and directions or weights after it."""
    return (*random_state(MODEL, seed, batch), *random_state(MODEL, seed + 100, batch))[:count]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_good_arguments_are_not_refused(name):
    """The tests below would pass if everything were."""
    function, count = FUNCTIONS[name]
    for batch in ((), (1,), (2, 3)):
        arrays = arrays_of(function(MODEL, *good_arguments(count, 1, batch)))
        assert arrays
        for x in arrays:
            assert x.shape[: len(batch)] == batch
            assert np.isfinite(x).all()


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=100)
@given(data=st.data())
def test_states(name, data):
    function, count = FUNCTIONS[name]
    batch = data.draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
    state = [data.draw(disguised(x)) for x in good_arguments(count, 1, batch)]
    result = attempt(function, MODEL, *state)
    if result is not None:
        assert_same(result, function(MODEL, *map(clean, state)))


@MANY
@given(data=st.data())
def test_torques_of_disguised_states_and_loads_are_the_oracles(data):
    batch = data.draw(st.sampled_from([(), (4,)]))
    state = [data.draw(disguised(x)) for x in random_state(MODEL, 2, batch)]
    given_loads = [data.draw(st.none() | disguised(x)) for x in parts(random_loads(MODEL, 2, batch))]
    method = data.draw(st.sampled_from(["spatial", "lagrange"]))
    tau = attempt(kg.inverse_dynamics, MODEL, *state, loads=kg.Loads(*given_loads), method=method)
    if tau is None:
        return
    state = [clean(x) for x in state]
    nothing = [x is None or (isinstance(x, dict) and not x) for x in given_loads]  # {} names no link: no load
    cleaned = [np.zeros((N, 3)) if none else clean(x) for none, x in zip(nothing, given_loads, strict=True)]
    assert_same(tau, kg.inverse_dynamics(MODEL, *state, loads=kg.Loads(*cleaned), method=method))
    if ordinary(*state, *cleaned):
        q, v, a = (np.broadcast_to(x, tau.shape) for x in state)
        force, point, torque = (np.broadcast_to(x, (*tau.shape, 3)) for x in cleaned)
        for k in np.ndindex(tau.shape[:-1]):
            desired = oracle.regular_lagrangian(MODEL, q[k], v[k], a[k], force[k], point[k], torque[k])
            assert_close(tau[k], desired, CLOSE)


@MANY
@given(data=st.data())
def test_loads_by_name(data):
    links = st.sampled_from([*MODEL.link_names, "link9", "", None, 3])
    hand = np.array([1.0, -2.0, 3.0])
    by_name = st.dictionaries(links, disguised(hand), max_size=3)
    given_loads = [data.draw(st.none() | by_name | things) for _ in range(3)]
    state = random_state(MODEL, 3)
    loads = attempt(kg.Loads, *given_loads)
    tau = attempt(kg.inverse_dynamics, MODEL, *state, loads=loads) if loads is not None else None
    if tau is not None and all(x is None or isinstance(x, dict) for x in given_loads):
        same = [x and {link: clean(value) for link, value in x.items()} for x in given_loads]
        assert_same(tau, kg.inverse_dynamics(MODEL, *state, loads=kg.Loads(*same)))


@MANY
@given(loads=things | nonsense, method=things | st.just("spatial"), threads=things | st.integers(-2, 3))
def test_options(loads, method, threads):
    state = random_state(MODEL, 4)
    tau = attempt(kg.inverse_dynamics, MODEL, *state, loads=loads, method=method, threads=threads)
    if tau is not None:
        assert_same(tau, kg.inverse_dynamics(MODEL, *state))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_a_model(name):
    function, count = FUNCTIONS[name]
    state = good_arguments(count, 4)
    for thing in (*THINGS, MODEL.topology, kg.Model, samples.two_link):
        assert attempt(function, thing, *state) is None


def overlapping(shape):
    """One row of memory seen as all rows: no place for different answers."""
    return np.lib.stride_tricks.as_strided(np.zeros(shape[-1]), shape=shape, strides=(0,) * (len(shape) - 1) + (8,))


@MANY
@given(data=st.data())
def test_outputs(data):
    """Filled with the right answer whatever its memory, also over an input; or refused."""
    batch = data.draw(st.sampled_from([(), (4,), (2, 3)]))
    q, v, a = random_state(MODEL, 5, batch)
    desired = kg.inverse_dynamics(MODEL, q, v, a)
    shape = desired.shape
    whole = np.zeros((2, *shape))
    choices = [
        q, v, a, a[::-1], np.zeros(shape), np.zeros(shape, order="F"), np.zeros(shape[::-1]).T,
        spaced(np.zeros(shape)), unaligned(np.zeros(shape)), np.zeros(shape)[..., ::-1], whole[1],
        read_only(np.zeros(shape)), np.zeros(shape, dtype=">f8"), np.zeros(shape, dtype=np.float32),
        np.zeros(shape, dtype=complex), np.zeros((1, *shape)), np.zeros(shape[:-1]),
        np.zeros(shape).view(np.recarray), np.ma.zeros(shape), np.broadcast_to(0.0, shape), overlapping(shape),
        np.zeros(shape).tolist(), whole, *THINGS,
    ]  # fmt: skip
    out = data.draw(st.sampled_from(choices))
    result = attempt(kg.inverse_dynamics, MODEL, q, v, a, out=out)
    if result is not None:
        assert out is None or result is out
        np.testing.assert_array_equal(np.asarray(result), desired)


@MANY
@given(data=st.data())
def test_links_and_points(data):
    names = st.sampled_from([*MODEL.link_names, "link9"])
    link = data.draw(names | st.lists(names, max_size=3) | st.lists(names, min_size=2, max_size=2).map(tuple) | things)
    point = data.draw(disguised(np.array([0.1, 0.2, 0.3])) | disguised(np.arange(6.0).reshape(2, 3)))
    q, v, a = random_state(MODEL, 6)
    motion = attempt(kg.point_motion, MODEL, q, v, a, link=link, point=point)
    J = attempt(kg.jacobian, MODEL, q, link=link, point=point)
    assert (motion is None) == (J is None)
    if motion is None:
        return
    single = isinstance(link, str)
    links = [link] if single else list(link)
    points = np.broadcast_to(clean(point), (len(links), 3))
    assert motion.position.shape == ((3,) if single else (len(links), 3))
    if ordinary(points):
        for k, (name, r) in enumerate(zip(links, points, strict=True)):
            desired = oracle.point_motion(MODEL, q, v, a, MODEL.link_index(name), r)
            for actual, expected in zip(arrays_of(motion), desired, strict=True):
                assert_close(actual if single else actual[k], expected, CLOSE)


@MANY
@given(count=things | st.integers(-3, 3))
def test_threads(count):
    before = kg.get_threads()
    try:
        attempt_to_build(kg.set_threads, count)
        assert kg.get_threads() >= 1
    finally:
        kg.set_threads(before)
