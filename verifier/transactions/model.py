"""The input of the checks of transactions, and the form of their findings. Pure; owns no check.

Markers are compared with decisions only where both are complete. A log, or a partition of ``__transaction_state``, that
is not whole proves nothing by what it lacks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from verifier.coordinators.topics import OFFSETS_TOPIC
from verifier.files.transactions import Ended
from verifier.segments.markers import KIND_NAMES
from verifier.transactions.alignment import Alignment, align
from verifier.transactions.decisions import Decision, StateLog
from verifier.transactions.logs import LogTransactions
from verifier.transactions.readings import possible_decisions
from verifier.transactions.state_records import TopicPartition


class Anomalous(NamedTuple):
    """One anomaly in one partition, at an offset of its log (None if no offset applies)."""

    check: str
    cause: str | None
    topic: str
    partition: int
    offset: int | None
    detail: Mapping[str, Any]


class AbortedRange(NamedTuple):
    """The records of a producer from ``first_offset`` on were aborted by the marker at ``marker_offset``."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int
    marker_offset: int


class WorkingTime(NamedTuple):
    """The time without faults in which all brokers ran: from healing to the stop, in ms of the wall clock."""

    healed_ms: int
    stopped_ms: int


@dataclass(frozen=True)
class TransactionEvidence:
    """Everything that the checks judge. Without ``working``, no one can tell how long a transaction was open.

    ``may_lose_markers``: the settings allow an election to truncate acknowledged records in the run's topics.
    ``may_lose_offsets``: the same for ``__consumer_offsets``.
    """

    state: StateLog
    logs: Mapping[TopicPartition, LogTransactions]
    working: WorkingTime | None = None
    may_lose_markers: bool = False
    may_lose_offsets: bool = False

    def keeps_markers(self, place: TopicPartition) -> bool:
        """Whether no election can have truncated a marker in this partition."""
        return not (self.may_lose_offsets if place[0] == OFFSETS_TOPIC else self.may_lose_markers)

    @cached_property
    def beside(self) -> Mapping[tuple[TopicPartition, int], tuple[Sequence[Ended], Sequence[Decision]]]:
        """Markers and decisions by (partition, producer id), where both are complete and no marker can be lost."""
        decisions: dict[tuple[TopicPartition, int], list[Decision]] = defaultdict(list)
        for producer_id, decided in self.state.by_producer.items():
            for decision in decided:
                for place in decision.topic_partitions:
                    decisions[place, producer_id].append(decision)
        markers: dict[tuple[TopicPartition, int], list[Ended]] = defaultdict(list)
        for place, log in self.logs.items():
            for ended in log.ended:
                markers[place, ended.producer_id].append(ended)
        found = {}
        for key in sorted(decisions.keys() | markers.keys()):
            place, producer_id = key
            here = self.logs.get(place) if self.keeps_markers(place) else None
            if here is not None and here.is_whole and self.state.knows_all_of(producer_id):
                found[key] = markers.get(key, []), decisions.get(key, [])
        return found

    @cached_property
    def readings(self) -> Mapping[tuple[TopicPartition, int], Mapping[int, frozenset[int]]]:
        """For each pair in ``beside``: marker offset -> the numbers of the decisions to which it may belong."""
        return {key: possible_decisions(*both) for key, both in self.beside.items()}

    @cached_property
    def alignments(self) -> Mapping[tuple[TopicPartition, int], Alignment]:
        """For each pair in ``beside``: the cheapest match of its markers with its decisions."""
        return {key: align(*both) for key, both in self.beside.items()}


def of_decision(decision: Decision) -> dict[str, Any]:
    """The part of an anomaly's ``detail`` that describes a decision."""
    return {
        "transactional_id": decision.transactional_id,
        "number": decision.number,
        "producer_id": decision.producer_id,
        "producer_epoch": decision.producer_epoch,
        "decided": KIND_NAMES[decision.kind],
        "state_partition": decision.partition,
        "state_offset": decision.offset,
    }


def of_marker(marker: Ended) -> dict[str, Any]:
    """The part of an anomaly's ``detail`` that describes a marker."""
    return {
        "marker": KIND_NAMES[marker.kind],
        "marker_epoch": marker.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
        "first_offset": marker.first_offset,
    }
