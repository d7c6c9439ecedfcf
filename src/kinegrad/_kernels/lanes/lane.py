"""A lane value: one number for each of W states, in one SIMD register.

To Numba a lane value is the LLVM vector ``<W x double>`` with ``+ - * /`` and unary minus (a plain number mixes
in: it is the same for all states).  With the JIT disabled it is a NumPy array of length W, of any dtype, so the
same kernel source can be stepped through, measured for coverage, and differentiated by complex step.

    load(x, k), store(x, k, u)          row k of a scratch array (slots, W)
    gather(x, r, k), scatter(x, r, k, u)  column k of the W rows r, r+1, … of an array (rows, columns)
    layer(x, s)                         the array (rows, columns) number s of a three-dimensional one
    gather_all(x, r, k), scatter_all(x, r, k, u)  W columns of those rows at once, from k on
    fetch(x, r, k, count, scratch, slot)          so many columns, to slots slot, slot+1, …
    unload(x, r, scratch, slot)         all columns, from slots slot, slot+1, …
    clear(x, r)                         zero in all columns
    spread(c)                           the number c in every lane
    pick(u, w), put(u, w, c)            one lane out, one lane in
    within(u, bound)                    are all |u| ≤ bound?  (False for NaN)
    root(u)                             the square root
    select(a, b, u, v)                  u in lanes where a < b, v in the others (also where a or b is NaN)

Rows past the last one are the last one; in the place of r may stand other rows (``rows.py``).
What stands for an array without being one (``slots.py``, ``dual.py``) is a named tuple that registers with these
operations.  Each operation is given twice: its meaning in plain Python, and the code for stand-ins
(``compiler/trace.py``).
"""

import functools
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.extending import register_model

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.standin import INT, Array, Number, Value, as_type, check, kind, tracer
from kinegrad._kernels.compiler.trace import operation, operator_on
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.rows import elements, lanes, row_numbers

INT32 = ir.IntType(32)


class LaneType(types.Type):
    """Numba's view of a lane value: W numbers, in W registers' places of one kernel."""

    def __init__(self, lanes):
        super().__init__(name=f"lane{lanes}")
        self.vector = ir.VectorType(ir.DoubleType(), lanes)


lane = functools.cache(LaneType)


@register_model(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.vector)


def vector():
    """LLVM's type of lane values in the kernel that is being compiled."""
    return lane(lane_count()).vector


# --- arithmetic -------------------------------------------------------------------------------------------------


@kind(LaneType)
class Lane(Value):
    """Stand-in for a lane value."""

    __slots__ = ()

    @classmethod
    def of(cls, v):
        """The stand-in for an LLVM vector."""
        return cls(lane(lane_count()), v)

    def __neg__(self):
        return Lane.of(tracer().builder.fneg(self.v))


def as_lane(x):
    """The LLVM vector of a lane value or of a number, spread."""
    if isinstance(x, Lane):
        return x.v
    if not isinstance(x, Value):
        return ir.Constant(vector(), [float(x)] * lane_count())
    builder = tracer().builder
    first = builder.insert_element(_undefined(), as_type(x, types.float64), INT32(0))
    return builder.shuffle_vector(first, _undefined(), _mask([0] * lane_count()))


def _undefined():
    return ir.Constant(vector(), ir.Undefined)


def _mask(chosen):
    return ir.Constant(ir.VectorType(INT32, len(chosen)), list(chosen))


def is_plain(x):
    """Whether x is a lane value or a number."""
    return isinstance(x, Lane | Number | int | float)


def _binary(name, instruction):
    def forward(a, b):
        if not (is_plain(a) and is_plain(b)):
            return NotImplemented
        return Lane.of(getattr(tracer().builder, instruction)(as_lane(a), as_lane(b), flags=tracer().flags))

    setattr(Lane, f"__{name}__", forward)
    setattr(Lane, f"__r{name}__", lambda b, a: forward(a, b))
    operator_on(
        getattr(operator, name),
        (LaneType, LaneType),
        (LaneType, types.Number),
        (types.Number, LaneType),
        applies=lambda args: (
            all(isinstance(t, LaneType | types.Number) for t in args) and any(isinstance(t, LaneType) for t in args)
        ),
    )


for _name, _instruction in {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}.items():
    _binary(_name, _instruction)
operator_on(operator.neg, (LaneType,), applies=lambda args: isinstance(args[0], LaneType))


# --- memory -----------------------------------------------------------------------------------------------------


@operation
def load(x, k):
    """Row k of scratch x, (slots, W)."""
    return x[k].copy()


@operation
def store(x, k, u):
    """Set row k of scratch x, (slots, W), to u."""
    x[k] = u


@operation
def gather(x, r, k):
    """Column k of rows r … r+W−1 of x, (rows, columns); rows past the last are the last."""
    return x[row_numbers(x, r), k]


@operation
def scatter(x, r, k, u):
    """Write u into column k of rows r … r+W−1 of x, (rows, columns); rows past the last are the last."""
    x[row_numbers(x, r), k] = u


@operation
def gather_all(x, r, k):
    """Columns k … k+W−1 of rows r … r+W−1 of x: W lane values."""
    return tuple(gather(x, r, k + w) for w in lanes())


@operation
def layer(x, s):
    """Rows and columns number s of x, (layers, rows, columns)."""
    return x[s]


@operation
def scatter_all(x, r, k, u):
    """Write W lane values u into columns k … k+W−1 of rows r … r+W−1 of x."""
    x[row_numbers(x, r), k : k + lane_count()] = np.transpose(u)


def _slot(x, k, count=1):
    """Pointer to row k of a C-contiguous (slots, W) array, of which `count` are used."""
    builder = tracer().builder
    if tracer().context.enable_boundscheck:
        rows, columns = x.shape
        check(lane_count() - 1, columns)
        for end in {0, count - 1}:
            check(k + end, rows)
    rows = builder.bitcast(x.data, vector().as_pointer())
    return builder.gep(rows, [as_type(k, types.int64)])


@load.register(Array)
def _(x, k):
    return Lane.of(tracer().builder.load(_slot(x, k), align=8))


@store.register(Array)
def _(x, k, u):
    tracer().builder.store(as_lane(u), _slot(x, k), align=8)


@gather.register(Array)
def _(x, r, k):
    builder, u = tracer().builder, _undefined()
    for w, pointer in enumerate(elements(x, r, k)):
        u = builder.insert_element(u, builder.load(pointer), INT32(w))
    return Lane.of(u)


@scatter.register(Array)
def _(x, r, k, u):
    builder, u = tracer().builder, as_lane(u)
    for w, pointer in enumerate(elements(x, r, k)):
        builder.store(builder.extract_element(u, INT32(w)), pointer)


@gather_all.register(Array)
def _(x, r, k):
    if lane_count() == 1:
        return (gather(x, r, k),)
    # two columns at a time: pairs of numbers are joined as they are read, which takes half the time of a transposition
    builder, pair = tracer().builder, ir.VectorType(ir.DoubleType(), 2).as_pointer()
    rows, columns = list(elements(x, r, k, lane_count())), []
    for c in range(0, lane_count(), 2):
        pairs = [builder.load(builder.bitcast(builder.gep(p, [INT(c)]), pair), align=8) for p in rows]
        even, odd = _joined(pairs[0::2]), _joined(pairs[1::2])
        for side in (0, 1):
            columns.append(
                builder.shuffle_vector(even, odd, _mask([w - w % 2 + side + w % 2 * len(rows) for w in lanes()]))
            )
    return tuple(map(Lane.of, columns))


def _joined(pairs):
    """Pairs of numbers, one after the other in one vector."""
    size = 4
    while len(pairs) > 1:
        mask = _mask(range(size))
        pairs = [tracer().builder.shuffle_vector(a, b, mask) for a, b in zip(pairs[0::2], pairs[1::2], strict=True)]
        size *= 2
    return pairs[0]


@scatter_all.register(Array)
def _(x, r, k, u):
    builder = tracer().builder
    for pointer, row in zip(elements(x, r, k, lane_count()), transpose([as_lane(c) for c in u]), strict=True):
        builder.store(row, builder.bitcast(pointer, vector().as_pointer()), align=8)


def transpose(rows):
    """W vectors of W, transposed by exchanging off-diagonal blocks of size 1, 2, 4, …"""
    size, count = 1, lane_count()
    while size < count:
        low = _mask([w if not w & size else count + w - size for w in lanes()])
        high = _mask([w + size if not w & size else count + w for w in lanes()])
        for i in lanes():
            if not i & size:
                a, b = rows[i], rows[i + size]
                rows[i], rows[i + size] = (tracer().builder.shuffle_vector(a, b, mask) for mask in (low, high))
        size *= 2
    return rows


@inline
def fetch(x, r, k, count, scratch, slot):
    """Read columns k … k+count−1, at most W, of rows r … r+W−1 of x into scratch slots slot, slot+1, …

    Returns the sum of the squares of what was read.
    """
    total = spread(0.0)
    if count == lane_count():
        columns = gather_all(x, r, k)
        for w in lanes():
            store(scratch, slot + w, columns[w])
            total = total + columns[w] * columns[w]
    else:
        for c in range(count):
            u = gather(x, r, k + c)
            store(scratch, slot + c, u)
            total = total + u * u
    return total


@inline
def unload_part(x, r, k, count, scratch, slot):
    """Write scratch slots slot, slot+1, … as columns k … k+count−1 of rows r … r+W−1 of x."""
    whole = count - count % lane_count()
    for c in range(0, whole, lane_count()):
        scatter_all(x, r, k + c, tuple(load(scratch, slot + c + w) for w in lanes()))
    if whole < count and count > lane_count():  # the last W once more, rather than one by one
        c = count - lane_count()
        scatter_all(x, r, k + c, tuple(load(scratch, slot + c + w) for w in lanes()))
    else:
        for c in range(whole, count):
            scatter(x, r, k + c, load(scratch, slot + c))


@inline
def unload(x, r, scratch, slot):
    """Write scratch slots slot, slot+1, … as the columns of rows r … r+W−1 of x."""
    unload_part(x, r, 0, x.shape[1], scratch, slot)


@inline
def clear(x, r):
    """Zero in all columns of rows r … r+W−1 of x."""
    columns = x.shape[1]
    if x.shape[0] == 1:  # and so all lanes are alike
        for k in range(columns):
            x[0, k] = 0.0
        return
    whole = columns - columns % lane_count()
    for k in range(0, whole, lane_count()):
        scatter_all(x, r, k, (spread(0.0),) * lane_count())
    for k in range(whole, columns):
        scatter(x, r, k, spread(0.0))


# --- single lanes, comparison -----------------------------------------------------------------------------------


@operation
def spread(c):
    """The number c in every lane."""
    return np.full(lane_count(), c)


@operation
def pick(u, w):
    """The number in lane w."""
    return u[w]


@operation
def put(u, w, c):
    """The lanes u with lane w set to c."""
    u = u.copy()
    u[w] = c
    return u


@operation
def within(u, bound):
    """Whether |u| ≤ bound in every lane; False if any is NaN."""
    return bool(np.all(np.abs(u) <= bound))


@operation
def root(u):
    """The square root."""
    return np.sqrt(u)


@operation
def select(a, b, u, v):
    """u in lanes where a < b, v in the others."""
    return np.where(np.less(a, b), u, v)


@spread.register(Lane | Number)
def _(c):
    return Lane.of(as_lane(c))


@pick.register(Lane)
def _(u, w):
    return Number(types.float64, tracer().builder.extract_element(u.v, as_type(w, types.int32)))


@put.register(Lane)
def _(u, w, c):
    return Lane.of(tracer().builder.insert_element(u.v, as_type(c, types.float64), as_type(w, types.int32)))


@within.register(Lane)
def _(u, bound):
    builder, limit = tracer().builder, as_lane(bound)
    below, above = builder.fcmp_ordered("<=", u.v, limit), builder.fcmp_ordered(">=", u.v, builder.fneg(limit))
    bits = builder.bitcast(builder.and_(below, above), ir.IntType(lane_count()))
    return Number(types.boolean, builder.icmp_unsigned("==", bits, ir.IntType(lane_count())(2 ** lane_count() - 1)))


@root.register(Lane)
def _(u):
    kind = ir.FunctionType(vector(), [vector()])
    square_root = cgutils.get_or_insert_function(tracer().builder.module, kind, f"llvm.sqrt.v{lane_count()}f64")
    return Lane.of(tracer().builder.call(square_root, [u.v]))


@select.register(Lane | Number)
def _(a, b, u, v):
    builder = tracer().builder
    return Lane.of(builder.select(builder.fcmp_ordered("<", as_lane(a), as_lane(b)), as_lane(u), as_lane(v)))
