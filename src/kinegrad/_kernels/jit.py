"""The only place where compile options live, and where compiled code is kept.

``kernel``  an entry point called from Python: releases the GIL, cached on disk, never raises.
``inline``  a building block on lane values, always inlined into the kernel that uses it.
``exact``   like ``inline`` but without reassociation, for arithmetic whose order of operations is the algorithm.

Numba's own cache looks at the file of the kernel alone and would keep stale code after a change in a file the
kernel calls, so the folder is keyed by a digest of all of ``_kernels/`` and by the lane width.

Environment: ``KINEGRAD_CACHE_DIR`` (where compiled code is kept), ``KINEGRAD_QUIET`` (no notice while compiling),
``NUMBA_BOUNDSCHECK=1`` (checked array access), ``NUMBA_DISABLE_JIT=1`` (plain Python on NumPy lanes).
"""

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
import threading
from pathlib import Path

import numba
from numba.core import caching, config

from kinegrad._kernels.trace import traced
from kinegrad._kernels.width import WIDTH

JIT = not config.DISABLE_JIT
BOUNDSCHECK = bool(config.BOUNDSCHECK)

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}  # nothing is allocated: no counting of references
_FAST = {"contract", "reassoc"}  # never nnan or ninf: NaN must survive
_NOTICE_AFTER = 1.0  # seconds
_compiling = threading.RLock()


@functools.cache
def digest() -> str:
    """Digest of everything that compiled code depends on and Numba's cache does not see."""
    sha = hashlib.sha256(f"{WIDTH} {BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        sha.update(source.name.encode() + source.read_bytes())
    return sha.hexdigest()[:16]


@functools.cache
def cache_folder() -> Path | None:
    """The first writable one of: the environment's, beside the package, the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    chosen = os.environ.get("KINEGRAD_CACHE_DIR")
    candidates = [Path(chosen)] if chosen else [Path(__file__).parent / "__pycache__", user / "kinegrad"]
    for candidate in candidates:
        try:
            folder = candidate.expanduser() / f"compiled-{digest()}"  # RuntimeError: there is no home
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except (OSError, RuntimeError):
            continue
        return folder
    return None


class _Locator(caching._CacheLocator):
    def __init__(self, py_func, py_file):
        self._py_file = py_file  # Numba names it when it says why something cannot be kept
        self._name = f"{Path(py_file).stem}-{py_func.__code__.co_firstlineno}"

    @classmethod
    def from_function(cls, py_func, py_file):
        return cls(py_func, py_file)

    def get_cache_path(self):
        return str(cache_folder())

    def get_source_stamp(self):
        return digest()

    def get_disambiguator(self):
        return self._name


class _CacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own class attribute)


class _Cache(caching.FunctionCache):
    """Numba's cache, but a damaged file or a full disk costs no more than a compilation."""

    _impl_class = _CacheImpl

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling half a file raises
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def kernel(function):
    """Compile `function` on first call, keep the result on disk, and say so if that takes over a second."""
    dispatcher = numba.njit(fastmath=_FAST, **_OPTIONS)(function)
    if not JIT:
        return dispatcher
    compile_now = dispatcher.compile

    def compile_with_notice(signature):
        with _compiling:  # a second thread that wants the same kernel waits for the first
            if cache_folder() is not None and isinstance(dispatcher._cache, caching.NullCache):
                dispatcher._cache = _Cache(function)
            timer = threading.Timer(_NOTICE_AFTER, _notice, [function.__name__])
            timer.daemon = True
            timer.start()
            try:
                return compile_now(signature)
            finally:
                timer.cancel()

    dispatcher.compile = compile_with_notice
    return dispatcher


def inline(function):
    """A building block: inlined, contraction and reassociation allowed."""
    return traced(function, tuple(sorted(_FAST))) if JIT else function


def exact(function):
    """A building block whose order of operations matters: contraction only."""
    return traced(function, ("contract",)) if JIT else function


def _notice(name):
    if not os.environ.get("KINEGRAD_QUIET"):
        print(f"kinegrad: compiling {name} (once; kept in {cache_folder() or 'memory'})", file=sys.stderr)
