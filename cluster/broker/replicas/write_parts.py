"""WriteParts: what holds for one partition of a produce request, whenever in the request it has its turn.

Owns that it is admitted, that its transaction is checked, its answer, and its wait for acknowledgements. Does not own
the way through a request (``writes``), the checks (``produce_checks``) nor the append to one partition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster.broker.replicas.host import RequestRefused, WrittenBy
from cluster.broker.replicas.produce_checks import admit, refused
from cluster.broker.replicas.purgatory import DelayedProduce, failed
from cluster.broker.replicas.replica import Replica
from cluster.broker.replicas.timer_wheel import TimerWheel
from cluster.broker.replicas.transaction_checks import check_identity, check_verified
from cluster.broker.replicas.verified import Verified
from cluster.broker.rules import Rules
from cluster.log.appending import AppendInfo
from cluster.log.errors import LogError
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode, InvalidBatch
from cluster.protocol.produce import ProducePartition, ProduceRequest, ProduceResult, appended
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

Respond = Callable[[list[ProduceResult]], None]
Waits = Callable[[DelayedProduce], None]
#: A part of a request that waits for its acknowledgement: (its index, partition, required offset, leader epoch).
WaitingWrite = tuple[int, Replica, int, int]


class WriteParts:
    """Of one broker. ``find`` returns a replica of it or raises ``RequestRefused``."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Replica],
        find: Callable[[str, int], Replica],
        partition_exists: Callable[[str, int], bool],
        rules: Rules,
        wheel: TimerWheel,
        storage_failed: Callable[[LogError], None],
        verifies_transactions: bool,
    ) -> None:
        self._partitions = partitions
        self._find = find
        self._partition_exists = partition_exists
        self._acknowledgement = rules.acknowledgement
        self._verification_error = rules.verification_error
        self._wheel = wheel
        self._storage_failed = storage_failed
        self._verifies_transactions = verifies_transactions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {len(self._partitions)} partitions>"

    def _check_transaction(
        self, partition: Replica, transactional_id: str | None, header: BatchHeader, verified: Verified
    ) -> None:
        """Row 4. Raises ``RequestRefused``."""
        check_identity(transactional_id, header)
        if self._verifies_transactions and partition.leader is not None:
            check_verified(partition.log, header, verified, self._verification_error)

    def _still_waiting(self, results: list[ProduceResult], waiting: list[WaitingWrite]) -> list[WaitingWrite]:
        """No one has told of what was acknowledged since the first of them was written."""
        still: list[WaitingWrite] = []
        for entry in waiting:
            index, partition, required_offset, epoch = entry
            code = self._acknowledgement(partition.leader, epoch, required_offset)
            if code is None:
                still.append(entry)
            elif code:
                results[index] = failed(results[index], code)
        return still

    def _result(
        self, partition: Replica, acks: int, info: AppendInfo, epoch: int, index: int, waiting: list[WaitingWrite]
    ) -> ProduceResult:
        """The answer for a batch that was appended, as it will be if all goes well."""
        first_offset, _, log_append_time_ms, log_start_offset, must_commit_offset, _, error_code = info
        topic, number = partition.topic, partition.partition
        result = appended(topic, number, error_code, first_offset, log_append_time_ms, log_start_offset)
        if acks == -1:
            required_offset = must_commit_offset + 1
            code = self._acknowledgement(partition.leader, epoch, required_offset)
            if code is None:
                waiting.append((index, partition, required_offset, epoch))
            elif code:
                return failed(result, code)
        return result

    def _wait(
        self,
        request: ProduceRequest,
        results: list[ProduceResult],
        waiting: list[WaitingWrite],
        respond: Respond,
        waits: Waits,
    ) -> None:
        delayed = DelayedProduce(results, (entry[0] for entry in waiting), respond, self._wheel, request.timeout_ms)
        for index, partition, required_offset, epoch in waiting:
            partition.waiters.add_produce(required_offset, epoch, delayed, index)
        waits(delayed)

    def _admit(
        self, wanted: ProducePartition, acks: int, client: WrittenBy, zstd_allowed: bool
    ) -> tuple[Replica, memoryview]:
        """The replica here, and the batch for it, of a part that is not plainly right. Raises ``RequestRefused`` and
        ``InvalidBatch``."""
        topic, number, _ = wanted
        partition = self._partitions.get((topic, number))
        exists = partition is not None or self._partition_exists(topic, number)
        records = admit(wanted, acks, client.client_id, exists=exists, zstd_allowed=zstd_allowed)
        return self._find(topic, number) if partition is None else partition, records

    def _refused(self, wanted: ProducePartition, error: RequestRefused | InvalidBatch | LogError) -> ProduceResult:
        logger.debug("produce to %s-%d refused: %s", wanted.topic, wanted.partition, error)
        if error.error_code is ErrorCode.KAFKA_STORAGE_ERROR and isinstance(error, LogError):
            self._storage_failed(error)
        return refused(wanted, error)
