"""Reads and writes on the metadata store that survive a lost connection, and never outlive their session.

Owns two rules. A read is repeated once the connection is back. A write whose answer was lost is read back before it is
tried again: it may have been our own success. Both give up with ``SessionExpiredError`` when the session they began
in is over. Does not own the meaning of any node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from cluster.metadata.store import (
    Check,
    ConnectionLostError,
    Create,
    Delete,
    MetadataStore,
    NoNodeError,
    NotWrittenError,
    Operation,
    SessionExpiredError,
    SessionState,
    SetData,
)

logger = logging.getLogger(__name__)

#: The pause before a call is repeated, while the store says that it is connected.
RETRY_S = 0.05
#: How often one write is sent while its connection is lost each time.
MAX_SENDS = 8

_Result = TypeVar("_Result")


class Session:
    """The store, with waiting. ``generation`` grows each time a session ends."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.generation = 0
        self._connected = False
        self._waiting: set[asyncio.Future[None]] = set()
        self._deadlines: list[Callable[[], None]] = []
        store.on_session(self._changed)

    def __repr__(self) -> str:
        return f"Session({'connected' if self._connected else 'not connected'}, generation={self.generation})"

    @property
    def is_connected(self) -> bool:
        return self._connected

    async def read(self, operation: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of ``operation``, repeated after each lost connection. Raises what it raises otherwise."""
        generation = self.generation
        while True:
            try:
                return await operation()
            except ConnectionLostError:
                await self.reconnected(generation)

    async def write(self, operations: Sequence[Operation]) -> None:
        """All of ``operations`` or none (a multi). After a lost connection, the last of them is looked for first.

        Raises BadVersionError, NoNodeError, NodeExistsError, NotEmptyError, SessionExpiredError, TooLargeError, and
        NotWrittenError when the connection was lost ``MAX_SENDS`` times over it: it may be the reason.
        """
        generation = self.generation
        for _ in range(MAX_SENDS):
            try:
                await self.store.multi(operations)
                return
            except ConnectionLostError:
                await self.reconnected(generation)
                if await self.read(lambda: self._happened(operations[-1])):
                    logger.info("the answer to a write was lost, but it had happened: %s", operations[-1].path)
                    return
        raise NotWrittenError(f"the connection was lost {MAX_SENDS} times while {operations[-1].path} was written")

    @asynccontextmanager
    async def within(self, limit_s: float) -> AsyncIterator[None]:
        """Raises TimeoutError out of the block when it has had ``limit_s`` of an unbroken connection.

        Waiting for ZooKeeper to come back does not count: no one else could do better.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(limit_s if self._connected else None) as timeout:

            def rearm() -> None:
                if not timeout.expired():
                    timeout.reschedule(loop.time() + limit_s if self._connected else None)

            self._deadlines.append(rearm)
            try:
                yield
            finally:
                self._deadlines.remove(rearm)

    async def reconnected(self, generation: int) -> None:
        """Wait until the connection is back. Raises SessionExpiredError if ``generation`` is over by then, or if the
        broker stops."""
        await asyncio.sleep(RETRY_S)
        while not self._connected and generation == self.generation:
            await self._change()
        if generation != self.generation:
            raise SessionExpiredError("the session ended while the connection was lost")

    async def renewed(self) -> None:
        """After the end of a session: wait for the next one. Until it begins every call fails at once."""
        await asyncio.sleep(RETRY_S)
        while not self._connected:
            await self._change()

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    async def _happened(self, operation: Operation) -> bool:
        """Whether a write of ours is there: the same bytes at the version that it would have made."""
        if isinstance(operation, Check):
            return False
        try:
            data, stat = await self.store.get(operation.path)
        except NoNodeError:
            return isinstance(operation, Delete)
        if isinstance(operation, Create):
            return data == operation.data and (not operation.ephemeral or stat.ephemeral_owner == self.store.session_id)
        if isinstance(operation, SetData):
            return data == operation.data and (operation.version == -1 or stat.version == operation.version + 1)
        return False

    def close(self) -> None:
        """The broker stops: for anyone who waits here the session is over."""
        self.generation += 1
        self._wake()

    def _changed(self, state: SessionState) -> None:
        was_connected, self._connected = self._connected, state is SessionState.CONNECTED
        if state is SessionState.EXPIRED:
            self.generation += 1
        if self._connected != was_connected:
            for rearm in self._deadlines:
                rearm()
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
