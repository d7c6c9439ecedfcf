"""Ctrl-C while a library runs that does not expect it.

Python prints, and drops, what is raised in destructors and in the calls of weak references.  h5py makes such calls for
every object that it lets go, right after long work in C, which is when a waiting interrupt arrives: one in five was
lost.  An interrupt within h5netcdf's ``close`` leaves a file whose destructor complains.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_wait"]


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """An interrupt is raised at the end."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if noted:
            handler(noted[0], None)
