"""Holding Ctrl-C and SIGTERM back for the length of a step that must not be cut in two.

Owns that alone. What a signal means is its handler's business.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Held:
    """What arrived meanwhile, in order."""

    received: list[int] = field(default_factory=list)


@contextmanager
def held_signals() -> Iterator[Held]:
    """Deliver no SIGINT, SIGTERM or SIGHUP inside the block; deliver what came at its end.

    Two things are done. The calling thread blocks the signals, and a child that is started inside inherits that: none
    can reach it before it has its own session and handlers. And on the main thread Python's handlers are replaced,
    because a signal that the kernel gives to another thread would still run its handler (KeyboardInterrupt) here.
    """
    held = Held()
    previous: dict[int, Callable[[int, FrameType | None], Any] | int] = {}

    def remember(signum: int, frame: FrameType | None) -> None:
        held.received.append(signum)

    if threading.current_thread() is threading.main_thread():
        for signum in HELD:
            current = signal.getsignal(signum)
            if current is not None and current != signal.SIG_IGN:
                previous[signum] = current
                signal.signal(signum, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield held
    finally:
        # Whatever is pending for this thread reaches `remember` here, while it is still in place.
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # Those that raise come last, SIGINT's the very last: nothing may stay undone when it does.
        for number, handler in sorted(previous.items(), key=_raises_last):
            signal.signal(number, handler)
        for number in dict.fromkeys(held.received):
            handler = previous[number]
            if callable(handler):
                # Called, not raised for: asyncio's loop has seen the signal on its wake-up descriptor already and
                # must not see it twice.
                handler(number, None)
            else:
                signal.raise_signal(number)


def _raises_last(item: tuple[int, object]) -> tuple[bool, bool]:
    return callable(item[1]), item[0] == signal.SIGINT
