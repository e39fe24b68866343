"""FrameTurns: how long one turn of the event loop takes requests from the connections of a listener.

Owns the time of a turn and the connections that have to wait for another one: each is allowed little by itself, and
hundreds may be ready together. A listener has its own, so that no crowd of clients delays what brokers ask each other.
Does not own what a request takes (``cluster.broker.pauses`` divides that), nor how many sockets are reported in one
turn (``turn_selector``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

#: How long requests are taken in one turn; then it is for others.
TURN_S = 0.01


class Turning(Protocol):
    """What counts the turns of the loop."""

    number: int


class FrameTurns:
    """Of one listener."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turning: Turning | None = None) -> None:
        """Without ``turning`` the loop is asked for the end of each turn in which requests came."""
        self._loop = loop
        self._turning = turning
        self._number = -1
        self._until_s = 0.0
        #: Those whose turn it is next. While there are any, a connection takes one request in a turn.
        self.resting: deque[Callable[[], None]] = deque()
        self._continues = False

    def __repr__(self) -> str:
        return f"FrameTurns({len(self.resting)} rest)"

    def is_over(self) -> bool:
        """Whether this turn has taken its requests. The first question in a turn begins its time: it is asked only when
        there is a request, or else connections that read again would use the time up for those that ask."""
        now_s = time.monotonic()
        turning = self._turning
        if turning is None:
            if self._number < 0:
                self._number, self._until_s = 0, now_s + TURN_S
                self._loop.call_soon(self._turn_ended)
        elif turning.number != self._number:
            self._number, self._until_s = turning.number, now_s + TURN_S
        return now_s >= self._until_s

    def rest(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` in a later turn, after all that rest already. It takes at least one request."""
        self.resting.append(go_on)
        if not self._continues:
            self._continues = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._continues = False
        # Those that rest again wait for the next turn.
        for _ in range(len(self.resting)):
            self.resting.popleft()()
            if self.is_over():
                break
        if self.resting and not self._continues:
            self._continues = True
            self._loop.call_soon(self._go_on)

    def _turn_ended(self) -> None:
        self._number = -1
