"""The same numbers in memory of all kinds: strided, transposed, reversed, unaligned, mapped, of other types, lists."""

import random
import tempfile

import numpy as np

HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e155, -1e80, 1e20, 5e-324, 1e-310, -0.0, 2.0**53)


class Labelled(np.ndarray):
    """A subclass, as other libraries have."""


def strided(x):
    """Every second number of memory twice as long."""
    return np.repeat(x, 2, axis=-1)[..., ::2]


def gaps(x):
    """Rows with room between them."""
    room = np.full((*x.shape[:-1], x.shape[-1] + 3), 7.0)
    room[..., 1:-2] = x
    return room[..., 1:-2]


def reversed_all(x):
    """Negative strides along all axes."""
    back = (slice(None, None, -1),) * x.ndim
    return x[back].copy()[back]


def transposed(x):
    """The first axis is the fastest."""
    return np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0) if x.ndim else x


def read_only(x):
    """Not to be written to."""
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x):
    """Between the addresses of float64."""
    room = np.zeros(x.nbytes + 8, dtype=np.uint8)
    y = np.ndarray(x.shape, float, buffer=room.data, offset=1)
    y[...] = x
    return y


def mapped(x):
    """In a file."""
    if not x.size:
        return x
    with tempfile.TemporaryFile() as file:
        y = np.memmap(file, dtype=float, mode="w+", shape=x.shape)
    y[...] = x
    return y


def whole(x):
    """Rounded, as integers."""
    x = np.ma.getdata(x)
    return np.rint(np.clip(x, -1e6, 1e6)).astype(int) if np.isfinite(x).all() else x


def narrow(x):
    """Of single precision."""
    with np.errstate(all="ignore"):
        return x.astype(np.float32)


FILLABLE = (np.copy, np.asfortranarray, strided, gaps, reversed_all, transposed, unaligned, mapped)  # float64, writable
KINDS = (
    *[np.copy] * 8, *FILLABLE, read_only, whole, narrow, lambda x: x.astype(np.longdouble), lambda x: x.astype(">f8"),
    lambda x: x.tolist(), tuple, np.ma.masked_array, lambda x: x.copy().view(Labelled),
    lambda x: memoryview(np.ascontiguousarray(x)), lambda x: x.astype(object), lambda x: x + 0j,
)  # fmt: skip


def arranged(rng: random.Random, x: np.ndarray):
    """The numbers of `x` in some other form; a single number, spoiled in its shape, has no rows to arrange."""
    return rng.choice(KINDS)(x) if x.ndim else x


def spoiled(rng: random.Random, x: np.ndarray) -> np.ndarray:
    """One number of `x`, or all, hostile."""
    x = x.copy()
    if x.size and rng.random() < 0.8:
        x.flat[rng.randrange(x.size)] = rng.choice(HOSTILE)
    else:
        x[...] = rng.choice(HOSTILE)
    return x


_empty = np.empty


def used(*arguments, **named):
    """Memory as ``np.empty`` may give it at worst: whatever is not written shows."""
    x = _empty(*arguments, **named)
    if x.dtype == np.float64:
        x.fill(np.nan)
    return x


def memory(x: np.ndarray) -> np.ndarray:
    """The array that owns what `x` is a view of."""
    while isinstance(x.base, np.ndarray) and not isinstance(x, np.memmap):
        x = x.base
    return x
