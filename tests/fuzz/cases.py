"""How many cases a fuzzer tries: ``KINEGRAD_FUZZ_CASES``, or a share of a few seconds."""

import os


def cases(few: int, *, cost: int = 1) -> int:
    """The number asked for in the environment, or `few`; of cases that take `cost` times as long, fewer by that."""
    asked = os.environ.get("KINEGRAD_FUZZ_CASES")
    return few if asked is None else max(int(asked) // cost, 1)
