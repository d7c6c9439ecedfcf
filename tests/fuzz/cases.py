"""How many cases a fuzzer tries: ``KINEGRAD_FUZZ_CASES``, or a share of a few seconds."""

import os


def cases(few: int) -> int:
    """The number asked for in the environment, or `few`."""
    return int(os.environ.get("KINEGRAD_FUZZ_CASES", few))
