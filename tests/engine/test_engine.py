"""The validation gate, results in place, and the same bits whatever the batch, threads and company."""

import importlib
import multiprocessing
import pkgutil
import threading
from collections import UserList, deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinegrad as kg
from kinegrad import InputError, inverse_dynamics, mass_matrix
from kinegrad import _engine as engine
from kinegrad._kernels.compiler.width import WIDTH
from tests.limits import LIMIT

N = 6
MODEL = kg.samples.random_tree(N, seed=1)
OTHER = kg.samples.spatial_chain(9)


def states(*shape, seed=0, n=N):
    return np.random.default_rng(seed).normal(size=(3, *shape, n))


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    assert x.tobytes() == y.tobytes()


# --- what is refused, and how it is said --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (7,), (6, 5), (0,), (1,), (6, 1), (2, 3, 7)])
def test_wrong_last_axis(shape):
    found = ", ".join(map(str, shape))
    message = rf"`v` has shape \({found},?\); model .* has 6 degrees of freedom, .* must be 6"
    with pytest.raises(InputError, match=message):
        inverse_dynamics(MODEL, np.zeros(N), np.zeros(shape), np.zeros(N))


@pytest.mark.parametrize("value", [0.0, 1, np.float64(2), np.array(3.0)])
def test_a_single_number_is_no_state(value):
    with pytest.raises(InputError, match=r"`q` has shape \(\); "):
        mass_matrix(MODEL, value)


def test_load_of_wrong_shape():
    q, v, a = states(4)
    for shape in [(N,), (3,), (N, 2), (3, N), (4, 5, 3)]:
        with pytest.raises(InputError, match=r"`loads.force` has shape .* has 6 links, .* must be \(6, 3\)"):
            inverse_dynamics(MODEL, q, v, a, loads=kg.Loads(force=np.zeros(shape)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "v", "a"])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.ndarray.tolist])
def test_not_finite_says_where(bad, name, form):
    arguments = dict(zip("qva", states(4, 5), strict=True))
    arguments[name][2, 4, 3] = bad
    arguments[name][3, 0, 0] = np.nan  # the first one is named
    arguments = {k: form(x) for k, x in arguments.items()}
    with pytest.raises(InputError, match=rf"`{name}` at index \(2, 4, 3\) is {bad}; expected finite numbers"):
        inverse_dynamics(MODEL, **arguments)


def test_not_finite_load_says_where():
    q, v, a = states(4)
    point = np.zeros((N, 3))
    point[5, 1] = np.nan
    with pytest.raises(InputError, match=r"`loads.point` at index \(5, 1\) is nan"):
        inverse_dynamics(MODEL, q, v, a, loads=kg.Loads(point=point))


def test_finite_numbers_that_would_overflow_in_a_sum_are_finite():
    assert engine.Batch(MODEL, {"q": np.zeros((2, N)), "v": np.full((2, N), 1.7e308)}).states == 2


class Rows:
    """What NumPy takes for a sequence: a length and items."""

    def __init__(self, *rows):
        self._rows = rows

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, k):
        return self._rows[k]


NOT_NUMBERS = {
    "text": "abcdef",
    "texts": ["1"] * N,
    "complex": np.zeros(N, complex),
    "complex list": [1j] * N,
    "bool": np.zeros(N, bool),
    "bools": [True] * N,
    "object": np.array([0.0] * N, dtype=object),
    "none": None,
    "ragged": [[1.0], [1.0, 2.0]],
    "dates": np.zeros(N, "datetime64[s]"),
    "durations": np.zeros(N, "timedelta64[s]"),
    "record": np.zeros(N, [("x", float)]),
    "set": {1.0, 2.0},
    "dictionary": {"q": 1.0},
    "masked": np.ma.masked_array(np.zeros(N), mask=[0, 0, 1, 0, 0, 0]),
    "list of masked": [np.zeros(N), np.ma.masked_array(np.zeros(N), mask=[0, 0, 1, 0, 0, 0])],
    "masked in tuples": ((np.ma.masked_array(np.zeros(N), mask=[0, 0, 1, 0, 0, 0]),), ([0.0] * N,)),
    "masked in a deque": deque([np.ma.masked_array(np.zeros(N), mask=True)]),
    "masked in a sequence of one's own": UserList([np.ma.masked_array(np.zeros(N), mask=True)]),
    "masked in what only looks like a sequence": Rows(np.ma.masked_array(np.zeros(N), mask=True)),
    "a masked number": [0.0, 1.0, np.ma.masked, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("value", NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_what_is_not_a_real_number(value):
    with pytest.raises(InputError, match=r"`v` (holds|is a masked array).*expected real numbers"):
        inverse_dynamics(MODEL, np.zeros(N), value, np.zeros(N))


def test_masked_arrays_in_a_list_that_hide_nothing():
    whole = np.ma.masked_array(np.ones(N), mask=False)
    same_bits(mass_matrix(MODEL, [whole, np.zeros(N)]), mass_matrix(MODEL, np.array([np.ones(N), np.zeros(N)])))


def test_masked_loads_in_a_list():
    force = [np.ma.masked_array([1.0, 1e9, 0.0], mask=[0, 1, 0])] * N
    for loads in (kg.Loads(force), kg.Loads({"link1": force[0]}), kg.Loads({"link1": force[:1]})):
        with pytest.raises(InputError, match=r"`loads.force.*masked"):
            inverse_dynamics(MODEL, *np.zeros((3, N)), loads=loads)


def test_numbers_beyond_float64_are_not_finite():
    """Without NumPy's warning, which would be an error here."""
    if np.finfo(np.longdouble).maxexp > 1024:
        with pytest.raises(InputError, match=r"`q` at index \(0,\) is inf"):
            mass_matrix(MODEL, np.full(N, np.longdouble("1e400")))


@pytest.mark.parametrize("packed", [np.zeros(3), "yes", 1, None, [True]])
def test_packed_is_true_or_false(packed):
    with pytest.raises(InputError, match=r"`packed` is .*; expected True or False"):
        kg.inverse_dynamics_derivatives(MODEL, *np.zeros((3, N)), packed=packed)


LONG = ["x" * 10_000, list(range(10_000)), np.zeros(10_000), {k: k for k in range(3000)}]


@pytest.mark.parametrize("value", LONG, ids=["text", "list", "array", "dictionary"])
def test_messages_are_short(value):
    """They show the beginning of what was given, and its end."""
    calls = [
        lambda: inverse_dynamics(MODEL, *np.zeros((3, N)), method=value),
        lambda: inverse_dynamics(MODEL, *np.zeros((3, N)), threads=value),
        lambda: kg.forward_dynamics(MODEL, *np.zeros((3, N)), method=value),
        lambda: kg.inverse_dynamics_derivatives(MODEL, *np.zeros((3, N)), method=value),
        lambda: kg.inverse_dynamics_derivatives(MODEL, *np.zeros((3, N)), packed=value),
        lambda: kg.hybrid_dynamics(MODEL, *np.zeros((4, N)), prescribed=value),
        lambda: kg.jacobian(MODEL, np.zeros(N), link=value),
        lambda: kg.jacobian(MODEL, np.zeros(N), link=["link1", value]),
        lambda: kg.set_threads(value),
        lambda: engine.whole("steps", value),
        lambda: engine.positive("step", value),
    ]
    for call in calls:
        with pytest.raises(kg.KinegradError) as error:
            call()
        assert len(str(error.value)) < 400


def test_an_object_that_cannot_say_its_numbers():
    class Broken:
        def __array__(self, *arguments, **options):
            raise OSError("no")

    with pytest.raises(InputError, match="`q` holds Broken"):
        mass_matrix(MODEL, Broken())


def test_shapes_that_do_not_broadcast():
    with pytest.raises(InputError, match=r"`q` \(3,\), `v` \(4,\), `a` \(\)"):
        inverse_dynamics(MODEL, np.zeros((3, N)), np.zeros((4, N)), np.zeros(N))


@pytest.mark.parametrize("threads", [0, -1, "2", True, False, 1.0, [2], np.float64(2)])
@pytest.mark.parametrize("shape", [(3,), (0,)])
def test_wrong_number_of_threads(threads, shape):
    with pytest.raises(InputError, match=r"`threads` is .*; expected a whole number of at least 1"):
        mass_matrix(MODEL, np.zeros((*shape, N)), threads=threads)
    with pytest.raises(InputError, match="`threads`"):
        kg.set_threads(threads)


def test_setting_threads():
    before = kg.get_threads()
    try:
        kg.set_threads(np.int64(3))
        assert kg.get_threads() == 3
        kg.set_threads(None)
        assert kg.get_threads() == engine.threads._default_threads()
    finally:
        kg.set_threads(before)


@pytest.mark.parametrize("setting", ["0", "-1", "two", "", "9" * 5000])
def test_wrong_threads_in_the_environment(monkeypatch, setting):
    """Said by whoever asks first how many there are, as a named error: importing kinegrad does not fail."""
    monkeypatch.setenv("KINEGRAD_THREADS", setting)
    monkeypatch.setattr(engine.threads, "_threads", 0)
    for ask in (kg.get_threads, lambda: kg.set_threads(None), lambda: mass_matrix(MODEL, np.zeros((3, N)))):
        with pytest.raises(InputError, match=f"KINEGRAD_THREADS is '{setting[:9]}.*'; expected a whole") as error:
            ask()
        assert len(str(error.value)) < 300
    assert mass_matrix(MODEL, np.zeros((3, N)), threads=1).shape == (3, N, N)


# --- what is accepted ---------------------------------------------------------------------------------------

X = states(7, 3)  # q, v, a of 21 states
TAU = inverse_dynamics(MODEL, *X)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = np.ndarray(x.shape, float, raw.data, offset=1)
    view[...] = x
    assert not view.flags.aligned
    return view


class Subclass(np.ndarray):
    pass


class Foreign:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return np.array(self.x, dtype=dtype)


FORMS = {
    "list": np.ndarray.tolist,
    "tuples": lambda x: tuple(tuple(map(tuple, rows)) for rows in x.tolist()),
    "Fortran order": np.asfortranarray,
    "negative strides": lambda x: np.ascontiguousarray(x[::-1, :, ::-1])[::-1, :, ::-1],
    "every second": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=2)[::2, :, ::2],
    "transposed": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0),
    "read-only": read_only,
    "unaligned": unaligned,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "long double": lambda x: x.astype(np.longdouble),
    "subclass": lambda x: x.view(Subclass),
    "nothing masked": np.ma.masked_array,
    "foreign": Foreign,
    "memory view": memoryview,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("which", [(0,), (1, 2), (0, 1, 2)])
def test_any_form_of_the_same_numbers(form, which):
    arguments = [form(x) if k in which else x for k, x in enumerate(X)]
    result = inverse_dynamics(MODEL, *arguments)
    assert type(result) is np.ndarray
    same_bits(result, TAU)
    same_bits(X, states(7, 3))  # inputs are as they were


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.int8, np.uint16])
def test_other_numbers_are_converted_first(kind):
    x = (10 * np.abs(X)).astype(kind)
    same_bits(inverse_dynamics(MODEL, *x), inverse_dynamics(MODEL, *x.astype(float)))


def test_inputs_are_never_modified():
    loads = np.random.default_rng(1).normal(size=(3, 7, 3, N, 3))
    given = [*X.copy(), *loads.copy()]
    before = [x.tobytes() for x in given]
    for x in given:
        x.flags.writeable = False
    for method in ("spatial", "lagrange"):
        inverse_dynamics(MODEL, *given[:3], loads=kg.Loads(*given[3:]), method=method)
    mass_matrix(MODEL, given[0])
    kg.forward_kinematics(MODEL, *given[:3])
    kg.point_motion(MODEL, *given[:3], link="link2")
    kg.jacobian(MODEL, given[0], link="link2")
    kg.momentum(MODEL, *given[:2])
    assert [x.tobytes() for x in given] == before


def test_batch_shapes_broadcast():
    (q, v, a), force = states(5, 7), np.random.default_rng(2).normal(size=(7, N, 3))
    q, v, a = q[:, :1], v[:1], a[0, 0]
    result = inverse_dynamics(MODEL, q, v, a, loads=kg.Loads(force=force))
    assert result.shape == (5, 7, N)
    for i in range(5):
        for j in range(7):
            alone = inverse_dynamics(MODEL, q[i, 0], v[0, j], a, loads=kg.Loads(force=force[j]))
            same_bits(result[i, j], alone)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (4,), (2, 3), (2, 1, 3)])
def test_batch_axes_are_kept(shape):
    q, v, a = states(*shape)
    assert inverse_dynamics(MODEL, q, v, a).shape == (*shape, N)
    assert mass_matrix(MODEL, q).shape == (*shape, N, N)
    assert kg.kinetic_energy(MODEL, q, v).shape == shape
    assert kg.forward_kinematics(MODEL, q, v).linear_velocity.shape == (*shape, N, 3)
    assert kg.jacobian(MODEL, q, link=["link0", "link3"]).linear.shape == (*shape, 2, 3, N)


@pytest.mark.parametrize("threads", [None, 1, 3])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (0, 0)])
def test_no_states_give_no_results(shape, threads):
    q, v, a = states(*shape)
    zero = np.zeros(N)
    for arguments in ((q, v, a), (q, zero, zero), (zero, v, zero)):
        for method in ("spatial", "lagrange"):
            result = inverse_dynamics(MODEL, *arguments, method=method, threads=threads)
            same_bits(result, np.empty((*shape, N)))
    loads = kg.Loads(force=np.ones((N, 3)))
    assert inverse_dynamics(MODEL, q, v, a, loads=loads, threads=threads).shape == (*shape, N)
    assert mass_matrix(MODEL, q, threads=threads).shape == (*shape, N, N)
    assert kg.center_of_mass(MODEL, q, threads=threads).shape == (*shape, 3)
    assert inverse_dynamics(MODEL, q, v, a, out=np.empty((*shape, N))).shape == (*shape, N)


def test_no_states_against_some_states():
    """(0,) broadcasts with (1,) but not with (2,)."""
    assert mass_matrix(MODEL, np.zeros((0, N))).shape == (0, N, N)
    assert inverse_dynamics(MODEL, np.zeros((0, N)), np.zeros((1, N)), np.zeros(N)).shape == (0, N)
    with pytest.raises(InputError, match="do not broadcast"):
        inverse_dynamics(MODEL, np.zeros((0, N)), np.zeros((2, N)), np.zeros(N))


# --- out= ---------------------------------------------------------------------------------------------------

Q, V, A = states(11, seed=3)
EXPECTED = inverse_dynamics(MODEL, Q, V, A)


def test_out_is_filled_and_returned():
    out = np.full((11, N), np.nan)
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(out, EXPECTED)
    M = np.full((11, N, N), np.nan)  # entries that topology makes zero are written too
    assert mass_matrix(MODEL, Q, out=M) is M
    same_bits(M, mass_matrix(MODEL, Q))
    assert (M == 0).any()


OUTS = {
    "Fortran order": lambda: np.full((11, N), np.nan, order="F"),
    "every second": lambda: np.full((22, 2 * N), np.nan)[::2, ::2],
    "reversed": lambda: np.full((11, N), np.nan)[::-1, ::-1],
    "unaligned": lambda: unaligned(np.full((11, N), np.nan)),
    "subclass": lambda: np.full((11, N), np.nan).view(Subclass),
}


@pytest.mark.parametrize("new", OUTS.values(), ids=OUTS.keys())
def test_out_of_any_layout(new):
    out = new()
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(np.array(out, order="C", subok=False), EXPECTED)


def test_out_leaves_its_surroundings_alone():
    around = np.full((13, N + 2), 7.0)
    inverse_dynamics(MODEL, Q, V, A, out=around[1:-1, 1:-1])
    same_bits(around[1:-1, 1:-1].copy(), EXPECTED)
    around[1:-1, 1:-1] = 7.0
    assert (around == 7.0).all()


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("threads", [1, 2])
def test_out_may_be_an_input(small_grain, k, threads):
    arguments = [Q.copy(), V.copy(), A.copy()]
    out = arguments[k]
    assert inverse_dynamics(MODEL, *arguments, out=out, threads=threads) is out
    same_bits(out, EXPECTED)


@pytest.mark.parametrize("shift", [1, 2, 5, -1, -3])
@pytest.mark.parametrize("rows", [True, False])
def test_out_may_overlap_an_input(shift, rows):
    """By whole states, or by single numbers, up or down."""
    step = shift * N if rows else shift
    buffer = np.full(11 * N + 5 * N, np.nan)
    place = [buffer[at : at + 11 * N].reshape(11, N) for at in (max(-step, 0), max(-step, 0) + step)]
    place[0][...] = Q
    inverse_dynamics(MODEL, place[0], V, A, out=place[1])
    same_bits(place[1], EXPECTED)


def test_out_may_overlap_what_needs_a_copy():
    """The copy is made before the result is written: a read-only view, a strided view, loads."""
    buffer = Q.copy()
    view = buffer[:]
    view.flags.writeable = False
    same_bits(inverse_dynamics(MODEL, view, V, A, out=buffer), EXPECTED)
    buffer = Q[::-1].copy()
    same_bits(inverse_dynamics(MODEL, buffer[::-1], V, A, out=buffer), EXPECTED)
    force = np.random.default_rng(4).normal(size=(11, N, 3))
    expected = inverse_dynamics(MODEL, Q, V, A, loads=kg.Loads(force=force))
    out = force.reshape(-1)[5 : 5 + 11 * N].reshape(11, N)
    same_bits(inverse_dynamics(MODEL, Q, V, A, loads=kg.Loads(force=force), out=out), expected)


def test_out_may_overlap_a_buffer_behind_a_foreign_object():
    buffer = Q.copy()
    same_bits(inverse_dynamics(MODEL, memoryview(buffer), V, A, out=buffer), EXPECTED)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((11, N), np.float32), r"`out` is a float32 array of shape \(11, 6\); expected a float64"),
        (np.empty((11, N), ">f8"), "`out` is a >f8 array .* expected a float64 array"),
        (np.empty((11, N), complex), "`out` is a complex128 array"),
        (np.empty((10, N)), r"`out` is a float64 array of shape \(10, 6\); expected .* \(11, 6\)"),
        (np.empty(11 * N), r"shape \(66,\)"),
        (np.empty((1, 11, N)), r"shape \(1, 11, 6\)"),
        ([[0.0] * N] * 11, "`out` is a list; expected a float64 array"),
        (read_only(np.empty((11, N))), "`out` is read-only; expected a writable array"),
    ],
)
def test_out_that_cannot_be_filled(out, message):
    with pytest.raises(InputError, match=message):
        inverse_dynamics(MODEL, Q, V, A, out=out)


def strided(*strides):
    """An array (11, 6) with these strides, in numbers, in memory that is large enough."""
    memory = np.full(2000, np.nan)
    return np.lib.stride_tricks.as_strided(memory[1000:], (11, N), [8 * k for k in strides])


@pytest.mark.parametrize("strides", [(1, 1), (0, 1), (5, 1), (1, 10), (-1, 1), (3, 2), (2, 4), (-5, 1), (6, -6)])
def test_out_whose_numbers_overlap(strides):
    with pytest.raises(InputError, match=r"`out` repeats its memory \(strides .*\); expected room for every number"):
        inverse_dynamics(MODEL, Q, V, A, out=strided(*strides))


@pytest.mark.parametrize("strides", [(6, 1), (1, 11), (7, 1), (-6, 1), (12, 2), (6, 11), (-6, -11), (13, 2), (2, 23)])
def test_out_whose_numbers_do_not_overlap(strides):
    """(6, 11) and (13, 2) are neither one block nor one after another, and yet all places differ."""
    places = np.add.outer(np.arange(11) * strides[0], np.arange(N) * strides[1])
    assert len(np.unique(places)) == 11 * N
    out = strided(*strides)
    assert inverse_dynamics(MODEL, Q, V, A, out=out) is out
    same_bits(np.ascontiguousarray(out), EXPECTED)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(-40, 40)), min_size=1, max_size=4),
)
def test_overlap_is_found_exactly(axes):
    """As counting places does, for strides that are no multiple of a number's size, too."""
    memory = np.zeros(4000)
    x = np.lib.stride_tricks.as_strided(memory[2000:], [k for k, _ in axes], [4 * stride for _, stride in axes])
    places = np.zeros(1, int)
    for size, stride in axes:
        places = np.add.outer(places, np.arange(size) * 4 * stride).ravel()
    places.sort()
    assert engine.memory.overlaps_itself(x) == bool((np.diff(places) < 8).any())


def test_outs_may_be_interleaved_but_not_overlap():
    both = np.full((11, N, N, 2), np.nan)
    wanted = kg.inverse_dynamics_derivatives(MODEL, Q, V, A)
    tau, by_a = np.empty((11, N)), np.empty((11, N, N))
    out = kg.InverseDynamicsDerivatives(tau, both[..., 0], both[..., 1], by_a)
    kg.inverse_dynamics_derivatives(MODEL, Q, V, A, out=out)
    same_bits(both[..., 0].copy(), wanted.dtau_dq)
    same_bits(both[..., 1].copy(), wanted.dtau_dv)
    out = kg.InverseDynamicsDerivatives(tau, both[..., 0], both[::-1, ..., 0], by_a)
    with pytest.raises(InputError, match=r"`out.dtau_dq` and `out.dtau_dv` share memory"):
        kg.inverse_dynamics_derivatives(MODEL, Q, V, A, out=out)


def test_derivatives_may_be_written_over_their_inputs():
    """State and loads: all is read before anything is written there."""
    force = np.random.default_rng(4).normal(size=(11, N, 3))
    wanted = kg.inverse_dynamics_derivatives(MODEL, Q, V, A, loads=kg.Loads(force=force))
    room = np.zeros((11, N, N))
    room.reshape(-1)[: force.size] = force.ravel()
    view = room.reshape(-1)[: force.size].reshape(force.shape)
    q = Q.copy()
    out = kg.InverseDynamicsDerivatives(q, room, np.empty((11, N, N)), np.empty((11, N, N)))
    kg.inverse_dynamics_derivatives(MODEL, q, V, A, loads=kg.Loads(force=view), out=out)
    for x, y in zip(vars(out).values(), vars(wanted).values(), strict=True):
        same_bits(x, y)


# --- the same bits ------------------------------------------------------------------------------------------

METHODS = ("spatial", "lagrange")


def results(model, q, v, a, threads=None):
    """One array of all that each state gives."""
    parts = [inverse_dynamics(model, q, v, a, method=method, threads=threads) for method in METHODS]
    parts.append(mass_matrix(model, q, threads=threads))
    parts.append(kg.kinetic_energy(model, q, v, threads=threads))
    parts.append(kg.forward_kinematics(model, q, v, a, threads=threads).linear_acceleration)
    return np.concatenate([x.reshape(len(q), -1) for x in parts], axis=1)


LARGE = states(97, seed=8)
WANTED = results(MODEL, *LARGE, threads=1)


@pytest.mark.parametrize("size", [1, 2, 3, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH + 1, 31])
def test_the_size_of_a_batch_and_the_place_in_it_do_not_matter(size):
    for start in range(0, 97 - size, 5):
        part = slice(start, start + size)
        same_bits(results(MODEL, *LARGE[:, part]), WANTED[part])


def test_wild_company_does_not_matter():
    arm = kg.samples.spatial_chain(4)
    q, v, a = states(97, n=4)
    calm = results(arm, q, v, a)
    q[::WIDTH] = 3e5
    others = np.arange(97) % WIDTH != 0
    same_bits(results(arm, q, v, a)[others], calm[others])


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 200])
@pytest.mark.parametrize("size", [1, WIDTH, WIDTH + 1, 97])
def test_the_number_of_threads_does_not_matter(small_grain, threads, size):
    same_bits(results(MODEL, *LARGE[:, :size], threads=threads), WANTED[:size])


def zeros(count):
    return engine.Batch(MODEL, {"q": np.zeros((count, N))})


def test_threads_are_used(small_grain):
    """Each block of states once, in multiples of the lane width, on as many threads as asked for."""
    seen, barrier = [], threading.Barrier(3, timeout=LIMIT)

    def kernel(scratch, start, stop):
        seen.append((start, stop, threading.get_ident()))
        barrier.wait()
        return True

    engine.run(kernel, zeros(6 * WIDTH - 1), 600, 3)
    blocks = [(0, 2 * WIDTH), (2 * WIDTH, 4 * WIDTH), (4 * WIDTH, 6 * WIDTH - 1)]
    assert sorted(block[:2] for block in seen) == blocks
    assert len({block[2] for block in seen}) == 3


def test_small_work_wakes_no_threads():
    seen = []
    engine.run(lambda scratch, start, stop: not seen.append(threading.get_ident()), zeros(20), 4, 8)
    assert seen == [threading.get_ident()]


def test_an_error_in_a_thread_is_not_lost(small_grain):
    def kernel(scratch, start, stop):
        if start > 0:
            raise IndexError("out of bounds")
        return True

    with pytest.raises(IndexError, match="out of bounds"):
        engine.run(kernel, zeros(4 * WIDTH), 600, 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_calls_from_many_threads(small_grain, threads):
    wanted_other = results(OTHER, *states(50, n=9), threads=1)

    def call(number):
        if number % 2:
            same_bits(results(OTHER, *states(50, n=9), threads=threads), wanted_other)
        else:
            same_bits(results(MODEL, *LARGE, threads=threads), WANTED)
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(64)))


def test_models_interleaved():
    """Scratch memory is shared between calls: what one model left there must not matter to another."""
    x = states(5, n=9)
    wanted = results(OTHER, *x)
    for k in range(0, 90, 9):
        same_bits(results(MODEL, *LARGE[:, k : k + 3]), WANTED[k : k + 3])
        for buffer in (engine.scratch(1), engine.threads.few(1)):
            buffer[...] = np.nan
        same_bits(results(OTHER, *x), wanted)


def test_scratch_is_private_and_grows():
    buffer = engine.scratch(10)
    assert engine.scratch(5) is buffer
    assert buffer.shape[1] == WIDTH
    assert len(engine.scratch(len(buffer) + 1)) > len(buffer)
    with ThreadPoolExecutor(1) as pool:
        assert not np.shares_memory(pool.submit(engine.scratch, 10).result(), engine.scratch(10))


def _in_child(queue):
    queue.put(results(MODEL, *LARGE, threads=3).tobytes())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork(small_grain):
    """The parent's threads do not exist in the child; it must not wait for them."""
    same_bits(results(MODEL, *LARGE, threads=3), WANTED)
    assert engine.pool._helpers
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=_in_child, args=(queue,), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        for _ in processes:
            assert queue.get(timeout=LIMIT) == WANTED.tobytes()
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    same_bits(results(MODEL, *LARGE, threads=3), WANTED)  # and the parent's threads still work


# --- constants of a model -----------------------------------------------------------------------------------


def test_constants_are_computed_once_and_are_not_part_of_the_model():
    model = kg.samples.random_tree(4, seed=2)
    same = kg.samples.random_tree(4, seed=2)
    assert engine.mechanism(model) is engine.mechanism(model)
    assert model == same
    heavier = model.replace(mass=2 * model.mass)
    assert (engine.mechanism(heavier)[5][:, 0] == 2 * engine.mechanism(model)[5][:, 0]).all()


def test_slack_springs_leave_the_model_alone():
    stiffness = MODEL.stiffness.copy()
    assert stiffness.any()
    slack = engine.without_springs(MODEL)
    assert not slack.stiffness.any()
    assert engine.without_springs(MODEL) is slack
    same_bits(MODEL.stiffness, stiffness)
    assert engine.without_springs(slack) is slack


def test_an_interrupt_while_constants_are_made_leaves_none_half_made(monkeypatch):
    """Found by the fuzzer of signals: of two attributes kept with a model only one was there."""
    model = kg.samples.two_link()

    def interrupted(constants):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.kernel_constants, "_ordinary", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kg.mass_matrix(model, [0.0, 0.0])
    monkeypatch.undo()
    assert kg.mass_matrix(model, [0.0, 0.0]).shape == (2, 2)
    assert engine.tame(model) is not None


# --- force elements: nothing forgets them --------------------------------------------------------------------------

# called only with models whose elements have been taken off, by functions that add what these do
BARE = {
    "_engine.elements": {"ELEMENTS", "ELEMENTS_DERIVATIVES"},
    "_engine.element_hessian": {"GRADIENTS"},
    "design.dynamics": {"_TORQUES", "_ACCELERATIONS", "_GRADIENT"},
    "design.elements": {"_FORCES"},
    "design.hessian": {"_TORQUES", "_ELEMENTS", "_SECOND", "_SECOND_ELEMENTS"},
    "dynamics": {"SERIES"},
}


def all_kernels():
    """Every kernel that a module names, alone or in dicts, with the modules' names for it."""
    found = {}
    for info in pkgutil.walk_packages(kg.__path__, "kinegrad."):
        if info.name.startswith(("kinegrad.bridges", "kinegrad.__main__")):  # which need packages, or run
            continue
        stack = list(vars(importlib.import_module(info.name)).items())
        while stack:
            name, x = stack.pop()
            if isinstance(x, engine.Kernel):
                found.setdefault(x, set()).add((info.name.removeprefix("kinegrad."), name))
            elif type(x) is dict:
                stack += [(name, y) for y in x.values()]
    return found


def test_kernels_that_do_not_know_force_elements_refuse_them():
    """A kernel says what elements do to its results, or that they do nothing; of any other, silence would be wrong."""
    strap = kg.SpringDamper(MODEL.link_names[-1], other_point=[0, 0, 3], stiffness=1.0)
    sprung = MODEL.replace(elements={"strap": strap})
    kernels = all_kernels()
    assert len(kernels) > 40
    bare = {(module, name) for module, names in BARE.items() for name in names}
    for kernel, names in kernels.items():
        assert (kernel.with_elements is None) == bool(names & bare), names
        if kernel.with_elements is None:
            with pytest.raises(InputError, match="has force elements, which are not part of"):
                engine.evaluate_with(kernel, sprung, [np.zeros(N)] * len(kernel.state))


def test_what_is_indifferent_to_forces_is_so():
    """The functions of kinematics, masses and impacts, with a strap and without: the same bits."""
    strap = kg.SpringDamper(MODEL.link_names[-1], other_point=[0, 0, 3], stiffness=10.0, damping=1.0)
    q, v, a = states()
    tip = [kg.Contact(MODEL.link_names[-1], directions="x")]

    def everything(model):
        held, link = kg.ConstraintSet(model, tip), MODEL.link_names[-1]
        return [
            kg.mass_matrix(model, q), kg.forward_kinematics(model, q, v, a), kg.point_motion(model, q, v, a, link=link),
            kg.jacobian(model, q, link=link), kg.momentum(model, q, v), kg.momentum_derivatives(model, q, v),
            kg.forward_kinematics_derivatives(model, q, v, a), kg.inverse_dynamics_regressor(model, q, v, a),
            kg.inverse_dynamics_load_derivatives(model, q), kg.impact(model, held, q, v),
            kg.impact_derivatives(model, held, q, v), held.derivatives(q, v, a), held.curvature(q, [2.0]),
        ]  # fmt: skip

    for x, y in zip(everything(MODEL), everything(MODEL.replace(elements={"strap": strap})), strict=True):
        assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y
