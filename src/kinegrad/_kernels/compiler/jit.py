"""The only place where compile options live.

``kernel``  an entry point called from Python: releases the GIL, cached on disk, never raises; ``narrow`` of it is the
            same for calls of few states (``width.py``).
``inline``  a building block on lane values, always inlined into the kernel that uses it.
``exact``   like ``inline`` but without reassociation, for arithmetic whose order of operations is the algorithm.

``cache.py`` keeps compiled code, ``compiling.py`` has the thread that compiles.

Environment: ``KINEGRAD_QUIET`` (no notice while compiling), ``NUMBA_BOUNDSCHECK=1`` (checked array access),
``NUMBA_DISABLE_JIT=1`` (plain Python on NumPy lanes).
"""

import contextlib
import functools
import os
import sys
import threading
import types
from typing import Any

import numba
import numpy as np
from numba.core import config

from kinegrad._kernels.compiler import cache, compiling
from kinegrad._kernels.compiler.cache import BOUNDSCHECK
from kinegrad._kernels.compiler.trace import traced
from kinegrad._kernels.compiler.width import NARROW, WIDTH, compiling_for

__all__ = ["BOUNDSCHECK", "JIT", "exact", "inline", "kept", "kernel", "narrow", "widen"]

JIT = not config.DISABLE_JIT

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}  # nothing is allocated: no counting of references
_FAST = {"contract", "reassoc"}  # never nnan or ninf: NaN must survive
_NOTICE_AFTER = 1.0  # seconds
_FEW = "_few"  # ends names of kernels for few states
_narrow: dict[Any, Any] = {}  # of kernels: the same for few states


def kernel(function):
    """Compile `function` on first call, keep the result on disk, and say so if that takes over a second."""
    return _dispatcher(function, WIDTH)


def _dispatcher(function, lanes):
    dispatcher = numba.njit(fastmath=_FAST, **_OPTIONS)(function)
    if not JIT:
        return _quiet(dispatcher)  # which is the function itself
    dispatcher._cache = cache.Cache(function)
    # both ways in: from a call with arguments of new types, and from the compilation of another function
    dispatcher.compile = functools.partial(_apart, _compile_with_notice, dispatcher, dispatcher.compile, lanes)
    dispatcher._compile_for_args = functools.partial(_apart, dispatcher._compile_for_args)
    return dispatcher


def narrow(wide: Any) -> Any:
    """A kernel for calls of at most NARROW states; the kernel itself where registers hold no more."""
    found = _narrow.get(wide)
    if found is None:
        found = _narrow.setdefault(wide, wide if NARROW == WIDTH else _dispatcher(_renamed(wide.py_func), NARROW))
    return found


def _renamed(function):
    """A copy under another name, as symbols of compiled code are named after functions."""
    name = function.__name__ + _FEW
    copy = types.FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)
    copy.__module__, copy.__qualname__ = function.__module__, name
    return copy


def widen() -> None:
    """Compile, or load, for many states what was compiled for few."""
    for wide, few in list(_narrow.items()):
        for signature in few.signatures if few is not wide else ():
            wide.compile(signature)


def _quiet(function):
    """Without the JIT: what divides by zero or overflows is found in the end, as in compiled code."""

    @functools.wraps(function)
    def plain(*arguments):
        with np.errstate(all="ignore"):
            return function(*arguments)

    return plain


def kept(dispatcher):
    """A function of another package, compiled on first call: on the compiler's thread, and kept on disk."""
    if JIT:
        dispatcher._cache = cache.Cache(dispatcher.py_func)
        dispatcher._compile_for_args = functools.partial(_apart, dispatcher._compile_for_args)
    return dispatcher


def _apart(work, *arguments):
    """Work of the compiler, on the compiler's thread."""
    if compiling.inside():
        return work(*arguments)
    result = compiling.run(work, *arguments)
    cache.warn_of_troubles()
    return result


def _compile_with_notice(dispatcher, compile_now, lanes, signature):
    name = dispatcher.py_func.__name__
    if lanes < WIDTH:
        name = f"{name.removesuffix(_FEW)} for few states"
    timer = threading.Timer(_NOTICE_AFTER, _notice, [name])
    timer.daemon = True

    def start():
        with contextlib.suppress(RuntimeError):  # the process may have no more threads
            timer.start()

    dispatcher._cache.missed = start
    try:
        with compiling_for(lanes):
            return compile_now(signature)
    finally:
        timer.cancel()


def inline(function):
    """A building block: inlined, contraction and reassociation allowed."""
    return traced(function, tuple(sorted(_FAST))) if JIT else function


def exact(function):
    """A building block whose order of operations matters: contraction only."""
    return traced(function, ("contract",)) if JIT else function


def _notice(name):
    if not os.environ.get("KINEGRAD_QUIET"):
        kept = cache.folder() or "memory"
        print(f"kinegrad: compiling {name} (once, usually for a few seconds; kept in {kept})", file=sys.stderr)
