"""ConsumerCalls: what is below every call of a consumer: its parts, its one thread, and waiting for answers.

Owns how long a call waits, ``wakeup``, and the questions that have nothing to do with what is read. Does not own I/O
(``fetch_reader``), what to read (``fetching``) nor the group (``group``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from cluster.client.argument_checks import checked_keys, checked_long, checked_topic
from cluster.client.backoff import ExponentialBackoff
from cluster.client.closeable import Closeable
from cluster.client.cluster_view import PartitionView
from cluster.client.consumer.fetch_plans import FetchSettings
from cluster.client.consumer.fetch_reader import FetchReader
from cluster.client.consumer.fetching import FetchCore
from cluster.client.consumer.group.group_side import GroupSide
from cluster.client.consumer.lookup import OffsetQuery
from cluster.client.consumer.results import ConsumerClosed, ConsumerWokenUp, OffsetAndTimestamp, PartitionError
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset
from cluster.client.one_thread import OneThread
from cluster.client.wiring import client_io, no_broker_answered
from cluster.config.consumer import validate
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock, SystemClock
from cluster.seams.randomness import Random, fresh_seed
from cluster.seams.runner import Runner, ThreadRunner
from cluster.seams.selector import Selector
from cluster.seams.socket_selector import SocketSelector
from cluster.seams.transport import MAX_FRAME_BYTES
from cluster.seams.units import ms_of_seconds
from cluster.topic_partition import TopicPartition, partition_name

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Requests in flight to one node: Kafka's consumer has the same.
_MAX_IN_FLIGHT = 100


class ConsumerCalls(Closeable):
    """For one thread at a time, but for ``wakeup``: another that calls meanwhile gets ``RuntimeError``."""

    def __init__(
        self,
        config: Mapping[str, object],
        *,
        selector: Selector | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        group_selector: Selector | None = None,
        group_runner: Runner | None = None,
    ) -> None:
        """The keyword arguments are seams, for tests; two of them are of the connection to the group's coordinator."""
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
        self._timeout_ms: int = typed["default.api.timeout.ms"]
        self._consumed = 0
        self._is_closed = False
        self._one_thread = OneThread("Consumer")
        # Set by ``wakeup``, in any thread; one key, which is set and taken away in one step.
        self._woken: dict[str, bool] = {}
        self._group: GroupSide | None = None
        if typed["group.id"]:
            runner = group_runner or ThreadRunner(f"consumer-{typed['client.id']}-{typed['group.id']}")
            own = group_selector or SocketSelector()
            self._group = GroupSide(
                typed, io, self._core, own, self._clock, drawn, runner, self._one_thread, io.network.wakeup
            )

    def wakeup(self) -> None:
        """Have the call that waits, or else the next one, raise ``ConsumerWokenUp``. From any thread."""
        self._woken["up"] = True
        self._reader.wakeup()

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
        """The first record of each partition that is not older than its time, or None."""
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

    # What every call needs

    def _use(self, topics: Iterable[str]) -> None:
        for topic in set(topics):
            self._reader.metadata.use(topic, self._clock.monotonic_ms())

    def _use_no_others(self) -> None:
        """What was asked about, or read before, is not in use anymore."""
        used = {topic for topic, _ in self._core.assignment.assigned}
        if self._group is not None:
            used |= self._group.participation.used_topics
        self._reader.metadata.retain(used)

    def _until(self, ask: Callable[[], T | None], timeout_s: float | None, what: str) -> T:
        """Do the I/O until ``ask`` gives something. Raises ``TimeoutError``."""
        timeout_ms = self._timeout_ms if timeout_s is None else ms_of_seconds(timeout_s)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while (found := ask()) is None:
            self._raise_if_woken()
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                reason = "" if self._reader.metadata.version else f". {no_broker_answered(self._config)}"
                raise TimeoutError(f"no answer within {timeout_ms:.0f} ms: {what}{reason}")
            self._reader.turn(left_ms)
        return found

    def _raise_if_woken(self) -> None:
        if self._woken.pop("up", False):
            raise ConsumerWokenUp

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._one_thread.inside():
            if self._is_closed:
                raise ConsumerClosed
            yield
