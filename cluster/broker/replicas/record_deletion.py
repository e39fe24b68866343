"""Record deletion: the leader's part of DeleteRecords, across the partitions of a request.

Owns the checks (Kafka's ReplicaManager), moving the log's start, and the wait until the logs of all live replicas have
followed. Does not own how followers follow: they learn the leader's log start from its answers to their fetches, and
tell theirs when they fetch next. What was deleted is written to the broker's journal before it is gone, so that a
reader of the logs can tell it from a loss.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from cluster.broker.internal_topics import INTERNAL_TOPICS
from cluster.broker.journal import Journal
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.purgatory import Delayed, PartitionQueue
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.log.errors import LogError
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: The offset that stands for the high watermark.
TO_HIGH_WATERMARK = -1
JOURNAL_EVENT = "delete-records"


class WantedDeletion(NamedTuple):
    """Delete what lies below ``offset``."""

    topic: str
    partition: int
    offset: int


class DeletionResult(NamedTuple):
    """The answer for one partition; ``low_watermark`` is the least log start of its live replicas, -1 on an error."""

    topic: str
    partition: int
    error_code: int
    low_watermark: int = -1


class DelayedDeletion(Delayed[DeletionResult]):
    """A DeleteRecords request whose partitions wait for their followers."""

    __slots__ = ()

    def _leave(self, place: PartitionQueue) -> None:
        place.deletion_left()

    def began(self, index: int, low_watermark: int) -> None:
        """All live replicas of one partition have deleted what was asked."""
        if self.is_done:
            return
        self._results[index] = self._results[index]._replace(low_watermark=low_watermark)
        self.settle(index, ErrorCode.NONE)

    def _failed(self, result: DeletionResult, error_code: ErrorCode) -> DeletionResult:
        return DeletionResult(result.topic, result.partition, error_code)


class RecordDeletion:
    """``find`` returns a replica of this broker or raises ``RequestRefused``; ``journal`` notes what is deleted."""

    def __init__(
        self,
        find: Callable[[str, int], Replica],
        wheel: TimerWheel,
        journal: Journal,
        storage_failed: Callable[[LogError], None],
    ) -> None:
        self._find = find
        self._wheel = wheel
        self._journal = journal
        self._storage_failed = storage_failed

    def __repr__(self) -> str:
        return f"<RecordDeletion with {self._wheel!r}>"

    def delete(
        self,
        wanted: Sequence[WantedDeletion],
        timeout_ms: int,
        respond: Callable[[list[DeletionResult]], None],
        waits: Callable[[DelayedDeletion], None],
    ) -> Generator[None]:
        """Delete here step by step, and respond when every live replica of every partition has. None is in ``wanted``
        twice. ``waits`` gets what waits for followers, if anything."""
        results: list[DeletionResult] = []
        waiting: list[tuple[int, Replica, int]] = []
        for index, asked in enumerate(wanted):
            code = ErrorCode.NONE
            try:
                partition, offset = self._delete(asked)
                waiting.append((index, partition, offset))
            except (RequestRefused, LogError) as error:
                code = error.error_code
                logger.debug("deleting records of %s-%d: %s", asked.topic, asked.partition, error)
                if isinstance(error, LogError) and code is ErrorCode.KAFKA_STORAGE_ERROR:
                    self._storage_failed(error)
            results.append(DeletionResult(asked.topic, asked.partition, code))
            yield
        if not waiting:
            respond(results)
            return
        delayed = DelayedDeletion(results, (entry[0] for entry in waiting), respond, self._wheel, timeout_ms)
        for index, partition, offset in waiting:
            partition.waiters.add_deletion(offset, delayed, index)
            partition.waiters.wake_followers()
        waits(delayed)
        for _, partition, _ in waiting:
            partition.settle_deletions()

    def _delete(self, asked: WantedDeletion) -> tuple[Replica, int]:
        """Move one log's start; returns the offset at which all replicas' logs must begin, at least."""
        if asked.topic in INTERNAL_TOPICS:
            raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{asked.topic} is internal")
        partition = self._find(asked.topic, asked.partition)
        leader = partition.leading(-1)
        if "delete" not in partition.settings.log.cleanup_policy:
            raise RequestRefused(ErrorCode.POLICY_VIOLATION, f"cleanup.policy of {asked.topic} has no delete")
        offset = leader.high_watermark if asked.offset == TO_HIGH_WATERMARK else asked.offset
        if not 0 <= offset <= leader.high_watermark:
            raise RequestRefused(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {asked.offset}, the high watermark is {leader.high_watermark}"
            )
        log = partition.log
        if offset > log.log_start_offset:
            self._journal(
                JOURNAL_EVENT,
                {
                    "topic": asked.topic,
                    "partition": asked.partition,
                    "from_offset": log.log_start_offset,
                    "to_offset": offset,
                    "leader_epoch": leader.leader_epoch,
                },
            )
            log.advance_log_start_offset(offset)
        return partition, offset
