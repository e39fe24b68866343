"""One client's connection: requests are taken in order, answers leave in order, one bad frame ends one connection.

Owns the queue of answers of a connection, pipelining, and what happens to what cannot be served (KIP-511,
docs/reference/kafka.md "Order on a connection"). Does not own the handlers, the sockets (a ``Transport`` does) or the
layout of any message.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cluster.broker.metrics import Counters
from cluster.broker.request_metrics import ApiMetrics
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import encode_unsupported_api_versions, parse_request_header
from cluster.seams.storage import Payload
from cluster.seams.transport import Connection

logger = logging.getLogger(__name__)

#: Unanswered requests of one connection above which no more are read until half of them are answered.
MAX_UNANSWERED = 100


class Parked(Protocol):
    """A request that waits although its connection could be answered at once (a fetch, until there are bytes)."""

    def finish_now(self) -> None: ...

    def abandon(self) -> None: ...


class Exchange:
    """One request on its way to its answer. Exactly one of ``respond``, ``skip`` and ``refuse`` ends it."""

    __slots__ = (
        "answered_ns",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "handled_ns",
        "is_ended",
        "is_sent",
        "metrics",
        "parts",
        "started_ns",
    )

    def __init__(
        self,
        connection: ClientConnection,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        metrics: ApiMetrics,
        started_ns: int,
    ) -> None:
        self.connection = connection
        self.metrics = metrics
        self.started_ns = started_ns
        # Of a request that is not answered at once: when its handler returned, and when its answer was there.
        self.handled_ns = 0
        self.answered_ns = 0
        self.is_sent = False
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.parts: Sequence[Payload] | None = None
        self.is_ended = False

    def __repr__(self) -> str:
        return f"<Exchange {self.correlation_id} of {self.connection!r}>"

    @property
    def listener(self) -> str:
        return self.connection.listener

    def respond(self, parts: Sequence[Payload]) -> None:
        """The answer, with its header; it leaves when all earlier answers have left."""
        self.parts = parts
        self.is_ended = True
        if self.handled_ns:
            self.answered_ns = self.connection.counters.now_ns()
        self.connection.exchange_ended()

    def note_times(self) -> None:
        """The answer, which was not there when the handler returned, is on its way now."""
        now_ns = self.connection.counters.now_ns()
        self.metrics.delayed(self.started_ns, self.handled_ns, self.answered_ns or self.handled_ns, now_ns)

    def skip(self) -> None:
        """There is no answer (acks=0)."""
        self.is_ended = True
        self.connection.exchange_ended()

    def refuse(self, reason: str) -> None:
        """Close the connection instead of answering."""
        self.connection.refuse(reason)

    def park(self, parked: Parked) -> None:
        """The answer waits for something; a further request on this connection makes it wait no more."""
        self.connection.parked = parked

    def hold(self, work: Awaitable[None]) -> None:
        """``work`` will end this. Nothing else of this connection is processed meanwhile: order is kept."""
        self.connection.run(self, work)

    def later(self, work: Awaitable[Sequence[Payload]]) -> None:
        """Answer when ``work`` is done. Nothing else of this connection is processed meanwhile: order is kept."""
        self.connection.run(self, work)


@dataclass(frozen=True, slots=True)
class Api:
    """One API as served on a listener: the versions that are accepted, and who handles a request's body.

    The body is a view that is valid only during the call.
    """

    key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[Exchange, memoryview], None]


class ClientConnection:
    """The broker's side of one connection; a ``FrameHandler``. ``gone`` is called when it is closed."""

    def __init__(
        self,
        connection: Connection,
        listener: str,
        apis: Mapping[int, Api],
        counters: Counters,
        gone: Callable[[ClientConnection], None] = lambda client: None,
    ) -> None:
        self.listener = listener
        #: When it last had a request for us, by ``counters.now_ns``.
        self.active_ns = counters.now_ns()
        self._gone = gone
        self.parked: Parked | None = None
        self._connection = connection
        self._apis = apis
        self.counters = counters
        self._metrics = counters.api.apis
        self._exchanges: deque[Exchange] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_open = True
        self._is_paused = False
        self._is_last = False
        self._is_held = False

    def __repr__(self) -> str:
        return f"<ClientConnection {self._connection.peer} on {self.listener}, {len(self._exchanges)} unanswered>"

    @property
    def ip(self) -> str:
        """The address of the other end."""
        return self._connection.peer.rpartition(":")[0]

    def is_gone(self) -> bool:
        """Whether it is closed, or the peer has closed its end, which is not read while a request is worked on."""
        return not self._is_open or self._is_last or self._connection.is_left()

    def abort(self) -> None:
        """Close at once: it was silent too long, or is one too many."""
        self._is_open = False
        self._connection.abort()

    def hold(self) -> None:
        """Take no request before ``release``: the broker cannot answer truly yet."""
        self._is_held = True
        self._connection.pause_reading()

    def release(self) -> None:
        self._is_held = False
        if not self._is_paused:
            self._connection.resume_reading()

    def on_frame(self, frame: memoryview) -> None:
        if not self._is_open:
            return
        self.counters.requests += 1
        if self.parked is not None:
            parked, self.parked = self.parked, None
            parked.finish_now()
        try:
            self._take(frame)
        except MalformedRequest as error:
            self.refuse(str(error))
        except Exception:
            logger.exception("a request of %s failed, its connection is closed", self._connection.peer)
            self.refuse("the request failed")

    def _take(self, frame: memoryview) -> None:
        api_key, version, correlation_id, client_id, body_offset = parse_request_header(frame)
        api = self._apis.get(api_key)
        if api is None:
            self.refuse(f"API key {api_key} is not served on {self.listener}")
            return
        now_ns = self.counters.now_ns
        metrics = self._metrics.get(api_key) or self.counters.api.of(api_key)
        started_ns = self.active_ns = now_ns()
        exchange = Exchange(self, version, correlation_id, client_id, metrics, started_ns)
        self._exchanges.append(exchange)
        if api.min_version <= version <= api.max_version:
            metrics.versions[version] = metrics.versions.get(version, 0) + 1
            api.handle(exchange, frame[body_offset:])
            if exchange.is_sent:
                metrics.at_once.note(now_ns() - started_ns)
            else:
                exchange.handled_ns = now_ns()
        elif api.key is ApiKey.API_VERSIONS:
            window = (api.min_version, api.max_version)
            exchange.respond([encode_unsupported_api_versions(correlation_id, window)])
        else:
            self.refuse(f"version {version} of {api.key.name}")
        if len(self._exchanges) >= MAX_UNANSWERED:
            self._pause()

    def exchange_ended(self) -> None:
        """Send every answer that nothing earlier stands before."""
        exchanges = self._exchanges
        while exchanges and exchanges[0].is_ended:
            exchange = exchanges.popleft()
            if exchange.parts is not None:
                self._connection.send_frame(exchange.parts)
            exchange.is_sent = True
            if exchange.handled_ns:
                exchange.note_times()
        if self._is_last and not exchanges:
            self._connection.close()
        elif self._is_paused and self._task is None and len(exchanges) <= MAX_UNANSWERED // 2:
            self._is_paused = False
            if not self._is_held:
                self._connection.resume_reading()

    def run(self, exchange: Exchange, work: Awaitable[Sequence[Payload] | None]) -> None:
        """Answer ``exchange`` with what ``work`` returns, if it does, and read nothing until then."""
        self._pause()
        self._task = asyncio.get_running_loop().create_task(self._run(exchange, work))

    async def _run(self, exchange: Exchange, work: Awaitable[Sequence[Payload] | None]) -> None:
        try:
            parts = await work
        except MalformedRequest as error:
            self._task = None
            self.refuse(str(error))
        except ConnectionError as error:
            # Anyone who had to be asked is gone, or this broker is leaving: the client will look for another.
            self._task = None
            self.refuse(f"it cannot be served now: {error}")
        except Exception:
            logger.exception("a request of %s failed, its connection is closed", self._connection.peer)
            self._task = None
            self.refuse("the request failed")
        else:
            self._task = None
            if parts is None:
                self.exchange_ended()
            else:
                exchange.respond(parts)

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._connection.pause_reading()

    def refuse(self, reason: str) -> None:
        """Close this connection; what was answered before still leaves."""
        if self._is_open:
            self._is_open = False
            self.counters.refused_frames += 1
            logger.debug("closing the connection of %s: %s", self._connection.peer, reason)
            self._exchanges.clear()
            self._connection.close()

    def on_eof(self) -> None:
        """The peer asks no more. What it asked is still answered; what waits only for more data does not wait on."""
        self._is_last = True
        if self.parked is not None:
            parked, self.parked = self.parked, None
            parked.finish_now()
        self.exchange_ended()

    def on_closed(self, reason: str) -> None:
        self._is_open = False
        self._gone(self)
        self._exchanges.clear()
        if self.parked is not None:
            self.parked.abandon()
            self.parked = None
        # What runs for this connection runs on: half of a change of metadata would be worse than an unread answer.
