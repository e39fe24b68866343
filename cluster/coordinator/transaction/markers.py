"""Markers on their way: to which broker each goes, and what an answer makes of the partitions that lack one.

Owns the queue of markers, and which error codes are final (docs/reference/kafka.md "Markers of a transaction").
Does not own the transaction (``coordinator.py``), the connections, nor the control batch
(``cluster.protocol.control_records``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from cluster.coordinator.transaction.decisions import TransactionMarkers
from cluster.coordinator.transaction.state import PREPARED, TransactionMetadata, TransactionState
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: A partition's leader is known, but it is not there: the marker waits.
LEADER_OFFLINE = -1
#: The broker that leads a partition, or ``LEADER_OFFLINE``, or None for a partition that does not exist anymore.
#: A broker that has not learned of all partitions yet must not say None: the marker would be lost.
LeaderOf = Callable[[TopicPartition], int | None]


class MarkerVerdict(Enum):
    """What one partition's answer means."""

    #: The marker is there, or the partition can take none and has nothing of the transaction.
    DONE = "done"
    #: Ask the leader of then again.
    RETRY = "retry"
    #: A later coordinator was there: this one is of the past.
    ABANDON = "abandon"


#: A log that knows a later epoch of the producer has nothing of the transaction open. Where this coordinator is the
#: current one, a stranger wrote there with the producer's id: a batch outside of transactions is not asked about, and
#: is taken unless the transaction has records there. (A coordinator of the past cannot complete anything in any case.)
_DONE = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


def judge(error_code: ErrorCode) -> MarkerVerdict:
    """The verdict on one code. Codes that should not occur are retried: Kafka stops there, and the partition's readers
    wait until the next failover. Kafka also stops at INVALID_PRODUCER_EPOCH, and the transactional id with it."""
    if error_code in _DONE:
        return MarkerVerdict.DONE
    is_fenced = error_code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    return MarkerVerdict.ABANDON if is_fenced else MarkerVerdict.RETRY


def awaits(metadata: TransactionMetadata, markers: TransactionMarkers) -> bool:
    """Whether these are markers of the transaction whose outcome is decided and not complete yet."""
    is_same_producer = (metadata.producer_id, metadata.producer_epoch) == (markers.producer_id, markers.producer_epoch)
    is_same_outcome = markers.commit is (metadata.state is TransactionState.PREPARE_COMMIT)
    are_lacking = markers.topic_partitions <= metadata.topic_partitions
    return metadata.state in PREPARED and is_same_producer and is_same_outcome and are_lacking


@dataclass(frozen=True, slots=True)
class MarkerAnswers:
    """The partitions of one ``TransactionMarkers`` after its answer. If ``is_abandoned`` none is to be asked again."""

    done: frozenset[TopicPartition]
    retry: frozenset[TopicPartition]
    is_abandoned: bool


def sort_answers(markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None) -> MarkerAnswers:
    """``errors`` is None if the connection was lost; a partition of which nothing is said is asked again."""
    verdicts = {
        each: judge(errors[each]) if errors is not None and each in errors else MarkerVerdict.RETRY
        for each in markers.topic_partitions
    }
    return MarkerAnswers(
        done=frozenset(each for each, verdict in verdicts.items() if verdict is MarkerVerdict.DONE),
        retry=frozenset(each for each, verdict in verdicts.items() if verdict is MarkerVerdict.RETRY),
        is_abandoned=MarkerVerdict.ABANDON in verdicts.values(),
    )


@dataclass(frozen=True, slots=True)
class MarkerRequests:
    """``by_broker`` becomes one WriteTxnMarkers request for each broker; ``gone`` are of partitions without a leader
    forever, and count as written."""

    by_broker: Mapping[int, tuple[TransactionMarkers, ...]]
    gone: tuple[TransactionMarkers, ...] = ()


class MarkerQueue:
    """Markers that wait to be sent. Leaders are looked up when they are taken, for retries too."""

    def __init__(self) -> None:
        self._waiting: list[TransactionMarkers] = []

    def __repr__(self) -> str:
        return f"MarkerQueue({len(self)} transactions)"

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, markers: TransactionMarkers) -> None:
        self._waiting.append(markers)

    def drop(self, transaction_partition: int) -> None:
        """Forget those of one partition of ``__transaction_state``."""
        self._waiting = [each for each in self._waiting if each.transaction_partition != transaction_partition]

    def drain(self) -> list[TransactionMarkers]:
        """Take all, wherever they are to go."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def take(self, leader_of: LeaderOf) -> MarkerRequests:
        """All that can be sent now. Parts of one transaction for one broker become one; the others continue to wait."""
        found: defaultdict[tuple[int | None, TransactionMarkers], set[TopicPartition]] = defaultdict(set)
        for markers in self._waiting:
            transaction = replace(markers, topic_partitions=frozenset())
            for topic_partition in sorted(markers.topic_partitions):
                found[leader_of(topic_partition), transaction].add(topic_partition)
        by_broker: defaultdict[int, list[TransactionMarkers]] = defaultdict(list)
        gone: list[TransactionMarkers] = []
        self._waiting = []
        for (broker_id, transaction), topic_partitions in found.items():
            markers = replace(transaction, topic_partitions=frozenset(topic_partitions))
            if broker_id is None:
                gone.append(markers)
            elif broker_id == LEADER_OFFLINE:
                self._waiting.append(markers)
            else:
                by_broker[broker_id].append(markers)
        return MarkerRequests({broker_id: tuple(each) for broker_id, each in by_broker.items()}, tuple(gone))
