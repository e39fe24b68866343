"""The answers of group decisions, on their way to those who wait for them.

Owns that they leave in the order of the decisions, few in each turn of the loop: when a large group has joined, or is
told its assignment, each of thousands of members gets one, and to send an answer takes longer than to decide on it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

from cluster.coordinator.group.decisions import Answered

#: Answers that leave in one turn of the loop: about 50 us each, from the future that is done to the socket.
ANSWERS_AT_ONCE = 50


class GroupAnswers:
    """Of one broker. A waiter is a future."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: deque[Answered] = deque()
        self._left = ANSWERS_AT_ONCE
        self._is_turn_open = False

    def __repr__(self) -> str:
        return f"<GroupAnswers: {len(self._queue)} queue>"

    def add(self, answers: Iterable[Answered], asking: object = None) -> None:
        """Give these as soon as it is their turn; at once to one who is asking just now: its own turn is used."""
        for answered in answers:
            if answered.waiter is asking:
                _give(answered)
            else:
                self._queue.append(answered)
        self._give_some()

    def _give_some(self) -> None:
        while self._queue and self._left:
            self._left -= 1
            _give(self._queue.popleft())
            if not self._is_turn_open:
                self._is_turn_open = True
                self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._left, self._is_turn_open = ANSWERS_AT_ONCE, False
        self._give_some()

    def close(self) -> None:
        """Give all that are left."""
        while self._queue:
            _give(self._queue.popleft())


def _give(answered: Answered) -> None:
    """Nothing happens if no one waits for it."""
    waiter: Any = answered.waiter
    if not waiter.done():
        waiter.set_result(answered.answer)
