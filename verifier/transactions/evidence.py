"""Finds the files of a run that have evidence about transactions, and chooses the replica to judge.

Owns the search and the choice; ``verifier.transactions.logs`` reads the files. The judged replica is the most advanced
one: it has the highest leader epoch, and among those the highest end offset. Every in-sync replica acknowledges the
records that end a transaction, so the most advanced replica has them. This holds even if the leader changed while the
brokers were being stopped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from verifier.closing.wall_clock import ClockShift, known_shift, started_ms
from verifier.coordinators.topics import STATE_TOPIC, may_lose_offsets
from verifier.evidence.phases import HEAL, STOP
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import whole_ms_of_ns
from verifier.narrowed import is_foreign
from verifier.segments.markers import ABORT
from verifier.segments.rows import find_segments
from verifier.transactions.decisions import StateLog, state_log
from verifier.transactions.logs import LogTransactions, log_transactions, replica_end, state_records
from verifier.transactions.model import AbortedRange, TransactionEvidence, WorkingTime
from verifier.transactions.state_records import StateRecord, TopicPartition
from verifier.workload_asked import transactions_asked

#: The state log of a topic that was not read. It counts as damaged, so that absent records prove nothing.
_NOT_READ = StateLog(damaged=frozenset({0}))
#: The directories of all replicas, by partition and broker id.
Copies = Mapping[TopicPartition, Mapping[int, Path]]


def has_transactions(directory: RunDirectory, run: RunModel) -> bool:
    """Whether the run has transactions: brokers create the topic when a client first looks for a coordinator.

    If gapless did not start the cluster, the run directory has no replica of that topic, and the workload decides.
    """
    if is_foreign(run):
        return transactions_asked(run) is not None
    return any(
        next(directory.node(broker).glob(f"data/{STATE_TOPIC}-*"), None) is not None
        for broker in directory.broker_ids()
    )


def aborted_ranges(directory: RunDirectory, run: RunModel) -> list[AbortedRange]:
    """The aborted ranges in all judged logs; empty if the run has no transactions. Raises ``OSError``."""
    if not has_transactions(directory, run):
        return []
    return [
        AbortedRange(*place, ended.producer_id, ended.first_offset, ended.marker_offset)
        for place, log in _logs(copies_of(directory)).items()
        for ended in log.ended
        if ended.kind == ABORT and ended.first_offset >= 0
    ]


def transaction_evidence(directory: RunDirectory, run: RunModel) -> TransactionEvidence | None:
    """The evidence of a run; None if it has no transactions. Raises ``OSError``."""
    if not has_transactions(directory, run):
        return None
    copies = copies_of(directory)
    return TransactionEvidence(
        _NOT_READ if is_foreign(run) else _state(copies),
        _logs(copies),
        working(run, known_shift(directory, run)),
        may_lose_markers=run.may_elect_uncleanly,
        may_lose_offsets=may_lose_offsets(run),
    )


def working(run: RunModel, shift: ClockShift) -> WorkingTime | None:
    """When the run was healed and when its brokers began to stop, in wall-clock ms; None if either is unknown.

    If the wall clock moved during the run, the end is early by as much, so that no broker is accused of being late.
    """
    began_ms, healed, stop = started_ms(run), run.phase(HEAL), run.phase(STOP)
    if began_ms is None or healed is None or healed.end_ns is None or stop is None:
        return None
    healed_ms, stopped_ms = (
        began_ms + whole_ms_of_ns(at_ns - run.started_ns) for at_ns in (healed.end_ns, stop.start_ns)
    )
    return WorkingTime(healed_ms, stopped_ms - shift.behind_ms - shift.ahead_ms)


def copies_of(directory: RunDirectory) -> Copies:
    """The directory of every replica that has segments, by partition and broker id."""
    found: dict[TopicPartition, dict[int, Path]] = defaultdict(dict)
    for broker in directory.broker_ids():
        for segment in find_segments("", 0, broker, directory.node(broker)):
            found[segment.topic, segment.partition][broker] = Path(segment.path).parent
    return found


def _logs(copies: Copies) -> dict[TopicPartition, LogTransactions]:
    logs = {}
    for place, homes in copies.items():
        if place[0] != STATE_TOPIC:
            broker = most_advanced(homes)
            logs[place] = log_transactions(homes[broker], *place, broker)
    return logs


def most_advanced(homes: Mapping[int, Path]) -> int:
    """The broker whose replica is judged. Raises ``OSError``."""
    return max(sorted(homes), key=lambda broker: replica_end(homes[broker]))


def _state(copies: Copies) -> StateLog:
    """The content of ``__transaction_state``. A missing partition below the highest counts as damaged."""
    homes = {partition: by_broker for (topic, partition), by_broker in copies.items() if topic == STATE_TOPIC}
    damaged = set(range(max(homes, default=-1) + 1)) - homes.keys()
    records: list[StateRecord] = []
    for partition, by_broker in sorted(homes.items()):
        found, is_whole = state_records(by_broker[most_advanced(by_broker)], partition)
        records += found
        if not is_whole:
            damaged.add(partition)
    return state_log(records, frozenset(damaged))
