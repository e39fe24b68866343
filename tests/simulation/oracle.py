"""The oracle: what must hold after a simulation, small and obvious.

Owns the invariants of the logs (the verifier's, written again) and shares nothing with the cluster but the decoding of
batches and records. A finding is (name, text); the names are the verifier's where it has one.

Two things are excused, each for single records and by what is known of them: what lies below a log start that somebody
asked for, and what an unclean election cut off (``ledger``): appended in epochs before it alone, and not held by its
leader when that began to lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import decode_records
from tests.simulation.ledger import BatchId, Ledger

#: (name, what was seen)
Finding = tuple[str, str]


@dataclass
class Evidence:
    """What is known of one partition.

    ``sent`` maps all values that were ever sent to their batch and the place in it; None if only the producer knows:
    nothing is excused then. ``acknowledged`` maps values to the offset that was told, -1 for none; ``refused`` maps
    values of which a client said that they certainly were not written to its error. ``streams`` are values in the order
    in which one producer sent them. ``read`` are each reader's (offset, value, leader epoch) in order, from the start
    of the log. ``logs`` are the bytes of each replica in the end, all of them committed, and ``starts`` where they
    begin. Below ``deleted`` records may have been deleted on request.
    """

    name: str
    sent: dict[bytes, tuple[BatchId, int] | None] = field(default_factory=dict)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, str] = field(default_factory=dict)
    streams: list[list[bytes]] = field(default_factory=list)
    read: list[list[tuple[int, bytes, int]]] = field(default_factory=list)
    logs: dict[int, bytes] = field(default_factory=dict)
    starts: Mapping[int, int] = field(default_factory=dict)
    deleted: int = 0
    ledger: Ledger = field(default_factory=Ledger)


def judge(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong with one partition."""
    findings = [*_replicas_differ(evidence), *_two_leaders(evidence)]
    # Each log that there is: where they differ, any of them may be the wrong one.
    for start, log in dict.fromkeys((evidence.starts[broker_id], log) for broker_id, log in evidence.logs.items()):
        headers, records = _decode(log, start)
        findings += _order(evidence, headers, start)
        findings += _values(evidence, records, start)
        findings += _streams(evidence, records)
        findings += _readers(evidence, records, start)
    return [(name, f"{evidence.name}: {text}") for name, text in dict.fromkeys(findings)]


def _decode(log: bytes, start: int) -> tuple[list[BatchHeader], dict[int, bytes]]:
    """The batches that are not deleted whole, and the records from the start on."""
    headers, records = [], {}
    for position, header in iter_batches(log):
        if header.base_offset + header.record_count <= start:
            continue
        headers.append(header)
        for record in decode_records(log[position : position + header.size_bytes]):
            if record.offset >= start:
                records[record.offset] = bytes(record.value or b"")
    return headers, records


def _from(log: bytes, start: int) -> bytes:
    """The bytes of a log from the batch on that holds ``start``: what lies before goes from each disk when it likes."""
    if start == 0:
        return log
    for position, header in iter_batches(log):
        if header.base_offset + header.record_count > start:
            return log[position:]
    return b""


def _replicas_differ(evidence: Evidence) -> list[Finding]:
    """All replicas hold the same bytes: offsets, epochs, producers and records."""
    start = max(evidence.starts.values())
    logs = [(broker_id, _from(log, start)) for broker_id, log in sorted(evidence.logs.items())]
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
        for epoch, brokers in sorted(evidence.ledger.leaders.items())
        if len(brokers) > 1
    ]


def _order(evidence: Evidence, headers: list[BatchHeader], start: int) -> list[Finding]:
    """Offsets have no hole, leader epochs do not fall, a producer's sequences follow each other from 0 in each of its
    epochs, which do not fall either.
    """
    findings: list[Finding] = []
    if start > evidence.deleted:
        findings.append(("log-gap", f"the log begins at {start}, and nobody asked for more than {evidence.deleted}"))
    # The batch that the start lies in is there, whole.
    offset, epoch = min(start, headers[0].base_offset if headers else start), 0
    #: By producer: its epoch, and the next sequence in it.
    sequences: dict[int, tuple[int, int]] = {}
    for header in headers:
        if header.base_offset != offset:
            findings.append(("log-gap", f"offset {header.base_offset} where {offset} is due"))
        if header.leader_epoch < epoch:
            findings.append(("epoch-regression", f"epoch {header.leader_epoch} after {epoch} at {header.base_offset}"))
        producer, producer_epoch = header.producer_id, header.producer_epoch
        latest, following = sequences.get(producer, (producer_epoch, 0))
        due = following if producer_epoch == latest else 0
        if producer >= 0 and producer_epoch < latest:
            text = f"producer {producer}: epoch {producer_epoch} after {latest} at {header.base_offset}"
            findings.append(("producer-epoch-regression", text))
        elif producer >= 0 and header.base_sequence != due:
            is_first = producer not in sequences
            if not (is_first and _may_begin_there(evidence, header, start)):
                text = f"producer {producer}: {header.base_sequence} where {due} is due at {header.base_offset}"
                findings.append(("sequence-gap" if header.base_sequence > due else "log-reorder", text))
        sequences[producer] = producer_epoch, header.base_sequence + header.record_count
        offset, epoch = header.base_offset + header.record_count, header.leader_epoch
    return findings


def _may_begin_there(evidence: Evidence, header: BatchHeader, start: int) -> bool:
    """Whether a producer's first batch in the log may have a sequence above 0.

    Either the batch before it is gone; or nothing of the producer was left when this one came, and the log began above
    offset 0 (KIP-360).
    """
    producer_id, ledger = header.producer_id, evidence.ledger
    former = [
        (batch, entry)
        for batch, entries in ledger.appended.items()
        for entry in entries
        if batch[0] == producer_id and batch[1] < header.base_sequence
    ]
    before = [each for each in former if each[0][1] + each[1].count == header.base_sequence]
    if before and all(ledger.is_gone(*each, start) for each in before):
        return True
    own = ledger.appended.get((producer_id, header.base_sequence), ())
    return any(
        entry.base_offset == header.base_offset
        and entry.log_start > 0
        and all(ledger.is_gone(*each, entry.log_start) for each in former)
        for entry in own
    )


def _values(evidence: Evidence, records: dict[int, bytes], start: int) -> list[Finding]:
    """What was acknowledged stands once, where it was said to stand; nothing stands twice; nobody else's stands."""
    findings: list[Finding] = []
    offsets: dict[bytes, list[int]] = {}
    for offset, value in records.items():
        offsets.setdefault(value, []).append(offset)
    for value, told in evidence.acknowledged.items():
        found = offsets.get(value, [])
        if told in found or (told < 0 and found) or _is_gone(evidence, value, told, start):
            continue
        if not found:
            findings.append(("lost-write", f"{value!r} was acknowledged at {told}"))
        else:
            findings.append(("inconsistent-offsets", f"{value!r} was acknowledged at {told} and stands at {found}"))
    for value, found in offsets.items():
        if len(found) > 1:
            findings.append(("duplicate", f"{value!r} stands at {found}"))
        if value not in evidence.sent:
            findings.append(("phantom", f"{value!r} at {found[0]} was never sent"))
        elif (place := evidence.sent[value]) is not None and place[0] not in evidence.ledger.appended:
            findings.append(("phantom", f"{value!r} at {found[0]} was never appended to this topic"))
    return findings


def _is_gone(evidence: Evidence, value: bytes, told: int, start: int) -> bool:
    """Whether each place at which the value was appended, or the one that was told, was deleted or cut off."""
    place = evidence.sent[value]
    if place is None:
        return False
    batch, number = place
    places = [
        entry
        for entry in evidence.ledger.appended.get(batch, ())
        if told < 0 or entry.base_offset + number == told
    ]  # fmt: skip
    return bool(places) and all(
        entry.base_offset + number < start or evidence.ledger.is_cut_off(batch, entry.base_offset, entry.epoch)
        for entry in places
    )


def _streams(evidence: Evidence, records: dict[int, bytes]) -> list[Finding]:
    """What one producer sent stands in that order, and what it said was not written does not stand at all."""
    findings: list[Finding] = []
    offsets = {value: offset for offset, value in records.items()}
    for value, error in evidence.refused.items():
        if value in offsets:
            findings.append(("G1a", f"{value!r} was refused ({error}) and stands at {offsets[value]}"))
    for stream in evidence.streams:
        last = -1
        for value in stream:
            offset = offsets.get(value, last)
            if offset < last:
                findings.append(("nonmonotonic-send", f"{value!r} stands at {offset}, behind its successors"))
            last = max(last, offset)
    return findings


def _readers(evidence: Evidence, records: dict[int, bytes], start: int) -> list[Finding]:
    """What was read is there, at that offset; a reader skips nothing but what was to be deleted."""
    findings: list[Finding] = []
    for read in evidence.read:
        due = 0
        for offset, value, epoch in read:
            if offset != due and not due < offset <= evidence.deleted:
                findings.append(("poll-skip", f"a reader was given offset {offset} where {due} is due"))
                break
            due = offset + 1
            if records.get(offset) != value and not _was_there(evidence, offset, value, epoch, start):
                findings.append(
                    ("read-then-lost", f"{value!r} was read at {offset}, where {records.get(offset)!r} stands")
                )
    return findings


def _was_there(evidence: Evidence, offset: int, value: bytes, epoch: int, start: int) -> bool:
    """Whether what a reader was given in an epoch was appended there, and is gone by right."""
    place = evidence.sent.get(value)
    if place is None:
        return False
    batch, number = place
    places = [
        entry
        for entry in evidence.ledger.appended.get(batch, ())
        if entry.base_offset + number == offset and entry.epoch <= epoch
    ]
    return bool(places) and (
        offset < start or evidence.ledger.is_cut_off(batch, offset - number, epoch)
    )  # fmt: skip
