"""The metadata store on ZooKeeper, through kazoo.

Owns requests and the watches that survive reconnection. kazoo's threads touch nothing here: whatever they report is
posted to the event loop, and the loop alone changes state. Does not own the session (``kazoo_session``), what the nodes
mean, nor how kazoo's values and errors become ours (``kazoo_values``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient

from cluster.metadata.chroot import make_chroot
from cluster.metadata.kazoo_session import KazooSession
from cluster.metadata.kazoo_values import results_of, stat_of, transaction, translated
from cluster.metadata.limits import check_request
from cluster.metadata.store import (
    ConnectionLostError,
    Create,
    NodeExistsError,
    Operation,
    SessionExpiredError,
    SetData,
    Stat,
)
from cluster.metadata.watches import Watch, WatchKeeper
from cluster.seams.out_of_memory import halt_if_out_of_memory

#: Requests given to kazoo and not yet answered. Its wake-up pipe would block the loop after some hundreds.
MAX_IN_FLIGHT = 64


class ZooKeeperStore(KazooSession):
    """A ``MetadataStore`` on the ensemble ``hosts`` (``zookeeper.connect``: ``host:port,...`` and perhaps a chroot)."""

    def __init__(self, hosts: str, session_timeout_ms: int) -> None:
        self._watches = WatchKeeper(self._arm)
        super().__init__(hosts, session_timeout_ms, reconnected=self._watches.arm_all)
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)

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
                halt_if_out_of_memory(error)
                raise translated(error) from error

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
