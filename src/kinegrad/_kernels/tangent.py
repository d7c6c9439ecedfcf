"""Dual lanes: the same kernel source, differentiated along a direction.

A dual u + ε u̇ carries a value and its slope along one direction in the space of states and model constants.  Sums,
products and quotients follow the rules of differentiation (ε² = 0), sin and cos theirs; nothing else occurs in the
algorithms, so compiling one of them for duals *is* its derivative: the recursions (62)–(70) of [anderson2002] are what
the compiler makes of ``aba.py``.

    Dual      value and slope, both lane values
    Pair      two arrays (values, slopes): states, results or scratch; load, store, gather, scatter act on both
    Varied    constants (n, k) with slopes (rows, n·k): [i, j] is a Dual for the rows r, r+1, … of the current block

With the JIT disabled a Dual is a complex lane value, which is to say: complex step.
"""

import operator
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import intrinsic, lower_builtin, make_attribute_wrapper, overload, register_model
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from kinegrad._kernels.jit import OVERLOAD, inline
from kinegrad._kernels.lanes import (
    LaneType,
    as_lane,
    gather,
    is_tuple_of,
    lane,
    layer,
    load,
    pick,
    scatter,
    spread,
    store,
    within,
)
from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.trigonometry import sincos

_H = 1e-30  # with the JIT disabled a dual is the complex number value + i·_H·slope


class Pair(NamedTuple):
    """Values and slopes: two arrays of one shape, or one of them of a single row.  The methods serve plain Python."""

    value: Any
    slope: Any

    def __getitem__(self, slot):
        return make(self.value[slot], self.slope[slot])

    def __setitem__(self, slot, u):
        self.value[slot], self.slope[slot] = np.real(u), np.imag(u) / _H

    def gather(self, r, k):
        return make(gather(self.value, r, k), gather(self.slope, r, k))

    def scatter(self, r, k, u):
        scatter(self.value, r, k, np.real(u))
        scatter(self.slope, r, k, np.imag(u) / _H)

    def layer(self, s):
        return Pair(self.value[s], self.slope[s])


class Varied(NamedTuple):
    """Constants (n, k), their slopes (rows, n·k), and the row at which the current block of lanes begins."""

    value: Any
    slope: Any
    row: Any

    def __getitem__(self, where):
        i, j = where
        return self.value[i, j] + 1j * _H * gather(self.slope, self.row, i * self.value.shape[1] + j)


# --- the number -------------------------------------------------------------------------------------------------


class DualType(types.Type):
    """Numba's view of a dual."""

    def __init__(self):
        super().__init__(name=f"dual_{lane.name}")


dual = DualType()


@register_model(DualType)
class _DualModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, [("value", lane), ("slope", lane)])


make_attribute_wrapper(DualType, "value", "value")
make_attribute_wrapper(DualType, "slope", "slope")


def make(value, slope):
    """A dual from two lane values."""
    return value + 1j * _H * slope


@intrinsic
def _make(typingctx, value, slope):
    def codegen(context, builder, sig, args):
        return _pack(context, builder, *args)

    return dual(lane, lane), codegen


overload(make)(lambda value, slope: lambda value, slope: _make(value, slope))


def _is_plain(t):
    return t == lane or isinstance(t, types.Number)


# Rules of differentiation, as code: (a, da), (b, db) → value and slope; None is a slope that is zero.


def _add(builder, a, da, b, db):
    return builder.fadd(a, b), _sum(builder, da, db)


def _sub(builder, a, da, b, db):
    return builder.fsub(a, b), _sum(builder, da, None if db is None else builder.fneg(db))


def _mul(builder, a, da, b, db):
    left = None if db is None else builder.fmul(a, db)
    right = None if da is None else builder.fmul(da, b)
    return builder.fmul(a, b), _sum(builder, left, right)


def _div(builder, a, da, b, db):
    quotient = builder.fdiv(a, b)
    less = None if db is None else builder.fneg(builder.fmul(quotient, db))
    return quotient, builder.fdiv(_sum(builder, da, less), b)


def _sum(builder, x, y):
    return y if x is None else x if y is None else builder.fadd(x, y)


def _binary(op, rule):
    @infer_global(op)
    class _(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and dual in args and all(a == dual or _is_plain(a) for a in args):
                return signature(dual, *args)

    plain = [LaneType, types.Number]
    for left, right in [(DualType, DualType), *((DualType, t) for t in plain), *((t, DualType) for t in plain)]:

        @lower_builtin(op, left, right)
        def _(context, builder, sig, args):
            parts = (_parts(context, builder, x, t) for x, t in zip(args, sig.args, strict=True))
            (a, da), (b, db) = parts
            return _pack(context, builder, *rule(builder, a, da, b, db))


def _parts(context, builder, x, t):
    if t == dual:
        structure = cgutils.create_struct_proxy(dual)(context, builder, value=x)
        return structure.value, structure.slope
    return as_lane(context, builder, x, t), None


def _pack(context, builder, value, slope):
    structure = cgutils.create_struct_proxy(dual)(context, builder)
    structure.value, structure.slope = value, slope
    return structure._getvalue()


for _op, _differentiate in {"add": _add, "sub": _sub, "mul": _mul, "truediv": _div}.items():
    _binary(getattr(operator, _op), _differentiate)


@infer_global(operator.neg)
class _Negative(AbstractTemplate):
    def generic(self, args, kws):
        if args == (dual,):
            return signature(dual, dual)


@lower_builtin(operator.neg, DualType)
def _negative(context, builder, sig, args):
    value, slope = _parts(context, builder, args[0], dual)
    return _pack(context, builder, builder.fneg(value), builder.fneg(slope))


# --- memory, constants, comparison ------------------------------------------------------------------------------
# The operations of lanes.py and trigonometry.py, for duals.


@overload(load, jit_options=OVERLOAD)
def _(x, k):
    if is_tuple_of(x, Pair):
        return lambda x, k: make(load(x.value, k), load(x.slope, k))


@overload(store, jit_options=OVERLOAD)
def _(x, k, u):
    if is_tuple_of(x, Pair) and u == dual:

        def both(x, k, u):
            store(x.value, k, u.value)
            store(x.slope, k, u.slope)

        return both
    if is_tuple_of(x, Pair) and _is_plain(u):

        def constant(x, k, u):
            store(x.value, k, u)
            store(x.slope, k, 0.0)

        return constant


@overload(gather, jit_options=OVERLOAD)
def _(x, r, k):
    if is_tuple_of(x, Pair):
        return lambda x, r, k: make(gather(x.value, r, k), gather(x.slope, r, k))


@overload(scatter, jit_options=OVERLOAD)
def _(x, r, k, u):
    if is_tuple_of(x, Pair) and u == dual:

        def both(x, r, k, u):
            scatter(x.value, r, k, u.value)
            scatter(x.slope, r, k, u.slope)

        return both
    if is_tuple_of(x, Pair) and _is_plain(u):

        def constant(x, r, k, u):
            scatter(x.value, r, k, u)
            scatter(x.slope, r, k, 0.0)

        return constant


@overload(layer, jit_options=OVERLOAD)
def _(x, s):
    if is_tuple_of(x, Pair):
        return lambda x, s: Pair(x.value[s], x.slope[s])


@overload(operator.getitem, jit_options=OVERLOAD)
def _(x, where):
    if is_tuple_of(x, Varied):
        return lambda x, where: make(
            spread(x.value[where]), gather(x.slope, x.row, where[0] * x.value.shape[1] + where[1])
        )


@overload(spread, jit_options=OVERLOAD)
def _(c):
    if c == dual:
        return lambda c: c


@overload(pick, jit_options=OVERLOAD)
def _(u, w):
    if u == dual:
        return lambda u, w: pick(u.value, w)


@overload(within, jit_options=OVERLOAD)
def _(u, bound):
    if u == dual:
        return lambda u, bound: within(u.value, bound)


@overload(sincos, jit_options=OVERLOAD)
def _(x):
    if x == dual:

        def rule(x):
            s, c = sincos(x.value)
            return make(s, c * x.slope), make(c, -(s * x.slope))

        return rule


@inline
def vary(m, dm, r):
    """The mechanism m with the slopes dm of its constants, for the block of rows from r on."""
    return Mechanism(
        m.parent,
        Varied(m.rate, dm.rate, r),
        Varied(m.X, dm.X, r),
        Varied(m.F, dm.F, r),
        m.P,
        Varied(m.inertia, dm.inertia, r),
        m.J,
        m.massive,
        Varied(m.passive, dm.passive, r),
        Varied(m.gravity, dm.gravity, r),
        m.apart,
    )


class Slopes(NamedTuple):
    """Slopes of a mechanism's constants, (rows, n·k) each, in the order in which kernels receive them."""

    rate: Any
    X: Any
    F: Any
    inertia: Any
    passive: Any
    gravity: Any


@inline
def unpack_slopes(dm):
    return Slopes(dm[0], dm[1], dm[2], dm[3], dm[4], dm[5])
