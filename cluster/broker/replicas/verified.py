"""Whether a transactional batch is of an open transaction that its partition is part of (KIP-890), as a decision.

Owns for which batches the coordinator has to be asked, and what its answer means for one. Does not own the asking
(``cluster.broker.transactions``), nor how a batch is refused (``transaction_checks``). Pure.

A transaction that has a record in the log is open there until its marker comes. For the first record the coordinator is
asked, since a record that comes after the marker would keep the partition's readers waiting forever. A marker may come
between the answer and the append: so what the log knew of the producer must be the same as before the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ProducerEntry, VerdictKind
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Verified:
    """What the coordinator said about partitions of one request, and what their logs knew before it was asked."""

    errors: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)
    entries: Mapping[TopicPartition, ProducerEntry | None] = field(default_factory=dict)


#: (log, header of a transactional batch, what the coordinator said) -> why it is refused, or NONE.
VerificationError = Callable[[PartitionLog, BatchHeader, Verified], ErrorCode]

#: No coordinator was asked.
NOT_ASKED = Verified()


def is_to_be_verified(log: PartitionLog, header: BatchHeader) -> bool:
    """Whether a transactional batch may be appended only if the coordinator says so. What the log has already, or
    refuses in any case, needs no one's word."""
    if is_open(log, header.producer_id, header.producer_epoch):
        return False
    return log.verdict_on(header).kind is VerdictKind.ACCEPT


def is_open(log: PartitionLog, producer_id: int, producer_epoch: int) -> bool:
    """Whether the log has records of a transaction of that producer which no marker has ended."""
    entry = log.producers.get(producer_id)
    return entry is not None and entry.txn_first_offset >= 0 and entry.producer_epoch == producer_epoch


def verification_error(log: PartitionLog, header: BatchHeader, verified: Verified) -> ErrorCode:
    """Why a batch is refused; NONE if it is of an open transaction."""
    key = (log.topic, log.partition)
    error = verified.errors.get(key, ErrorCode.NONE)
    if error is not ErrorCode.NONE or not is_to_be_verified(log, header):
        return error
    is_known = key in verified.entries and verified.entries[key] is log.producers.get(header.producer_id)
    return ErrorCode.NONE if is_known else ErrorCode.INVALID_TXN_STATE
