"""How many states one SIMD register holds: 8 with AVX-512, 4 with AVX2, 2 otherwise.

``KINEGRAD_LANES`` overrides it (1, 2, 4, 8 or 16); read once, at import.  Where it is none of these, ``WRONG`` says so,
and whoever is about to call a kernel raises it: an import cannot, without a traceback on the command line.
"""

import os

from llvmlite import binding

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
