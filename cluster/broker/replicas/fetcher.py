"""Fetcher: follows one leader broker, for all partitions that it leads and we replicate.

Owns what is in flight, the pauses after errors, and the questions to the leader after OFFSET_OUT_OF_RANGE. Does not own
the connection (``LeaderLink``), what an answer means (``cluster.replication.follower``) nor the appending.

One long poll is in flight. A partition that is new here does not wait for it to end: a second fetch is sent behind
it, and a broker that sees a request behind a parked fetch answers the fetch at once.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cluster.broker.replicas.leader_link import LeaderLink
from cluster.broker.replicas.partition import Partition
from cluster.broker.replicas.values import TopicPartition
from cluster.log.errors import LogError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchRequest, FetchResult, build_request, parse_response
from cluster.protocol.messages import decode_response, encode_request, request_class
from cluster.replication.follower import FetchPosition, Reaction, out_of_range_position
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport

logger = logging.getLogger(__name__)

FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
EARLIEST, LATEST = -2, -1

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


class _Followed:
    """One partition that is followed here: whether a request for it is on its way, and since when it must pause."""

    __slots__ = ("is_in_flight", "is_parked", "partition", "retry_at_s")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.is_in_flight = False
        self.is_parked = False
        self.retry_at_s = 0.0


class Fetcher:
    """Follows ``leader_id``. ``broker_epoch`` is our own; ``storage_failed`` is told of logs that the disk failed."""

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
        self._broker_epoch = broker_epoch
        self._loop = loop
        self._storage_failed = storage_failed
        self._followed: dict[TopicPartition, _Followed] = {}
        self._rotation = 0
        self._link = LeaderLink(
            leader_id,
            self,
            address=address,
            transport=transport,
            clock=clock,
            loop=loop,
            connect_timeout_ms=settings.socket_timeout_ms,
            backoff_ms=settings.backoff_ms,
        )

    def __repr__(self) -> str:
        return f"<Fetcher from {self.leader_id}, {len(self._followed)} partitions, {self._link!r}>"

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
        self._followed.clear()
        self._link.close()

    # What the link tells

    def link_is_up(self) -> None:
        self._pump()

    def link_is_down(self) -> None:
        for followed in self._followed.values():
            followed.is_in_flight = False

    def answered(self) -> None:
        self._pump()

    def timer(self) -> None:
        self._pump(is_news=True)

    # Requests

    def _pump(self, *, is_news: bool = False) -> None:
        """Send what can be sent. Behind a long poll only news is: not what has just come back from another request."""
        if not self._followed:
            return
        link = self._link
        if not link.is_up:
            if is_news or not link.is_waiting:
                link.connect()
            return
        in_flight = link.in_flight
        if in_flight > 1 or (in_flight == 1 and not is_news):
            return
        ready = self._ready()
        if ready:
            self._fetch(ready, 0 if in_flight else self._settings.max_wait_ms)

    def _ready(self) -> list[_Followed]:
        """Who may be asked for now. For those that pause the timer is set: an earlier one may have come too early."""
        now_s = self._loop.time()
        ready = []
        for followed in self._followed.values():
            if followed.is_in_flight or followed.is_parked:
                continue
            if followed.retry_at_s <= now_s:
                ready.append(followed)
            else:
                self._link.wake_in(1000 * (followed.retry_at_s - now_s))
        return ready

    def _fetch(self, ready: list[_Followed], max_wait_ms: int) -> None:
        settings = self._settings
        # Another partition goes first each time: the size limit of a response must not starve the last ones.
        self._rotation = (self._rotation + 1) % len(ready)
        sent: list[tuple[_Followed, FetchPosition]] = []
        wanted = []
        for followed in (*ready[self._rotation :], *ready[: self._rotation]):
            followed.is_in_flight = True
            sent.append((followed, followed.partition.position()))
            wanted.append(followed.partition.fetch_request(settings.partition_max_bytes))
        request = FetchRequest(
            settings.broker_id, max_wait_ms, settings.min_bytes, settings.max_bytes, 0, 0, -1, wanted
        )
        correlation_id = self._link.next_correlation_id()
        data = build_request(FETCH_VERSION, correlation_id, self._client_id(), request)
        self._link.send(correlation_id, data, self._timeout_ms(), lambda frame: self._fetched(frame, sent))

    def _client_id(self) -> str:
        return client_id(self._settings.broker_id, self._broker_epoch())

    def _timeout_ms(self) -> int:
        return self._settings.socket_timeout_ms + self._settings.max_wait_ms

    # Answers

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
        followed.retry_at_s = self._loop.time() + self._settings.backoff_ms / 1000
        self._link.wake_in(self._settings.backoff_ms)

    def _ask_range(self, followed: _Followed, position: FetchPosition) -> None:
        """Ask where the leader's log begins and ends, then cut or start again."""
        found: list[int] = []

        def answered(frame: memoryview) -> None:
            found.append(_offset(frame))
            if len(found) == 2:
                followed.is_in_flight = False
                self._out_of_range(followed, position, *found)

        for timestamp in (EARLIEST, LATEST):
            correlation_id = self._link.next_correlation_id()
            message = _list_offsets(followed.partition, position.leader_epoch, self._settings.broker_id, timestamp)
            data = encode_request(message, LIST_OFFSETS_VERSION, correlation_id, self._client_id())
            self._link.send(correlation_id, data, self._timeout_ms(), answered)

    def _out_of_range(self, followed: _Followed, position: FetchPosition, start_offset: int, end_offset: int) -> None:
        partition = followed.partition
        if self._followed.get(partition.key) is followed and start_offset >= 0 and end_offset >= 0:
            target = out_of_range_position(start_offset, end_offset, position.fetch_offset)
            logger.warning("%s-%d: offset %d is out of range: %s", *partition.key, position.fetch_offset, target)
            try:
                partition.go_on_from(position, target)
            except LogError as error:
                self._log_failed(partition, error)
        self._back_off(followed)


def _list_offsets(partition: Partition, leader_epoch: int, replica_id: int, timestamp: int) -> Any:
    request = request_class(ApiKey.LIST_OFFSETS)
    topic = request.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(
        partition_index=partition.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
    )
    topics = [topic(name=partition.topic, partitions=[asked])]
    return request(replica_id=replica_id, isolation_level=0, topics=topics)


def _offset(frame: memoryview) -> int:
    """The one offset of a ListOffsets response, -1 for an error."""
    _, response = decode_response(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, frame)
    for topic in response.topics:
        for partition in topic.partitions:
            return -1 if partition.error_code else int(partition.offset)
    return -1
