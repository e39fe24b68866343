"""Matches the commits that clients saw with the coordinators' decisions, to find commits without a decision. Pure.

Owns the matching of one producer's transactions, in the order in which they began, with its decisions to commit, in the
order of their records. A decision fits a transaction if it names every partition in which a record of the transaction
was acknowledged, and if the markers that end these records may belong to the decision. Sometimes the log cannot show
that: it is not whole, markers may be lost, or they contradict the decisions (``marker-audit``). Then only the
partitions count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.files.transactions import Ended
from verifier.segments.markers import COMMIT
from verifier.transactions.client_rows import COMMITTED, UNKNOWN, ClientTransaction, Overlaps
from verifier.transactions.decisions import Decision
from verifier.transactions.model import TransactionEvidence
from verifier.transactions.state_records import TopicPartition

#: A marker with the numbers of the decisions to which it may belong.
_Marked = tuple[Ended, frozenset[int]]


def without_decision(
    transactions: Sequence[ClientTransaction], evidence: TransactionEvidence, producer_id: int
) -> list[ClientTransaction]:
    """The transactions of a producer that its client saw committed, but for which no decision is left.

    The last transaction chooses first. Each one takes the latest decision that fits, which leaves as many as possible
    to the transactions before it. A transaction of unknown outcome takes a decision too if the log shows a COMMIT.
    """
    decided = _Decided(evidence, producer_id)
    lacking: list[ClientTransaction] = []
    below = len(decided.decisions)
    for each in sorted(transactions, key=lambda each: (each.begun_ns, each.process, each.number), reverse=True):
        if each.outcome != COMMITTED and not (each.outcome == UNKNOWN and decided.is_committed(each)):
            continue
        number = decided.latest(each, below)
        if number is not None:
            below = number
        elif each.outcome == COMMITTED:
            lacking.append(each)
    return lacking[::-1]


class _Decided:
    """The decisions of one producer, and the markers that end its records in each partition."""

    def __init__(self, evidence: TransactionEvidence, producer_id: int) -> None:
        self.decisions: Sequence[Decision] = evidence.state.by_producer.get(producer_id, ())
        self._evidence = evidence
        self._producer_id = producer_id
        self._marked: dict[TopicPartition, Overlaps[_Marked]] = {}

    def __repr__(self) -> str:
        return f"_Decided({len(self.decisions)} decisions of producer {self._producer_id})"

    def is_committed(self, transaction: ClientTransaction) -> bool:
        """Whether a COMMIT marker ends any record of the transaction."""
        return any(marker.kind == COMMIT for marker, _ in self._ends(transaction))

    def latest(self, transaction: ClientTransaction, below: int) -> int | None:
        """The number of the latest decision below ``below`` that fits the transaction; None if there is none."""
        places = {sent.place for sent in transaction.sent if sent.first_offset >= 0}
        sets = [numbers for _, numbers in self._ends(transaction)]
        numbers = sorted(frozenset.intersection(*sets)) if sets else range(below)
        for number in reversed(numbers):
            decision = self.decisions[number]
            if number < below and decision.kind == COMMIT and places <= decision.topic_partitions:
                return number
        return None

    def _ends(self, transaction: ClientTransaction) -> Iterator[_Marked]:
        """The markers that end the records of a transaction, where markers and decisions do not contradict."""
        for sent in transaction.sent:
            if sent.first_offset >= 0:
                last_offset = sent.first_offset + sent.last_sequence - sent.first_sequence
                if sent.place not in self._marked:
                    self._marked[sent.place] = Overlaps(self._spans(sent.place))
                for _, _, marked in self._marked[sent.place].of(sent.first_offset, last_offset):
                    yield marked

    def _spans(self, place: TopicPartition) -> Iterator[tuple[int, int, _Marked]]:
        """For each transaction in a partition: its first offset, its marker's offset, and the marker."""
        key = place, self._producer_id
        markers, _ = self._evidence.beside.get(key, ((), ()))
        possible = self._evidence.readings.get(key, {})
        here = [number for number, each in enumerate(self.decisions) if place in each.topic_partitions]
        for marker in markers:
            if marker.marker_offset in possible:
                numbers = frozenset(here[number] for number in possible[marker.marker_offset])
                yield marker.first_offset, marker.marker_offset, (marker, numbers)
