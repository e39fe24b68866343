"""How many sockets a turn of an event loop serves: thousands may be ready together, and each takes some 50 us.

Owns that bound, on systems with epoll, and the number of turns. What one turn leaves out comes first in the next: the
kernel goes round. Does not own what is done with a socket.
"""

from __future__ import annotations

import select
import selectors
from typing import Any

#: Sockets that are reported in one turn.
MOST_READY = 200


class FewAtOnce:
    """An epoll object that reports few sockets at once."""

    def __init__(self, epoll: Any) -> None:
        self._poll = epoll.poll
        self.register = epoll.register
        self.unregister = epoll.unregister
        self.modify = epoll.modify
        self.fileno = epoll.fileno
        self.close = epoll.close

    def __repr__(self) -> str:
        return f"FewAtOnce({MOST_READY})"

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = self._poll(timeout, min(maxevents, MOST_READY))
        return found


class FewAtOnceSelector(selectors.DefaultSelector):
    """A selector of that kind; the usual one where there is no epoll."""

    _selector: Any

    def __init__(self) -> None:
        super().__init__()
        #: Of the turn that begins with the last ``select``.
        self.number = 0
        if hasattr(select, "epoll") and isinstance(self, selectors.EpollSelector):
            self._selector = FewAtOnce(self._selector)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.number += 1
        return super().select(timeout)
