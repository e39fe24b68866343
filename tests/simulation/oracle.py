"""The oracle: what must hold after a simulation, small and obvious.

Owns the invariants of the logs (the verifier's, written again) and shares nothing with the cluster but the decoding of
batches and records. A finding is (name, text); the names are the verifier's where it has one. What a compacted log must
have kept is ``kept``'s.

Four things are excused, each for single records and by what leaders appended (``ledger``), whoever sent it: what lies
below a log start that somebody asked for or that retention moved by right; what an unclean election cut off: appended
in epochs before it alone, and not held by its leader when that began to lead; what was appended to a former topic of
that name; what a compacted log has a newer record for.
"""

from __future__ import annotations

from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import decode_records
from tests.simulation.evidence import Evidence
from tests.simulation.kept import Finding, compacted_replicas_differ
from tests.simulation.ledger import Entry, value_of
from tests.simulation.readings import readers


def judge(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong with one partition."""
    decoded = {broker_id: _decode(log, evidence.starts[broker_id]) for broker_id, log in evidence.logs.items()}
    findings = [*two_leaders(evidence)]
    if evidence.kept is None:
        findings += replicas_differ(evidence)
    else:
        findings += compacted_replicas_differ({broker_id: records for broker_id, (_, records) in decoded.items()})
    # Each log that there is: where they differ, any of them may be the wrong one.
    each = {(evidence.starts[broker_id], log): broker_id for broker_id, log in evidence.logs.items()}
    for (start, _), broker_id in each.items():
        headers, records = decoded[broker_id]
        findings += _order(evidence, headers, start)
        if evidence.kept is not None:
            findings += evidence.kept.missing(records, start, headers[-1].next_offset if headers else start)
        findings += _values(evidence, records, start)
        findings += _streams(evidence, records)
        findings += readers(evidence, records, start)
    return [(name, f"{evidence.name}: {text}") for name, text in dict.fromkeys(findings)]


def _decode(log: bytes, start: int) -> tuple[list[BatchHeader], dict[int, Entry]]:
    """The batches that are not deleted whole, and the records from the start on."""
    headers, records = [], {}
    for position, header in iter_batches(log):
        if header.next_offset <= start:
            continue
        headers.append(header)
        for record in decode_records(log[position : position + header.size_bytes]):
            if record.offset >= start:
                value = value_of(record.value, record.headers)
                records[record.offset] = Entry(record.key, value, record.value is None)
    return headers, records


def _from(log: bytes, start: int) -> bytes:
    """The bytes of a log from the batch on that holds ``start``: what lies before goes from each disk when it likes."""
    if start == 0:
        return log
    for position, header in iter_batches(log):
        if header.next_offset > start:
            return log[position:]
    return b""


def replicas_differ(evidence: Evidence) -> list[Finding]:
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


def two_leaders(evidence: Evidence) -> list[Finding]:
    """A leader epoch has one leader."""
    return [
        ("split-brain", f"brokers {sorted(brokers)} both led epoch {epoch}")
        for epoch, brokers in sorted(evidence.ledger.leaders.items())
        if len(brokers) > 1
    ]


def _order(evidence: Evidence, headers: list[BatchHeader], start: int) -> list[Finding]:
    """Offsets rise, without a hole if nothing is compacted; leader epochs do not fall; a producer's sequences follow
    each other from 0 in each of its epochs, which do not fall either.
    """
    findings: list[Finding] = []
    if start > (gone_below := evidence.gone_below(evidence.ledger)):
        text = f"the log begins at {start}, and nothing above {gone_below} was to go"
        findings.append(("log-gap", text))
    # The batch that the start lies in is there, whole.
    offset, epoch = min(start, headers[0].base_offset if headers else start), 0
    #: By producer: its epoch, and the next sequence in it.
    sequences: dict[int, tuple[int, int]] = {}
    for header in headers:
        if header.base_offset < offset or (header.base_offset > offset and not evidence.is_compacted):
            findings.append(("log-gap", f"offset {header.base_offset} where {offset} is due"))
        if header.record_count != header.last_offset_delta + 1 and not evidence.is_compacted:
            findings.append(("log-gap", f"{header.record_count} records in the batch at {header.base_offset}"))
        if header.leader_epoch < epoch:
            findings.append(("epoch-regression", f"epoch {header.leader_epoch} after {epoch} at {header.base_offset}"))
        producer, producer_epoch = header.producer_id, header.producer_epoch
        latest, following = sequences.get(producer, (producer_epoch, 0))
        due = following if producer_epoch == latest else 0
        if producer >= 0 and producer_epoch < latest:
            text = f"producer {producer}: epoch {producer_epoch} after {latest} at {header.base_offset}"
            findings.append(("producer-epoch-regression", text))
        elif producer >= 0 and header.base_sequence != due:
            is_ahead = header.base_sequence > due
            is_first = producer not in sequences
            # What compaction took is ``kept``'s; what is left stands in its order.
            by_right = (is_ahead and evidence.is_compacted) or (
                is_first and _may_begin_there(evidence, header, start)
            )  # fmt: skip
            if not by_right:
                text = f"producer {producer}: {header.base_sequence} where {due} is due at {header.base_offset}"
                findings.append(("sequence-gap" if is_ahead else "log-reorder", text))
        sequences[producer] = producer_epoch, header.base_sequence + header.last_offset_delta + 1
        offset, epoch = header.next_offset, header.leader_epoch
    return findings


def _may_begin_there(evidence: Evidence, header: BatchHeader, start: int) -> bool:
    """Whether a producer's first batch in the log may have a sequence above 0.

    Either the batch before it is gone; or nothing of the producer was left when this one came, and the log began above
    offset 0 (KIP-360).
    """
    producer_id, ledger = header.producer_id, evidence.ledger
    own = (producer_id, header.producer_epoch, header.base_sequence)
    former = [
        (batch, entry)
        for batch, entries in ledger.appended.items()
        for entry in entries
        if batch[0] == producer_id and batch < own
    ]
    before = [each for each in former if (*each[0][:2], each[0][2] + each[1].count) == own]
    if before and all(ledger.is_gone(*each, start) or ledger.is_superseded(each[1]) for each in before):
        return True
    return any(
        entry.base_offset == header.base_offset
        and entry.log_start > 0
        and all(ledger.is_gone(*each, entry.log_start) for each in former)
        for entry in ledger.appended.get(own, ())
    )


def _values(evidence: Evidence, records: dict[int, Entry], start: int) -> list[Finding]:
    """What was acknowledged stands once, where it was said to stand; nothing stands twice; nobody else's stands."""
    findings: list[Finding] = []
    offsets: dict[bytes, list[int]] = {}
    for offset, entry in records.items():
        offsets.setdefault(entry.value, []).append(offset)
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
        elif not evidence.ledger.places(value):
            findings.append(("phantom", f"{value!r} at {found[0]} was never appended to this topic"))
    return findings


def _is_gone(evidence: Evidence, value: bytes, told: int, start: int) -> bool:
    """Whether each place at which the value was appended, or the one that was told, was deleted, compacted or cut off,
    or was in a former topic."""
    if any(told < 0 or place.offset == told for former in evidence.former for place in former.places(value)):
        return True
    ledger = evidence.ledger
    places = [place for place in ledger.places(value) if told < 0 or place.offset == told]
    return bool(places) and all(
        place.offset < start
        or evidence.is_superseded(place.offset, value)
        or ledger.is_cut_off(place.batch, place.appended.base_offset, place.appended.epoch)
        for place in places
    )


def _streams(evidence: Evidence, records: dict[int, Entry]) -> list[Finding]:
    """What one producer sent stands in that order, and what it said was not written does not stand at all."""
    findings: list[Finding] = []
    offsets = {entry.value: offset for offset, entry in records.items()}
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
