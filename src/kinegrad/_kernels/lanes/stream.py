"""Results past the caches, and where in memory the rows of a block have to be for that.

A store that hits no cache first reads the line that it is about to write.  Results larger than the caches thus cross
the bus three times: read, written back, and whatever they push out of the cache read again.  A *streaming* store
writes whole lines to memory at once.  It wants the W numbers that it writes to stand at a multiple of W numbers in
memory.  Rows of c columns are equal in that if they are W / gcd(W, c) apart, so lanes take rows that far apart:

    Rows(r, step), r = 0 … step−1        a *group* of step·W rows in step blocks, as far as there are whole groups
    Rows(r, 1)                           the rest, with ordinary stores

No state's numbers depend on the lane or the block that computes them.  Of each row the columns before the first
multiple and after the last are written by ordinary stores.

Streaming stores of one block take as long as the bus does, which is why they are spread out over the computation of
the next one (``stream_some``).  They are not ordered with other stores: ``fence`` has to follow before another thread
may read them.  Where the processor is no x86, stores are ordinary, and there is nothing to fence.

Results are picked from scratch: column k of a matrix from slot where[k] after the matrix's first; without `where` from
slot k after the first.

Glossary
    out     several matrices, (states, columns) each; slots, where the slots of each begin
    where   (columns,), or None; where there are several matrices, one for each, or None
    kind    (W, blocks), likewise: of the W columns from skip + W·block on, for each skip: BLANK if topology makes them
            zero, RUN if their slots follow each other, else MIXED
    skip    columns before the first that stands at a multiple of W numbers in memory; the same in all rows of a block
"""

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.standin import INT, Array, Number, as_type, tracer
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.lane import (
    INT32,
    as_lane,
    load,
    pick,
    scatter,
    scatter_all,
    spread,
    transpose,
    vector,
)
from kinegrad._kernels.lanes.rows import Rows, elements, first_and_step, lanes, row_numbers

MIXED, BLANK, RUN = 0, 1, 2  # kinds of blocks
X86 = binding.get_process_triple().startswith(("x86_64", "i686", "i386"))


# --- operations -------------------------------------------------------------------------------------------------


@operation
def skipped(x, r):
    """How many columns of the rows r … are before the first that stands at a multiple of W numbers in memory."""
    first, _ = first_and_step(r)
    return -(x.ctypes.data // 8 + first * x.shape[1]) % lane_count()


@operation
def stream(x, r, k, u):
    """Write W lane values u into columns k … k+W−1 of rows r …, which stand at multiples of W numbers in memory."""
    x[row_numbers(x, r), k : k + lane_count()] = tuple(zip(*u, strict=True))


@operation
def fence(x):
    """All that was streamed, to x or elsewhere, is written before what is stored from now on."""


@skipped.register(Array)
def _(x, r):
    builder, (first, _) = tracer().builder, first_and_step(r)
    row = builder.gep(x.data, [as_type(first * x.shape[1], types.int64)])
    number = builder.lshr(builder.neg(builder.ptrtoint(row, INT)), INT(3))
    return Number(types.int64, builder.and_(number, INT(lane_count() - 1)))


@stream.register(Array)
def _(x, r, k, u):
    builder = tracer().builder
    for pointer, row in zip(elements(x, r, k, lane_count()), transpose([as_lane(c) for c in u]), strict=True):
        store = builder.store(row, builder.bitcast(pointer, vector().as_pointer()), align=8 * lane_count())
        if X86:
            store.set_metadata("nontemporal", builder.module.add_metadata([INT32(1)]))


@fence.register(Array)
def _(x):
    builder = tracer().builder
    if X86:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])


# --- rows of blocks ---------------------------------------------------------------------------------------------


@inline
def step_of(columns):
    """How far apart rows are that are equal in where they stand: W / gcd(W, columns)."""
    step = lane_count()
    while step > 1 and columns % 2 == 0:
        step, columns = step // 2, columns // 2
    return step


@inline
def count_blocks(start, stop, step, streaming):
    """How many blocks there are, and how many of them, the first, are in groups and so can be streamed."""
    count = stop - start
    return (count + lane_count() - 1) // lane_count(), count // (step * lane_count()) * step if streaming else 0


@inline
def block_rows(b, start, streamed, step):
    """The rows of block number b, of which the first `streamed` are in groups."""
    if b < streamed:
        return Rows(start + b // step * step * lane_count() + b % step, step)
    return Rows(start + b * lane_count(), 1)


# --- results of a block -----------------------------------------------------------------------------------------


@inline
def picked(scratch, slot, where, k):
    """The lane value of column k."""
    if where is None:
        return load(scratch, slot + k)
    return load(scratch, slot + where[k])


@inline
def picked_all(scratch, slot, where, k):
    """The lane values of columns k … k+W−1."""
    return tuple(picked(scratch, slot, where, k + w) for w in lanes())


@inline
def unload_from(x, r, scratch, slot, where):
    """All columns of rows r …, by ordinary stores."""
    columns = x.shape[1]
    if x.shape[0] == 1:  # and so all lanes are alike
        for k in range(columns):
            x[0, k] = pick(picked(scratch, slot, where, k), 0)
        return
    whole = columns - columns % lane_count()
    for k in range(0, whole, lane_count()):
        scatter_all(x, r, k, picked_all(scratch, slot, where, k))
    for k in range(whole, columns):
        scatter(x, r, k, picked(scratch, slot, where, k))


@inline
def unload_all(out, r, scratch, slots, where):
    """All columns of all matrices, by ordinary stores."""
    for which in range(len(out)):
        unload_from(out[which], r, scratch, slots[which], None if where is None else where[which])


@inline
def unload_ends(out, r, scratch, slots, where):
    """The columns before the first and after the last that are streamed."""
    columns = out[0].shape[1]
    for which in range(len(out)):
        x, slot, own = out[which], slots[which], None if where is None else where[which]
        skip = min(skipped(x, r), columns)
        for k in range(skip):
            scatter(x, r, k, picked(scratch, slot, own, k))
        for k in range(columns - (columns - skip) % lane_count(), columns):
            scatter(x, r, k, picked(scratch, slot, own, k))


@inline
def stream_blocks(x, r, scratch, slot, where, kind, first, last):
    """Blocks first … last−1 of the columns of x, as far as they are whole."""
    skip = skipped(x, r)
    for b in range(first, min(last, (x.shape[1] - skip) // lane_count())):
        k = skip + lane_count() * b
        if where is None:
            stream(x, r, k, picked_all(scratch, slot, where, k))
        elif kind[skip, b] == BLANK:
            stream(x, r, k, (spread(0.0),) * lane_count())
        elif kind[skip, b] == RUN:
            stream(x, r, k, tuple(load(scratch, slot + w + where[k]) for w in lanes()))
        else:
            stream(x, r, k, picked_all(scratch, slot, where, k))


@inline
def stream_some(out, r, scratch, slots, where, kind, first, last):
    """Blocks first … last−1 of those of all matrices, one matrix after the other."""
    blocks = out[0].shape[1] // lane_count()
    which, done = 0, 0
    while first < last:
        while done + blocks <= first:
            which, done = which + 1, done + blocks
        until = min(last, done + blocks)
        own, blank = (None, None) if where is None else (where[which], kind[which])
        stream_blocks(out[which], r, scratch, slots[which], own, blank, first - done, until - done)
        first = until
