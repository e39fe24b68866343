"""Where a replica's log begins, ends, or reaches a time (Kafka's UnifiedLog.fetchOffsetByTimestamp).

Owns who is told what: the leader answers, except to a debugging consumer, to whom every replica answers for itself.
Does not own the search in the log (``cluster.log.timestamps``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cluster.broker.portions import Steps
from cluster.broker.replicas.fetch_checks import CONSUMER, READ_COMMITTED
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.replica import Replica
from cluster.broker.rules import ReadableEnd
from cluster.protocol.errors import ErrorCode

#: The replica id that is neither a consumer nor a follower: a consumer that queries this very replica.
DEBUGGING_CONSUMER = -2
#: What is asked for instead of a time in milliseconds.
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class WantedOffset(NamedTuple):
    """The first record at or after ``timestamp``, or one of the three above."""

    topic: str
    partition: int
    timestamp: int
    current_leader_epoch: int


class FoundOffset(NamedTuple):
    """Of a record that was found, or of an end of the log, which has no timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = FoundOffset(-1, -1, -1)


def look_up(
    find: Callable[[str, int], Replica],
    wanted: WantedOffset,
    replica_id: int,
    isolation_level: int,
    listed_end: ReadableEnd,
    *,
    knows_max_timestamp: bool,
) -> Steps[FoundOffset]:
    """``find`` returns a replica of this broker; ``listed_end`` is the broker's rule. ``knows_max_timestamp``: the
    client may ask for MAX_TIMESTAMP.

    Raises ``RequestRefused`` and ``LogError``.
    """
    partition = find(wanted.topic, wanted.partition)
    timestamp, log_end_offset = wanted.timestamp, partition.log.log_end_offset
    if timestamp == MAX_TIMESTAMP and not knows_max_timestamp:
        timestamp = MAX_TIMESTAMP - 1
    if replica_id == DEBUGGING_CONSUMER:
        # A look at this very replica, leader or not, with its own log end (Kafka's debugging consumer).
        return (yield from _find(partition, timestamp, log_end_offset))
    leader = partition.leading(wanted.current_leader_epoch)
    if replica_id != CONSUMER:
        return (yield from _find(partition, timestamp, log_end_offset))
    end = listed_end(partition.log, leader.high_watermark, isolation_level == READ_COMMITTED)
    found = yield from _find(partition, timestamp, end)
    if not leader.knows_its_end and (timestamp == LATEST or (found == NOTHING and timestamp >= 0)):
        # A new leader's watermark lags behind what its predecessor has shown: no answer is better than a step back.
        raise RequestRefused(ErrorCode.OFFSET_NOT_AVAILABLE)
    return found


def _find(partition: Replica, timestamp: int, upper_bound_offset: int) -> Steps[FoundOffset]:
    """Raises ``RequestRefused`` for what stands for no time, ``LogError``."""
    log = partition.log
    if timestamp == LATEST:
        return FoundOffset(-1, upper_bound_offset, partition.leader_epoch)
    if timestamp == EARLIEST:
        return FoundOffset(-1, log.log_start_offset, _epoch(partition, log.log_start_offset))
    if timestamp == MAX_TIMESTAMP:
        timestamp = log.max_timestamp
        if timestamp < 0:
            return NOTHING
    elif timestamp < 0:
        raise RequestRefused(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    found = yield from log.search_timestamp(timestamp)
    if found is None or found[1] >= upper_bound_offset:
        return NOTHING
    found_timestamp, offset = found
    return FoundOffset(found_timestamp, offset, _epoch(partition, offset))


def _epoch(partition: Replica, offset: int) -> int:
    epoch = partition.log.epochs.epoch_for_offset(offset)
    return -1 if epoch is None else epoch
