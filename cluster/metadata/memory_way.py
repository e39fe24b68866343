"""The way between a client and the metadata store in memory: how long things travel, in which order, and their loss.

Owns that for one client. Times are the server's, whatever the clocks of nodes show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context


class Way:
    """``latency_s`` is how long something travels, either way. Nothing that is said overtakes what was said before."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = self.usual_latency_s = latency_s
        #: When the last thing arrives that was said while the way was slow.
        self._last_arrival_s = 0.0
        #: What is on its way, in order.
        self._under_way: dict[asyncio.Future[None], None] = {}

    def __repr__(self) -> str:
        return f"Way({self.latency_s:g} s, {len(self._under_way)} under way)"

    @property
    def is_slow(self) -> bool:
        """Whether it is slower than usual, or something is still coming from when it was."""
        return self._last_arrival_s > server_time_s() or self.latency_s != self.usual_latency_s

    def arrives_in_s(self) -> float:
        """How long what the server says now is under way."""
        if not self.is_slow:
            return self.latency_s
        now_s = server_time_s()
        self._last_arrival_s = max(self._last_arrival_s, now_s + self.latency_s)
        return self._last_arrival_s - now_s

    def bring(self, act: Callable[..., None], *arguments: object) -> None:
        """Have ``act`` called when what the server says now arrives; at once if the way is not slow."""
        if self.is_slow:
            Context().run(asyncio.get_running_loop().call_later, self.arrives_in_s(), act, *arguments)
        else:
            act(*arguments)

    async def travel(self, delay_s: float) -> None:
        """Be under way for this long, or until that is lost."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()
        timer = Context().run(loop.call_later, delay_s, _arrive, arrived)
        try:
            await self.wait_for(arrived)
        finally:
            timer.cancel()

    async def wait_for(self, arrived: asyncio.Future[None]) -> None:
        """Wait for what the other end does, or until no one here can learn of it: the way is lost."""
        self._under_way[arrived] = None
        try:
            await arrived
        finally:
            del self._under_way[arrived]

    def lose(self) -> None:
        """The way is cut: no one waits any longer for what is under way, nor for the other end."""
        for arrived in self._under_way:
            _arrive(arrived)


def server_time_s() -> float:
    """The time, whatever the clocks of nodes show."""
    return Context().run(asyncio.get_running_loop().time)


def _arrive(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)
