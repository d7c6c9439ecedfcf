"""The model and the states that tests of the engine share."""

import numpy as np

import kinegrad as kg

N = 6
MODEL = kg.samples.random_tree(N, seed=1)


def states(*shape, seed=0, n=N):
    return np.random.default_rng(seed).normal(size=(3, *shape, n))


def same_bits(x, y):
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    assert x.tobytes() == y.tobytes()


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
