"""Whether a machine was busy with something else while it was timed: by the spread of repeated measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["disturbed", "disturbed_words"]

SLOW, WORSE = 1.5, 1.15  # median over best, and best of one half over that of the other


def disturbed(times: Sequence[float]) -> bool:
    """Whether repeated times of the same work differ by more than an idle machine lets them.

    >>> disturbed([1.0, 1.02, 1.01, 1.1, 1.0, 1.05]), disturbed([1.0, 1.0, 1.0, 1.3, 1.4, 1.3])
    (False, True)
    """
    if len(times) < 4:
        return False
    half = len(times) // 2
    first, second = min(times[:half]), min(times[half:])
    return float(np.median(times)) > SLOW * min(times) or max(first, second) > WORSE * min(first, second)


def disturbed_words(count: int, of: int) -> str:
    """What to say where some of the measurements were disturbed; nothing if none was.

    >>> disturbed_words(0, 9)
    ''
    """
    if not count:
        return ""
    return (
        f"The machine was busy with something else while {count} of {of} times were measured: repeats of the same work "
        "differ too much. Times are the best of their repeats all the same, but no causes are inferred from them; run "
        "it again on an idle machine."
    )
