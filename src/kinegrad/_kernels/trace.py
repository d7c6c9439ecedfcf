"""Building blocks written straight into the kernel that uses them, by running them.

Numba compiles a function once for every combination of argument types: it translates, types, lowers, optimises and
assembles it, and the kernel that calls it inlines it again.  For the 70 building blocks of a kernel that is nearly all
of its compile time.  So a building block is no compiled function here.  It is Python that is *run* while the kernel is
compiled, on stand-ins for the values that there will be:

    typing      Numba asks what a call returns: the block is run on stand-ins that know their types alone
    lowering    Numba asks for the code of a call: it is run on stand-ins whose operators emit it, in place (``standin.py``)

Blocks that call blocks simply run, so that the whole of a kernel becomes one function, typed and optimised once.  What a
block decides by numbers of Python (``if``, ``for`` over a tuple, ``WIDTH``) is decided then; branches and loops on
stand-ins become branches and loops of LLVM (``flow.py``).

    traced(function, flags)     a building block, with these flags on its floating-point instructions
    operation(function)         an operation on lanes or arrays, as `functools.singledispatch` on its first argument: the
                                function is what plain Python does; `register` says what to do with stand-ins, and with
                                named tuples that stand for arrays

Both give functions that compiled code, building blocks and plain Python can call.
"""

import functools
import inspect

from numba import types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from kinegrad._kernels.flow import Program
from kinegrad._kernels.standin import MUTE, Tracer, as_type, stand_in, tracer, tracing, type_of, value


def traced(function, flags):
    """Make a function a building block."""
    program = functools.cache(lambda: Program(function))

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
    infer_global(function, types.Function(_template(function, lambda args: True)))
    lower_builtin(function, types.VarArg(types.Any))(_lowering(function))
    return function


def operator_on(op, *operands, applies):
    """Let compiled functions use an operator, if `applies`, on each of these lists of classes of types."""
    infer_global(op)(_template(op, applies))
    for classes in operands:
        lower_builtin(op, *classes)(_lowering(op))


def _template(function, applies):
    found = {}

    class Template(AbstractTemplate):
        key = function

        def generic(self, args, kws):
            if kws:
                bound = inspect.signature(function).bind(*args, **kws)
                args = tuple(bound.arguments.values())
            args = tuple(types.unliteral(t) for t in args)
            if not applies(args):
                return None
            if args not in found:
                try:
                    with Tracer(self.context):
                        found[args] = type_of(function(*(stand_in(t, MUTE) for t in args)))
                except (TypeError, AttributeError, NameError, ValueError) as error:
                    raise TypingError(f"{function.__name__} cannot be traced: {error} ({_place(error)})") from error
            return signature(found[args], *args)

    return Template


def _place(error):
    """File and line of the building block's source that an error comes from."""
    here, place = __file__.rpartition("trace.py")[0], ""
    own = tuple(here + name for name in ("trace.py", "standin.py", "flow.py"))
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        place = place if file in own else f"{file}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _lowering(function):
    def lower(context, builder, sig, args):
        with Tracer(context.typing_context, context, builder):
            result = function(*(stand_in(t, v) for t, v in zip(sig.args, args, strict=True)))
            return impl_ret_borrowed(context, builder, sig.return_type, as_type(result, sig.return_type))

    return lower
