"""How long the turns of an event loop take: the selector tells, which the loop calls between two of them.

Owns the measuring, two looks at the clock a turn. Does not own what is made of a long turn.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable

from cluster.seams.turn_selector import TurnSelector

#: A turn of this length is told of.
LONG_TURN_NS = 100_000_000


class Turns(TurnSelector):
    """The selector of one loop. ``on_long`` is called with the nanoseconds of each long turn, on the loop."""

    def __init__(self, on_long: Callable[[int], None]) -> None:
        super().__init__()
        self._on_long = on_long
        self._begun_ns = time.monotonic_ns()
        self._select = super().select

    def __repr__(self) -> str:
        return f"Turns({len(self.get_map() or ())} files)"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        elapsed_ns = time.monotonic_ns() - self._begun_ns
        if elapsed_ns >= LONG_TURN_NS:
            self._on_long(elapsed_ns)
        found = self._select(timeout)
        self._begun_ns = time.monotonic_ns()
        return found

    def loop(self) -> asyncio.AbstractEventLoop:
        """A loop that turns with it."""
        return asyncio.SelectorEventLoop(self)
