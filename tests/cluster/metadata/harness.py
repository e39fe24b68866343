"""One contract, two forms: how the tests open, cut and expire a store, in memory and on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kazoo.client import KazooClient

from cluster.metadata.memory import MemoryStore, MemoryTree
from cluster.metadata.store import MetadataStore, SessionState
from cluster.metadata.zookeeper import ZooKeeperStore

#: Long enough for a loaded machine; nothing waits it out when all is well.
PATIENCE_S = 20.0
SESSION_MS = 1000


class Watcher:
    """Counts calls and lets a test await the next one."""

    def __init__(self) -> None:
        self.calls = 0
        self._called = asyncio.Event()

    def __call__(self) -> None:
        self.calls += 1
        self._called.set()

    async def called(self) -> None:
        """A call since the last time this was awaited."""
        async with asyncio.timeout(PATIENCE_S):
            await self._called.wait()
        self._called.clear()


class Sessions:
    """Collects what a store says of its session."""

    def __init__(self, store: MetadataStore) -> None:
        self._states: asyncio.Queue[SessionState] = asyncio.Queue()
        store.on_session(self._states.put_nowait)

    async def next(self) -> SessionState:
        async with asyncio.timeout(PATIENCE_S):
            return await self._states.get()

    async def until(self, wanted: SessionState) -> list[SessionState]:
        """All states up to and with ``wanted``."""
        seen = [await self.next()]
        while seen[-1] is not wanted:
            seen.append(await self.next())
        return seen


async def eventually(check: Callable[[], Awaitable[Any]]) -> Any:
    """The first true result of ``check``."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            result = await check()
            if result:
                return result
            await asyncio.sleep(0.01)


class MemoryHarness:
    """One tree per test."""

    def __init__(self) -> None:
        self._tree = MemoryTree()
        self._stores: list[MemoryStore] = []
        self.root = "/test"

    async def open(self) -> MemoryStore:
        store = MemoryStore(self._tree, session_timeout_ms=100)
        self._stores.append(store)
        await store.start(1000)
        return store

    async def expire(self, store: MemoryStore) -> None:
        store.expire()

    async def cut(self, store: MemoryStore) -> None:
        store.cut()

    async def heal(self, store: MemoryStore) -> None:
        store.heal()

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


class Forwarder:
    """A link to ZooKeeper that can be cut (connections are closed, none is accepted) or swallow what it is given."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.swallows = False
        #: How many of the next connections are accepted and never answered.
        self.silent = 0

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            if self.silent:
                self.silent -= 1
                await reader.read()
                return
            back, there = await asyncio.open_connection(*self._target)
            ways = [asyncio.ensure_future(self._copy(reader, there)), asyncio.ensure_future(self._copy(back, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            for end in (writer, there):
                if end is not None:
                    end.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not self.swallows:
                writer.write(data)
                await writer.drain()


class ZooKeeperHarness:
    """Stores behind forwarders; each test under its own node."""

    def __init__(self, address: tuple[str, int], root: str) -> None:
        self._address = address
        self._links: dict[ZooKeeperStore, Forwarder] = {}
        self.root = root

    async def open(self) -> ZooKeeperStore:
        link = Forwarder(self._address)
        await link.up()
        store = ZooKeeperStore(f"127.0.0.1:{link.port}", SESSION_MS)
        self._links[store] = link
        await store.start(int(PATIENCE_S * 1000))
        return store

    async def expire(self, store: ZooKeeperStore) -> None:
        """Another client with the same session id and password closes the session."""
        client: Any = store._client
        identity = client.client_id
        await asyncio.to_thread(self._end_session, identity)

    def _end_session(self, identity: tuple[int, bytes]) -> None:
        host, port = self._address
        thief = KazooClient(f"{host}:{port}", timeout=SESSION_MS / 1000, client_id=identity)
        thief.start(timeout=PATIENCE_S)
        thief.stop()
        thief.close()

    async def cut(self, store: ZooKeeperStore) -> None:
        await self._links[store].down()

    async def heal(self, store: ZooKeeperStore) -> None:
        await self._links[store].up()

    async def close(self) -> None:
        for store, link in self._links.items():
            await store.close()
            await link.down()


Harness = MemoryHarness | ZooKeeperHarness
