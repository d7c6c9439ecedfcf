"""Dual lanes: the same kernel source, differentiated along a direction.

A dual u + ε u̇ carries a value and its slope along one direction in the space of states and model constants.  Sums,
products and quotients follow the rules of differentiation (ε² = 0), sin, cos and roots theirs; nothing else occurs in
the algorithms, so compiling one of them for duals *is* its derivative: the recursions (62)–(70) of [anderson2002] are
what the compiler makes of ``aba.py``.

    Dual      value and slope, both lane values, and the rules of differentiation as its operators (``Rules``)
    Pair      two arrays (values, slopes): states, results or scratch; load, store, gather, scatter act on both
    Varied    constants (n, k) with slopes (rows, n·k): [i, j] is a Dual for the rows r, r+1, … of the current block

With the JIT disabled a Dual is a complex lane value, which is to say: complex step.
"""

import operator
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numba import types

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.standin import tracing
from kinegrad._kernels.compiler.trace import operation, operator_on
from kinegrad._kernels.lanes.lane import (
    Lane,
    LaneType,
    gather,
    layer,
    load,
    pick,
    root,
    scatter,
    spread,
    store,
    within,
)
from kinegrad._kernels.lanes.trigonometry import sincos

# with the JIT disabled a dual is the complex number value + i·_H·slope; by a power of two, slopes keep their bits
_H = 2.0**-100


class Pair(NamedTuple):
    """Values and slopes: two arrays of one shape, or one of them of a single row."""

    value: Any
    slope: Any


class Varied(NamedTuple):
    """Constants (n, k), their slopes (rows, n·k), and the row at which the current block of lanes begins."""

    value: Any
    slope: Any
    row: Any

    def __getitem__(self, where):
        i, j = where
        return make(spread(self.value[i, j]), gather(self.slope, self.row, i * self.value.shape[1] + j))


# --- the number -------------------------------------------------------------------------------------------------


class Rules:
    """The rules of differentiation, ε² = 0, for a value and its slope; what stands beside them has no slope."""

    __slots__ = ()
    __array_ufunc__ = None  # numbers of NumPy leave arithmetic to them

    value: Any
    slope: Any

    def with_parts(self, value, slope):
        """The same kind of number with other parts."""
        return type(self)(value, slope)

    def parts_of(self, other):
        """Value and slope of an operand; None is a slope that is zero."""
        return (other.value, other.slope) if type(other) is type(self) else (other, None)

    def __add__(self, other):
        b, db = self.parts_of(other)
        return self.with_parts(self.value + b, self.slope if db is None else self.slope + db)

    def __radd__(self, other):
        return self.with_parts(other + self.value, self.slope)

    def __sub__(self, other):
        b, db = self.parts_of(other)
        return self.with_parts(self.value - b, self.slope if db is None else self.slope + -db)

    def __rsub__(self, other):
        return self.with_parts(other - self.value, -self.slope)

    def __mul__(self, other):
        b, db = self.parts_of(other)
        return self.with_parts(self.value * b, self.slope * b if db is None else self.value * db + self.slope * b)

    def __rmul__(self, other):
        return self.with_parts(other * self.value, other * self.slope)

    def __truediv__(self, other):
        b, db = self.parts_of(other)
        quotient = self.value / b
        return self.with_parts(quotient, (self.slope if db is None else self.slope + -(quotient * db)) / b)

    def __rtruediv__(self, other):
        quotient = other / self.value
        return self.with_parts(quotient, -(quotient * self.slope) / self.value)

    def __neg__(self):
        return self.with_parts(-self.value, -self.slope)


class Dual(Rules, namedtuple("Dual", ("value", "slope"))):
    """A value and its slope, both lane values; a number or a lane value beside it has no slope."""

    __slots__ = ()


@operation
def make(value, slope):
    """A dual from two lane values."""
    return value + 1j * _H * slope


@make.register(Lane)
def _(value, slope):
    return Dual(value, slope)


def parts(u):
    """Value and slope of u; None is a slope that is zero."""
    if isinstance(u, Dual):
        return u.value, u.slope
    return (u, None) if tracing() else (np.real(u), np.imag(u) / _H)


_OTHERS = (LaneType, types.Number)


def _is_dual(t):
    return isinstance(t, types.NamedUniTuple) and t.instance_class is Dual


for _name in ("add", "sub", "mul", "truediv"):
    operator_on(
        getattr(operator, _name),
        (types.NamedUniTuple, types.NamedUniTuple),
        *((types.NamedUniTuple, t) for t in _OTHERS),
        *((t, types.NamedUniTuple) for t in _OTHERS),
        applies=lambda args: any(map(_is_dual, args)) and all(_is_dual(t) or isinstance(t, _OTHERS) for t in args),
    )
operator_on(operator.neg, (types.NamedUniTuple,), applies=lambda args: _is_dual(args[0]))


# --- memory, constants, comparison ------------------------------------------------------------------------------
# The operations of lane.py and trigonometry.py, for duals.


@load.register(Pair)
def _(x, k):
    return make(load(x.value, k), load(x.slope, k))


@store.register(Pair)
def _(x, k, u):
    value, slope = parts(u)
    store(x.value, k, value)
    store(x.slope, k, 0.0 if slope is None else slope)


@gather.register(Pair)
def _(x, r, k):
    return make(gather(x.value, r, k), gather(x.slope, r, k))


@scatter.register(Pair)
def _(x, r, k, u):
    value, slope = parts(u)
    scatter(x.value, r, k, value)
    scatter(x.slope, r, k, 0.0 if slope is None else slope)


@layer.register(Pair)
def _(x, s):
    return Pair(layer(x.value, s), layer(x.slope, s))


@spread.register(Rules)
def _(c):
    return c


@pick.register(Rules)
def _(u, w):
    return pick(u.value, w)


@within.register(Rules)
def _(u, bound):
    return within(u.value, bound)


@root.register(Rules)
def _(u):
    value = root(u.value)
    return u.with_parts(value, u.slope / (2.0 * value))


@sincos.register(Rules)
def _(x):
    s, c = sincos(x.value)
    return x.with_parts(s, c * x.slope), x.with_parts(c, -(s * x.slope))


class _Vary(NamedTuple):
    slopes: Any
    row: Any

    def __call__(self, what, x):
        return Varied(x, getattr(self.slopes, what), self.row)


@inline
def vary(m, dm, r):
    """The mechanism m with the slopes dm of its constants, for the block of rows from r on."""
    return m.with_varied(_Vary(dm, r))
