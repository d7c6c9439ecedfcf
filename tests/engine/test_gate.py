"""The validation gate: what is refused and how it is said, and what is accepted."""

from collections import UserList, deque

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, inverse_dynamics, mass_matrix
from kinegrad import _engine as engine
from tests.engine.batches import MODEL, N, Subclass, read_only, same_bits, states, unaligned


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


X = states(7, 3)  # q, v, a of 21 states
TAU = inverse_dynamics(MODEL, *X)


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
