"""Consumer: reads partitions that a program assigns to it, in the program's own thread (Kafka's ``KafkaConsumer``).

Owns the face towards programs, and how long a call waits. Does not own I/O (``fetch_reader``) nor what to read
(``fetching``). Groups are not here: the keys that belong to them are accepted and change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from cluster.client.argument_checks import checked_keys, checked_long, checked_topic
from cluster.client.backoff import ExponentialBackoff
from cluster.client.closeable import Closeable
from cluster.client.cluster_view import PartitionView, TopicPartition, partition_name
from cluster.client.consumer.fetch_plans import FetchSettings
from cluster.client.consumer.fetch_reader import FetchReader
from cluster.client.consumer.fetching import FetchCore
from cluster.client.consumer.lookup import OffsetQuery
from cluster.client.consumer.results import ConsumerClosed, ConsumerRecord, OffsetAndTimestamp, PartitionError
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset
from cluster.client.one_thread import OneThread
from cluster.client.wiring import client_io, no_broker_answered
from cluster.config.consumer import validate
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock, SystemClock
from cluster.seams.randomness import Random, fresh_seed
from cluster.seams.selector import Selector
from cluster.seams.socket_selector import SocketSelector
from cluster.seams.transport import MAX_FRAME_BYTES
from cluster.seams.units import ms_of_seconds

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Requests in flight to one node: Kafka's consumer has the same.
_MAX_IN_FLIGHT = 100


class Consumer(Closeable):
    """``config`` has Kafka's own keys. For one thread at a time: another that calls meanwhile gets ``RuntimeError``.

    Calls that wait take ``timeout_s`` (None: ``default.api.timeout.ms``) and raise ``TimeoutError`` after it. Raises
    ``ConfigError``. Close it after use; it is a context manager.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        *,
        selector: Selector | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        """The keyword arguments are seams, for tests."""
        self._config = typed = validate(config)
        for warning in typed.warnings:
            logger.warning("%s", warning)
        settings = FetchSettings.of(typed)
        self._clock: Clock = clock or SystemClock()
        drawn = random or Random(fresh_seed())
        # An answer is as large as was asked for, or holds one batch that is larger.
        chosen = selector or SocketSelector(settings.max_bytes + MAX_FRAME_BYTES)
        self._backoff = ExponentialBackoff(typed["retry.backoff.ms"], typed["retry.backoff.max.ms"], drawn)
        try:
            io = client_io(
                typed,
                chosen,
                self._clock,
                drawn,
                max_in_flight=_MAX_IN_FLIGHT,
                max_idle_topic_ms=None,
                allow_auto_topic_creation=typed["allow.auto.create.topics"],
            )
        except BaseException:
            chosen.shutdown()
            raise
        self._core = FetchCore(settings, self._backoff)
        self._reader = FetchReader(self._core, io, self._clock, settings.isolation_level)
        self._max_records: int = typed["max.poll.records"]
        self._timeout_ms: int = typed["default.api.timeout.ms"]
        self._consumed = 0
        self._is_closed = False
        self._one_thread = OneThread("Consumer")

    def __repr__(self) -> str:
        return f"Consumer({'closed' if self._is_closed else self._core})"

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        if not self._is_closed:
            with self._used():
                self._is_closed = True
                self._reader.close()

    # What is read

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these ``(topic, partition)``. Those assigned before continue where they are; new ones begin
        where ``auto.offset.reset`` says, unless the program seeks.
        """
        with self._used():
            wanted = checked_keys(partitions)
            if any(topic == "" for topic, _partition in wanted):
                raise ValueError("Topic partitions to assign to cannot have null or empty topic")
            self._use(topic for topic, _ in wanted)
            self._core.assign(wanted)
            self._use_no_others()

    def assignment(self) -> list[TopicPartition]:
        """What is read."""
        return self._core.assignment.assigned

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until ``resume``. What was fetched already is kept."""
        self._set_paused(partitions, is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._set_paused(partitions, is_paused=False)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        return [partition.key for partition in self._core.assignment if partition.is_paused]

    def poll(self, timeout_s: float = 0.0) -> list[ConsumerRecord]:
        """The next records, at most ``max.poll.records``; those of one partition are in order, without hole or repeat.

        Waits for the first ones, for ``timeout_s`` at most; empty then. Raises ``ConsumerError``; no position has moved
        then, nor after any other exception that comes meanwhile (``KeyboardInterrupt``), and the next poll continues.
        """
        if timeout_s < 0:
            raise ValueError("a timeout is not negative")
        with self._used():
            if not self._core.assignment.assigned:
                raise RuntimeError("Consumer is not assigned any partitions")
            self._core.assignment.settle()
            left_ms = ms_of_seconds(timeout_s)
            deadline_ms = self._clock.monotonic_ms() + left_ms
            records = self._core.take(self._max_records)
            while not records:
                self._reader.turn(max(0.0, left_ms))
                records = self._core.take(self._max_records)
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    break
            # What comes next is fetched while the program works on these.
            self._reader.send()
            self._consumed += len(records)
        self._core.assignment.is_handed_over = True
        return records

    # Positions

    def position(self, partition: TopicPartition, timeout_s: float | None = None) -> int:
        """The offset of the next record that ``poll`` will return; waits until it is known."""
        with self._used():
            self._core.assignment.settle()
            what = f"the position of {partition_name(partition)}"
            return self._until(lambda: self._core.position(partition), timeout_s, what)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Continue at an offset. ``leader_epoch`` of the record before it, if known, reveals a truncated log."""
        if checked_long(offset, "an offset") < 0:
            raise ValueError("seek offset must not be a negative number")
        with self._used():
            self._core.seek(partition, offset, leader_epoch)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue at the first record (None: of all partitions). Where that is is asked when it is needed."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue after the last record: the last stable one with isolation.level=read_committed."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as of the last fetch; None if one of both is not known."""
        return self._core.lag(partition)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """High watermark and last stable offset, as of the last fetch; -1 each if not known. Kafka has no such call."""
        return self._core.watermarks(partition)

    # Questions

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each."""
        found = self._look_up(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout_s)
        return {key: listed.offset for key, listed in found.items()}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each that may be read (``isolation.level``)."""
        found = self._look_up(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout_s)
        return {key: listed.offset for key, listed in found.items()}

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition that is not older than its time; None if there is none."""
        if negative := [key for key, time_ms in times_ms.items() if checked_long(time_ms, "a time") < 0]:
            raise ValueError(f"the target time of {partition_name(negative[0])} must not be negative")
        found = self._look_up(times_ms, timeout_s)
        return {
            key: None if listed.offset < 0 else OffsetAndTimestamp(listed.offset, listed.timestamp, listed.leader_epoch)
            for key, listed in found.items()
        }

    def partitions_for(self, topic: str, timeout_s: float | None = None) -> list[PartitionView]:
        """The partitions of a topic, in order; empty for one that does not exist."""
        with self._used():
            metadata = self._reader.metadata
            self._use([checked_topic(topic)])
            asked = metadata.version

            def told() -> list[PartitionView] | None:
                described = metadata.view.topics.get(topic)
                code = ErrorCode.LEADER_NOT_AVAILABLE if described is None else described.error_code
                if described is not None and code is ErrorCode.NONE:
                    return [described.partitions[index] for index in sorted(described.partitions)]
                if not code.retriable:
                    raise PartitionError(code, (topic, -1), "looking for")
                metadata.request_update_for(topic)
                return [] if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and metadata.version > asked else None

            try:
                return self._until(told, timeout_s, f"metadata of topic {topic}")
            finally:
                self._use_no_others()

    def metrics(self) -> dict[str, float]:
        """Kafka's names: records returned, bytes of record batches that came, fetches answered, the greatest lag."""
        lags = [self._core.lag(key) for key in self._core.assignment.assigned]
        return {
            "records-consumed-total": self._consumed,
            "bytes-consumed-total": self._reader.fetched_bytes,
            "fetch-total": self._reader.fetch_count,
            "records-lag-max": max((lag for lag in lags if lag is not None), default=0),
            "assigned-partitions": len(lags),
        }

    def _look_up(
        self, wanted: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> dict[TopicPartition, ListedOffset]:
        query = OffsetQuery(wanted, self._backoff)
        with self._used():
            self._use(topic for topic, _ in checked_keys(wanted))
            try:
                self._reader.queries.append(query)
                what = f"offsets of {', '.join(map(partition_name, wanted))}"
                self._until(lambda: query.is_done or None, timeout_s, what)
            finally:
                self._reader.queries.clear()
                self._use_no_others()
        for key, code in query.refused.items():
            raise PartitionError(code, key, "looking for an offset of")
        return {key: query.found[key] for key in wanted}

    def _seek_to(self, partitions: Iterable[TopicPartition] | None, timestamp: int) -> None:
        with self._used():
            self._core.seek_to(self._core.assignment.assigned if partitions is None else partitions, timestamp)

    def _set_paused(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        with self._used():
            for partition in [self._core.assignment.find(key) for key in partitions]:
                partition.is_paused = is_paused

    def _use(self, topics: Iterable[str]) -> None:
        for topic in set(topics):
            self._reader.metadata.use(topic, self._clock.monotonic_ms())

    def _use_no_others(self) -> None:
        """What was asked about, or read before, is not in use anymore."""
        self._reader.metadata.retain({topic for topic, _ in self._core.assignment.assigned})

    def _until(self, ask: Callable[[], T | None], timeout_s: float | None, what: str) -> T:
        """Do the I/O until ``ask`` gives something. Raises ``TimeoutError``."""
        timeout_ms = self._timeout_ms if timeout_s is None else ms_of_seconds(timeout_s)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while (found := ask()) is None:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                reason = "" if self._reader.metadata.version else f". {no_broker_answered(self._config)}"
                raise TimeoutError(f"no answer within {timeout_ms:.0f} ms: {what}{reason}")
            self._reader.turn(left_ms)
        return found

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._one_thread.inside():
            if self._is_closed:
                raise ConsumerClosed
            yield
