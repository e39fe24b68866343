"""A selector that gives an event loop its turns: few sockets in each, and each with its number.

Owns how many sockets a turn serves, on systems with epoll: thousands may be ready together, and each takes some 50 us.
What one turn leaves out comes first in the next, as the kernel goes round. Also owns the count of turns, by which
others see that a new one has begun (``frame_turns``). Does not own how long a turn takes (``turns``), nor what is done
with a socket.
"""

from __future__ import annotations

import select
import selectors
from typing import Any

#: Sockets that are reported in one turn.
MOST_READY = 200


class BoundedEpoll:
    """An epoll object that reports few sockets at once."""

    def __init__(self, epoll: Any) -> None:
        self._poll = epoll.poll
        self.register = epoll.register
        self.unregister = epoll.unregister
        self.modify = epoll.modify
        self.fileno = epoll.fileno
        self.close = epoll.close

    def __repr__(self) -> str:
        return f"BoundedEpoll({MOST_READY})"

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self._poll(timeout, min(maxevents, MOST_READY))
        return found


class TurnSelector(selectors.DefaultSelector):
    """Bounded where there is epoll, the usual one elsewhere."""

    _selector: Any

    def __init__(self) -> None:
        super().__init__()
        #: The number of the turn that begins with the last ``select``.
        self.number = 0
        if hasattr(select, "epoll") and isinstance(self, selectors.EpollSelector):
            self._selector = BoundedEpoll(self._selector)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.number += 1
        return super().select(timeout)
