"""Waiting for another thread without going to sleep: a loop that looks at a flag.

To wake a thread that sleeps takes 50 to 100 µs, as long as many a call of a few hundred states.  A thread that looks at
a flag is there within a microsecond, but keeps its processor busy, and so waits for a moment only (``_engine/pool.py``
says when).  It waits without Python's lock, and the flag that it raises first tells others that it has given it up.

A flag is a hint: who sees it asks Python for what it is about, and who misses it finds that out a little later.  So
nothing else has to be ordered with it.

Glossary
    raised, awaited   flags: (1,) integers, zero until they are raised
    turns             how often to look
    settle            turns to wait once the flag is seen, as long as the one who raised it holds Python's lock: to ask
                      for the lock in that time would be to sleep after all
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.compiler.standin import INT, Array, Number, tracer
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.lanes.stream import X86


@operation
def look(flag):
    """The number in a flag, read from memory each time."""
    return flag[0]


@operation
def lift(flag):
    """Raise a flag, now and not later."""
    flag[0] = 1


@operation
def pause(flag):
    """Tell the processor that this loop waits, for this flag."""


@look.register(Array)
def _(flag):
    return Number(types.int64, tracer().builder.load_atomic(flag.data, "monotonic", 8))


@lift.register(Array)
def _(flag):
    tracer().builder.store_atomic(INT(1), flag.data, "monotonic", 8)


@pause.register(Array)
def _(flag):
    builder = tracer().builder
    if X86:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])


@kernel
def linger(raised, awaited, turns, settle):
    """Raise one flag and look at another until it is raised, or for so many turns; returns whether it was."""
    lift(raised)
    for _ in range(turns):
        if look(awaited) != 0:
            for _ in range(settle):
                look(awaited)
                pause(awaited)
            return True
        pause(awaited)
    return False
