"""Branches of a kernel, and where they meet.

A building block that branches on a stand-in emits both sides, each into a block of its own (``fork``).  Where the
edges from those blocks meet (``join``), each variable that differs between them becomes a phi of LLVM, number by
number, so that nothing goes through memory.  Short cuts of Python's expressions are branches too.
"""

import operator
import types as python_types
from typing import Any, NamedTuple

import numpy as np
from numba import types

from kinegrad._kernels.compiler.standin import (
    INT,
    Number,
    Value,
    as_type,
    check,
    emit,
    rebuild,
    stand_in,
    tracer,
    type_of,
    value,
)

VALUE = "the value"  # no variable has this name


class Edge(NamedTuple):
    """A way to where edges meet: the block it comes from, and the variables on it."""

    block: Any
    names: dict[str, Any]


class Mixed:
    """A variable whose type depends on the way taken.  That is no error before it is used."""

    def __init__(self, name, found):
        self.why = f"{name!r} has no single type here: {' or '.join(map(str, dict.fromkeys(found)))}"

    def __repr__(self):
        return self.why

    def _refuse(self, *args):
        raise TypeError(self.why)

    __bool__ = __iter__ = __len__ = __getattr__ = __getitem__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse


# --- where edges meet -------------------------------------------------------------------------------------------


def common_type(found):
    """The type that all of these can have, or None."""
    if all(t == found[0] for t in found):
        return found[0]
    return None if None in found else tracer().typing.unify_types(*found)


def type_or_none(x):
    try:
        return type_of(x)
    except TypeError:
        return None


def _same(x, y):
    return x is y or (type(x) is type(y) and isinstance(x, int | str) and x == y)


def leaves_of(x, t):
    """The LLVM values of the numbers in x, converted to the Numba type t."""
    if isinstance(t, types.BaseTuple):
        return [leaf for e, to in zip(x, t, strict=True) for leaf in leaves_of(e, to)]
    return [as_type(x, t)]


def phis_of(t):
    """New phis, one for each leaf of a variable of type t; the last first, as LLVM makes them of one in memory."""
    if isinstance(t, types.BaseTuple):
        return [phi for phis in [phis_of(e) for e in reversed(list(t))][::-1] for phi in phis]
    return [tracer().builder.phi(tracer().context.get_value_type(t))]


def grown(t, leaves):
    """The stand-in of type t with these leaves, an iterator."""
    return rebuild(t, [grown(e, leaves) for e in t]) if isinstance(t, types.BaseTuple) else stand_in(t, next(leaves))


def link(phis, leaves, block):
    """What the phis are when control comes from this block."""
    for name, values in leaves.items():
        for phi, leaf in zip(phis[name], values, strict=True):
            phi.add_incoming(leaf, block)


def join(edges):
    """Let edges meet, go on there, and return the variables that all of them have; None if there are no edges."""
    builder = tracer().builder
    if not edges:
        return None
    if len(edges) == 1:
        builder.position_at_end(edges[0].block)
        return edges[0].names
    first = edges[0].names
    shared = [name for name in first if all(name in edge.names for edge in edges)]
    found = {name: [edge.names[name] for edge in edges] for name in shared}
    merged = {name: xs[0] for name, xs in found.items() if all(_same(x, xs[0]) for x in xs)}
    kinds = {name: common_type([type_or_none(x) for x in found[name]]) for name in shared if name not in merged}
    meeting = builder.append_basic_block("meeting")
    incoming = []
    for edge in edges:
        builder.position_at_end(edge.block)
        incoming.append({name: leaves_of(edge.names[name], t) for name, t in kinds.items() if t is not None})
        builder.branch(meeting)
    builder.position_at_end(meeting)
    phis = {name: phis_of(t) for name, t in kinds.items() if t is not None}
    for edge, values in zip(edges, incoming, strict=True):
        link(phis, values, edge.block)
    for name, t in kinds.items():
        merged[name] = Mixed(name, map(type_or_none, found[name])) if t is None else grown(t, iter(phis[name]))
    return {name: merged[name] for name in shared}


def truth(x):
    """Whether x is true: True or False, or the LLVM value of what is known at run time only."""
    if not isinstance(x, Value):
        return bool(x)
    return x.v if x.t == types.boolean else emit(bool, x).v


def fork(test, yes, no):
    """Both sides of a branch, each into a block of its own; a side returns its variables, or None if it has left."""
    builder = tracer().builder
    blocks = [builder.append_basic_block(name) for name in ("then", "otherwise")]
    builder.cbranch(test, *blocks)
    edges = []
    for block, side in zip(blocks, (yes, no), strict=True):
        builder.position_at_end(block)
        names = side()
        if names is not None:
            edges.append(Edge(builder.block, names))
    return join(edges)


# --- expressions ------------------------------------------------------------------------------------------------


class Range:
    """A range whose bounds may be known at run time only: a loop of LLVM in ``for``, elsewhere its numbers."""

    def __init__(self, *args):
        self.start, self.stop, self.step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
        if not isinstance(self.step, int):
            raise TypeError("the step of a range must be known while tracing")

    def __iter__(self):
        if not (isinstance(self.start, int) and isinstance(self.stop, int)):
            raise TypeError("only `for` takes a range whose bounds are known at run time")
        return iter(range(self.start, self.stop, self.step))


def _length(x):
    return x.shape[0] if isinstance(x, Value) else len(x)


def _first_by(op):
    """min or max, by `op`: the first of the arguments that no other is below, or above."""

    def first_of(*args):
        found, *others = args[0] if len(args) == 1 else args
        for x in others:
            t, closer = common_type([type_of(found), type_of(x)]), op(x, found)
            if isinstance(closer, Value):
                found = Number(t, tracer().builder.select(closer.v, as_type(x, t), as_type(found, t)))
            else:
                found = x if closer else found
        return found

    return first_of


def choose(test, yes, no):
    """yes() if test else no()"""
    known = truth(test)
    if isinstance(known, bool):
        return yes() if known else no()
    return fork(known, lambda: {VALUE: value(yes())}, lambda: {VALUE: value(no())})[VALUE]


def both(first, *rest):
    """`and`, of functions that give its parts."""
    return choose(first(), lambda: both(*rest), lambda: False) if rest else _boolean(first())


def either(first, *rest):
    """`or`, of functions that give its parts."""
    return choose(first(), lambda: True, lambda: either(*rest)) if rest else _boolean(first())


def opposite(x):
    """`not x`"""
    known = truth(x)
    return not known if isinstance(known, bool) else Number(types.boolean, tracer().builder.not_(known))


def _boolean(x):
    known = truth(x)
    return known if isinstance(known, bool) else Number(types.boolean, known)


def item(x, k):
    """x[k], of a tuple too where k is known at run time only."""
    if not (isinstance(x, tuple) and isinstance(k, Value)) or type(x).__getitem__ is not tuple.__getitem__:
        return x[k]
    tr, at = tracer(), as_type(k, types.int64)
    t = common_type([type_of(e) for e in x])
    if t is None:
        raise TypeError(f"elements of different types, {type_of(x)}, need a number known while tracing")
    if tr.context.enable_boundscheck:
        check(k, len(x))
    *found, last = (leaves_of(e, t) for e in x)
    for number, leaves in reversed(list(enumerate(found))):
        here = tr.builder.icmp_signed("==", at, INT(number))
        last = [tr.builder.select(here, a, b) for a, b in zip(leaves, last, strict=True)]
    return grown(t, iter(last))


def has_stand_ins(args):
    return any(isinstance(x, Value) or (isinstance(x, tuple) and has_stand_ins(x)) for x in args)


def call(function, *args, **kwargs):
    """A call in a building block: traced if it can be, plain Python where no stand-in takes part, else Numba's."""
    if function in _OWN:
        return _OWN[function](*args)
    plain = hasattr(function, "traced") or isinstance(function, python_types.MethodType)
    plain = plain or (isinstance(function, type) and not issubclass(function, int | float | np.generic))
    if plain or not has_stand_ins((*args, *kwargs.values())):
        return function(*args, **kwargs)
    if kwargs:
        raise TypeError(f"arguments by name cannot be passed to {function} in a building block")
    return emit(function, *args)


_OWN: dict[Any, Any] = {len: _length, range: Range, min: _first_by(operator.lt), max: _first_by(operator.gt)}
