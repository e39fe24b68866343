"""Decisions: what coordinators decided about transactions, and that each has its marker in each of its partitions.

Owns that judgment: the decisions are those records of ``__transaction_state`` that leaders appended and that count in
the end (``ledger``), so compaction hides none. A marker may be written again, as in Kafka, if its answer was lost; what
must not be is a marker that nobody decided, or one that is missing. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cluster.coordinator.transaction.records import decode_key, decode_value
from cluster.coordinator.transaction.state import PREPARED, TransactionState
from tests.simulation.coordination.txn_log import Producer, TxnLog
from tests.simulation.kept import Finding
from tests.simulation.ledger import Entry
from tests.simulation.seen import TopicPartition


class Decision(NamedTuple):
    """The end of one transaction of a producer."""

    transactional_id: str
    producer: Producer
    is_commit: bool
    partitions: frozenset[TopicPartition]


def decisions(history: Mapping[int, Entry]) -> list[Decision]:
    """Those of one partition of ``__transaction_state``, in their order.

    A decision whose append was abandoned, since its replicas did not come in time, may be in the log all the same, and
    another one behind it, without a completion between: no marker was sent for it, and the last one counts (seed 1502).
    """
    found: dict[int, Decision] = {}
    #: Per transactional id, the offset of its decision that has no completion yet.
    undone: dict[str, int] = {}
    for offset in sorted(history):
        key, value, is_tombstone = history[offset]
        if is_tombstone:
            continue
        transactional_id = decode_key(key)
        metadata = decode_value(transactional_id, value)
        before = undone.pop(transactional_id, None)
        if metadata.state in PREPARED:
            if before is not None:
                del found[before]
            producer = (metadata.producer_id, metadata.producer_epoch)
            is_commit = metadata.state is TransactionState.PREPARE_COMMIT
            found[offset] = Decision(transactional_id, producer, is_commit, metadata.topic_partitions)
            undone[transactional_id] = offset
    return list(found.values())


def audit(decided: Iterable[Decision], logs: Mapping[TopicPartition, TxnLog]) -> list[Finding]:
    """Compare them with the markers of all logs."""
    due: defaultdict[tuple[TopicPartition, Producer], list[bool]] = defaultdict(list)
    for decision in decided:
        for key in decision.partitions:
            due[key, decision.producer].append(decision.is_commit)
    found: defaultdict[tuple[TopicPartition, Producer], list[bool]] = defaultdict(list)
    for key, log in logs.items():
        for marker in log.markers:
            found[key, marker.producer].append(marker.is_commit)
    findings = []
    for place in sorted(due.keys() | found.keys()):
        (topic, number), (producer_id, epoch) = place
        if not is_stuttered(found[place], due[place]):
            text = (
                f"{topic}-{number}: producer {producer_id} epoch {epoch} has the markers "
                f"{_spelled(found[place])} where {_spelled(due[place])} were decided"
            )
            findings.append(("marker-audit", text))
    return findings


def is_stuttered(found: list[bool], due: list[bool]) -> bool:
    """Whether ``found`` is ``due`` with each of its items once or several times in a row."""
    #: How many of ``due`` the items so far may stand for.
    reached = {0}
    for item in found:
        reached = {
            each
            for before in reached
            for each in (before, before + 1)
            if 0 < each <= len(due) and due[each - 1] is item
        }
    return len(due) in reached


def _spelled(kinds: list[bool]) -> str:
    return "".join("C" if is_commit else "A" for is_commit in kinds) or "nothing"
