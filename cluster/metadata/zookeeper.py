"""The metadata store on ZooKeeper, through kazoo.

Owns one session at a time and the watches that survive reconnection. kazoo's threads touch nothing here: whatever they
report is posted to the event loop, and the loop alone changes state. Does not own what the nodes mean, nor how kazoo's
values and errors become ours (``kazoo_values``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from cluster.metadata.chroot import make_chroot
from cluster.metadata.kazoo_connection import make_client
from cluster.metadata.kazoo_values import results_of, stat_of, transaction, translated
from cluster.metadata.limits import check_request
from cluster.metadata.loop_pulse import LoopPulse
from cluster.metadata.names import unresolved
from cluster.metadata.store import (
    ConnectionLostError,
    Create,
    NodeExistsError,
    Operation,
    SessionExpiredError,
    SessionState,
    SetData,
    Stat,
)
from cluster.metadata.watches import Watch, WatchKeeper
from cluster.seams.clock import SystemClock
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: Requests given to kazoo and not yet answered. Its wake-up pipe would block the loop after some hundreds.
MAX_IN_FLIGHT = 64


class ZooKeeperStore:
    """A ``MetadataStore`` on the ensemble ``hosts`` (``zookeeper.connect``: ``host:port,...`` and perhaps a chroot)."""

    def __init__(self, hosts: str, session_timeout_ms: int) -> None:
        self._hosts = hosts
        self._requested_timeout_ms = session_timeout_ms
        self._negotiated_timeout_ms = session_timeout_ms
        self._session_id = 0
        self._client: KazooClient | None = None
        self._clients = 0
        self._connected = asyncio.Event()
        self._closed = False
        self._listeners: list[Callable[[SessionState], None]] = []
        self._watches = WatchKeeper(self._arm)
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: set[asyncio.Future[None]] = set()
        self._pulse = LoopPulse(SystemClock())

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._connected.is_set() else "suspended"
        return f"ZooKeeperStore({self._hosts}, session={self._session_id:#x}, {state})"

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        return self._negotiated_timeout_ms

    async def start(self, timeout_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._pulse.start()
        self._open_client()
        try:
            async with asyncio.timeout(seconds_of_ms(timeout_ms)):
                await self._connected.wait()
        except TimeoutError:
            await self.close()
            what = f"no ZooKeeper session at {self._hosts} within {timeout_ms} ms"
            raise TimeoutError(f"{what}{await unresolved(self._hosts)}") from None

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._pulse.stop()
        self._connected.clear()
        if self._client is not None:
            self._stop_client(self._client)
            self._client = None
        if self._stopping:
            await asyncio.wait(self._stopping)
        self._session_id = 0

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        check_request([Create(path, data)])
        if make_parents:
            timeout_ms = self._requested_timeout_ms
            await make_chroot(self, self._hosts, lambda hosts: ZooKeeperStore(hosts, timeout_ms), timeout_ms)
            await self._make_parents(path)
        created = await self._call(
            lambda client: client.create_async(path, data, ephemeral=ephemeral, sequence=sequence)
        )
        return str(created)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        data, stat = await self._call(lambda client: client.get_async(path))
        return bytes(data), stat_of(stat)

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        check_request([SetData(path, data)])
        return stat_of(await self._call(lambda client: client.set_async(path, data, version)))

    async def delete(self, path: str, version: int = -1) -> None:
        await self._call(lambda client: client.delete_async(path, version))

    async def exists(self, path: str) -> Stat | None:
        stat = await self._call(lambda client: client.exists_async(path))
        return None if stat is None else stat_of(stat)

    async def children(self, path: str) -> list[str]:
        return sorted(await self._call(lambda client: client.get_children_async(path)))

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        check_request(operations)
        results = await self._call(lambda client: transaction(client, operations).commit_async())
        return results_of(operations, results)

    def watch_data(self, path: str, listener: Callable[[], None]) -> None:
        self._watches.add(Watch(path, listener, children=False), connected=self._connected.is_set())

    def watch_children(self, path: str, listener: Callable[[], None]) -> None:
        self._watches.add(Watch(path, listener, children=True), connected=self._connected.is_set())

    async def _make_parents(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent and await self.exists(parent) is None:
            await self._make_parents(parent)
            try:
                await self.create(parent)
            except NodeExistsError:
                return

    async def _call(self, start: Callable[[KazooClient], Any]) -> Any:
        """Start one request and wait for its answer. Requests are answered in the order of their start."""
        async with self._in_flight:
            client = self._client
            if self._closed:
                raise SessionExpiredError("the store is closed")
            if client is None or not self._connected.is_set():
                # kazoo would keep it until the link is back; the caller would not know for how long.
                raise ConnectionLostError("not connected to ZooKeeper")
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            start(client).rawlink(lambda result: self._post(_resolve, future, result))
            try:
                return await future
            except Exception as error:
                raise translated(error) from error

    def _open_client(self) -> None:
        self._clients += 1
        number = self._clients
        self._client = make_client(
            self._hosts,
            self._requested_timeout_ms,
            granted=lambda session_id, timeout_ms: self._post(self._on_granted, number, session_id, timeout_ms),
            ended=lambda: self._post(self._on_ended, number),
            is_kept=lambda: self._pulse.is_beating(self._negotiated_timeout_ms),
        )
        self._client.add_listener(lambda state: self._post(self._on_state, number, state))
        self._client.start_async()

    def _stop_client(self, client: KazooClient) -> None:
        """End its session and threads. Blocks in a thread of kazoo's handler, not here."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping.add(done)
        done.add_done_callback(self._stopping.discard)

        def stop() -> None:
            try:
                client.stop()
                client.close()
            except Exception:
                logger.warning("kazoo did not stop cleanly", exc_info=True)
            finally:
                self._post(_finish, done)

        client.handler.spawn(stop)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        """From any thread to the loop. A loop that is closed needs no news."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(function, *arguments)
            except RuntimeError:
                logger.debug("the event loop is closed; news from kazoo is dropped")

    def _on_granted(self, number: int, session_id: int, timeout_ms: int) -> None:
        if number != self._clients or self._closed:
            return
        if timeout_ms != self._requested_timeout_ms and timeout_ms != self._negotiated_timeout_ms:
            logger.warning(
                "ZooKeeper granted a session timeout of %d ms instead of %d ms", timeout_ms, self._requested_timeout_ms
            )
        self._negotiated_timeout_ms = timeout_ms
        self._session_id = session_id

    def _on_state(self, number: int, state: str) -> None:
        if number != self._clients or self._closed:
            return
        if state == KazooState.CONNECTED:
            logger.info("ZooKeeper session %#x, timeout %d ms", self._session_id, self._negotiated_timeout_ms)
            self._connected.set()
            self._announce(SessionState.CONNECTED)
            self._watches.arm_all()
        elif state == KazooState.SUSPENDED:
            logger.warning("ZooKeeper session %#x: connection lost", self._session_id)
            self._connected.clear()
            self._announce(SessionState.SUSPENDED)
        else:
            self._on_expired()

    def _on_expired(self) -> None:
        ended, self._session_id = self._session_id, 0
        self._connected.clear()
        if ended:
            logger.warning("ZooKeeper session %#x expired", ended)
            self._announce(SessionState.EXPIRED)

    def _on_ended(self, number: int) -> None:
        """kazoo's thread died without being asked to: its session is abandoned, a new client begins."""
        if number != self._clients or self._closed or self._client is None:
            return
        logger.warning("kazoo's connection thread ended; a new client takes over")
        self._stop_client(self._client)
        self._on_expired()
        self._open_client()

    def _announce(self, state: SessionState) -> None:
        for listener in list(self._listeners):
            listener(state)

    def _arm(self, watch: Watch, token: int) -> None:
        """Put a one-shot watch of ZooKeeper in place; called at first, after each event and each reconnection."""
        client = self._client
        if client is None or not self._connected.is_set():
            return
        number = self._clients

        def fired(_event: Any) -> None:
            self._post(self._watches.fired, watch, token)

        def in_place(result: Any) -> None:
            self._post(self._on_watch_set, number, watch, token, result)

        if watch.children and not watch.waits_for_creation:
            client.get_children_async(watch.path, watch=fired).rawlink(in_place)
        else:
            client.exists_async(watch.path, watch=fired).rawlink(in_place)

    def _on_watch_set(self, number: int, watch: Watch, token: int, result: Any) -> None:
        if number != self._clients:
            return
        if result.successful():
            missing = watch.waits_for_creation and result.value is not None
            self._watches.in_place(watch, token, again=missing)
        elif isinstance(result.exception, kazoo_errors.NoNodeError):
            self._watches.node_absent(watch, token)
        # Any other failure is a lost link or session: all watches are set again when it is back.


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():
        return
    if result.successful():
        future.set_result(result.value)
    else:
        future.set_exception(result.exception)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
