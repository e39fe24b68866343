"""KazooSession: one session with ZooKeeper at a time, and the kazoo client that holds it.

Owns its begin and end, what is announced of it, and that a client whose thread has died is replaced. Whatever kazoo's
threads report is posted to the event loop, and the loop alone changes state. Does not own requests and watches
(``zookeeper``), nor how a client is made (``kazoo_connection``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from cluster.metadata.kazoo_connection import make_client
from cluster.metadata.loop_pulse import LoopPulse
from cluster.metadata.names import unresolved
from cluster.metadata.store import SessionState
from cluster.seams.clock import SystemClock
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)


class KazooSession:
    """``reconnected`` is called when a connection is there again, after it was announced."""

    def __init__(self, hosts: str, session_timeout_ms: int, reconnected: Callable[[], None]) -> None:
        self._hosts = hosts
        self._requested_timeout_ms = session_timeout_ms
        self._negotiated_timeout_ms = session_timeout_ms
        self._reconnected = reconnected
        self._session_id = 0
        self._client: KazooClient | None = None
        self._clients = 0
        self._connected = asyncio.Event()
        self._closed = False
        self._listeners: list[Callable[[SessionState], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: set[asyncio.Future[None]] = set()
        self._pulse = LoopPulse(SystemClock())

    def __repr__(self) -> str:
        state = "closed" if self._closed else "connected" if self._connected.is_set() else "suspended"
        return f"{type(self).__name__}({self._hosts}, session={self._session_id:#x}, {state})"

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
            except Exception as error:
                halt_if_out_of_memory(error)
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
            except MemoryError as error:
                # kazoo would continue without it, and someone would wait for it forever
                halt_if_out_of_memory(error)
                raise

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
            self._reconnected()
        elif state == KazooState.SUSPENDED:
            logger.warning("ZooKeeper session %#x: connection lost", self._session_id)
            self._connected.clear()
            self._announce(SessionState.SUSPENDED)
        else:
            self._on_expired()

    def _on_expired(self) -> None:
        ended = self._session_id
        self._session_id = 0
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


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
