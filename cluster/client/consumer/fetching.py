"""FetchCore: which partitions to fetch from which node, where positions come from, and what each answer means.

Owns the rules (kafka-semantics 9, its last line; KIP-320 by the diverging epoch of Fetch 12): retries with back-off,
auto.offset.reset, truncation. Positions and records are ``assignment``'s, connections the shell's. Pure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import ClusterView, TopicPartition
from cluster.client.consumer.assignment import AssignedPartition, Assignment
from cluster.client.consumer.block import FetchedBlock
from cluster.client.consumer.lookup import OffsetLookup, Sought
from cluster.client.consumer.plans import READ_COMMITTED, Fetch, FetchSettings, Plan, fetch_of, leadership
from cluster.client.consumer.values import (
    ConsumerError,
    ConsumerRecord,
    CorruptRecord,
    LogTruncated,
    NoOffsetForPartition,
    OffsetOutOfRange,
    PartitionError,
)
from cluster.client.offset_listing import LATEST_TIMESTAMP, ListedOffset
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResponse, FetchResult

log = logging.getLogger(__name__)

#: Codes that are not Kafka's InvalidMetadataException but after which metadata is asked for all the same. Kafka does
#: not for an unknown epoch: that a topic was created again shows by its id, which Fetch carries from version 13 on.
_ALSO_STALE = frozenset({ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH})


class FetchCore:
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def __init__(self, settings: FetchSettings, backoff: ExponentialBackoff) -> None:
        self.assignment = Assignment()
        self.resets = OffsetLookup(backoff)
        self._settings = settings
        self._backoff = backoff
        # Nodes with a fetch in flight: one each, as its answer may be long in coming.
        self._fetching: set[int] = set()

    def __repr__(self) -> str:
        return f"FetchCore({self.assignment!r}, {self.resets!r}, fetching from {sorted(self._fetching)})"

    # Positions

    def assign(self, keys: Iterable[TopicPartition]) -> None:
        """Read exactly these; new ones begin where auto.offset.reset says."""
        before = self.assignment.assigned
        self.assignment.replace(keys)
        for partition in self.assignment:
            # New ones, and those of a call that an exception has cut short.
            if self._is_lost(partition):
                self._reset(partition)
        for key in before:
            if key not in self.assignment:
                self.resets.forget(key)

    def seek(self, key: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Go on at an offset. ``leader_epoch`` of the record before it lets the broker tell a truncated log."""
        self._place(self.assignment.find(key), offset, leader_epoch)

    def seek_to(self, keys: Iterable[TopicPartition], timestamp: int) -> None:
        """Go on where a timestamp is found; a special one is the beginning or the end."""
        for partition in [self.assignment.find(key) for key in keys]:
            self._look_for(partition, timestamp)

    def position(self, key: TopicPartition) -> int | None:
        """Where a partition is; None while that is looked for. Raises ``ValueError``, and why it cannot be found."""
        partition = self.assignment.find(key)
        if self._is_lost(partition):
            raise NoOffsetForPartition([key])
        if partition.position is None:
            self.assignment.raise_error(partition)
        return partition.position

    def lag(self, key: TopicPartition) -> int | None:
        """Offsets from the position to the end that may be read, as it was told last; None if that is not known."""
        partition = self.assignment.find(key)
        is_committed = self._settings.isolation_level == READ_COMMITTED
        end = partition.last_stable_offset if is_committed else partition.high_watermark
        return None if partition.position is None or end < 0 else max(0, end - partition.position)

    def take(self, limit: int) -> list[ConsumerRecord]:
        """The next records. Raises ``ConsumerError``; see ``Assignment.take``."""
        lost = [each.key for each in self.assignment if self._is_lost(each)]
        if lost:
            raise NoOffsetForPartition(lost)
        return self.assignment.take(limit)

    def _is_lost(self, partition: AssignedPartition) -> bool:
        return partition.position is None and partition.error is None and partition.key not in self.resets

    def _reset(self, partition: AssignedPartition) -> None:
        """Begin anew where auto.offset.reset says; with none, ``take`` will tell that there is no position."""
        if self._settings.reset_timestamp is None:
            self._place(partition, None)
        else:
            self._look_for(partition, self._settings.reset_timestamp)

    def _look_for(self, partition: AssignedPartition, timestamp: int) -> None:
        self.assignment.place(partition, None)
        self.resets.want(partition.key, timestamp)

    def _place(self, partition: AssignedPartition, position: int | None, offset_epoch: int = -1) -> None:
        self.assignment.place(partition, position, offset_epoch)
        self.resets.forget(partition.key)

    # What to ask

    def plan(self, view: ClusterView, now_ms: int) -> Plan:
        """What is due. What a node does not take now, so that ``fetch`` is not called for it, is due again."""
        plan = Plan(lookups=self.resets.due(view, now_ms))
        for node_id in [node_id for node_id in plan.lookups if not view.has_broker(node_id)]:
            plan.stale_topics.update(topic for topic, _ in plan.lookups.pop(node_id))
        for partition in self.assignment:
            if self._is_refused(partition, view):
                plan.stale_topics.add(partition.key[0])
            elif partition.is_idle:
                leader = leadership(partition, view)[0]
                if not view.has_broker(leader):
                    plan.stale_topics.add(partition.key[0])
                elif leader not in self._fetching and not self._is_put_off(partition, view, now_ms):
                    plan.fetches.setdefault(leader, []).append(partition)
        return plan

    def _is_refused(self, partition: AssignedPartition, view: ClusterView) -> bool:
        """Whether metadata says of the topic that it cannot be read: ``take`` raises that."""
        topic = view.topics.get(partition.key[0])
        if topic is None or topic.error_code is ErrorCode.NONE or topic.error_code.retriable:
            return False
        if partition.block is None and partition.error is None:
            self.assignment.fail(partition, PartitionError(topic.error_code, partition.key, "looking for"))
        return True

    def fetch(self, node_id: int, partitions: Iterable[AssignedPartition], view: ClusterView) -> Fetch:
        """The request to a node, which is taken to be sent."""
        self._fetching.add(node_id)
        return fetch_of(node_id, partitions, view, self._settings)

    def retry_ms(self, now_ms: int) -> int | None:
        """When something that was put off is due; None if nothing is."""
        times = [each.retry_ms for each in self.assignment if each.is_idle and each.retry_ms > now_ms]
        reset_ms = self.resets.retry_ms(now_ms)
        return min(times if reset_ms is None else [*times, reset_ms], default=None)

    def _is_put_off(self, partition: AssignedPartition, view: ClusterView, now_ms: int) -> bool:
        """A new leader, or a new epoch of the same, may do better at once."""
        return now_ms < partition.retry_ms and partition.failed_at == leadership(partition, view)

    # What came of it

    def abandoned(self) -> None:
        """An exception has cut I/O short (Ctrl-C, a greenlet's end): what was asked is not answered any more, and what
        came may have been taken in by half. Reading goes on from the positions.
        """
        self._fetching.clear()
        for partition in self.assignment:
            if partition.position is not None:
                self.resets.forget(partition.key)
        self.assignment.forget_blocks()
        self.resets.abandoned()

    def unsupported(self, partitions: Iterable[AssignedPartition], why: str) -> None:
        """Their leader has no version of Fetch that we know: ``take`` raises that."""
        for partition in partitions:
            self.assignment.fail(partition, ConsumerError(ErrorCode.UNSUPPORTED_VERSION, f"fetch: {why}"))

    def fetch_failed(self, fetch: Fetch) -> None:
        """No answer came. The connection has its own back-off, and its loss asks for metadata."""
        self._fetching.discard(fetch.node_id)

    def fetched(self, fetch: Fetch, answer: FetchResponse, now_ms: int) -> set[str]:
        """An answer came. Returns the topics whose metadata is old. What is not about where a partition is now, since
        the program went elsewhere meanwhile, is passed over.
        """
        self._fetching.discard(fetch.node_id)
        stale: set[str] = set()
        results = answer.partitions
        if answer.error_code:
            results = [FetchResult(*key, answer.error_code, -1, -1, -1) for key in fetch.places]
        for result in results:
            key = result.topic, result.partition
            partition, place = self.assignment.get(key), fetch.places.get(key)
            if partition is None or place is None:
                continue
            if (partition.position, partition.moves) != (place.position, place.moves):
                continue
            if partition.block is None and partition.error is None:
                asked = fetch.node_id, place.leader_epoch
                if self._take_result(partition, place.position, asked, result, now_ms):
                    stale.add(key[0])
        return stale

    def listed(
        self,
        asked: Mapping[TopicPartition, Sought],
        answers: Mapping[TopicPartition, ListedOffset | ErrorCode],
        now_ms: int,
    ) -> set[str]:
        """Offsets came that positions wait for. Returns the topics whose metadata is old."""
        answer = self.resets.answered(asked, answers, now_ms)
        for key, listed in answer.found.items():
            partition = self.assignment.get(key)
            if partition is None:
                continue
            if listed.offset < 0:
                # Nothing that young: the end is where it will come.
                self._look_for(partition, LATEST_TIMESTAMP)
                continue
            log.info("resetting offset for partition %s-%d to %d", *key, listed.offset)
            self._place(partition, listed.offset, listed.leader_epoch)
        for key, code in answer.refused.items():
            partition = self.assignment.get(key)
            if partition is not None and partition.error is None:
                self.assignment.fail(partition, PartitionError(code, key, "looking for an offset of"))
        return answer.stale_topics

    def _take_result(
        self, partition: AssignedPartition, position: int, asked: tuple[int, int], result: FetchResult, now_ms: int
    ) -> bool:
        """``asked`` is the leader and its epoch. Returns whether the topic's metadata is old."""
        code = ErrorCode.of(result.error_code)
        if code is ErrorCode.NONE:
            self._take_records(partition, position, result)
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition, position)
        elif code is ErrorCode.CORRUPT_MESSAGE:
            self.assignment.fail(partition, CorruptRecord(partition.key, position, "the broker found it corrupt"))
        elif code.retriable or code is ErrorCode.UNKNOWN_SERVER_ERROR:
            log.debug("fetch of %s-%d at %d: %s", *partition.key, position, code.name)
            partition.retry_ms = now_ms + self._backoff.delay_ms(partition.failures)
            partition.failures += 1
            partition.failed_at = asked
            return code.is_invalid_metadata or code in _ALSO_STALE
        else:
            self.assignment.fail(partition, PartitionError(code, partition.key, "fetching"))
        return False

    def _take_records(self, partition: AssignedPartition, position: int, result: FetchResult) -> None:
        partition.failures = partition.retry_ms = 0
        if result.diverging is not None:
            self._truncated(partition, position, *result.diverging)
            return
        partition.high_watermark = result.high_watermark
        partition.last_stable_offset = result.last_stable_offset
        partition.log_start_offset = result.log_start_offset
        if isinstance(result.records, bytes) and result.records:
            block = FetchedBlock(
                partition.key,
                position,
                result.records,
                partition.offset_epoch,
                check_crcs=self._settings.check_crcs,
                aborted=(result.aborted or ()) if self._settings.isolation_level == READ_COMMITTED else None,
            )
            self.assignment.store(partition, block)

    def _out_of_range(self, partition: AssignedPartition, position: int) -> None:
        if self._settings.reset_timestamp is None:
            self.assignment.fail(partition, OffsetOutOfRange({partition.key: position}))
        else:
            log.info("fetch position %d of %s-%d is out of range, resetting offset", position, *partition.key)
            self._reset(partition)

    def _truncated(self, partition: AssignedPartition, position: int, epoch: int, end_offset: int) -> None:
        """What was read before the position is not what the leader has (KIP-320)."""
        if self._settings.reset_timestamp is None:
            self.assignment.fail(partition, LogTruncated(partition.key, position, end_offset))
        elif end_offset < 0:
            self._reset(partition)
        else:
            agreed = min(position, end_offset)
            log.warning("truncation of %s-%d: going on at %d instead of %d", *partition.key, agreed, position)
            self._place(partition, agreed, epoch)
