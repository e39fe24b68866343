"""What the large requests of one listener's connections may take together: ``queued.max.request.bytes`` (Kafka's
``SimpleMemoryPool``).

Owns who has how much, who waits for more, and who has to go: a request that has begun has room for all of it, so that
it can be finished, and the next waits. What is worked on counts until it was answered: its parts may have been copied.
While one waits, buffers that nothing is in are given back, and a connection
that sends nothing of the rest of its request for some seconds is closed: else a few bytes would keep everyone waiting
until ``connections.max.idle.ms``. Requests that fit into the buffer that every connection has are not counted.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

#: While others wait, the rest of a request must continue coming within this.
STALLED_S = 5
_LOOK_EACH_S = 1.0


class Holder(Protocol):
    """One connection with a large request, or a buffer that is left of one."""

    @property
    def pending_bytes(self) -> int:
        """What has come of it."""
        ...

    @property
    def is_reading(self) -> bool: ...

    def trim(self) -> bool:
        """Give back the buffer; False if something is in it. ``give`` is called meanwhile."""
        ...

    def stalled(self) -> None:
        """It must go. ``give`` is called now or soon."""
        ...

    def go_on(self) -> None:
        """There is room now."""
        ...


class FrameMemory:
    """Of one listener."""

    def __init__(self, limit_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self._limit_bytes = limit_bytes
        self._loop = loop
        #: Their buffers, and what is worked on beside these. Both together have ``_held_bytes``.
        self._held: dict[Holder, int] = {}
        self._kept: dict[Holder, int] = {}
        self._held_bytes = 0
        #: In the order in which they came, with what each waits for.
        self._waiting: dict[Holder, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        #: Of each holder what had come of its request when it was last looked at, and for how many looks.
        self._seen: dict[Holder, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"FrameMemory({self._held_bytes} of {self._limit_bytes} bytes, {len(self._waiting)} waiting)"

    def take(self, holder: Holder, size_bytes: int) -> bool:
        """Whether ``holder`` may have a request of this size. If not it is to read no more until ``go_on``."""
        # Who has begun is not to wait behind those who wait for it.
        if self._held.get(holder, 0) >= size_bytes or (not self._waiting and self._fits(holder, size_bytes)):
            return True
        self._waiting[holder] = size_bytes
        self._trim()
        self._serve(holder)
        if holder not in self._waiting:
            return True
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK_EACH_S, self._look)
        return False

    def keep(self, holder: Holder, size_bytes: int) -> None:
        """A request of ``holder`` is worked on and takes this beside the buffer, also when that is given back; 0 when
        it was answered."""
        before = self._kept.pop(holder, 0)
        if size_bytes:
            self._kept[holder] = size_bytes
        self._held_bytes += size_bytes - before
        if self._waiting:
            self._serve(None)

    def give(self, holder: Holder) -> None:
        """Its buffer has, and it waits for, nothing anymore."""
        self._waiting.pop(holder, None)
        self._held_bytes -= self._held.pop(holder, 0)
        if self._waiting:
            self._serve(None)

    def _fits(self, holder: Holder, size_bytes: int) -> bool:
        before = self._held.get(holder, 0)
        # Whatever the bound, one may always be served.
        if self._held_bytes > before and self._held_bytes - before + size_bytes > self._limit_bytes:
            return False
        self._held[holder] = size_bytes
        self._held_bytes += size_bytes - before
        return True

    def _serve(self, asking: Holder | None) -> None:
        for holder, size_bytes in list(self._waiting.items()):
            if not self._fits(holder, size_bytes):
                break
            del self._waiting[holder]
            if holder is not asking:
                holder.go_on()

    def _trim(self) -> None:
        for holder in [each for each in self._held if each not in self._waiting]:
            holder.trim()

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            self._seen.clear()
            return
        self._trim()
        seen, self._seen = self._seen, {}
        for holder in list(self._held):
            if holder in self._waiting or not holder.is_reading:
                continue
            pending, looks = seen.get(holder, (-1, 0))
            looks = looks + 1 if pending == holder.pending_bytes else 0
            if looks * _LOOK_EACH_S >= STALLED_S:
                holder.stalled()
            else:
                self._seen[holder] = (holder.pending_bytes, looks)
        self._timer = self._loop.call_later(_LOOK_EACH_S, self._look)
