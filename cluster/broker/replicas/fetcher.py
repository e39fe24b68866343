"""Fetcher: follows one leader broker, for all partitions that it leads and we replicate.

Owns when something is asked, what becomes of an answer, and the questions to the leader after OFFSET_OUT_OF_RANGE. Does
not own what is asked and which answers count (``Following``), the connection (``LeaderConnection``), what an answer
means (``cluster.replication.follower``) nor the appending.

One long poll is in flight. A partition that is new here does not wait for it to end: a second fetch is
sent after it, and a broker that sees a request behind a parked fetch answers the fetch at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from cluster.broker.replicas.following import Followed, Following, Question
from cluster.broker.replicas.leader_connection import LeaderConnection
from cluster.broker.replicas.replica import Replica
from cluster.config.broker import BrokerConfig
from cluster.log.errors import LogError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchRequest, FetchResult, build_request, parse_response
from cluster.protocol.message_classes import ListOffsetsRequest, ListOffsetsResponse
from cluster.protocol.messages import decode_response, encode_request
from cluster.replication.follower import FetchPosition, Reaction, out_of_range_position
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport
from cluster.seams.units import ms_of_seconds
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
EARLIEST, LATEST = -2, -1

_CLIENT_ID = re.compile(r"broker-[0-9]{1,10}-epoch-([0-9]{1,19})")
#: The longest that this matches: what anyone else calls himself is not remembered.
_LONGEST_CLIENT_ID = 43


def client_id(broker_id: int, broker_epoch: int) -> str:
    """The client id of a fetcher. It tells the leader in which of its lives a follower fetches (KIP-903): Fetch has a
    field for that from version 15 on, and we use 12."""
    return f"broker-{broker_id}-epoch-{broker_epoch}"


def broker_epoch_in(client_id: str | None) -> int:
    """The broker epoch in a fetcher's client id; -1 if it tells none."""
    return -1 if client_id is None or len(client_id) > _LONGEST_CLIENT_ID else _epoch_in(client_id)


@lru_cache(maxsize=256)
def _epoch_in(client_id: str) -> int:
    found = _CLIENT_ID.fullmatch(client_id)
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

    @classmethod
    def of(cls, config: BrokerConfig) -> FetcherSettings:
        return cls(
            broker_id=config.broker_id,
            max_wait_ms=config["replica.fetch.wait.max.ms"],
            min_bytes=config["replica.fetch.min.bytes"],
            max_bytes=config["replica.fetch.response.max.bytes"],
            partition_max_bytes=config["replica.fetch.max.bytes"],
            backoff_ms=config["replica.fetch.backoff.ms"],
            socket_timeout_ms=config["replica.socket.timeout.ms"],
        )


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
        self._following = Following(settings.partition_max_bytes)
        self._link = LeaderConnection(
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
        return f"<Fetcher from {self.leader_id}, {self._following!r}, {self._link!r}>"

    @property
    def is_idle(self) -> bool:
        return len(self._following) == 0

    def add(self, partition: Replica) -> None:
        """Follow a partition from where it is; again if it was followed already, since its epoch changed."""
        self._following.add(partition)
        self._pump(is_news=True)

    def remove(self, key: TopicPartition) -> None:
        """Follow it no more. What is on its way for it will be ignored."""
        self._following.remove(key)

    def close(self) -> None:
        self._following.clear()
        self._link.close()

    # What the link tells

    def link_is_up(self) -> None:
        self._pump()

    def link_is_down(self) -> None:
        self._following.start_over()

    def answered(self) -> None:
        self._pump()

    def timer(self) -> None:
        self._pump(is_news=True)

    # Requests

    def _pump(self, *, is_news: bool = False) -> None:
        """Send what can be sent. Behind a long poll only news is: not what has just come back from another request."""
        if self.is_idle:
            return
        link = self._link
        if not link.is_up:
            if is_news or not link.is_waiting:
                link.connect()
            return
        in_flight = link.in_flight
        if in_flight > 1 or (in_flight == 1 and not is_news):
            return
        now_s = self._loop.time()
        question = self._following.question(now_s, is_second=in_flight > 0)
        if question is not None:
            self._fetch(question, 0 if in_flight else self._settings.max_wait_ms)
        # For those that pause: an earlier timer may have come too early.
        resume_s = self._following.next_resume_s()
        if resume_s < math.inf:
            self._link.wake_in(ms_of_seconds(resume_s - now_s))

    def _fetch(self, question: Question, max_wait_ms: int) -> None:
        settings = self._settings
        request = FetchRequest(
            settings.broker_id,
            max_wait_ms,
            settings.min_bytes,
            settings.max_bytes,
            0,
            question.session_id,
            question.session_epoch,
            question.wanted,
            question.forgotten,
        )
        correlation_id = self._link.next_correlation_id()
        data = build_request(FETCH_VERSION, correlation_id, self._client_id(), request)
        self._link.send(correlation_id, data, self._timeout_ms(), lambda frame: self._fetched(frame, question))

    def _client_id(self) -> str:
        return client_id(self._settings.broker_id, self._broker_epoch())

    def _timeout_ms(self) -> int:
        return self._settings.socket_timeout_ms + self._settings.max_wait_ms

    # Answers

    def _fetched(self, frame: memoryview, question: Question) -> None:
        response = parse_response(frame, FETCH_VERSION)
        following = self._following
        for followed, result in following.answered(question, response):
            self._apply(followed, result)
            following.handled(followed, result)

    def _apply(self, followed: Followed, result: FetchResult) -> None:
        partition = followed.partition
        try:
            what = partition.fetched(followed.sent, result)
        except LogError as error:
            self._log_failed(partition, error)
            what = Reaction.BACK_OFF
        if what is Reaction.BACK_OFF:
            self._back_off(followed)
        elif what is Reaction.PARK:
            self._following.pause(followed, math.inf)
            logger.info("%s-%d: fenced by broker %d", *partition.key, self.leader_id)
        elif what is Reaction.OUT_OF_RANGE:
            self._ask_range(followed, followed.sent)
        elif what is not Reaction.IGNORE:
            followed.failures = 0

    def _log_failed(self, partition: Replica, error: LogError) -> None:
        logger.error("%s-%d: following broker %d: %s", *partition.key, self.leader_id, error)
        if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._storage_failed(error)

    def _back_off(self, followed: Followed) -> None:
        self._link.wake_in(self._following.back_off(followed, self._loop.time(), self._settings.backoff_ms))

    def _ask_range(self, followed: Followed, position: FetchPosition) -> None:
        """Ask where the leader's log begins and ends, then cut or start again."""
        self._following.ask_range(followed)
        found: list[int] = []

        def answered(frame: memoryview) -> None:
            found.append(_offset(frame))
            if len(found) == 2:
                self._out_of_range(followed, position, *found)

        for timestamp in (EARLIEST, LATEST):
            correlation_id = self._link.next_correlation_id()
            message = _list_offsets(followed.partition, position.leader_epoch, self._settings.broker_id, timestamp)
            data = encode_request(message, LIST_OFFSETS_VERSION, correlation_id, self._client_id())
            self._link.send(correlation_id, data, self._timeout_ms(), answered)

    def _out_of_range(self, followed: Followed, position: FetchPosition, start_offset: int, end_offset: int) -> None:
        partition = followed.partition
        if self._following.is_current(followed) and start_offset >= 0 and end_offset >= 0:
            target = out_of_range_position(start_offset, end_offset, position.fetch_offset)
            logger.warning("%s-%d: offset %d is out of range: %s", *partition.key, position.fetch_offset, target)
            try:
                partition.go_on_from(position, target)
            except LogError as error:
                self._log_failed(partition, error)
        self._back_off(followed)


def _list_offsets(partition: Replica, leader_epoch: int, replica_id: int, timestamp: int) -> ListOffsetsRequest:
    topic = ListOffsetsRequest.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(
        partition_index=partition.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
    )
    topics = [topic(name=partition.topic, partitions=[asked])]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=0, topics=topics)


def _offset(frame: memoryview) -> int:
    """The one offset of a ListOffsets response, -1 for an error."""
    response: ListOffsetsResponse
    _, response = decode_response(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, frame)
    for topic in response.topics:
        for partition in topic.partitions:
            return -1 if partition.error_code else partition.offset
    return -1
