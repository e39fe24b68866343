"""How defects of the sequence check accept a batch that it would stop.

Owns how the check is overruled for one batch, and that the producer stays usable: a batch older than the known ones
leaves no trace in the producer's state. Does not own which batches these are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import ACCEPTED, ProducerEntry, SequenceVerdict, VerdictKind
from cluster.protocol.batch import BatchHeader

#: (log, header, entry, the right verdict, leader epoch, wall clock in ms) -> is it accepted nevertheless?
Overrules = Callable[[PartitionLog, BatchHeader, ProducerEntry, SequenceVerdict, int, int], bool]


def accepting(name: str, overrules: Overrules, rules: Rules, firings: Firings) -> Rules:
    """The rules by which a leader also stores the batches that ``overrules`` names."""
    right_check = rules.check_sequence
    overruled = False

    def check(entry: ProducerEntry | None, header: BatchHeader, log_start_offset: int, unknown: str) -> SequenceVerdict:
        return ACCEPTED if overruled else right_check(entry, header, log_start_offset, unknown)

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        nonlocal overruled
        entry = log.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if entry is None:
            return rules.append(log, batch, header, leader_epoch, now_ms)
        verdict = right_check(entry, header, log.log_start_offset, log.config.unknown_producer)
        is_right = verdict.kind is VerdictKind.ACCEPT
        if is_right or not overrules(log, header, entry, verdict, leader_epoch, now_ms):
            return rules.append(log, batch, header, leader_epoch, now_ms)
        firings.record(name, log, header, log.log_end_offset)
        overruled = True
        try:
            info = rules.append(log, batch, header, leader_epoch, now_ms)
        finally:
            overruled = False
        if header.base_sequence <= entry.last_sequence:
            log.producers.put(entry)
        return info

    return replace(rules, check_sequence=check, append=append)
