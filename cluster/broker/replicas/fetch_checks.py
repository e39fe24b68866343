"""What a leader checks of a fetch before it reads: who fetches, and the fetcher's place in history.

Owns these checks (Kafka's Partition), and the shapes of question and result. Does not read, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cluster.broker.replicas.host import RequestRefused
from cluster.log.epochs import LeaderEpochCache
from cluster.log.partition_log import PartitionLog
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.replication.leader import LeaderState
from cluster.replication.leader_epochs import diverging_epoch
from cluster.seams.storage import Payload

#: ``replica_id`` of a consumer; followers send their broker id.
CONSUMER = -1
#: What a consumer wants to see of transactions (its ``isolation.level``).
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

#: (epochs, an epoch, log end offset) -> (the largest epoch not above it, where that ends)
EndOffsetFor = Callable[[LeaderEpochCache, int, int], tuple[int, int]]


class FetchedBy:
    """Who fetches: a consumer, or a follower in one of its lives (its broker epoch, -1 if it does not say).

    ``isolation_level`` is a consumer's: READ_COMMITTED reads below the last stable offset only.
    """

    __slots__ = ("broker_epoch", "is_follower", "only_committed", "replica_id")

    def __init__(
        self, replica_id: int = CONSUMER, broker_epoch: int = -1, isolation_level: int = READ_UNCOMMITTED
    ) -> None:
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self.is_follower = replica_id >= 0
        self.only_committed = isolation_level == READ_COMMITTED and not self.is_follower

    def __repr__(self) -> str:
        return f"<broker {self.replica_id} epoch {self.broker_epoch}>" if self.is_follower else "<consumer>"

    def is_same(self, other: FetchedBy) -> bool:
        """Whether both are one broker in one life."""
        return (self.replica_id, self.broker_epoch) == (other.replica_id, other.broker_epoch)


class FetchFinding(NamedTuple):
    """What one partition has for a fetch: its answer, and whether it is one to wait with.

    ``readable_bytes`` are those of the answer and as many of the next batch as the limit leaves room for;
    ``is_urgent``: no wait will add to this answer (an error, a history that parted, the end of an older segment).
    """

    result: FetchResult
    readable_bytes: int
    is_urgent: bool


def check_follower(leader: LeaderState, reader: FetchedBy, current_leader_epoch: int) -> None:
    """A follower must be a replica, and the fetch of its present life. Raises ``RequestRefused``."""
    if reader.replica_id not in leader.followers:
        known = current_leader_epoch >= 0
        raise RequestRefused(
            ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {reader.replica_id} is no replica",
        )
    if leader.is_of_former_life(reader.replica_id, reader.broker_epoch):
        raise RequestRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {reader.replica_id} was restarted since")


def check_position(
    log: PartitionLog, wanted: FetchPartition, end_offset_for: EndOffsetFor, last_position: int
) -> tuple[int, int] | None:
    """Where the fetcher's history parts from ours, None if it does not; ``end_offset_for`` and
    ``last_position`` are by the broker's rules.

    Raises ``RequestRefused`` if its position is not in our log, or we know nothing of its epoch. This runs for
    consumers too: kafka-python sends their last epoch.
    """
    log_end_offset = log.log_end_offset
    if wanted.last_fetched_epoch >= 0:
        found = end_offset_for(log.epochs, wanted.last_fetched_epoch, log_end_offset)
        try:
            diverging = diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset, found)
        except LookupError as error:
            raise RequestRefused(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error
        if diverging is not None and wanted.fetch_offset >= log.log_start_offset:
            return diverging
    if not log.log_start_offset <= wanted.fetch_offset <= last_position:
        raise RequestRefused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {wanted.fetch_offset}")
    return None


def proves_its_end(log: PartitionLog, wanted: FetchPartition) -> bool:
    """Whether a follower's position says that it holds what is below it, as far as we do.

    One that knows no epoch holds nothing. If our log begins below its position, it will begin again there once it
    learns of that (``FollowerLog``): until then it is not to be counted on.
    """
    return wanted.last_fetched_epoch >= 0 or wanted.fetch_offset <= log.log_start_offset


def answer(
    log: PartitionLog,
    wanted: FetchPartition,
    high_watermark: int,
    records: Payload | None = None,
    diverging: tuple[int, int] | None = None,
    aborted: list[tuple[int, int]] | None = None,
) -> FetchResult:
    """The answer without an error. ``aborted``: for who reads only what is committed."""
    return FetchResult(
        wanted.topic,
        wanted.partition,
        ErrorCode.NONE,
        high_watermark,
        log.last_stable_offset(high_watermark),
        log.log_start_offset,
        records,
        diverging,
        aborted=aborted,
    )


def fetch_error(topic: str, partition: int, error_code: ErrorCode) -> FetchResult:
    """The answer for a partition that cannot be read."""
    return FetchResult(topic, partition, error_code, -1, -1, -1)
