"""Ctrl-C and SIGTERM from the first line of a run to its verdict. Owns what each of them means when.

While the run is conducted the first asks for a good end, and a second also gives up the verification. Outside the
loop (verification, starting) one is enough to go straight to the outcome. Signals after that are ignored: what is left
takes a moment and leaves the run's files whole.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context manager for the main thread; ``count`` is how many came."""

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
        """From now until the loop is closed a signal calls ``ask`` in the loop, and raises nothing.

        Not ``loop.add_signal_handler``: closing the loop would leave SIGTERM deadly for what comes after it.
        """
        self._loop, self._ask = loop, ask

    def raise_if_insistent(self) -> None:
        """Raises KeyboardInterrupt if a second signal came while the loop ran."""
        if self.count > 1 and not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From now on signals do nothing."""
        self._raised = True

    def _arrived(self, _signal: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._loop is not None and self._ask is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask)
        elif not self._raised:
            self._raised = True
            raise KeyboardInterrupt
