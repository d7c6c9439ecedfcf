"""How many states one SIMD register holds: 8 with AVX-512, 4 with AVX2, 2 otherwise.

A call of few states leaves most lanes of a wide register idle, and yet fills scratch of its width: numbers that would
fit in the nearest cache do not.  Where registers hold eight states, kernels are therefore compiled for four as well, on
their first call with that few.  Both give the same bits (decision 141).  Those for sixteen, which no processor holds in
one register, would not: the compiler splits them, and arranges some sums otherwise.

    WIDTH         of most calls
    NARROW        of calls with no more states than that
    lane_count()  of the kernel that is being compiled; in compiled code and in building blocks a constant

``KINEGRAD_LANES`` overrides WIDTH (1, 2, 4, 8 or 16); read once, at import.  Where it is none of these, ``WRONG`` says
so, and whoever is about to call a kernel raises it: an import cannot, without a traceback on the command line.
"""

import contextlib
import os
import threading
from collections.abc import Iterator

from llvmlite import binding
from numba.core import config

ALLOWED = (1, 2, 4, 8, 16)


def detect() -> int:
    """Lanes of float64 in the widest register this CPU works well with."""
    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx2") else 2


def choose(setting: str | None) -> int:
    """The width asked for by `setting`, or the CPU's own where there is none."""
    if not setting:
        return detect()
    if setting not in map(str, ALLOWED):
        raise ValueError(
            f"the environment variable KINEGRAD_LANES is {setting[:20]!r}; expected one of {ALLOWED}, or leave it unset"
        )
    return int(setting)


try:
    WIDTH, WRONG = choose(os.environ.get("KINEGRAD_LANES")), ""
except ValueError as error:
    WIDTH, WRONG = detect(), str(error)
NARROW = 4 if WIDTH == 8 and not config.DISABLE_JIT else WIDTH


class _Compiling(threading.local):
    width = WIDTH


_compiling = _Compiling()


def lane_count() -> int:
    """Lanes of the kernel that this thread compiles; in plain Python, WIDTH."""
    return _compiling.width


@contextlib.contextmanager
def compiling_for(lanes: int) -> Iterator[None]:
    """What this thread compiles meanwhile has so many lanes."""
    before, _compiling.width = _compiling.width, lanes
    try:
        yield
    finally:
        _compiling.width = before
