"""Which files of a run say something of transactions, and which replica's copy is judged. Owns search and choice.

The copy that is judged is the most advanced one: of the highest leader epoch, then of the highest end. What a
coordinator did to end a transaction was acknowledged by every replica in sync, so that copy has it, also where a leader
changed while the brokers were being stopped.
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

#: Of a topic of which nothing was read: nothing that is absent proves anything.
_NOT_READ = StateLog(damaged=frozenset({0}))
#: By partition, then by broker.
Copies = Mapping[TopicPartition, Mapping[int, Path]]


def has_transactions(directory: RunDirectory, run: RunModel) -> bool:
    """Whether any broker coordinated transactions: the topic is made when a client first asks for a coordinator.

    Of a cluster that others started, that topic is not there: the run's workload tells."""
    if is_foreign(run):
        return transactions_asked(run) is not None
    return any(
        next(directory.node(broker).glob(f"data/{STATE_TOPIC}-*"), None) is not None
        for broker in directory.broker_ids()
    )


def aborted_ranges(directory: RunDirectory, run: RunModel) -> list[AbortedRange]:
    """What the logs say was aborted; nothing if the run has no transactions. Raises ``OSError``."""
    if not has_transactions(directory, run):
        return []
    return [
        AbortedRange(*place, ended.producer_id, ended.first_offset, ended.marker_offset)
        for place, log in _logs(copies_of(directory)).items()
        for ended in log.ended
        if ended.kind == ABORT and ended.first_offset >= 0
    ]


def transaction_evidence(directory: RunDirectory, run: RunModel) -> TransactionEvidence | None:
    """Of a run; None if it has no transactions. Raises ``OSError``."""
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
    """When the run was healed and when its brokers were stopped, on the safe side of what the wall clock moved."""
    began_ms, healed, stop = started_ms(run), run.phase(HEAL), run.phase(STOP)
    if began_ms is None or healed is None or healed.end_ns is None or stop is None:
        return None
    healed_ms, stopped_ms = (
        began_ms + whole_ms_of_ns(at_ns - run.started_ns) for at_ns in (healed.end_ns, stop.start_ns)
    )
    return WorkingTime(healed_ms, stopped_ms - shift.behind_ms - shift.ahead_ms)


def copies_of(directory: RunDirectory) -> Copies:
    """Where the segments of each partition are, broker by broker."""
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
    """The broker whose copy is judged. Raises ``OSError``."""
    return max(sorted(homes), key=lambda broker: replica_end(homes[broker]))


def _state(copies: Copies) -> StateLog:
    """What is missing in the row of partitions counts as damaged, as what cannot be read does."""
    homes = {partition: by_broker for (topic, partition), by_broker in copies.items() if topic == STATE_TOPIC}
    damaged = set(range(max(homes, default=-1) + 1)) - homes.keys()
    records: list[StateRecord] = []
    for partition, by_broker in sorted(homes.items()):
        found, is_whole = state_records(by_broker[most_advanced(by_broker)], partition)
        records += found
        if not is_whole:
            damaged.add(partition)
    return state_log(records, frozenset(damaged))
