"""What a leader checks of a fetch before it reads: the follower's identity and the fetcher's place in history.

Owns these checks (Kafka's Partition) and the shape of what is found. Does not read, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cluster.broker.replicas.values import Reader, Refused
from cluster.log.epochs import LeaderEpochCache
from cluster.log.partition_log import PartitionLog
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.replication.leader import LeaderState
from cluster.replication.leader_epochs import diverging_epoch
from cluster.seams.storage import Payload

#: (epochs, an epoch, log end offset) -> (the largest epoch not above it, where that ends)
EndOffsetFor = Callable[[LeaderEpochCache, int, int], tuple[int, int]]


class Found(NamedTuple):
    """What one partition has for a fetch: its answer, and whether it is one to wait with.

    ``readable_bytes`` are those of the answer and as many of the next batch as the limit leaves room for;
    ``is_urgent``: no wait will add to this answer (an error, a history that parted, the end of an older segment).
    """

    result: FetchResult
    readable_bytes: int
    is_urgent: bool


def check_follower(leader: LeaderState, reader: Reader, current_leader_epoch: int) -> None:
    """A follower must be a replica, and the fetch of its present life. Raises ``Refused``."""
    if reader.replica_id not in leader.followers:
        known = current_leader_epoch >= 0
        raise Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"broker {reader.replica_id} is no replica",
        )
    if leader.is_of_former_life(reader.replica_id, reader.broker_epoch):
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {reader.replica_id} was restarted since")


def check_position(log: PartitionLog, wanted: FetchPartition, end_offset_for: EndOffsetFor) -> tuple[int, int] | None:
    """Where the fetcher's history parts from ours, None if it does not; ``end_offset_for`` is the broker's rule.

    Raises ``Refused`` if its position is not in our log, or we know nothing of its epoch. This runs for consumers too:
    kafka-python sends their last epoch.
    """
    log_end_offset = log.log_end_offset
    if wanted.last_fetched_epoch >= 0:
        found = end_offset_for(log.epochs, wanted.last_fetched_epoch, log_end_offset)
        try:
            diverging = diverging_epoch(wanted.last_fetched_epoch, wanted.fetch_offset, found)
        except LookupError as error:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error
        if diverging is not None and wanted.fetch_offset >= log.log_start_offset:
            return diverging
    if not log.log_start_offset <= wanted.fetch_offset <= log_end_offset:
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {wanted.fetch_offset}")
    return None


def answer(
    log: PartitionLog,
    wanted: FetchPartition,
    high_watermark: int,
    records: Payload | None = None,
    diverging: tuple[int, int] | None = None,
) -> FetchResult:
    """The answer without an error. There are no transactions: all that is committed is stable."""
    return FetchResult(
        wanted.topic,
        wanted.partition,
        ErrorCode.NONE,
        high_watermark,
        high_watermark,
        log.log_start_offset,
        records,
        diverging,
    )
