"""MarkerWriter: writes the markers of transactions to partitions that this broker leads.

Owns the control batches, and that each partition is answered when all its replicas in sync have the marker. Does not
own the checks of a marker (``cluster.log.transactions``), nor what one in ``__consumer_offsets`` means for groups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from cluster.broker.groups.group_service import GroupService
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker, build_marker_batch
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

#: The answers to one ``TransactionMarkers``.
MarkerErrors = dict[TopicPartition, ErrorCode]


class _Gathered:
    """The answers to several, and how many are missing."""

    def __init__(self, count: int) -> None:
        self.errors: list[MarkerErrors] = [{} for _ in range(count)]
        self.missing = 1
        self.is_complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self, index: int, topic_partition: TopicPartition, error_code: ErrorCode, _position: int = -1) -> None:
        self.errors[index][topic_partition] = error_code
        self.one_less()

    def one_less(self) -> None:
        self.missing -= 1
        if not self.missing and not self.is_complete.done():
            self.is_complete.set_result(None)


class MarkerWriter:
    """Of one broker. ``timeout_ms``: for how long a marker may wait for its replicas."""

    def __init__(
        self, replicas: ReplicaManager, groups: GroupService, clock: Clock, timeout_ms: int, shares: Shares
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._shares = shares
        self._waiting: set[asyncio.Future[None]] = set()

    def __repr__(self) -> str:
        return f"<MarkerWriter {self._replicas!r}>"

    async def write(self, asked: Sequence[TransactionMarkers]) -> list[MarkerErrors]:
        """Write all of these, and wait for their replicas: what each partition answers, in the order of ``asked``."""
        gathered, pause = _Gathered(len(asked)), Pauses(self._shares)
        for index, markers in enumerate(asked):
            for topic_partition in sorted(markers.topic_partitions):
                gathered.missing += 1
                self._write(markers, topic_partition, partial(gathered.answered, index, topic_partition))
                await pause()
        gathered.one_less()
        self._waiting.add(gathered.is_complete)
        try:
            await gathered.is_complete
        finally:
            self._waiting.discard(gathered.is_complete)
        return gathered.errors

    def close(self) -> None:
        """Wait for no replicas anymore: other coordinators try again elsewhere."""
        for waiter in list(self._waiting):
            if not waiter.done():
                waiter.set_exception(ConnectionAbortedError("the broker stops"))

    def _write(self, markers: TransactionMarkers, topic_partition: TopicPartition, told: partial[None]) -> None:
        if min(markers.producer_id, markers.producer_epoch, markers.coordinator_epoch) < 0:
            told(ErrorCode.INVALID_REQUEST)
            return
        topic, number = topic_partition
        try:
            epoch = self._replicas.find(topic, number).leader_epoch
        except RequestRefused as error:
            told(error.error_code)
            return
        kind = ControlRecordType.COMMIT if markers.commit else ControlRecordType.ABORT
        batch = build_marker_batch(
            EndTransactionMarker(kind, markers.coordinator_epoch),
            producer_id=markers.producer_id,
            producer_epoch=markers.producer_epoch,
            timestamp=self._clock.wall_ms(),
        )
        if topic == OFFSETS_TOPIC:
            self._groups.end_transaction(number, epoch, batch, markers.producer_id, told, is_committed=markers.commit)
        else:
            self._replicas.own_writes.append(topic, number, epoch, batch, self._timeout_ms, told)
