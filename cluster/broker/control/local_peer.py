"""The controller's way to its own broker: a call within the process, with the same handler as a request from outside.

Owns the order of these calls and their completion: a handler that was begun is never cancelled half-way, even if the
controller resigns meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

#: Handles a LeaderAndIsr, UpdateMetadata or StopReplica request and returns its response.
Deliver = Callable[[Any], Awaitable[Any]]


class LocalPeer:
    """One per broker, shared by all its controllerships, so that they cannot overtake each other."""

    def __init__(self, deliver: Callable[[], Deliver]) -> None:
        self._deliver = deliver
        self._in_order = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"LocalPeer({len(self._running)} running)"

    async def ask(self, message: Any, version: int) -> Any:
        task = asyncio.get_running_loop().create_task(self._run(message))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    def close(self) -> None:
        """Nothing to close; what runs continues."""

    async def _run(self, message: Any) -> Any:
        async with self._in_order:
            return await self._deliver()(message)
