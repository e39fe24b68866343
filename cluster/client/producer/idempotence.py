"""ProducerIdentity: the producer's id and epoch, and the sequence numbers of every partition (KIP-98, KIP-360).

Owns what Kafka calls TransactionManager, the idempotent part: which batch may be sent next, its numbers, what is in
flight, and when numbers start again. Does not own the queues (``accumulator.py``), what an error means
(``outcomes.py``) nor any request. Sources: Kafka's RecordAccumulator, Sender and TransactionManager. Pure.

* A sequence is given at drain, in the order of the queue, and never again but by a restart.
* A batch that is retried goes only when it is the first in flight of its partition: what is in flight narrows to one
  exactly when something went wrong.
* A batch that failed after it was sent leaves its partition *unresolved*: nothing new goes until what is in flight is
  settled. If then the last acknowledged sequence is followed by the next one, all is well; otherwise numbers restart.
* A restart is a new epoch, without a request; after epoch 32767, a new producer id. It waits until no batch of the
  partition is at a broker. Batches of which every attempt was refused get numbers from 0. A batch that may be stored
  under its old numbers fails instead: with new ones it could be stored twice (Kafka takes that risk).
* Other partitions continue under the older epoch, and take up the new one when nothing of them is in flight.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from cluster.protocol.batch import increment_sequence
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch
    from cluster.topic_partition import TopicPartition

NO_SEQUENCE = -1
_LAST_EPOCH = 2**15 - 1
_SEQUENCES = 2**31
_HALF = 2**30


def is_after(sequence: int, other: int) -> bool:
    """Whether ``sequence`` comes after ``other`` on the circle of 2^31 sequences: the nearer side counts (RFC 1982)."""
    return 0 < (sequence - other) % _SEQUENCES < _HALF


class IdentityState(Enum):
    """UNINITIALIZED -> INITIALIZING (asked) -> READY; back after the last epoch. FATAL is forever."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    FATAL = "fatal"


class _PartitionSequence:
    """One partition's numbers.

    ``in_flight`` has every batch with a sequence that is not settled, in their order, each with its place among all
    batches that were numbered; the parts of a split batch share its place.
    """

    __slots__ = (
        "at_broker",
        "in_flight",
        "is_restarting",
        "is_unresolved",
        "last_acked_sequence",
        "next_sequence",
        "numbered",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.in_flight: dict[ProducerBatch, int] = {}
        self.numbered = 0
        self.at_broker: set[ProducerBatch] = set()
        self.is_unresolved = False
        self.is_restarting = False

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Number what is in flight from 0 under another identity."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_acked_sequence = NO_SEQUENCE
        self.next_sequence = 0
        for batch in self.in_flight:
            batch.reset_producer_state(producer_id, producer_epoch, self.next_sequence)
            self.next_sequence = increment_sequence(self.next_sequence, batch.record_count)
        self.is_unresolved = False
        self.is_restarting = False

    def forget(self, batch: ProducerBatch) -> None:
        self.at_broker.discard(batch)
        self.in_flight.pop(batch, None)

    @property
    def first(self) -> ProducerBatch | None:
        """The first batch in flight."""
        return next(iter(self.in_flight), None)

    @property
    def has_no_gap(self) -> bool:
        expected = 0 if self.last_acked_sequence < 0 else increment_sequence(self.last_acked_sequence, 1)
        return self.next_sequence == expected


class ProducerIdentity:
    """NOT thread-safe: callers that share it must hold a lock.

    ``max_in_flight`` also bounds how far a partition gets ahead of its first batch in flight. Brokers remember the last
    five batches: if more were stored after one whose answer is lost, its retry would not be known as such. (Kafka
    bounds the requests of a connection alone, which does not hold when the leader changes.)
    """

    #: Whether batches are marked as parts of a transaction.
    is_transactional = False

    def __init__(self, max_in_flight: int = 5) -> None:
        self.state = IdentityState.UNINITIALIZED
        self.producer_id = -1
        self.producer_epoch = -1
        #: Why the state is FATAL.
        self.fatal_error: ErrorCode | None = None
        self._max_in_flight = max_in_flight
        self._partitions: dict[TopicPartition, _PartitionSequence] = {}
        # A dictionary for its order: that of a set of names is another one in every process.
        self._troubled: dict[TopicPartition, None] = {}

    def __repr__(self) -> str:
        in_flight = sum(len(partition.in_flight) for partition in self._partitions.values())
        return (
            f"ProducerIdentity({self.state.value}, id {self.producer_id}, epoch {self.producer_epoch}, "
            f"{in_flight} in flight, {len(self._troubled)} partitions to settle)"
        )

    @property
    def is_ready(self) -> bool:
        return self.state is IdentityState.READY

    @property
    def is_troubled(self) -> bool:
        """Whether there is something for ``settle``."""
        return bool(self._troubled)

    def asked(self) -> None:
        """An id was asked for."""
        if self.state is IdentityState.UNINITIALIZED:
            self.state = IdentityState.INITIALIZING

    def not_answered(self) -> None:
        """The question was lost or refused for now: it may be put again."""
        if self.state is IdentityState.INITIALIZING:
            self.state = IdentityState.UNINITIALIZED

    def initialize(self, producer_id: int, producer_epoch: int) -> None:
        """An id was given. An answer that no one waits for is not taken."""
        if self.state is IdentityState.INITIALIZING:
            self.state = IdentityState.READY
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch

    def fail(self, error_code: ErrorCode) -> None:
        """Nothing can be sent anymore."""
        if self.state is not IdentityState.FATAL:
            self.state = IdentityState.FATAL
            self.fatal_error = error_code

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the head of a queue may be sent now."""
        if self.state is not IdentityState.READY:
            return False
        partition = self._partitions.get((batch.topic, batch.partition))
        if partition is None:
            return True
        if partition.is_restarting:
            return False
        first = partition.first
        if batch.has_sequence:
            return first is batch
        if first is None:
            return not partition.is_unresolved
        is_near = partition.numbered - partition.in_flight[first] < self._max_in_flight
        return is_near and not partition.is_unresolved and self._is_current(partition)

    def drained(self, batch: ProducerBatch) -> None:
        """``batch`` goes to its broker now; a new one is given its numbers."""
        partition = self._partitions.get((batch.topic, batch.partition))
        if partition is None:
            partition = self._partitions[(batch.topic, batch.partition)] = _PartitionSequence()
        if not batch.has_sequence:
            self.number(partition, batch)
        partition.at_broker.add(batch)

    def number(self, partition: _PartitionSequence, batch: ProducerBatch) -> None:
        """Give a new batch the next sequence of its partition."""
        if not partition.in_flight and not self._is_current(partition):
            partition.restart(self.producer_id, self.producer_epoch)
        producer = partition.producer_id, partition.producer_epoch
        batch.set_producer_state(*producer, partition.next_sequence, self.is_transactional)
        partition.next_sequence = increment_sequence(partition.next_sequence, batch.record_count)
        partition.in_flight[batch] = partition.numbered
        partition.numbered += 1

    def returned(self, batch: ProducerBatch) -> None:
        """An attempt has ended, and the batch is still to be delivered."""
        self._partitions[(batch.topic, batch.partition)].at_broker.discard(batch)

    def position(self, batch: ProducerBatch) -> tuple[bool, bool]:
        """``BatchFacts.is_first_in_flight`` and ``is_overtaken`` of a batch in flight."""
        partition = self._partitions[(batch.topic, batch.partition)]
        last = partition.last_acked_sequence
        return partition.first is batch, last != NO_SEQUENCE and not is_after(batch.base_sequence, last)

    def completed(self, batch: ProducerBatch) -> None:
        """``batch`` was acknowledged; also one that has expired meanwhile, if its numbers still count."""
        partition = self._partitions[(batch.topic, batch.partition)]
        if batch.producer_epoch == partition.producer_epoch and batch.producer_id == partition.producer_id:
            last, sequence = partition.last_acked_sequence, batch.last_sequence
            if last == NO_SEQUENCE or is_after(sequence, last):
                partition.last_acked_sequence = sequence
        partition.forget(batch)

    def failed(self, batch: ProducerBatch) -> None:
        """``batch`` is abandoned. If it has a sequence, its partition has to be settled; but not for what ``settle``
        gave up: numbers have started again without it, and nothing would come to settle them again.
        """
        if not batch.has_sequence:
            return
        topic_partition = (batch.topic, batch.partition)
        partition = self._partitions[topic_partition]
        if batch not in partition.in_flight:
            return
        partition.forget(batch)
        partition.is_unresolved = True
        self._troubled[topic_partition] = None

    def split(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """``batch`` is replaced by ``parts``, which share its sequences in their order."""
        partition = self._partitions[(batch.topic, batch.partition)]
        partition.in_flight = {
            each: place for one, place in partition.in_flight.items() for each in (parts if one is batch else (one,))
        }
        partition.forget(batch)

    def restart(self, topic_partition: TopicPartition) -> None:
        """The sequences of a partition are to start again: nothing of it is sent until ``settle`` has done so."""
        self._partitions[topic_partition].is_restarting = True
        self._troubled[topic_partition] = None

    def settle(self, doubtful: Container[ProducerBatch]) -> list[ProducerBatch]:
        """Resolve what can be resolved and restart what has to.

        ``doubtful`` are batches that may be stored by an attempt that was not acknowledged. Returns those of them that
        are abandoned, in order.
        """
        due = [self._partitions[each] for each in self._troubled if self._is_due(self._partitions[each])]
        # A partition under an older identity need only take up the newer one.
        if self.is_ready and any(map(self._is_current, due)):
            self._next_epoch()
        given_up: list[ProducerBatch] = []
        if self.is_ready:
            for partition in due:
                lost = [batch for batch in partition.in_flight if batch in doubtful]
                for batch in lost:
                    partition.forget(batch)
                given_up += lost
                partition.restart(self.producer_id, self.producer_epoch)
        self._troubled = {each: None for each in self._troubled if _is_troubled(self._partitions[each])}
        return given_up

    def in_flight(self, topic_partition: TopicPartition) -> Sequence[ProducerBatch]:
        """The batches of a partition that have sequences and are not settled, in their order."""
        partition = self._partitions.get(topic_partition)
        return () if partition is None else tuple(partition.in_flight)

    def _is_due(self, partition: _PartitionSequence) -> bool:
        if partition.is_unresolved and not partition.in_flight:
            if partition.has_no_gap:
                partition.is_unresolved = False
            else:
                partition.is_restarting = True
        return partition.is_restarting and not partition.at_broker

    def _is_current(self, partition: _PartitionSequence) -> bool:
        return partition.producer_epoch == self.producer_epoch and partition.producer_id == self.producer_id

    def _next_epoch(self) -> None:
        if self.producer_epoch < _LAST_EPOCH:
            self.producer_epoch += 1
        else:
            self.state = IdentityState.UNINITIALIZED
            self.producer_id = -1
            self.producer_epoch = -1


def _is_troubled(partition: _PartitionSequence) -> bool:
    return partition.is_unresolved or partition.is_restarting
