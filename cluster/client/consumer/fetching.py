"""FetchCore: which partitions to fetch from which node, and what each answer means.

Owns the rules (Kafka's FetchCollector; KIP-320 by the diverging epoch of Fetch 12): retries with back-off,
auto.offset.reset, truncation, topics that are created again. Records are ``assignment``'s, what a program does with its
positions ``positions``', connections the shell's. Pure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from cluster.client.backoff import ExponentialBackoff
from cluster.client.cluster_view import ClusterView
from cluster.client.consumer.assignment import AssignedPartition
from cluster.client.consumer.block import FetchedBlock
from cluster.client.consumer.fetch_plans import (
    READ_COMMITTED,
    Fetch,
    FetchSettings,
    Plan,
    fetch_of,
    is_of_another_topic,
    leadership,
)
from cluster.client.consumer.lookup import Sought
from cluster.client.consumer.positions import Positions
from cluster.client.consumer.results import (
    ConsumerError,
    CorruptRecord,
    LogTruncated,
    OffsetOutOfRange,
    PartitionError,
    TopicRecreated,
)
from cluster.client.offset_listing import LATEST_TIMESTAMP, ListedOffset
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResponse, FetchResult
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: Codes that are not Kafka's InvalidMetadataException but after which metadata is asked for anyway. Kafka does
#: not for an unknown epoch: that a topic was created again shows by its id, which Fetch carries from version 13 on.
_ALSO_STALE = frozenset({ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH})


class FetchCore(Positions):
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def __init__(self, settings: FetchSettings, backoff: ExponentialBackoff) -> None:
        super().__init__(settings, backoff)
        self._backoff = backoff
        # Nodes with a fetch in flight: one each, as its answer may be long in coming.
        self._fetching: set[int] = set()

    def __repr__(self) -> str:
        return f"FetchCore({self.assignment!r}, {self.resets!r}, fetching from {sorted(self._fetching)})"

    # What to ask

    def plan(self, view: ClusterView, now_ms: int) -> Plan:
        """What is due. What a node does not take now, so that ``fetch`` is not called for it, is due again."""
        self._view = view
        self.forget_others()
        plan = Plan(lookups=self.resets.due(view, now_ms))
        for node_id in [node_id for node_id in plan.lookups if not view.has_broker(node_id)]:
            plan.stale_topics.update(topic for topic, _ in plan.lookups.pop(node_id))
        for partition in self.assignment:
            if partition.topic_id is None and partition.position is not None:
                # Where the program went before anything was known of the topic: in the one that is. Now, though nothing
                # may be fetched of it yet: later it may be another.
                partition.topic_id = view.topic_id(partition.key[0])
            if self._is_refused(partition, view):
                plan.stale_topics.add(partition.key[0])
            elif partition.is_idle and not self._is_in_another(partition, view):
                leader = leadership(partition, view)[0]
                if not view.has_broker(leader) or partition.doubted_in is view:
                    plan.stale_topics.add(partition.key[0])
                elif leader not in self._fetching and not self._is_put_off(partition, view, now_ms):
                    plan.fetches.setdefault(leader, []).append(partition)
        return plan

    def _is_refused(self, partition: AssignedPartition, view: ClusterView) -> bool:
        """Whether metadata says about the topic that it cannot be read: ``take`` raises that."""
        topic = view.topics.get(partition.key[0])
        if topic is None or topic.error_code is ErrorCode.NONE or topic.error_code.retriable:
            return False
        if partition.block is None and partition.error is None:
            self.assignment.fail(partition, PartitionError(topic.error_code, partition.key, "looking for"))
        return True

    def _is_in_another(self, partition: AssignedPartition, view: ClusterView) -> bool:
        """Whether the position is in a topic that is no more, though there is one of its name: reading starts over."""
        if not is_of_another_topic(partition, view):
            return False
        if self._settings.reset_timestamp is None:
            self.assignment.fail(partition, TopicRecreated(partition.key, partition.position or 0))
        else:
            logger.warning("topic %s was created again: resetting offset for partition %d", *partition.key)
            self._reset(partition)
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

    # Outcomes

    def abandoned(self) -> None:
        """An exception has cut I/O short (Ctrl-C, a greenlet's end): what was asked is not answered anymore, and what
        came may have been taken in by half. Reading continues from the positions.
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
        the program went elsewhere meanwhile, is ignored.
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
            logger.info("resetting offset for partition %s-%d to %d", *key, listed.offset)
            self._place(partition, listed.offset, listed.leader_epoch, self.resets.topic_id(key))
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
        is_misplaced = code is ErrorCode.OFFSET_OUT_OF_RANGE or result.diverging is not None
        if is_misplaced and partition.topic_id is not None and partition.doubted_in is None:
            # Metadata are to tell first whether this is still the topic that the position is in.
            partition.doubted_in = self._view
            return True
        if code is ErrorCode.NONE:
            self._take_records(partition, position, result)
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition, position)
        elif code is ErrorCode.CORRUPT_MESSAGE:
            self.assignment.fail(partition, CorruptRecord(partition.key, position, "the broker found it corrupt"))
        elif code.retriable or code is ErrorCode.UNKNOWN_SERVER_ERROR:
            logger.debug("fetch of %s-%d at %d: %s", *partition.key, position, code.name)
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
        partition.doubted_in = None
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
            logger.info("fetch position %d of %s-%d is out of range, resetting offset", position, *partition.key)
            self._reset(partition)

    def _truncated(self, partition: AssignedPartition, position: int, epoch: int, end_offset: int) -> None:
        """What was read before the position is not what the leader has (KIP-320)."""
        if self._settings.reset_timestamp is None:
            self.assignment.fail(partition, LogTruncated(partition.key, position, min(position, end_offset)))
        elif end_offset < 0:
            self._reset(partition)
        else:
            agreed = min(position, end_offset)
            logger.warning("truncation of %s-%d: continuing at %d instead of %d", *partition.key, agreed, position)
            self._place(partition, agreed, epoch, partition.topic_id)
