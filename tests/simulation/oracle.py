"""The oracle: what must hold after a simulation, small and obvious.

Owns the invariants of the logs (the verifier's, written again) and shares nothing with the cluster but the decoding of
batches and records. A finding is (name, text); the names are the verifier's where it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import decode_records

#: (name, what was seen)
Finding = tuple[str, str]


@dataclass
class Evidence:
    """What is known of one partition.

    ``sent`` are all values that were ever sent; ``acknowledged`` maps values to the offset that was told, -1 for
    none; ``read`` are each reader's (offset, value) in order. ``logs`` are the bytes of each replica in the end, all of
    them committed. ``leaders`` maps a leader epoch to who appended as its leader.
    """

    name: str
    sent: set[bytes] = field(default_factory=set)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    read: list[list[tuple[int, bytes]]] = field(default_factory=list)
    logs: dict[int, bytes] = field(default_factory=dict)
    leaders: Mapping[int, set[int]] = field(default_factory=dict)


def judge(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong with one partition."""
    findings = [*_replicas_differ(evidence), *_two_leaders(evidence)]
    # Each log that there is: where they differ, any of them may be the wrong one.
    for log in dict.fromkeys(evidence.logs.values()):
        headers, records = _decode(log)
        findings += _order(headers)
        findings += _values(evidence, records)
        findings += _readers(evidence, records)
    return [(name, f"{evidence.name}: {text}") for name, text in dict.fromkeys(findings)]


def _decode(log: bytes) -> tuple[list[BatchHeader], dict[int, bytes]]:
    headers, records = [], {}
    for position, header in iter_batches(log):
        headers.append(header)
        for record in decode_records(log[position : position + header.size_bytes]):
            records[record.offset] = bytes(record.value or b"")
    return headers, records


def _replicas_differ(evidence: Evidence) -> list[Finding]:
    """All replicas hold the same bytes: offsets, epochs, producers and records."""
    logs = sorted(evidence.logs.items())
    first = logs[0][1]
    return [
        ("log-divergence", f"replicas {logs[0][0]} and {broker_id} differ from byte {_parting(first, log)} on")
        for broker_id, log in logs[1:]
        if log != first
    ]


def _parting(one: bytes, other: bytes) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _two_leaders(evidence: Evidence) -> list[Finding]:
    """A leader epoch has one leader."""
    return [
        ("split-brain", f"brokers {sorted(brokers)} both led epoch {epoch}")
        for epoch, brokers in sorted(evidence.leaders.items())
        if len(brokers) > 1
    ]


def _order(headers: list[BatchHeader]) -> list[Finding]:
    """Offsets have no hole, leader epochs do not fall, a producer's sequences follow each other from 0."""
    findings: list[Finding] = []
    offset, epoch = 0, 0
    sequences: dict[int, int] = {}
    for header in headers:
        if header.base_offset != offset:
            findings.append(("log-gap", f"offset {header.base_offset} where {offset} is due"))
        if header.leader_epoch < epoch:
            findings.append(("epoch-regression", f"epoch {header.leader_epoch} after {epoch} at {header.base_offset}"))
        due = sequences.get(header.producer_id, 0)
        if header.producer_id >= 0 and header.base_sequence != due:
            text = f"producer {header.producer_id}: {header.base_sequence} where {due} is due at {header.base_offset}"
            findings.append(("sequence-gap" if header.base_sequence > due else "log-reorder", text))
        sequences[header.producer_id] = header.base_sequence + header.record_count
        offset, epoch = header.base_offset + header.record_count, header.leader_epoch
    return findings


def _values(evidence: Evidence, records: dict[int, bytes]) -> list[Finding]:
    """What was acknowledged stands once, where it was said to stand; nothing stands twice; nobody else's stands."""
    findings: list[Finding] = []
    offsets: dict[bytes, list[int]] = {}
    for offset, value in records.items():
        offsets.setdefault(value, []).append(offset)
    for value, told in evidence.acknowledged.items():
        found = offsets.get(value, [])
        if not found:
            findings.append(("lost-write", f"{value!r} was acknowledged at {told}"))
        elif told >= 0 and told not in found:
            findings.append(("inconsistent-offsets", f"{value!r} was acknowledged at {told} and stands at {found}"))
    for value, found in offsets.items():
        if len(found) > 1:
            findings.append(("duplicate", f"{value!r} stands at {found}"))
        if value not in evidence.sent:
            findings.append(("phantom", f"{value!r} at {found[0]} was never sent"))
    return findings


def _readers(evidence: Evidence, records: dict[int, bytes]) -> list[Finding]:
    """What was read is there, at that offset; a reader skips nothing."""
    findings: list[Finding] = []
    for read in evidence.read:
        for number, (offset, value) in enumerate(read):
            if offset != number:
                findings.append(("poll-skip", f"a reader was given offset {offset} where {number} is due"))
                break
            if records.get(offset) != value:
                findings.append(
                    ("read-then-lost", f"{value!r} was read at {offset}, where {records.get(offset)!r} stands")
                )
    return findings
