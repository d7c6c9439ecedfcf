"""How many cases a fuzzer tries: a few in CI, as many as KINEGRAD_FUZZ_CASES says in ``make fuzz``."""

import os


def cases(default: int) -> int:
    return int(os.environ.get("KINEGRAD_FUZZ_CASES", default))
