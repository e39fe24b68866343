"""Handles Ctrl-C and SIGTERM from the start of a run to its verdict. Owns what a signal does at which time.

While the run is conducted, the first signal asks for an orderly end, and the second also skips the verification.
Outside of the event loop (starting, verification), one signal ends the command at once. Later signals are ignored: the
rest takes only a moment, and leaves the run's files complete.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context manager for the main thread. ``count`` is the number of signals so far."""

    def __init__(self) -> None:
        self.count = 0
        self._raised = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ask: Callable[[], None] | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for each in SIGNALS:
            self._previous[each] = signal.signal(each, self._arrived)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each, handler in self._previous.items():
            signal.signal(each, handler)

    def ask_through(self, loop: asyncio.AbstractEventLoop, ask: Callable[[], None]) -> None:
        """Until the loop is closed, let a signal call ``ask`` in the loop instead of raising an exception.

        Does not use ``loop.add_signal_handler``: after the loop is closed, SIGTERM would kill the process at once.
        """
        self._loop, self._ask = loop, ask

    def raise_if_insistent(self) -> None:
        """Raises KeyboardInterrupt if a second signal came while the loop ran."""
        if self.count > 1 and not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """Ignore signals from now on."""
        self._raised = True

    def _arrived(self, _signal: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._loop is not None and self._ask is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask)
        elif not self._raised:
            self._raised = True
            raise KeyboardInterrupt
