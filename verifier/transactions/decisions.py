"""Turns the records of ``__transaction_state`` into decisions: which transactions there were, and how each ended. Pure.

Owns the order of states (Kafka's TransactionMetadata): a Prepare record is the decision, and the Complete record after
it says that every marker was written. Finds only one kind of anomaly itself: two opposite decisions for one
transaction. It is legal for a fence (an abort under a later epoch) to replace a commit. The record of that commit is in
the log, but it was not acknowledged in time, so no client was told about it.
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
    """The decision about one transaction. ``number`` counts the decisions of the transactional id from 0.

    ``kind`` is COMMIT or ABORT. ``is_complete``: the coordinator recorded that all markers were written. ``partition``,
    ``offset`` and ``leader_epoch`` locate the Prepare record in ``__transaction_state``.
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
    """Two records that decide one transaction in opposite ways. The later one, at ``offset``, decides ``kind``."""

    transactional_id: str
    producer_id: int
    partition: int
    offset: int
    earlier_offset: int
    kind: int


@dataclass(frozen=True, slots=True)
class StateLog:
    """The content of ``__transaction_state``.

    ``latest`` has the newest record of each producer id, ``by_producer`` the decisions of each producer id in order.
    ``damaged`` has the partitions of the topic in which records are missing or cannot be read.
    """

    latest: Mapping[int, StateRecord] = field(default_factory=dict)
    by_producer: Mapping[int, Sequence[Decision]] = field(default_factory=dict)
    contradictions: Sequence[Contradiction] = ()
    damaged: frozenset[int] = frozenset()

    def knows_all_of(self, producer_id: int) -> bool:
        """Whether ``by_producer`` certainly has every decision that was ever made for this producer id."""
        known = self.latest.get(producer_id)
        return not self.damaged if known is None else known.partition not in self.damaged


def state_log(records: Iterable[StateRecord], damaged: frozenset[int] = frozenset()) -> StateLog:
    """The state log of these records, which come partition by partition, in the order of their offsets."""
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
    """The decisions of one transactional id. Adds each contradiction to ``contradictions``."""
    found: list[Decision] = []
    undone = contradicted = False  # ``undone``: the last decision still waits for its markers
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
    """Whether a record aborts this commit under a later epoch (Kafka's PrepareEpochFence)."""
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
