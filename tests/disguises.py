"""Good numbers disguised, bad ones, and what may come of them: a named error or the right answer."""

import array
import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kinegrad as kg
from kinegrad import samples

MODEL = samples.random_tree(3, seed=5, roots=2)
N = MODEL.n
CLOSE = 1e-11  # as in test_dynamics.py, with some room for large and small numbers in one state
MANY = settings(max_examples=150)


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
