"""One client's connection: requests are taken in order, answers leave in order, one bad frame ends one connection.

Owns the queue of answers of a connection, pipelining, and what happens to what cannot be served (KIP-511,
docs/reference/kafka.md "Order on a connection"). Does not own how much may wait (``backlog``), the handlers, the
sockets (a ``Transport`` does) or the layout of any message.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from cluster.broker.backlog import Backlog, answer_bytes
from cluster.broker.exchange import Api, ClientGone, Exchange, Parked, Waiting
from cluster.broker.metrics import Counters
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import encode_unsupported_api_versions, parse_request_header
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.storage import Payload
from cluster.seams.transport import Connection

logger = logging.getLogger(__name__)

#: For how many checks requests wait for other brokers when the peer closed its end: it may read still.
LAST_CHECKS = 5


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
        self._ip = connection.peer.rpartition(":")[0]
        self._exchanges: deque[Exchange] = deque()
        self._backlog = Backlog()
        self._task: asyncio.Task[None] | None = None
        self._finishing: set[asyncio.Task[None]] = set()
        #: Checks since the peer closed its end.
        self._checks = 0
        self._is_open = True
        self._is_paused = False
        self._is_last = False
        self._is_held = False

    def __repr__(self) -> str:
        return f"<ClientConnection {self._connection.peer} on {self.listener}, {len(self._exchanges)} unanswered>"

    @property
    def ip(self) -> str:
        """The address of the other end."""
        return self._ip

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
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("a request of %s failed, its connection is closed", self._connection.peer)
            self.end("the request failed")

    def _take(self, frame: memoryview) -> None:
        api_key, version, correlation_id, client_id, body_offset = parse_request_header(frame)
        api = self._apis.get(api_key)
        if api is None:
            self.refuse(f"{_name(api_key)} is not served on this listener")
            return
        now_ns = self.counters.now_ns
        metrics = self._metrics.get(api_key) or self.counters.api.of(api_key)
        started_ns = self.active_ns = now_ns()
        exchange = Exchange(self, version, correlation_id, client_id, metrics, started_ns)
        self._exchanges.append(exchange)
        if api.min_version <= version <= api.max_version:
            versions = metrics.versions
            versions[version] = versions.get(version, 0) + 1
            api.handle(exchange, frame[body_offset:])
            if exchange.is_sent:
                metrics.at_once.note(now_ns() - started_ns)
            else:
                exchange.handled_ns = now_ns()
                if self._task is not None:
                    self._connection.keep_request(len(frame))
        elif api.key is ApiKey.API_VERSIONS:
            window = (api.min_version, api.max_version)
            exchange.respond([encode_unsupported_api_versions(correlation_id, window)])
        else:
            self.refuse(f"version {version} of {api.key.name} is not served")
        if not exchange.is_sent:
            self._pace()

    def exchange_ended(self, ended: Exchange | None) -> None:
        """Send every answer that nothing earlier stands before, and keep this one if something does."""
        exchanges = self._exchanges
        while exchanges and exchanges[0].is_ended:
            exchange = exchanges.popleft()
            if exchange.kept_bytes:
                self._backlog.change(exchange.kept_bytes, 0)
            if exchange.parts is not None:
                self._connection.send_frame(exchange.parts)
            exchange.is_sent = True
            if exchange.handled_ns:
                exchange.note_times()
        if self._is_last and not exchanges:
            self._connection.close()
        elif ended is not None and not ended.is_sent:
            self.keep(ended, 0 if ended.parts is None else answer_bytes(ended.parts))
            self._pace()
        elif self._is_paused:
            self._pace()

    def keep(self, exchange: Exchange, size_bytes: int) -> None:
        """An unanswered request keeps this much until its answer leaves, or until it keeps something else."""
        self._backlog.change(exchange.kept_bytes, size_bytes)
        exchange.kept_bytes = size_bytes

    def wait(self, exchange: Exchange, waiting: Waiting) -> None:
        """A request waits for other brokers. It waits no more when no one can read its answer."""
        if not self._is_open:
            waiting.abandon()
            return
        exchange.waiting = waiting
        self.keep(exchange, waiting.size_bytes)

    def check(self) -> None:
        """Called each second: what waits for other brokers is answered soon after the peer has left. While reading is
        paused, no one else says so."""
        if not self._exchanges:
            return
        waiting = [exchange.waiting for exchange in self._exchanges if exchange.waiting is not None]
        self._checks = self._checks + 1 if waiting and self.is_gone() else 0
        if self._checks >= LAST_CHECKS:
            for each in waiting:
                each.finish_now()

    def _pace(self) -> None:
        """Read on if the next request may start, and not otherwise."""
        if self._task is not None or not self._is_open:
            return
        exchanges, is_paused = self._exchanges, self._is_paused
        first_bytes = exchanges[0].kept_bytes if exchanges else 0
        if not self._backlog.may_start(len(exchanges), first_bytes, is_paused=is_paused):
            self._pause()
        elif is_paused:
            self._is_paused = False
            if not self._is_held:
                self._connection.resume_reading()

    def run(self, exchange: Exchange, work: Awaitable[Sequence[Payload] | None]) -> None:
        """Answer ``exchange`` with what ``work`` returns, if it does, and read nothing until then."""
        self._pause()
        self._task = asyncio.get_running_loop().create_task(self._run(exchange, work))

    async def _run(self, exchange: Exchange, work: Awaitable[Sequence[Payload] | None]) -> None:
        reason, end = "", self.end
        parts = None
        try:
            parts = await work
        except MalformedRequest as error:
            reason, end = str(error), self.refuse
        except ClientGone:
            # What follows it may be a change, which is carried out, whether its client is there or not.
            exchange.skip()
        except ConnectionError as error:
            # Anyone who had to be asked is gone, or this broker is leaving: the client will look for another.
            reason = f"it cannot be served now: {error}"
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("a request of %s failed, its connection is closed", self._connection.peer)
            reason = "the request failed"
        self._task = None
        self.release_request()
        if reason:
            end(reason)
        elif parts is None:
            self._pace()
        else:
            exchange.respond(parts)

    def finish(self, exchange: Exchange, work: Awaitable[None]) -> None:
        """A request that was parked is answered by ``work``, in its place among the answers."""
        task = asyncio.get_running_loop().create_task(self._finish(work))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("a request of %s failed, its connection is closed", self._connection.peer)
            self.end("the request failed")

    def release_request(self) -> None:
        """Nothing of the bytes of the request that is worked on is kept anymore."""
        self._connection.keep_request(0)

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._connection.pause_reading()

    def refuse(self, reason: str) -> None:
        """Close this connection: it sent what is not served. The operator is told, for the client is not."""
        if self._is_open:
            self.counters.refused_frames += 1
            logger.warning("closing the connection from %s to %s: %s", self._connection.peer, self.listener, reason)
            self.end(reason)

    def end(self, reason: str) -> None:
        """Close this connection; what was answered before still leaves. The caller logs what an operator is to know."""
        if self._is_open:
            self._is_open = False
            logger.debug("the connection of %s is closed: %s", self._connection.peer, reason)
            self._drop()
            self._connection.close()

    def on_eof(self) -> None:
        """The peer asks no more. What it asked is still answered; what waits only for more data does not wait on."""
        self._is_last = True
        if self.parked is not None:
            parked, self.parked = self.parked, None
            parked.finish_now()
        self.exchange_ended(None)

    def on_closed(self, reason: str) -> None:
        self._is_open = False
        self._gone(self)
        self._drop()
        # What runs for this connection runs on: half of a change of metadata would be worse than an unread answer.

    def _drop(self) -> None:
        """No answer can leave anymore, so none is waited for."""
        exchanges, self._exchanges = self._exchanges, deque()
        for exchange in exchanges:
            if exchange.waiting is not None:
                exchange.waiting.abandon()
        exchanges.clear()
        if self.parked is not None:
            self.parked.abandon()
            self.parked = None


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"API key {api_key}"
