"""A lane value: one number for each of W states, in one SIMD register.

To Numba a lane value is the LLVM vector ``<W x double>`` with ``+ - * /`` and unary minus (a plain number mixes
in: it is the same for all states).  With the JIT disabled it is a NumPy array of length W, of any dtype, so the
same kernel source can be stepped through, measured for coverage, and differentiated by complex step.

    load(x, k), store(x, k, u)          row k of a scratch array (slots, W)
    gather(x, r, k), scatter(x, r, k, u)  column k of the W rows r, r+1, … of an array (rows, columns)
    layer(x, s)                         the array (rows, columns) number s of a three-dimensional one
    unload(x, r, scratch, slot)         all columns of those rows at once, from slots slot, slot+1, …
    spread(c)                           the number c in every lane
    pick(u, w), put(u, w, c)            one lane out, one lane in
    within(u, bound)                    are all |u| ≤ bound?  (False for NaN)

``gather`` and ``scatter`` clamp rows to the last one.  An incomplete last block thus repeats the last state in its
idle lanes and writes the same bits again, and an array of one row is the same for all states: no masks, no copies.
What stands for an array without being one (``slots.py``, ``tangent.py``) is a named tuple with methods of these names.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.extending import intrinsic, lower_builtin, overload, register_model
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from kinegrad._kernels.jit import BOUNDSCHECK, OVERLOAD, inline
from kinegrad._kernels.width import WIDTH

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


class LaneType(types.Type):
    """Numba's view of a lane value."""

    def __init__(self):
        super().__init__(name=f"lane{WIDTH}")


lane = LaneType()


@register_model(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


# --- arithmetic -------------------------------------------------------------------------------------------------


def _spread(builder, number):
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _INT32(0))
    mask = ir.Constant(ir.VectorType(_INT32, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), mask)


def as_lane(context, builder, value, fromty):
    return value if fromty == lane else _spread(builder, context.cast(builder, value, fromty, types.float64))


def _binary(op, instruction):
    @infer_global(op)
    class _(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and lane in args and all(a == lane or isinstance(a, types.Number) for a in args):
                return signature(lane, *args)

    for left, right in [(LaneType, LaneType), (LaneType, types.Number), (types.Number, LaneType)]:

        @lower_builtin(op, left, right)
        def _(context, builder, sig, args):
            operands = (as_lane(context, builder, a, t) for a, t in zip(args, sig.args, strict=True))
            return getattr(builder, instruction)(*operands)


for _op, _instruction in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
    _binary(getattr(operator, _op), _instruction)


@infer_global(operator.neg)
class _Negative(AbstractTemplate):
    def generic(self, args, kws):
        if args == (lane,):
            return signature(lane, lane)


@lower_builtin(operator.neg, LaneType)
def _negative(context, builder, sig, args):
    return builder.fneg(args[0])


# --- memory -----------------------------------------------------------------------------------------------------
# Each operation twice: its meaning in plain Python (what runs with the JIT disabled), and the code Numba emits.


def load(x, k):
    """Row k of scratch x, (slots, W)."""
    return x[k].copy()


def store(x, k, u):
    """Set row k of scratch x, (slots, W), to u."""
    x[k] = u


def gather(x, r, k):
    """Column k of rows r … r+W−1 of x, (rows, columns); rows past the last are the last."""
    if isinstance(x, tuple):
        return x.gather(r, k)
    return x[np.minimum(r + np.arange(WIDTH), len(x) - 1), k]


def scatter(x, r, k, u):
    """Write u into column k of rows r … r+W−1 of x, (rows, columns); rows past the last are the last."""
    if isinstance(x, tuple):
        x.scatter(r, k, u)
    else:
        x[np.minimum(r + np.arange(WIDTH), len(x) - 1), k] = u


def layer(x, s):
    """Rows and columns number s of x, (layers, rows, columns)."""
    return x.layer(s) if isinstance(x, tuple) else x[s]


def unload_block(x, r, k, scratch, slot):
    """Write slots slot … slot+W−1 of scratch into columns k … k+W−1 of rows r … r+W−1 of x, transposed."""
    x[np.minimum(r + np.arange(WIDTH), len(x) - 1), k : k + WIDTH] = scratch[slot : slot + WIDTH].T


def _slot(context, builder, sig, args):
    """Pointer to row k of a C-contiguous (slots, W) array."""
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    row = context.cast(builder, args[1], sig.args[1], types.int64)
    first = builder.gep(data, [builder.mul(row, _INT64(WIDTH))])
    return builder.bitcast(first, _VECTOR.as_pointer())


def _elements(context, builder, sig, args):
    """Pointers to column k of the W rows from r on, clamped, of a C-contiguous (rows, columns) array."""
    array = context.make_array(sig.args[0])(context, builder, args[0])
    rows, columns = (builder.extract_value(array.shape, axis) for axis in (0, 1))
    r, k = (context.cast(builder, a, t, types.int64) for a, t in zip(args[1:3], sig.args[1:3], strict=True))
    last = builder.sub(rows, _INT64(1))
    for w in range(WIDTH):
        row = builder.add(r, _INT64(w))
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        yield w, builder.gep(array.data, [builder.add(builder.mul(row, columns), k)])


@intrinsic
def _load(typingctx, x, k):
    def codegen(context, builder, sig, args):
        return builder.load(_slot(context, builder, sig, args), align=8)

    return lane(x, k), codegen


@intrinsic
def _store(typingctx, x, k, u):
    def codegen(context, builder, sig, args):
        value = as_lane(context, builder, args[2], sig.args[2])
        builder.store(value, _slot(context, builder, sig, args), align=8)
        return context.get_dummy_value()

    return types.void(x, k, u), codegen


@intrinsic
def _gather(typingctx, x, r, k):
    def codegen(context, builder, sig, args):
        u = ir.Constant(_VECTOR, ir.Undefined)
        for w, pointer in _elements(context, builder, sig, args):
            u = builder.insert_element(u, builder.load(pointer), _INT32(w))
        return u

    return lane(x, r, k), codegen


@intrinsic
def _scatter(typingctx, x, r, k, u):
    def codegen(context, builder, sig, args):
        value = as_lane(context, builder, args[3], sig.args[3])
        for w, pointer in _elements(context, builder, sig, args):
            builder.store(builder.extract_element(value, _INT32(w)), pointer)
        return context.get_dummy_value()

    return types.void(x, r, k, u), codegen


@intrinsic
def _unload_block(typingctx, x, r, k, scratch, slot):
    def codegen(context, builder, sig, args):
        first = _slot(context, builder, signature(sig.return_type, *sig.args[3:]), args[3:])
        rows = [builder.load(builder.gep(first, [_INT32(w)]), align=8) for w in range(WIDTH)]
        for (_, pointer), row in zip(_elements(context, builder, sig, args), _transpose(builder, rows), strict=True):
            builder.store(row, builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(x, r, k, scratch, slot), codegen


def _transpose(builder, rows):
    """W vectors of W, transposed by exchanging off-diagonal blocks of size 1, 2, 4, …"""
    size = 1
    while size < WIDTH:
        for i in range(WIDTH):
            if not i & size:
                a, b = rows[i], rows[i + size]
                low = [lane if not lane & size else WIDTH + lane - size for lane in range(WIDTH)]
                high = [lane + size if not lane & size else WIDTH + lane for lane in range(WIDTH)]
                masks = (ir.Constant(ir.VectorType(_INT32, WIDTH), mask) for mask in (low, high))
                rows[i], rows[i + size] = (builder.shuffle_vector(a, b, mask) for mask in masks)
        size *= 2
    return rows


def is_tuple_of(t, kind):
    """Whether t is Numba's type of the named tuple `kind`."""
    return isinstance(t, types.NamedTuple | types.NamedUniTuple) and t.instance_class is kind


def _on_arrays(x, fast, checked):
    """The implementation for arrays x; with bounds checking on, an ordinary (checked) access goes first."""
    if isinstance(x, types.Array):
        return checked if BOUNDSCHECK else fast


@overload(load)
def _(x, k):
    return _on_arrays(x, lambda x, k: _load(x, k), lambda x, k: (x[k, WIDTH - 1], _load(x, k))[1])


@overload(store)
def _(x, k, u):
    return _on_arrays(x, lambda x, k, u: _store(x, k, u), lambda x, k, u: (x[k, WIDTH - 1], _store(x, k, u))[1])


@overload(gather)
def _(x, r, k):
    return _on_arrays(
        x,
        lambda x, r, k: _gather(x, r, k),
        lambda x, r, k: (x[min(r, len(x) - 1), k], _gather(x, r, k))[1],
    )


@overload(scatter)
def _(x, r, k, u):
    return _on_arrays(
        x,
        lambda x, r, k, u: _scatter(x, r, k, u),
        lambda x, r, k, u: (x[min(r, len(x) - 1), k], _scatter(x, r, k, u))[1],
    )


@overload(layer, jit_options=OVERLOAD)
def _(x, s):
    return _on_arrays(x, lambda x, s: x[s], lambda x, s: x[s])


@overload(unload_block)
def _(x, r, k, scratch, slot):
    return _on_arrays(
        x,
        lambda x, r, k, scratch, slot: _unload_block(x, r, k, scratch, slot),
        lambda x, r, k, scratch, slot: (
            x[min(r, len(x) - 1), k + WIDTH - 1],
            scratch[slot + WIDTH - 1, WIDTH - 1],
            _unload_block(x, r, k, scratch, slot),
        )[2],
    )


@inline
def unload_part(x, r, k, count, scratch, slot):
    """Write scratch slots slot, slot+1, … as columns k … k+count−1 of rows r … r+W−1 of x."""
    whole = count - count % WIDTH
    for c in range(0, whole, WIDTH):
        unload_block(x, r, k + c, scratch, slot + c)
    for c in range(whole, count):
        scatter(x, r, k + c, load(scratch, slot + c))


@inline
def unload(x, r, scratch, slot):
    """Write scratch slots slot, slot+1, … as the columns of rows r … r+W−1 of x."""
    unload_part(x, r, 0, x.shape[1], scratch, slot)


# --- single lanes, comparison -----------------------------------------------------------------------------------


def spread(c):
    """The number c in every lane."""
    return np.full(WIDTH, c)


def pick(u, w):
    """The number in lane w."""
    return u[w]


def put(u, w, c):
    """The lanes u with lane w set to c."""
    u = u.copy()
    u[w] = c
    return u


def within(u, bound):
    """Whether |u| ≤ bound in every lane; False if any is NaN."""
    return bool(np.all(np.abs(u) <= bound))


@intrinsic
def _spread_number(typingctx, c):
    def codegen(context, builder, sig, args):
        return as_lane(context, builder, args[0], sig.args[0])

    return lane(c), codegen


@intrinsic
def _pick(typingctx, u, w):
    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], context.cast(builder, args[1], sig.args[1], types.int32))

    return types.float64(u, w), codegen


@intrinsic
def _put(typingctx, u, w, c):
    def codegen(context, builder, sig, args):
        number = context.cast(builder, args[2], sig.args[2], types.float64)
        return builder.insert_element(args[0], number, context.cast(builder, args[1], sig.args[1], types.int32))

    return lane(u, w, c), codegen


@intrinsic
def _within(typingctx, u, bound):
    def codegen(context, builder, sig, args):
        limit = as_lane(context, builder, args[1], sig.args[1])
        inside = builder.and_(
            builder.fcmp_ordered("<=", args[0], limit), builder.fcmp_ordered(">=", args[0], builder.fneg(limit))
        )
        bits = builder.bitcast(inside, ir.IntType(WIDTH))
        return builder.icmp_unsigned("==", bits, ir.IntType(WIDTH)(2**WIDTH - 1))

    return types.boolean(u, bound), codegen


overload(spread)(lambda c: (lambda c: _spread_number(c)) if isinstance(c, types.Number) or c == lane else None)
overload(pick)(lambda u, w: (lambda u, w: _pick(u, w)) if u == lane else None)
overload(put)(lambda u, w, c: lambda u, w, c: _put(u, w, c))
overload(within)(lambda u, bound: (lambda u, bound: _within(u, bound)) if u == lane else None)
