"""The metadata store in memory: one shared tree, one session object per broker. For tests and simulation.

Owns requests and how one is lost, on its way there or with its answer. Does not own the session and its link, and the
ways in which these fail (``memory_session``). All time is the event loop's, so it runs on a virtual clock as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.metadata.lagging import LaggingView
from cluster.metadata.limits import check_request, request_bytes
from cluster.metadata.memory_session import MemorySession
from cluster.metadata.memory_tree import MemoryTree
from cluster.metadata.store import (
    ConnectionLostError,
    Create,
    Delete,
    Operation,
    SetData,
    Stat,
    StoreError,
)

__all__ = ["MemoryStore", "MemoryTree"]

_Result = TypeVar("_Result")


class MemoryStore(MemorySession):
    """One client of a ``MemoryTree``: a ``MetadataStore`` whose link tests can cut.

    ``latency_s`` is the time a request and, again, its answer take; requests of one session stay in order.
    """

    def __init__(self, tree: MemoryTree, *, session_timeout_ms: int = 2000, latency_s: float = 0.0) -> None:
        super().__init__(tree, session_timeout_ms, latency_s)
        self._in_order = asyncio.Lock()
        self._lose_requests = 0
        self._lose_answers = 0

    def lose_next_request(self) -> None:
        """The next call does not happen and raises ConnectionLostError; the link stays."""
        self._lose_requests += 1

    def lose_next_answer(self) -> None:
        """The next call happens and raises ConnectionLostError; the link stays."""
        self._lose_answers += 1

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        wanted = Create(path, data, ephemeral)
        return await self._call(
            lambda: self._tree.create(self._session_id, wanted, sequence=sequence, make_parents=make_parents), [wanted]
        )

    async def get(self, path: str) -> tuple[bytes, Stat]:
        return await self._call(lambda: self._reads.get(path))

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        [stat] = await self.multi([SetData(path, data, version)])
        if not isinstance(stat, Stat):
            raise StoreError(f"{path}: set answered {stat!r}")
        return stat

    async def delete(self, path: str, version: int = -1) -> None:
        await self.multi([Delete(path, version)])

    async def exists(self, path: str) -> Stat | None:
        return await self._call(lambda: self._reads.exists(path))

    async def children(self, path: str) -> list[str]:
        return await self._call(lambda: self._reads.children(path))

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        return await self._call(lambda: self._tree.multi(self._session_id, operations), operations)

    async def _call(self, operation: Callable[[], _Result], writes: Sequence[Operation] = ()) -> _Result:
        check_request(writes)
        session_id = self._session_id
        links = self._links
        self._require(session_id, links)
        async with self._in_order:
            self._require(session_id, links)
            await self._way.travel(self._way.latency_s)
            self._require(session_id, links)
            if self._lose_requests:
                self._lose_requests -= 1
                raise ConnectionLostError("the request was lost")
            lose_answer = self._lose_answers > 0
            self._lose_answers -= lose_answer
            failure: StoreError | None = None
            try:
                self._check_length(writes)
                result = operation()
            except StoreError as error:
                failure = error
            if writes and isinstance(self._reads, LaggingView):
                # A follower answers a write when it has applied it, also one that failed.
                await self._way.wait_for(self._reads.caught_up())
                self._require(session_id, links)
        await self._way.travel(self._way.arrives_in_s())
        await self._hears.wait()
        if lose_answer:
            raise ConnectionLostError("the answer was lost")
        self._require(session_id, links)
        if failure is not None:
            raise failure
        return result

    def _check_length(self, writes: Sequence[Operation]) -> None:
        """A server closes the connection over a request that is too long; the client is back at once."""
        if request_bytes(writes) > self._tree.max_request_bytes:
            self.cut()
            self.heal()
            raise ConnectionLostError("the server has closed the connection")
