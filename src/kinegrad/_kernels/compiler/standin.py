"""Stand-ins: what a building block computes with while it is traced.

A stand-in has a Numba type ``t`` and an LLVM value ``v``.  Its operators emit instructions where the tracer's builder
stands, and give the stand-in of the result.  Numbers of Python stay what they are until they meet a stand-in, so that
``2 * N + 3`` is computed while tracing.  Tuples and named tuples are those of Python, with stand-ins inside.

    Number     integers, floats and truth values; what is not int64 or float64 is left to Numba
    Array      an array: its elements, its shape, and its rows as arrays of one dimension less
    kind       registers the class of stand-ins of another Numba type, as ``lanes/lane.py`` does for lanes
    emit       any function that Numba knows, called on stand-ins

While only types are asked for, the builder and the context are mute: they accept everything and answer nothing.
"""

import operator
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import default_manager
from numba.core.errors import TypingError

INT, FLOAT = ir.IntType(64), ir.DoubleType()
_thread = threading.local()


class Mute:
    """A builder, context or LLVM value that emits nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __bool__(self):
        return False


MUTE: Any = Mute()


class Tracer(NamedTuple):
    """Where code is emitted, and with which flags on floating-point instructions."""

    typing: Any
    context: Any = MUTE
    builder: Any = MUTE
    flags: tuple[str, ...] = ()

    def __enter__(self):
        stack().append(self)
        return self

    def __exit__(self, *_):
        stack().pop()


def stack():
    """The tracers at work in this thread, the innermost last."""
    if not hasattr(_thread, "tracers"):
        _thread.tracers = []
    return _thread.tracers


def tracing() -> bool:
    """Whether this thread is tracing a building block."""
    return bool(getattr(_thread, "tracers", None))


def tracer() -> Tracer:
    return _thread.tracers[-1]


# --- from Numba's values to stand-ins, and back -----------------------------------------------------------------


class Value:
    """Stand-in for a value of which nothing is known but its type."""

    __slots__ = ("t", "v")
    __hash__ = object.__hash__
    __array_ufunc__ = None  # numbers of NumPy leave arithmetic to the stand-in

    def __init__(self, t, v):
        self.t, self.v = t, v

    def __repr__(self):
        return f"<stand-in of {self.t}>"

    def __bool__(self):
        raise TypeError(f"whether {self.t} is true is known at run time only")

    def __iter__(self):
        raise TypeError(f"{self.t} cannot be iterated over in a building block")

    def __len__(self):
        raise TypeError(f"the length of {self.t} is known at run time only")

    def __getattr__(self, name):
        tr = tracer()
        t = None if name.startswith("__") else tr.typing.resolve_getattr(self.t, name)
        if t is None:
            raise AttributeError(f"{self.t} has no attribute {name!r}")
        return stand_in(t, tr.context.get_getattr(self.t, name)(tr.context, tr.builder, self.t, self.v, name))

    def __getitem__(self, where):
        return emit(operator.getitem, self, where)

    def __setitem__(self, where, x):
        emit(operator.setitem, self, where, x)


def _left_to_numba(op):
    return lambda *args: emit(op, *args)


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Value, f"__{_name}__", _left_to_numba(getattr(operator, _name)))

_kinds: dict[type, type[Value]] = {}


def kind(numba_type):
    """Register a class as that of the stand-ins of a class of Numba types."""

    def register(cls):
        _kinds[numba_type] = cls
        return cls

    return register


def stand_in(t, v):
    """The stand-in for an LLVM value of Numba type t."""
    t = types.unliteral(t)
    if isinstance(t, types.BaseTuple):
        builder = tracer().builder
        return rebuild(t, [stand_in(e, builder.extract_value(v, k)) for k, e in enumerate(t)])
    if isinstance(t, types.NoneType):
        return None
    return next((_kinds[c] for c in type(t).__mro__ if c in _kinds), Value)(t, v)


def rebuild(t, parts):
    """The Python tuple of Numba type t with these parts."""
    return t.instance_class(*parts) if isinstance(t, types.BaseNamedTuple) else tuple(parts)


def type_of(x):
    """The Numba type of a stand-in, a number, or a tuple of them."""
    if isinstance(x, Value):
        return x.t
    if isinstance(x, tuple):
        return types.BaseTuple.from_types([type_of(e) for e in x], type(x) if hasattr(x, "_fields") else None)
    if isinstance(x, bool | np.bool_):
        return types.boolean
    if isinstance(x, int | np.integer):
        return types.int64
    if isinstance(x, float):
        return types.float64
    if x is None:
        return types.none
    raise TypeError(f"a building block cannot compute with {x!r}")


def as_type(x, t):
    """The LLVM value of x, converted to Numba type t."""
    tr, own = tracer(), type_of(x)
    if isinstance(x, tuple):
        return tr.context.make_tuple(tr.builder, t, [as_type(e, to) for e, to in zip(x, t, strict=True)])
    if x is None:
        return tr.context.get_dummy_value()
    if not isinstance(x, Value):
        if t in (types.int64, types.float64):  # without a conversion to be optimised away
            return INT(int(x)) if t == types.int64 else FLOAT(float(x))
        x = Value(own, {types.boolean: ir.IntType(1), types.int64: INT, types.float64: FLOAT}[own](x))
    return x.v if own == t else tr.context.cast(tr.builder, x.v, own, t)


def value(x):
    """The stand-in for x."""
    return x if isinstance(x, Value | tuple) else stand_in(type_of(x), as_type(x, type_of(x)))


def emit(function, *args):
    """A call of anything that Numba knows."""
    tr = tracer()
    own = tuple(type_of(x) for x in args)
    known = tr.typing.resolve_value_type(function)
    sig = known.get_call_type(tr.typing, own, {})
    if sig is None:
        raise TypingError(f"{function} does not take {own}")
    if tr.builder is MUTE:
        return stand_in(sig.return_type, MUTE)
    call = tr.context.get_function(known, sig)
    tr.context.add_linking_libs(getattr(call, "libs", ()))
    return stand_in(sig.return_type, call(tr.builder, [as_type(x, t) for x, t in zip(args, sig.args, strict=True)]))


# --- numbers ----------------------------------------------------------------------------------------------------


@kind(types.Number)
@kind(types.Boolean)
class Number(Value):
    """Stand-in for an integer, a float or a truth value."""

    __slots__ = ()

    def __neg__(self):
        return Number(self.t, tracer().builder.fneg(self.v)) if self.t == types.float64 else emit(operator.neg, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return emit(abs, self)


def _arithmetic(name, on_floats, on_integers):
    op, plain = getattr(operator, name), (types.int64, types.float64)

    def forward(a, b):
        if not all(isinstance(x, Number | int | float | np.integer) for x in (a, b)):
            return NotImplemented
        ta, tb = type_of(a), type_of(b)
        if on_integers and ta == tb == types.int64:
            instruction, t, flags = on_integers, ta, ("nsw",)
        elif on_floats and ta in plain and tb in plain and types.float64 in (ta, tb):
            instruction, t, flags = on_floats, types.float64, tracer().flags
        else:
            return emit(op, a, b)
        return Number(t, getattr(tracer().builder, instruction)(as_type(a, t), as_type(b, t), flags=flags))

    setattr(Number, f"__{name}__", forward)
    setattr(Number, f"__r{name}__", lambda b, a: forward(a, b))


for _name, _on_floats, _on_integers in [
    ("add", "fadd", "add"),
    ("sub", "fsub", "sub"),
    ("mul", "fmul", "mul"),
    ("truediv", "fdiv", None),
    ("floordiv", None, None),
    ("mod", None, None),
    ("pow", None, None),
]:
    _arithmetic(_name, _on_floats, _on_integers)
for _name in ("and", "or", "xor", "lshift", "rshift", "invert"):
    setattr(Number, f"__{_name}__", _left_to_numba(getattr(operator, f"__{_name}__")))


# --- arrays -----------------------------------------------------------------------------------------------------


_DATA, _SHAPE = map(default_manager.lookup(types.float64[::1]).get_field_position, ("data", "shape"))
_outside: Any = weakref.WeakKeyDictionary()  # of an LLVM function: the block that raises IndexError


def check(k, length):
    """Raise IndexError unless 0 ≤ k < length.  All checks of a function share the block that raises."""
    tr = tracer()
    builder, function = tr.builder, tr.builder.function
    inside = builder.icmp_unsigned("<", as_type(k, types.int64), as_type(length, types.int64))
    if function not in _outside:
        _outside[function] = builder.append_basic_block("outside")
        with builder.goto_block(_outside[function]):
            tr.context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))
    go_on = builder.append_basic_block("inside")
    builder.cbranch(inside, go_on, _outside[function])
    builder.position_at_end(go_on)


@kind(types.Array)
class Array(Value):
    """Stand-in for an array.  Its pointer and shape are taken out once: Numba's way copies the array to the stack."""

    __slots__ = ("data", "shape")

    def __init__(self, t, v):
        super().__init__(t, v)
        builder = tracer().builder
        self.data = builder.extract_value(v, _DATA)
        shape = builder.extract_value(v, _SHAPE)
        self.shape = tuple(Number(types.int64, builder.extract_value(shape, axis)) for axis in range(t.ndim))

    def offset(self, index):
        """Elements before that of `index`, one number for each of the first axes; checked if bounds checking is on."""
        tr = tracer()
        total = 0
        for axis, (k, length) in enumerate(zip(index, self.shape, strict=False)):
            k = length + k if isinstance(k, int) and k < 0 else k
            if tr.context.enable_boundscheck:
                check(k, length)
            total = total * length + k if axis else k
        for length in self.shape[len(index) :]:
            total = total * length
        return as_type(total, types.int64)

    def pointer(self, *index):
        return tracer().builder.gep(self.data, [self.offset(index)], inbounds=True)

    def _index(self, where):
        """`where` as a tuple of numbers, or None if it is anything else or the array is not contiguous."""
        index = where if isinstance(where, tuple) else (where,)
        numbers = all(isinstance(k, int) or (isinstance(k, Number) and isinstance(k.t, types.Integer)) for k in index)
        return index if numbers and self.t.layout == "C" and len(index) <= self.t.ndim else None

    def __getitem__(self, where):
        tr, index = tracer(), self._index(where)
        if index is None:
            return super().__getitem__(where)
        if len(index) < self.t.ndim:
            return self.part(index)
        return stand_in(self.t.dtype, tr.context.unpack_value(tr.builder, self.t.dtype, self.pointer(*index)))

    def __setitem__(self, where, x):
        tr, index = tracer(), self._index(where)
        if index is None or len(index) < self.t.ndim:
            super().__setitem__(where, x)
        else:
            tr.context.pack_value(tr.builder, self.t.dtype, as_type(x, self.t.dtype), self.pointer(*index))

    def part(self, index):
        """What the first axes leave: a view that owns nothing."""
        from numba.np.arrayobj import populate_array  # loads much of Numba that importing kinegrad does not need

        tr = tracer()
        t = self.t.copy(ndim=self.t.ndim - len(index))
        if tr.builder is MUTE:
            return stand_in(t, MUTE)
        whole = tr.context.make_array(self.t)(tr.context, tr.builder, value=self.v)
        part = tr.context.make_array(t)(tr.context, tr.builder)
        strides = cgutils.unpack_tuple(tr.builder, whole.strides)[len(index) :]
        shape = [length.v for length in self.shape[len(index) :]]
        data = self.pointer(*index)
        populate_array(part, data, shape, strides, whole.itemsize, meminfo=whole.meminfo, parent=whole.parent)
        return stand_in(t, part._getvalue())
