"""Hyper-dual lanes: the same kernel source, differentiated along two directions at once [fike2011].

A hyper-dual u + ε₁u₁ + ε₂u₂ + ε₁ε₂u₁₂ with ε₁² = ε₂² = 0 is a dual, along ε₂, whose value and slope are duals along ε₁
(``dual.py``).  Its last part is the second derivative along both directions: exact, as no difference is taken.

    Hyper       value u + ε₁u₁ and slope u₂ + ε₁u₁₂, both duals
    HyperPair   two Pairs of arrays, of values and of slopes: states, results or scratch
    Twice       constants (n, k) with slopes along both directions and second slopes, (rows, n·k) each

With the JIT disabled the inner duals are complex lane values, and the outer ones are what they are here.
"""

from collections import namedtuple
from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.lanes.dual import Rules, make
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store


class Hyper(Rules, namedtuple("Hyper", ("value", "slope"))):
    """A dual of duals."""

    __slots__ = ()


class HyperPair(NamedTuple):
    """Values and slopes, each a Pair of arrays."""

    value: Any
    slope: Any


class Change(NamedTuple):
    """Slopes along the first and the second direction, and along both, of one set of constants or of all."""

    first: Any
    second: Any
    both: Any


class Twice(NamedTuple):
    """Constants (n, k) with their slopes, and the row at which the current block of lanes begins."""

    value: Any
    slopes: Any
    row: Any

    def __getitem__(self, where):
        i, j = where
        k = i * self.value.shape[1] + j
        first, second, both = (gather(x, self.row, k) for x in self.slopes)
        return Hyper(make(spread(self.value[i, j]), first), make(second, both))


def parts(u):
    """Value and slope of u, duals each; 0 is a slope that is zero."""
    return (u.value, u.slope) if isinstance(u, Hyper) else (u, 0.0)


@load.register(HyperPair)
def _(x, k):
    return Hyper(load(x.value, k), load(x.slope, k))


@store.register(HyperPair)
def _(x, k, u):
    value, slope = parts(u)
    store(x.value, k, value)
    store(x.slope, k, slope)


@gather.register(HyperPair)
def _(x, r, k):
    return Hyper(gather(x.value, r, k), gather(x.slope, r, k))


@scatter.register(HyperPair)
def _(x, r, k, u):
    value, slope = parts(u)
    scatter(x.value, r, k, value)
    scatter(x.slope, r, k, slope)


class _Vary(NamedTuple):
    slopes: Any
    row: Any

    def __call__(self, what, x):
        first, second, both = (getattr(change, what) for change in self.slopes)
        return Twice(x, Change(first, second, both), self.row)


@inline
def vary_twice(m, slopes, r):
    """The mechanism m with the slopes of its constants, a :class:`Change` of Slopes, for the rows from r on."""
    return m.with_varied(_Vary(slopes, r))
