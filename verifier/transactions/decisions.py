"""From the records of ``__transaction_state`` to decisions: which transactions there were, and how each ended. Pure.

Owns the order of states (Kafka's TransactionMetadata): a Prepare record is the decision, the Complete record after it
says that every marker was written. Judges only what contradicts itself: two decisions for one transaction. A fence may
take the place of a commit of which no one was told: its record is in the log, but was not acknowledged in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.segments.markers import ABORT, COMMIT
from verifier.transactions.state_records import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    StateRecord,
    TopicPartition,
)

_DECIDES = {PREPARE_COMMIT: COMMIT, PREPARE_ABORT: ABORT}
_COMPLETES = {COMPLETE_COMMIT: COMMIT, COMPLETE_ABORT: ABORT}


class Decision(NamedTuple):
    """One transaction that was decided. ``number`` counts those of the id; ``kind`` is COMMIT or ABORT.

    ``is_complete``: the coordinator said that all markers were written. ``partition``, ``offset`` and ``leader_epoch``
    are the Prepare record's.
    """

    transactional_id: str
    number: int
    producer_id: int
    producer_epoch: int
    kind: int
    topic_partitions: frozenset[TopicPartition]
    is_complete: bool
    partition: int
    offset: int
    leader_epoch: int = -1


class Contradiction(NamedTuple):
    """A record, at ``offset``, that decides a transaction the other way than the one at ``earlier_offset``."""

    transactional_id: str
    producer_id: int
    partition: int
    offset: int
    earlier_offset: int
    kind: int


@dataclass(frozen=True, slots=True)
class StateLog:
    """All that the topic says. ``latest`` is the newest record of each producer id, ``by_producer`` its decisions in
    their order. ``damaged`` are the topic's partitions of which something is missing or cannot be read.
    """

    latest: Mapping[int, StateRecord] = field(default_factory=dict)
    by_producer: Mapping[int, Sequence[Decision]] = field(default_factory=dict)
    contradictions: Sequence[Contradiction] = ()
    damaged: frozenset[int] = frozenset()

    def knows_all_of(self, producer_id: int) -> bool:
        """Whether nothing that was ever decided for a producer can be missing here."""
        known = self.latest.get(producer_id)
        return not self.damaged if known is None else known.partition not in self.damaged


def state_log(records: Iterable[StateRecord], damaged: frozenset[int] = frozenset()) -> StateLog:
    """Of records in the order of their offsets, partition by partition."""
    histories: dict[tuple[int, str], list[StateRecord]] = defaultdict(list)
    latest: dict[int, StateRecord] = {}
    for record in records:
        histories[record.partition, record.transactional_id].append(record)
        if record.state != DEAD:
            latest[record.producer_id] = record
    by_producer: dict[int, list[Decision]] = defaultdict(list)
    contradictions: list[Contradiction] = []
    for history in histories.values():
        for decision in _decisions(history, contradictions):
            by_producer[decision.producer_id].append(decision)
    return StateLog(latest, dict(by_producer), tuple(contradictions), damaged)


def _decisions(history: Sequence[StateRecord], contradictions: list[Contradiction]) -> list[Decision]:
    """The decisions of one id; what contradicts one is added to ``contradictions``."""
    found: list[Decision] = []
    undone = contradicted = False  # the last one waits for its markers
    for record in history:
        kind = _DECIDES.get(record.state, _COMPLETES.get(record.state))
        if kind is None:
            undone = undone and record.state != ONGOING
            continue
        if undone and _is_fence(record, found[-1]):
            found[-1] = _decision(record, len(found) - 1, kind)
        elif undone and kind != found[-1].kind:
            if not contradicted:
                contradictions.append(_contradiction(record, found[-1], kind))
            contradicted = True
        elif undone and record.state in _COMPLETES:
            found[-1] = found[-1]._replace(is_complete=True)
        elif not undone and record.state in _DECIDES:
            found.append(_decision(record, len(found), kind))
            contradicted = False
        undone = record.state in _DECIDES
    return found


def _is_fence(record: StateRecord, decision: Decision) -> bool:
    """Whether a record aborts what was to be committed, under a later epoch (Kafka's PrepareEpochFence)."""
    return (
        record.state == PREPARE_ABORT
        and decision.kind == COMMIT
        and record.producer_id == decision.producer_id
        and record.producer_epoch > decision.producer_epoch
    )


def _contradiction(record: StateRecord, decision: Decision, kind: int) -> Contradiction:
    return Contradiction(
        record.transactional_id, record.producer_id, record.partition, record.offset, decision.offset, kind
    )


def _decision(record: StateRecord, number: int, kind: int) -> Decision:
    return Decision(
        record.transactional_id,
        number,
        record.producer_id,
        record.producer_epoch,
        kind,
        record.topic_partitions,
        is_complete=False,
        partition=record.partition,
        offset=record.offset,
        leader_epoch=record.leader_epoch,
    )
