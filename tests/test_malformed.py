"""Whatever is thrown at kinegrad ends in a named error or a right answer: no crash, no hang, no wrong number.

Good arguments are disguised (other types, orders, strides) or spoiled (shapes, types, values), some at random.
Then either a :class:`KinegradError` says so, or the answer is that of the clean float64 arguments, bit by bit; on
ordinary numbers it is the oracle's, too. Any other exception is a bug of kinegrad.
"""

import array
import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, parts, random_loads, random_state
from tests.reference import oracle

MODEL = samples.random_tree(3, seed=5, roots=2)
N = MODEL.n
CLOSE = 1e-11  # as in test_dynamics.py, with some room for large and small numbers in one state
MANY = settings(max_examples=150)


# --- things that are not numbers, or hardly -----------------------------------------------------------------


class Hostile:
    """Raises whatever it is asked."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no numbers here")

    def __len__(self):
        raise RuntimeError("no length either")

    def __float__(self):
        raise RuntimeError("nor a number")


class Many:
    """Says that it has a shape."""

    shape = (4, N)
    dtype = np.dtype(np.float64)


THINGS = [
    None, "", "x", "left_hand", b"bytes", True, 0, -1, 10**400, 1.5, np.nan, np.inf, 1e308, 1j, (), [], {}, [[]],
    {1, 2}, [[1.0], [1.0, 2.0]], [None] * N, ["a"] * N, {"joint0": 1.0}, range(N), object(), Hostile(),
    [Hostile()] * N, Many(), np.sin, int, datetime.date(2024, 2, 29), Decimal("1.5"), [Fraction(1, 3)] * N,
    np.array(["2024-02-29"] * N, dtype="M8[D]"), np.array([(1, 2.0)] * N, dtype="i4,f8"),
    np.zeros(N, dtype=object), np.array(0.5), np.zeros(0), np.zeros((0, N)), np.zeros((N, 0)), np.zeros((1, 0, N)),
    np.ma.masked, np.ma.masked_array(np.zeros(N), mask=[True] * N), np.timedelta64(1, "s"), slice(None),
    memoryview(b"abc"),
]  # fmt: skip
things = st.sampled_from(THINGS)
nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.complex_numbers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)
any_array = hnp.arrays(
    dtype=st.sampled_from(["f8", ">f8", "f4", "f2", "g", "i8", "u1", "?", "c16", "U2", "O"]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


# --- disguises of good numbers ------------------------------------------------------------------------------


def unaligned(x):
    x = np.asarray(x, dtype=np.float64)
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(x.shape)
    raw[...] = x
    return raw


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def spaced(x):
    return np.repeat(x, 3, axis=-1)[..., ::3]


DISGUISES = {
    "as it is": lambda x: x,
    "nested lists": lambda x: x.tolist(),
    "tuple of arrays": tuple,
    "column order": np.asfortranarray,
    "reversed twice": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "spaced out": spaced,
    "unaligned": unaligned,
    "read-only": read_only,
    "other byte order": lambda x: x.astype(">f8"),
    "single precision": lambda x: x.astype(np.float32),
    "half precision": lambda x: x.astype(np.float16),
    "long double": lambda x: x.astype(np.longdouble),
    "whole numbers": lambda x: np.rint(x).astype(np.int8),
    "unsigned": lambda x: np.abs(np.rint(x)).astype(np.uint64),
    "matrix": lambda x: np.asmatrix(x) if x.ndim == 2 else x,
    "masked, nothing hidden": np.ma.masked_array,
    "record array": lambda x: x.view(np.recarray),
    "memory": lambda x: memoryview(np.ascontiguousarray(x)),
    "standard library": lambda x: array.array("d", x) if x.ndim == 1 else x,
    "numbers as objects": lambda x: x.astype(object),
    "with an axis of one": lambda x: x[None],
    "repeated without memory": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "flags instead": lambda x: x > 0,
    "texts": lambda x: x.astype(str),
    "complex": lambda x: x + 0j,
    "scalar": lambda x: x.flat[0] if x.size else 0.0,
    "too many": lambda x: np.concatenate([x, x], axis=-1),
    "too few": lambda x: x[..., :-1],
    "transposed": lambda x: x.T,
    "a batch of three": lambda x: np.stack([x] * 3),
    "no states": lambda x: np.stack([x] * 3)[:0],
    "huge": lambda x: x * 1e300,
    "tiny": lambda x: x * 1e-310,
    "far": lambda x: x * 1e9,
    "NaN": lambda x: np.where(np.arange(x.size).reshape(x.shape) == x.size - 1, np.nan, x),
    "infinite": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 0, -np.inf, x),
}


@st.composite
def disguised(draw, x):
    """An array in up to two disguises, or something else altogether."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(things)
    if kind == 1:
        return draw(nonsense | any_array)
    for name in draw(st.lists(st.sampled_from(list(DISGUISES)), min_size=1, max_size=2)):
        if not isinstance(x, np.ndarray) or isinstance(x, np.matrix) or x.dtype.kind not in "fiu":
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, about the disguise itself
            x = DISGUISES[name](x)
    return x


def clean(x):
    return None if x is None else np.array(x, dtype=np.float64, order="C")


def attempt(function, *args, **kwargs):
    """The answer, or None after a named error.  Other errors fail the test, and so do NumPy's warnings."""
    try:
        return function(*args, **kwargs)
    except kg.KinegradError as error:
        assert len(str(error)) <= 1000  # noqa: PT017 (nothing need be raised)
        return None


def attempt_to_build(function, *args, **kwargs):
    """The same of models and their parts, of whose numbers NumPy may warn that they overflow, and kinegrad that they
    look like degrees."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", kg.errors.UnitsWarning)
        return attempt(function, *args, **kwargs)


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


# --- states and loads ---------------------------------------------------------------------------------------

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


# --- models -------------------------------------------------------------------------------------------------


def check_model(model):
    """A model that was accepted computes what the oracle computes from its constants."""
    assert isinstance(model, kg.Model)
    state, loads = random_state(model, 7), random_loads(model, 7)
    numbers = ("placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature")
    constants = [*(getattr(model, what) for what in numbers), np.array([joint.pitch for joint in model.joints])]
    if not all(np.abs(x).max() < 1e6 for x in constants):
        return  # products of such numbers overflow, in the oracle as well
    desired = oracle.regular_lagrangian(model, *state, *parts(loads))
    for method in ("spatial", "lagrange"):
        assert_close(kg.inverse_dynamics(model, *state, loads=loads, method=method), desired, CLOSE)


FIELDS = {
    name: getattr(MODEL, name)
    for name in (
        "name", "joints", "parents", "joint_names", "link_names", "placement", "tip", "mass", "com",
        "inertia", "gravity", "position_limits", "velocity_limits", "effort_limits", "stiffness", "rest", "damping",
        "armature",
    )
}  # fmt: skip

SPOILERS = {
    "negative": lambda x: -x,
    "zero": np.zeros_like,
    "one entry NaN": lambda x: np.where(np.arange(x.size).reshape(x.shape) == x.size // 2, np.nan, x),
    "scaled": lambda x: x * 1.001,
    "rounded": lambda x: np.round(x, 3),
    "nudged": lambda x: x + 1e-12,
    "reversed": lambda x: x[::-1],
    "swapped axes": lambda x: np.swapaxes(x, -1, -2) if x.ndim > 1 else x,
    "too long": lambda x: np.concatenate([x, x[-1:]]),
    "too short": lambda x: x[:-1],
    "empty": lambda x: x[:0],
    "first only": lambda x: x[0],
    "more axes": lambda x: x[None],
}


@st.composite
def spoiled(draw, x):
    """A field of a model, spoiled; or something else altogether."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return draw(things)
    if kind == 1:
        return draw(nonsense | any_array)
    if isinstance(x, np.ndarray) and x.ndim:
        name = draw(st.sampled_from([*SPOILERS, *DISGUISES]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (SPOILERS | DISGUISES)[name](np.asarray(x, dtype=np.float64))
    if isinstance(x, tuple) and x:
        other = draw(things | st.sampled_from(x))
        place = draw(st.integers(0, len(x)))
        return draw(st.sampled_from([x[:-1], x + x[:1], (*x[:place], other, *x[place + 1 :]), list(x), iter(x)]))
    if isinstance(x, float):
        return draw(st.sampled_from([-x, 0.0, np.nan, np.inf, 1e300, str(x), np.float32(x), [x], x + 0j, int(x)]))
    return draw(things)


@settings(max_examples=300)
@given(data=st.data())
def test_models_from_fields(data):
    fields = dict(FIELDS)
    for what in data.draw(st.sets(st.sampled_from(list(FIELDS)), min_size=1, max_size=2)):
        fields[what] = data.draw(spoiled(FIELDS[what]))
    model = attempt_to_build(kg.Model, **fields)
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_replaced_fields(data):
    what = data.draw(st.sampled_from([*FIELDS, "colour"]))
    x = FIELDS.get(what, 0.0)
    value = data.draw(spoiled(x))
    if data.draw(st.booleans()) and isinstance(x, np.ndarray):
        names = st.sampled_from([*MODEL.link_names, *MODEL.joint_names, "elbow", None, 0])
        value = {data.draw(names): data.draw(spoiled(np.array(x[0])))}
    model = attempt_to_build(MODEL.replace, **{what: value})
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_built_models(data):
    """Two good joints, then one of which up to two arguments are spoiled."""
    builder = kg.ModelBuilder("built")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3], com=[0.1, 0, 0])
    builder.add("hip", None, kg.universal("xy"), link="thigh", inertia=body)
    arguments = {
        "name": "knee",
        "parent": "thigh",
        "joint": kg.revolute("x"),
        "link": "shank",
        "placement": kg.translate(0.1, 0.2, 0.3) @ kg.rotate([1, 2, 3], 0.4),
        "tip": kg.translate(0, 0, -0.4),
        "inertia": body,
        "stiffness": 1.5,
        "rest": 0.3,
        "damping": 0.5,
        "armature": 0.1,
        "position_limits": np.array([-1.0, 1.0]),
    }
    for what in data.draw(st.sets(st.sampled_from([*arguments, "colour"]), min_size=1, max_size=2)):
        twins = {"name": "hip.x", "link": "thigh", "parent": "shank", "joint": kg.free()}
        arguments[what] = data.draw(spoiled(arguments.get(what, 1.0)) | st.just(twins.get(what)))
    name, parent, joint = (arguments.pop(what) for what in ("name", "parent", "joint"))
    added = attempt_to_build(builder.add, name, parent, joint, **arguments)
    model = attempt_to_build(builder.build)
    if added is None:
        assert model is not None, "a refused joint leaves the builder as it was"
        assert model.n == 2
    if model is not None:
        check_model(model)


@MANY
@given(gravity=things | nonsense | disguised(np.array([0.0, 0.0, -9.81])), name=things)
def test_builders(gravity, name):
    builder = attempt_to_build(kg.ModelBuilder, name, gravity=gravity)
    if builder is not None and attempt_to_build(
        builder.add, "hinge", None, kg.revolute("x"), inertia=kg.Inertia.point(1, [0, 1, 0])
    ):
        model = attempt_to_build(builder.build)
        if model is not None:
            check_model(model)


@MANY
@given(data=st.data())
def test_models_from_dh(data):
    good = (0.1, 0.2, 0.3, 0.4)
    row = st.one_of(
        st.just(good),
        things,
        st.tuples(*[st.floats(-1, 1) | things] * 4),
        st.lists(st.floats(), max_size=5),
        st.builds(
            lambda **row: attempt_to_build(kg.DH, **row),
            theta=st.floats(-1, 1),
            variable=st.sampled_from(["theta", "-d"]),
        ),
    )
    rows = data.draw(st.lists(row, max_size=4) | things)
    options = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "parents": st.lists(st.integers(-2, 4), max_size=4) | things,
                "branches": st.just(([-1, 0], [[0, 1], [2, 2]])) | things,
                "convention": st.sampled_from(["distal", "proximal", "craig", None]),
                "joint_names": st.lists(st.sampled_from("abcd"), max_size=4) | things,
                "inertias": st.lists(st.sampled_from([None, kg.Inertia.sphere(1, 0.1), 3]), max_size=4) | things,
                "damping": things,
                "colour": st.just("red"),
            },
        )
    )
    model = attempt_to_build(kg.Model.from_dh, rows, **options)
    if model is not None:
        check_model(model)


@MANY
@given(data=st.data())
def test_topologies(data):
    small = st.integers(-3, 6)
    vector = st.lists(small, max_size=5) | things | any_array
    matrix = st.lists(st.tuples(small, small), max_size=4) | things | any_array
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.Topology(data.draw(vector), names=data.draw(st.none() | things)),
                lambda: kg.Topology.from_branches(data.draw(vector), data.draw(matrix)),
                lambda: kg.Topology.from_paper(upsilon=data.draw(matrix)),
                lambda: kg.Topology.from_paper(phi=data.draw(matrix), psi=data.draw(matrix)),
                lambda: kg.Topology([-1, 0, 0]).renumbered(data.draw(vector)),
                lambda: kg.Topology([-1, 0, 0]).subtree(data.draw(things)),
            ]
        )
    )
    found = attempt_to_build(make)
    if isinstance(found, kg.Topology):
        assert (found.parents < np.arange(found.n)).all()
        assert (found.parents >= -1).all()
        assert len(found.support) == found.n


def moments_exist(body):
    """No body has a negative mass, or a pseudo-inertia with a negative eigenvalue (beyond rounding)."""
    J = body.pseudo
    return body.mass >= 0 and np.linalg.eigvalsh(J).min() >= -1e-8 * max(np.abs(J).max(), 1e-300)


@MANY
@given(data=st.data())
def test_inertias(data):
    numbers = {"mass": 2.0, "radius": 0.1}
    vector = np.array([0.1, 0.2, 0.3])
    matrix = np.diag([0.2, 0.3, 0.4])
    makers = {
        kg.Inertia: (2.0, vector, matrix),
        kg.Inertia.about_frame: (2.0, vector, matrix + np.eye(3)),
        kg.Inertia.from_pseudo: (kg.Inertia(2.0, vector, matrix).pseudo,),
        kg.Inertia.point: (2.0, vector),
        kg.Inertia.rod: (2.0, vector, -vector),
        kg.Inertia.cylinder: (2.0, numbers["radius"], vector, -vector),
        kg.Inertia.frustum: (2.0, 0.1, 0.2, vector, -vector),
        kg.Inertia.box: (2.0, vector, vector),
        kg.Inertia.ellipsoid: (2.0, vector, vector),
        kg.Inertia.sphere: (2.0, 0.1, vector),
        kg.Inertia(2.0, vector, matrix).moved: (kg.translate(1, 2, 3),),
    }
    maker = data.draw(st.sampled_from(list(makers)))
    good = makers[maker]
    wrong = data.draw(st.integers(0, len(good) - 1))
    body = attempt_to_build(maker, *(data.draw(spoiled(x)) if k == wrong else x for k, x in enumerate(good)))
    if body is not None and max(body.mass, np.abs(body.com).max(), np.abs(body.inertia).max()) < 1e50:
        assert moments_exist(body)


@MANY
@given(data=st.data())
def test_joints(data):
    """Whatever makes a joint makes a model with it, as the oracle moves it."""
    axis = st.sampled_from(["x", "-z", "+y", "w", [0, 0, 2], [0, 0, 0], [1, 2], "--x", "−y", "-"]) | things | nonsense
    axis = axis | disguised(np.array([1.0, -2.0, 0.5]))
    letters = st.text("xyzw", max_size=4) | things
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.revolute(data.draw(axis)),
                lambda: kg.prismatic(data.draw(axis)),
                lambda: kg.screw("z", pitch=data.draw(things | nonsense)),
                lambda: kg.Joint(data.draw(st.sampled_from(["revolute", "screw"]) | things), data.draw(axis)),
                lambda: kg.Joint("screw", (0.0, 0.0, 1.0), data.draw(things | nonsense), data.draw(things)),
                lambda: kg.spherical(data.draw(letters)),
                lambda: kg.universal(data.draw(letters)),
                lambda: kg.planar(data.draw(letters)),
                lambda: kg.free(data.draw(letters)),
            ]
        )
    )
    joint = attempt_to_build(make)
    if joint is None:
        return
    builder = kg.ModelBuilder("joint")
    if attempt_to_build(builder.add, "joint", None, joint, inertia=kg.Inertia.box(1.0, [1, 2, 3])):
        check_model(builder.build())


@MANY
@given(data=st.data())
def test_placements(data):
    number = st.floats(-10, 10) | things
    make = data.draw(
        st.sampled_from(
            [
                lambda: kg.translate(data.draw(number), 1.0, data.draw(number)),
                lambda: kg.rotate("z", data.draw(number)),
                lambda: kg.rotate(data.draw(things), 0.3),
            ]
        )
    )
    T = attempt_to_build(make)
    if T is not None:
        assert T.shape == (4, 4)
        np.testing.assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-14)
        assert np.isfinite(T).all()


@MANY
@given(data=st.data())
def test_names(data):
    find = data.draw(st.sampled_from([MODEL.link_index, MODEL.joint_index, MODEL.link_inertia]))
    name = data.draw(things | nonsense | st.just("link1"))
    found = attempt_to_build(find, name)
    assert found is None or name in (*MODEL.link_names, *MODEL.joint_names)


@MANY
@given(count=things | st.integers(-3, 3))
def test_threads(count):
    before = kg.get_threads()
    try:
        attempt_to_build(kg.set_threads, count)
        assert kg.get_threads() >= 1
    finally:
        kg.set_threads(before)
