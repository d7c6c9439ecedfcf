"""Values that no argument expects, and good values spoiled a little."""

import collections
import datetime
import random
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np


class Refuses:
    """Raises whatever it is asked, its text and its truth included."""

    def _refuse(self, *args, **kwargs):
        raise RuntimeError("no")

    __array__ = __len__ = __iter__ = __float__ = __int__ = __bool__ = __getitem__ = __repr__ = __str__ = _refuse
    __eq__ = __hash__ = __lt__ = __index__ = __contains__ = _refuse


class Endless:
    """Says it has more entries than it gives."""

    def __len__(self):
        return 10**6

    def __getitem__(self, k):
        if k > 3:
            raise IndexError
        return float(k)


class BadText(str):
    """A text that cannot be shown."""

    __slots__ = ()

    def __repr__(self):
        raise RuntimeError("no text")


def _values():
    text = ["", "\x20", "x", "-z", "link0", "joint0", "knee ", " knee", "a\0b", "a\rb", "a\nb", "\t", "\x7f",
           "\ud800", "\u202ex", "né", "x" * 5000, "gravity.z", "joint0.a", "link0.mass", "..", "theta", "distal",
           "1_0", BadText("x")]  # fmt: skip
    numbers = [None, True, False, 0, 1, 2, -1, 3, 7, 2**31, 2**63, -(2**63), 10**400, 0.0, -0.0, 0.5, -1.5, 2.0,
              1e-320, 1e-160, 1e-30, 1e30, 1e99, 1e101, 1e154, 1e200, 1e308, -1e308, np.nan, np.inf, -np.inf, 1j, 1 +
              1e-30j, np.float16(0.1), np.float32(1e38), np.longdouble("1e4000"), np.int8(3), np.uint64(2**63),
              np.bool_(True), np.timedelta64(1, "s"), np.datetime64("2024-02-29"), Decimal("1.5"), Decimal("NaN"),
              Fraction(1, 3)]  # fmt: skip
    masked = np.ma.masked_array(np.ones(3), mask=[True, False, False])
    arrays = [np.zeros(0), np.zeros((0, 3)), np.ones(3), -np.ones(3), np.ones((3, 3)), np.eye(3), np.eye(4),
             np.zeros((4, 4)), np.full((3, 3), 1e308), np.full(3, 1e-310), np.full((4, 4), np.nan), np.diag([1e308] *
             3), np.ones((2, 3)), np.ones((2, 4, 4)), np.array(0.5), np.array("x"), np.array([None]), np.array(["a",
             "b"]), np.zeros(3, dtype=object), np.ones(3, dtype=bool), np.ones(3, dtype=complex), np.array([(1, 2.0)],
             dtype="i4,f8"), np.array(["2024-02-29"], dtype="M8[D]"), np.asfortranarray(np.eye(4)), np.eye(4)[::-1],
             np.full(3, np.longdouble("1e4000")), masked, [masked, masked], [np.ma.masked, 1.0, 2.0],
             np.ma.masked]  # fmt: skip
    others = [(), [], {}, [[]], [[1.0], [1.0, 2.0]], [None] * 3, [1.0] * 2000, list(range(3)), [-1, 0, 1], [-1, 0, 0],
             [0, 1, 2], [-1, -1], [2, 1, 0], (1.0, 2.0), [True] * 3, ["a", "b", "c"], ["a", "a"], [["a"]], {"link0":
             1.0}, {"x": {}}, {"link0.mass": 1.0}, {"a": "link0.mass", "b": "link0.mass"}, {1: 2}, {"link0": [1, 2,
             3]}, {None: None}, {1, 2}, frozenset("ab"), range(3), object(),
             object, int, np.sin, lambda: None, lambda x: x, types.SimpleNamespace(), collections.OrderedDict(a=1),
             collections.UserList([1.0]), slice(None), ..., NotImplemented, memoryview(b"abc"), b"bytes",
             bytearray(b"x"), datetime.date(2024, 2, 29), Refuses(), [Refuses()] * 3, {"link0": Refuses()}, Endless(),
             ValueError("x"), types.MappingProxyType({"a": 1}), random.Random(0)]  # fmt: skip
    return [*text, *numbers, *arrays, *others]


VALUES = _values()


def hostile(rng: random.Random, good):
    """Something else, or what was good spoiled a little."""
    if rng.random() < 0.6:
        return rng.choice(VALUES)
    if isinstance(good, list | tuple) and good:
        other, place = rng.choice(VALUES), rng.randrange(len(good))
        spoiled = [
            good[:-1],
            [*good, *good],
            list(reversed(good)),
            [*good[:place], other, *good[place + 1 :]],
            iter(good),
        ]
        return rng.choice(spoiled)
    if isinstance(good, dict) and good:
        key = rng.choice(list(good))
        return rng.choice([{**good, key: rng.choice(VALUES)}, {str(key) + ".": good[key]}, list(good.items())])
    try:
        x = np.asarray(good)
    except ValueError:  # of lists of different lengths
        return rng.choice(VALUES)
    if x.dtype.kind not in "biuf":
        return rng.choice(VALUES)
    x = x.astype(float)
    with np.errstate(all="ignore"):
        scaled = x * rng.choice([-1.0, 0.0, 1e-9, 1e-200, 1e9, 1e99, 1e200, np.nan, np.inf, 1 + 1e-12, 1.001])
        nudged = x + np.random.default_rng(rng.randrange(10**6)).normal(size=x.shape) * rng.choice([1e-14, 1e-6, 1.0])
    shapes = [x[None], x.ravel(), x.T, x.tolist(), x.astype(object), x + 0j, np.ma.masked_array(x), x.astype(str)]
    return rng.choice([scaled, scaled, nudged, nudged, *shapes])
