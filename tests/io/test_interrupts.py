"""Interrupts while HDF5 works are raised after it, and not lost."""

import signal
import threading

import pytest

from kinegrad.io.interrupts import interrupts_wait


def test_an_interrupt_is_raised_at_the_end():
    handler = signal.getsignal(signal.SIGINT)
    reached = []

    @interrupts_wait()
    def work():
        signal.raise_signal(signal.SIGINT)
        reached.append(True)  # h5py closes its file in peace

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == [True]
    assert signal.getsignal(signal.SIGINT) is handler


def test_without_an_interrupt_nothing_is_raised():
    handler = signal.getsignal(signal.SIGINT)
    with interrupts_wait():
        assert signal.getsignal(signal.SIGINT) is not handler
    assert signal.getsignal(signal.SIGINT) is handler


def test_only_the_main_thread_gets_interrupts():
    handler, found = signal.getsignal(signal.SIGINT), []

    def work():
        with interrupts_wait():
            found.append(signal.getsignal(signal.SIGINT) is handler)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]
