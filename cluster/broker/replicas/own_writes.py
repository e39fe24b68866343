"""Batches of this broker's own: what a coordinator stores in a topic that no client may write to.

Owns that such a batch is appended in one leader epoch alone, and that what becomes of it under acks=all is told once.
Does not own the checks nor the append (``Replica``), the order in which results are told, nor what is in a batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.purgatory import DelayedProduce
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.broker.replicas.waiters import Acknowledgement
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError, OutOfFiles
from cluster.log.producer_hosts import UNKNOWN
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.produce import ProduceResult
from cluster.protocol.record_checks import Effort
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

ACKS_ALL = -1
#: Told with an error instead of an offset.
NO_OFFSET = -1

#: What became of a batch: an error and no offset, or its first offset.
WriteTold = Callable[[ErrorCode, int], None]


class OwnWrites:
    """Of one broker. ``find`` returns a replica of it or raises ``RequestRefused``."""

    def __init__(
        self,
        find: Callable[[str, int], Replica],
        acknowledgement: Acknowledgement,
        wheel: TimerWheel,
        clock: Clock,
        storage_failed: Callable[[LogError], None],
    ) -> None:
        self._find = find
        self._acknowledgement = acknowledgement
        self._wheel = wheel
        self._clock = clock
        self._storage_failed = storage_failed

    def __repr__(self) -> str:
        return "<OwnWrites>"

    def append(
        self,
        topic: str,
        number: int,
        leader_epoch: int,
        batch: bytes,
        timeout_ms: int,
        told: WriteTold,
        *,
        in_that_epoch: bool = False,
    ) -> None:
        """Append ``batch`` if this broker has led the partition without a break since ``leader_epoch``, or, with
        ``in_that_epoch``, if it leads in that very one. ``told`` is called before this returns, or when the high
        watermark is beyond the batch, the leadership ends or the time is over.

        A batch with a producer is a marker, or one of that producer's transaction.

        Too many open files are COORDINATOR_NOT_AVAILABLE, unlike a disk that failed: this broker leads still.
        """
        try:
            replica = self._find(topic, number)
            first_epoch = (
                replica.leader_epoch if in_that_epoch or replica.leader is None else replica.leader.leading_since
            )
            if replica.leader is None or not first_epoch <= leader_epoch <= replica.leader_epoch:
                raise RequestRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"not the leader since epoch {leader_epoch}")
            info, epoch = self._appended(replica, bytearray(batch))
        except (RequestRefused, InvalidBatch, LogError) as error:
            # A marker is tried again and again.
            level = logging.DEBUG if parse_header(batch).is_control else logging.WARNING
            logger.log(level, "a batch for %s-%d is not appended: %s", topic, number, error)
            told(self._refused(error), NO_OFFSET)
            return
        required_offset = info.must_commit_offset + 1
        code = self._acknowledgement(replica.leader, epoch, required_offset)
        if code is not None:
            told(code, NO_OFFSET if code else info.first_offset)
            return

        def respond(results: list[ProduceResult]) -> None:
            (result,) = results
            told(ErrorCode(result.error_code), result.base_offset)

        result = ProduceResult(topic, number, ErrorCode.NONE, info.first_offset)
        delayed = DelayedProduce([result], (0,), respond, self._wheel, timeout_ms)
        replica.waiters.add_produce(required_offset, epoch, delayed, 0)

    def _appended(self, replica: Replica, batch: bytearray) -> tuple[AppendInfo, int]:
        header, now_ms = parse_header(batch), self._clock.monotonic_ms()
        if header.producer_id >= 0:
            return replica.append_of_coordinator(batch, header, now_ms)
        return replica.append(memoryview(batch), header, ACKS_ALL, now_ms, self._clock.wall_ms(), Effort.all(), UNKNOWN)

    def _refused(self, error: RequestRefused | InvalidBatch | LogError) -> ErrorCode:
        if isinstance(error, LogError) and error.error_code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._storage_failed(error)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if isinstance(error, OutOfFiles) else error.error_code
