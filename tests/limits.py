"""The one time limit of all tests.

A shared machine takes the time it takes, so no test may ask for speed: a limit is there only so that a hang ends at
all.  Whatever waits (for a child, a thread, a queue) waits this long and no shorter.
"""

LIMIT = 2 * 3600.0  # s
