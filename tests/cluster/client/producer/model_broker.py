"""A model of brokers for the producer's sender: partitions with producer state, and connections that break.

Owns what is stored and answered. Does not own when faults happen: every draw comes from the world's random generator.
The sequence check is written here again, by Kafka's ProducerAppendInfo, so that it shares no mistake with the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cluster.client.producer.actions import PartitionResult
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import decode_records

WINDOW = 5
REFUSALS = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
UNDECIDED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR)


def values_of(data: bytes) -> tuple[int, ...]:
    """The numbers that the records of a batch begin with."""
    return tuple(int((record.value or b"").split(b".")[0]) for record in decode_records(data))


class Entry(NamedTuple):
    """A stored batch."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    values: tuple[int, ...]


class ModelPartition:
    """The log of one partition, the same on all replicas up to ``committed``."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.log: list[Entry] = []
        self.committed = 0

    def move(self, leader: int, is_truncated: bool) -> None:
        """Another leader; what was not committed is lost or kept."""
        self.leader = leader
        self.leader_epoch += 1
        if is_truncated:
            del self.log[self.committed :]
        self.committed = len(self.log)

    def append(self, data: bytes) -> tuple[ErrorCode, int]:
        """The error, or the index of the entry that has the batch, now or from before."""
        header = parse_header(data)
        values = values_of(data)
        if header.producer_id >= 0:
            error, known = self._check(header.producer_id, header.producer_epoch, header.base_sequence, len(values))
            if error is not ErrorCode.NONE or known >= 0:
                return error, known
        base_offset = sum(len(entry.values) for entry in self.log)
        last = (header.base_sequence + len(values) - 1) % 2**31
        self.log.append(
            Entry(header.producer_id, header.producer_epoch, header.base_sequence, last, base_offset, values)
        )
        return ErrorCode.NONE, len(self.log) - 1

    def _check(self, producer_id: int, epoch: int, base: int, count: int) -> tuple[ErrorCode, int]:
        mine = [index for index, entry in enumerate(self.log) if entry.producer_id == producer_id]
        newest = self.log[mine[-1]] if mine else None
        if newest is None or epoch > newest.producer_epoch:
            return (ErrorCode.NONE if base == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1
        if epoch < newest.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        last = (base + count - 1) % 2**31
        for index in [each for each in mine if self.log[each].producer_epoch == epoch][-WINDOW:]:
            if (self.log[index].base_sequence, self.log[index].last_sequence) == (base, last):
                return ErrorCode.NONE, index
        is_next = base == (newest.last_sequence + 1) % 2**31
        return (ErrorCode.NONE if is_next else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1


class Appended(NamedTuple):
    """An entry that waits for its commit, and the leader epoch in which it does."""

    index: int
    leader_epoch: int


class Connection:
    """One connection to a node. Requests arrive in order; after its end, what was on its way arrives or does not."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.is_open = True
        self.loses_rest = False
        self.last_arrival_ms = 0
        self.last_answer_ms = 0
        self.unanswered: set[int] = set()


def begin(
    partition: ModelPartition, node: int, data: bytes, max_bytes: int, refusal: ErrorCode | None
) -> ErrorCode | Appended:
    """What a node does at once with one batch."""
    if partition.leader != node:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if refusal is not None:
        return refusal
    if len(data) > max_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    error, index = partition.append(data)
    return Appended(index, partition.leader_epoch) if error is ErrorCode.NONE else error


def finish(
    partition: ModelPartition, begun: ErrorCode | Appended, undecided: Callable[[], ErrorCode | None]
) -> PartitionResult:
    """What it answers when replicas had their time: nothing succeeds that another leader may have thrown away."""
    if isinstance(begun, ErrorCode):
        return PartitionResult(begun)
    if partition.leader_epoch != begun.leader_epoch:
        return PartitionResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    error = undecided()
    if error is not None:
        return PartitionResult(error)
    partition.committed = max(partition.committed, begun.index + 1)
    return PartitionResult(ErrorCode.NONE, partition.log[begun.index].base_offset)
