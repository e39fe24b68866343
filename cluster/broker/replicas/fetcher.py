"""Fetcher: follows one leader broker over one connection, for all partitions that it leads and we replicate.

Owns the connection, what is in flight, the pauses after errors, and the questions to the leader after
OFFSET_OUT_OF_RANGE. Does not own what an answer means (``cluster.replication.follower``) nor the appending
(``Partition.fetched``). Answers are handled in the connection's callback, on the receive buffer: no task, no copy.

One long poll is in flight. A partition that is new here does not wait for it to end: a second fetch is sent behind
it, and a broker that sees a request behind a parked fetch answers the fetch at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cluster.broker.replicas.partition import Partition
from cluster.broker.replicas.values import TopicPartition
from cluster.log.errors import LogError
from cluster.protocol.apis import ApiKey
from cluster.protocol.connection import RequestPipeline
from cluster.protocol.errors import ErrorCode, ProtocolError
from cluster.protocol.fetch import FetchRequest, FetchResult, build_request, parse_response
from cluster.protocol.messages import decode_response, encode_request, request_class
from cluster.replication.follower import FetchPosition, Reaction, Restart, out_of_range_position
from cluster.seams.clock import Clock
from cluster.seams.transport import Connection, FrameHandler, Transport

logger = logging.getLogger(__name__)

FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
EARLIEST, LATEST = -2, -1
_CORRELATION_ID = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """The follower's side of Kafka's ``replica.*`` keys."""

    broker_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    backoff_ms: int
    socket_timeout_ms: int


_CLIENT_ID = re.compile(r"broker-\d+-epoch-(\d+)")


def client_id(broker_id: int, broker_epoch: int) -> str:
    """The client id of a fetcher. It tells the leader in which of its lives a follower fetches (KIP-903): Fetch has a
    field for that from version 15 on, and we use 12."""
    return f"broker-{broker_id}-epoch-{broker_epoch}"


@lru_cache(maxsize=256)
def broker_epoch_in(client_id: str | None) -> int:
    """The broker epoch in a fetcher's client id; -1 if it tells none."""
    found = _CLIENT_ID.fullmatch(client_id or "")
    return -1 if found is None else int(found[1])


#: What to do with a response, given its frame.
OnResponse = Callable[[memoryview], None]


class _Followed:
    """One partition that is followed here: whether a request for it is on its way, and since when it must pause."""

    __slots__ = ("is_in_flight", "is_parked", "partition", "retry_at_s")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.is_in_flight = False
        self.is_parked = False
        self.retry_at_s = 0.0


class Fetcher:
    """Follows ``leader_id``. ``address`` tells where it is reached now, or None; ``failed`` is told of broken logs."""

    def __init__(
        self,
        leader_id: int,
        settings: FetcherSettings,
        *,
        address: Callable[[int], tuple[str, int] | None],
        broker_epoch: Callable[[], int],
        transport: Transport,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        storage_failed: Callable[[LogError], None],
    ) -> None:
        self.leader_id = leader_id
        self._settings = settings
        self._address = address
        self._broker_epoch = broker_epoch
        self._transport = transport
        self._clock = clock
        self._loop = loop
        self._storage_failed = storage_failed
        self._followed: dict[TopicPartition, _Followed] = {}
        self._connection: Connection | None = None
        self._pipeline: RequestPipeline[OnResponse] = RequestPipeline()
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._rotation = 0

    def __repr__(self) -> str:
        state = "connected" if self._connection else "not connected"
        return f"<Fetcher from {self.leader_id}, {len(self._followed)} partitions, {state}>"

    @property
    def is_idle(self) -> bool:
        return not self._followed

    def add(self, partition: Partition) -> None:
        """Follow a partition from where it is; again if it was followed already, since its epoch changed."""
        self._followed[partition.key] = _Followed(partition)
        self._pump(is_news=True)

    def remove(self, key: TopicPartition) -> None:
        """Follow it no more. What is on its way for it will be ignored."""
        self._followed.pop(key, None)

    def close(self) -> None:
        self._is_closed = True
        self._followed.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.abort()

    def _client_id(self) -> str:
        return client_id(self._settings.broker_id, self._broker_epoch())

    # The connection

    def _connect(self) -> None:
        if self._connecting is None and not self._is_closed:
            self._connecting = self._loop.create_task(self._open())

    async def _open(self) -> None:
        address = self._address(self.leader_id)
        try:
            if address is None:
                raise ConnectionError(f"broker {self.leader_id} has no address")
            connection = await self._transport.connect(
                *address, self._accept, timeout_ms=self._settings.socket_timeout_ms
            )
        except (OSError, TimeoutError) as error:
            logger.debug("broker %d cannot be reached at %s: %s", self.leader_id, address, error)
            self._connecting = None
            self._wait(self._settings.backoff_ms / 1000)
            return
        self._connecting = None
        self._connection = connection
        logger.info("following broker %d at %s", self.leader_id, connection.peer)
        if self._is_closed:
            connection.abort()
        self._pump()

    def _accept(self, connection: Connection) -> FrameHandler:
        return _Receiver(self, connection)

    def _lost(self, connection: Connection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        for _ in self._pipeline.drain():
            pass
        for followed in self._followed.values():
            followed.is_in_flight = False
        if not self._is_closed:
            logger.info("lost broker %d: %s", self.leader_id, reason)
            self._wait(self._settings.backoff_ms / 1000)

    def _wait(self, delay_s: float) -> None:
        """Look again after a while, and not later than already planned."""
        when = self._loop.time() + delay_s
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        connection = self._connection
        if connection is not None and self._pipeline.expired(now_ms):
            connection.abort()
            self._lost(connection, "no answer in time")
            return
        self._pump(is_news=True)
        deadline_ms = self._pipeline.next_deadline_ms()
        if deadline_ms is not None:
            self._wait((deadline_ms - now_ms) / 1000)

    # Requests

    def _pump(self, *, is_news: bool = False) -> None:
        """Send what can be sent. Behind a long poll only news is: then not for the sake of what just came back."""
        if self._is_closed or not self._followed:
            return
        if self._connection is None:
            if self._timer is None or is_news:
                self._connect()
            return
        in_flight = len(self._pipeline)
        if in_flight > 1 or (in_flight == 1 and not is_news):
            return
        now_s = self._loop.time()
        ready = [
            followed
            for followed in self._followed.values()
            if not followed.is_in_flight and not followed.is_parked and followed.retry_at_s <= now_s
        ]
        if ready:
            self._fetch(ready, 0 if in_flight else self._settings.max_wait_ms)

    def _fetch(self, ready: list[_Followed], max_wait_ms: int) -> None:
        settings = self._settings
        # Another partition goes first each time: the size limit of a response must not starve the last ones.
        self._rotation = (self._rotation + 1) % len(ready)
        ready = ready[self._rotation :] + ready[: self._rotation]
        sent: list[tuple[_Followed, FetchPosition]] = []
        wanted = []
        for followed in ready:
            followed.is_in_flight = True
            sent.append((followed, followed.partition.position()))
            wanted.append(followed.partition.fetch_request(settings.partition_max_bytes))
        request = FetchRequest(
            settings.broker_id, max_wait_ms, settings.min_bytes, settings.max_bytes, 0, 0, -1, wanted
        )
        correlation_id = self._pipeline.next_correlation_id()
        data = build_request(FETCH_VERSION, correlation_id, self._client_id(), request)
        self._send(correlation_id, data, lambda frame: self._fetched(frame, sent))

    def _send(self, correlation_id: int, data: bytes, on_response: OnResponse) -> None:
        if self._connection is None:
            return
        timeout_ms = self._settings.socket_timeout_ms + self._settings.max_wait_ms
        self._pipeline.sent(correlation_id, self._clock.monotonic_ms() + timeout_ms, on_response)
        self._connection.send_frame([data])
        if self._timer is None:
            self._wait(timeout_ms / 1000)

    # Answers

    def _received(self, connection: Connection, frame: memoryview) -> None:
        if connection is not self._connection:
            return
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            self._pipeline.received(correlation_id).context(frame)
        except (ProtocolError, struct.error) as error:
            connection.abort()
            self._lost(connection, f"a response that cannot be: {error}")
            return
        self._pump()

    def _fetched(self, frame: memoryview, sent: list[tuple[_Followed, FetchPosition]]) -> None:
        response = parse_response(frame, FETCH_VERSION)
        results = {(result.topic, result.partition): result for result in response.partitions}
        for followed, position in sent:
            followed.is_in_flight = False
            key = followed.partition.key
            if self._followed.get(key) is followed:
                self._apply(followed, position, results.get(key), response.error_code)

    def _apply(self, followed: _Followed, position: FetchPosition, result: FetchResult | None, error_code: int) -> None:
        partition = followed.partition
        if result is None:
            result = FetchResult(partition.topic, partition.partition, error_code or -1, -1, -1, -1)
        try:
            what = partition.fetched(position, result)
        except LogError as error:
            self._log_failed(partition, error)
            what = Reaction.BACK_OFF
        if what is Reaction.BACK_OFF:
            self._back_off(followed)
        elif what is Reaction.PARK:
            followed.is_parked = True
            logger.info("%s-%d: fenced by broker %d", *partition.key, self.leader_id)
        elif what is Reaction.OUT_OF_RANGE:
            followed.is_in_flight = True
            self._ask_range(followed, position)

    def _log_failed(self, partition: Partition, error: LogError) -> None:
        logger.error("%s-%d: following broker %d: %s", *partition.key, self.leader_id, error)
        if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._storage_failed(error)

    def _back_off(self, followed: _Followed) -> None:
        backoff_s = self._settings.backoff_ms / 1000
        followed.retry_at_s = self._loop.time() + backoff_s
        self._wait(backoff_s)

    def _ask_range(self, followed: _Followed, position: FetchPosition) -> None:
        """Ask where the leader's log begins and ends, then cut or start again."""
        found: list[int] = []

        def answered(frame: memoryview) -> None:
            found.append(_offset(frame))
            if len(found) == 2:
                followed.is_in_flight = False
                self._out_of_range(followed, position, *found)

        for timestamp in (EARLIEST, LATEST):
            correlation_id = self._pipeline.next_correlation_id()
            message = _list_offsets(followed.partition, position.leader_epoch, self._settings.broker_id, timestamp)
            data = encode_request(message, LIST_OFFSETS_VERSION, correlation_id, self._client_id())
            self._send(correlation_id, data, answered)

    def _out_of_range(self, followed: _Followed, position: FetchPosition, start_offset: int, end_offset: int) -> None:
        partition = followed.partition
        if self._followed.get(partition.key) is not followed:
            return
        if start_offset < 0 or end_offset < 0:
            self._back_off(followed)
            return
        target = out_of_range_position(start_offset, end_offset, position.fetch_offset)
        logger.warning("%s-%d: offset %d is out of range: %s", *partition.key, position.fetch_offset, target)
        try:
            if isinstance(target, Restart):
                partition.cut_or_restart(position, target.offset, restart=True)
            else:
                partition.cut_or_restart(position, target, restart=False)
        except LogError as error:
            self._log_failed(partition, error)
        self._back_off(followed)


class _Receiver:
    """The frames of one connection of a fetcher."""

    def __init__(self, fetcher: Fetcher, connection: Connection) -> None:
        self._fetcher = fetcher
        self._connection = connection

    def on_frame(self, frame: memoryview) -> None:
        self._fetcher._received(self._connection, frame)

    def on_eof(self) -> None:
        self._connection.close()

    def on_closed(self, reason: str) -> None:
        self._fetcher._lost(self._connection, reason)


def _list_offsets(partition: Partition, leader_epoch: int, replica_id: int, timestamp: int) -> Any:
    request = request_class(ApiKey.LIST_OFFSETS)
    topic = request.ListOffsetsTopic
    return request(
        replica_id=replica_id,
        isolation_level=0,
        topics=[
            topic(
                name=partition.topic,
                partitions=[
                    topic.ListOffsetsPartition(
                        partition_index=partition.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
                    )
                ],
            )
        ],
    )


def _offset(frame: memoryview) -> int:
    """The one offset of a ListOffsets response, -1 for an error."""
    _, response = decode_response(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, frame)
    for topic in response.topics:
        for partition in topic.partitions:
            return -1 if partition.error_code else int(partition.offset)
    return -1
