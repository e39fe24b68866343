"""kazoo's client with what it hides: the negotiated timeout, the end of its thread, its retry policy, its heartbeat.

Owns the construction of a ``KazooClient``. Does not own sessions, watches or any value of ours: see ``zookeeper``.
Everything here runs in kazoo's threads and reports through callbacks that must not block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.retry import KazooRetry

from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.units import seconds_of_ms

#: How long kazoo waits between attempts to connect: short, so that a healed link is used within a tick or two.
RETRY_DELAY_S = 0.05
RETRY_DELAY_MAX_S = 0.25
#: How many times within a session a connection that gets no answer is abandoned for another. kazoo would wait for the
#: whole session, and that would be its end. A standalone ZooKeeper (3.9.5, NIO) that is asked while it makes its
#: database fails in closing the connection, and leaves it open and silent forever.
HANDSHAKES_PER_SESSION = 3

logger = logging.getLogger(__name__)
#: kazoo tells about each attempt to connect; the store tells about their outcome.
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.ERROR)


class ReportingConnection(ConnectionHandler):  # type: ignore[misc]  # kazoo has no type hints
    """kazoo's connection thread, which also says what the server granted and when the thread has ended, and which lets
    the session of a loop that is stuck expire."""

    def __init__(
        self,
        client: Any,
        retry: KazooRetry,
        granted: Callable[[int, int], None],
        ended: Callable[[], None],
        is_kept: Callable[[], bool],
    ) -> None:
        super().__init__(client, retry, logger=_kazoo_logger)
        self._granted = granted
        self._ended = ended
        self._is_kept = is_kept

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        if not isinstance(request, Connect):
            return super()._invoke(timeout, request, xid)
        result = super()._invoke(timeout / HANDSHAKES_PER_SESSION, request, xid)
        if result[0].time_out > 0:
            self._granted(int(result[0].session_id), int(result[0].time_out))
        return result

    def _send_ping(self, connect_timeout: float) -> None:
        if self._is_kept():
            super()._send_ping(connect_timeout)
        else:
            logger.error("the event loop is stuck, so the ZooKeeper session gets no heartbeat: another is to take over")

    def zk_loop(self) -> None:
        try:
            super().zk_loop()
        except Exception as error:
            halt_if_out_of_memory(error)
            # kazoo has logged it as an error; what matters here is that this thread is over.
            _kazoo_logger.debug("kazoo's connection thread ended by an error", exc_info=True)
        finally:
            self._ended()


def make_client(
    hosts: str,
    session_timeout_ms: int,
    granted: Callable[[int, int], None],
    ended: Callable[[], None],
    is_kept: Callable[[], bool],
) -> KazooClient:
    """A client that is not started. ``granted(session id, timeout in ms)`` is called at each connection, before its
    listeners; ``ended()`` when the connection thread is over, wanted or not; ``is_kept()`` before each heartbeat."""
    handler = SequentialThreadingHandler()
    retry = KazooRetry(
        max_tries=-1,
        delay=RETRY_DELAY_S,
        backoff=1.5,
        max_jitter=0.2,
        max_delay=RETRY_DELAY_MAX_S,
        sleep_func=handler.sleep_func,
    )
    client = KazooClient(
        hosts=hosts,
        timeout=seconds_of_ms(session_timeout_ms),
        handler=handler,
        connection_retry=retry,
        logger=_kazoo_logger,
    )
    # The constructor of KazooClient makes its own ConnectionHandler and sets the retry's interrupt; ours replaces it
    # before anything is started.
    client._connection = ReportingConnection(client, client._conn_retry.copy(), granted, ended, is_kept)
    return client
