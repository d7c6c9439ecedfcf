"""Building blocks written straight into the kernel that uses them, by running them.

Numba compiles a function once for every combination of argument types: it translates, types, lowers, optimises and
assembles it, and the kernel that calls it inlines it again.  For the 70 building blocks of a kernel that is nearly all
of its compile time.  So a building block is no compiled function here.  It is Python that is *run* while the kernel is
compiled, on stand-ins for the values that there will be (``standin.py``):

    typing      Numba asks what a call returns: the block is run on stand-ins that know their types alone
    lowering    Numba asks for the code of a call: the block is run on stand-ins whose operators emit it, in place

Blocks that call blocks simply run, so that the whole of a kernel becomes one function, optimised once.  What a block
decides by numbers of Python (a constant, the length of a tuple) is decided then; branches and loops on stand-ins
become branches and loops of LLVM (``program.py``, ``flow.py``).

    traced(function, flags)     a building block, with these flags on its floating-point instructions
    operation(function)         an operation on lanes or arrays, a `functools.singledispatch` on its first argument:
                                the function is what plain Python does, and `register` says what to do with
                                stand-ins, and with named tuples that stand for arrays
    operator_on(op, …)          an operator of stand-ins, for compiled code

All can be used in compiled functions, in building blocks and in plain Python.  A building block may call anything
that Numba knows, functions compiled by ``numba.njit`` too.
"""

import functools
import inspect
import linecache

from numba import types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from kinegrad._kernels.compiler.program import HELPERS, Program
from kinegrad._kernels.compiler.standin import MUTE, Tracer, as_type, stand_in, tracer, tracing, type_of, value
from kinegrad._kernels.compiler.width import WIDTH, lane_count

_STACK = max(16, 8 * WIDTH)  # alignment [bytes] of vectors that do not fit in registers: none then spans cache lines


def traced(function, flags):
    """Make a function a building block."""
    lines = linecache.getlines(function.__code__.co_filename)
    program = functools.cache(lambda: Program(function, lines))

    @functools.wraps(function)
    def block(*args, **kwargs):
        if not tracing():
            return function(*args, **kwargs)
        with tracer()._replace(flags=flags):
            return program().run(args, kwargs)

    block.py_func = function
    return _known_to_numba(block)


def operation(function):
    """Make a function an operation, of which the first argument decides what is done."""
    perform = functools.singledispatch(function)

    @functools.wraps(function)
    def operate(first, *args):
        return perform(value(first) if tracing() else first, *args)

    operate.register = perform.register
    return _known_to_numba(operate)


def _known_to_numba(function):
    """Let compiled functions call a function that runs on stand-ins."""
    function.traced = True
    infer_global(function, types.Function(_template(function, inspect.signature(function))))
    lower_builtin(function, types.VarArg(types.Any))(_lowering(function))
    return function


def operator_on(op, *operands, applies):
    """Let compiled functions use an operator on operands of these classes of types, where `applies` to the types."""
    infer_global(op)(_template(op, applies=applies))
    for classes in operands:
        lower_builtin(op, *classes)(_lowering(op))


def _template(function, python_signature=None, applies=lambda args: True):
    """How Numba asks for the type of a call: by running it."""
    found = {}

    class Template(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            if python_signature is not None:
                bound = python_signature.bind(*args, **kws)
                bound.apply_defaults()
                args = (x if isinstance(x, types.Type) else type_of(x) for x in bound.arguments.values())
            args = tuple(types.unliteral(t) for t in args)
            if not applies(args):
                return None
            asked = lane_count(), args
            if asked not in found:
                try:
                    with Tracer(self.context):
                        found[asked] = type_of(function(*(stand_in(t, MUTE) for t in args)))
                except (TypeError, AttributeError, NameError, ValueError) as error:
                    raise TypingError(f"{function.__name__} cannot be traced: {error} ({_place(error)})") from error
            return signature(found[asked], *args).replace(pysig=python_signature)

    return Template


def _place(error):
    """File and line of the building block that an error comes from."""
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.keys() >= HELPERS.keys():
            place = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _lowering(function):
    def lower(context, builder, sig, args):
        builder.function.attributes.add("nounwind")  # llvmlite writes the alignment only beside another attribute
        builder.function.attributes.alignstack = _STACK
        with Tracer(context.typing_context, context, builder):
            result = function(*(stand_in(t, v) for t, v in zip(sig.args, args, strict=True)))
            return impl_ret_borrowed(context, builder, sig.return_type, as_type(result, sig.return_type))

    return lower


_known_to_numba(lane_count)
