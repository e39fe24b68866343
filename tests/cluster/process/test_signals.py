"""Holding signals back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from cluster.process.processes import until
from cluster.process.signals import held_signals


@pytest.fixture(autouse=True)
def _handlers_are_put_back() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    assert {number: signal.getsignal(number) for number in before} == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    """Nothing inside the block is cut in two; KeyboardInterrupt comes at its end."""
    steps = []

    def step() -> None:
        with held_signals():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("after")

    with pytest.raises(KeyboardInterrupt):
        step()
    assert steps == ["after"]


def test_a_signal_taken_by_another_thread_waits_too() -> None:
    """Python runs handlers on the main thread, whichever thread the kernel chose; they wait as well."""
    idle = threading.Event()
    thread = threading.Thread(target=idle.wait)
    thread.start()

    def step() -> None:
        with held_signals() as held:
            signal.pthread_kill(thread.ident or 0, signal.SIGINT)
            assert until(lambda: held.received == [signal.SIGINT], 10)

    try:
        with pytest.raises(KeyboardInterrupt):
            step()
    finally:
        idle.set()
        thread.join()


def test_a_handler_is_called_once_in_nested_blocks() -> None:
    """A signal waits for the end of the outermost block, and the handler sees it once."""
    calls: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    try:
        with held_signals():
            with held_signals():
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)
            assert calls == []
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_an_ignored_signal_stays_ignored() -> None:
    """What the owner ignores is not brought back by holding it."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_signals() as held:
            os.kill(os.getpid(), signal.SIGHUP)
        assert held.received == []
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, previous)
