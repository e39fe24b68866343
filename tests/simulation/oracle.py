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

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import decode_records
from tests.simulation.kept import Kept, compacted_replicas_differ
from tests.simulation.ledger import Entry, Ledger, value_of

#: (name, what was seen)
Finding = tuple[str, str]
INT64_MAX = 2**63 - 1


@dataclass
class Evidence:
    """What is known of one partition.

    ``sent`` are all values that were ever sent. ``acknowledged`` maps values to the offset that was told, -1 for none;
    ``refused`` maps values of which a client said that they certainly were not written to its error. ``streams`` are
    values in the order in which one producer sent them. ``read`` are each reader's (offset, value, leader epoch) in
    order, from the start of the log. ``logs`` are the bytes of each replica in the end, all of them committed, and
    ``starts`` where they begin. Below ``deleted`` records may have been deleted on request. ``former`` are the ledgers
    of former topics of this name. ``is_compacted``: the topic may have been compacted, and lost tombstones too if
    ``tombstones_go``.
    """

    name: str
    sent: set[bytes] = field(default_factory=set)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    refused: dict[bytes, str] = field(default_factory=dict)
    streams: list[list[bytes]] = field(default_factory=list)
    read: list[list[tuple[int, bytes, int]]] = field(default_factory=list)
    logs: dict[int, bytes] = field(default_factory=dict)
    starts: Mapping[int, int] = field(default_factory=dict)
    deleted: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    former: list[Ledger] = field(default_factory=list)
    is_compacted: bool = False
    tombstones_go: bool = False

    #: Ledgers to what their logs must keep.
    _kept: dict[int, Kept] = field(default_factory=dict)

    def gone_below(self, ledger: Ledger) -> int:
        """Below this offset records may be gone, by request or by retention."""
        return max(self.deleted, ledger.retained)

    def kept_of(self, ledger: Ledger) -> Kept | None:
        """What a compacted log must keep; None for one that is not compacted."""
        if self.is_compacted and id(ledger) not in self._kept:
            ends = [header.next_offset for log in self.logs.values() for _, header in iter_batches(log)]
            end = max(ends, default=0) if ledger is self.ledger else INT64_MAX
            self._kept[id(ledger)] = Kept(ledger.history(end), tombstones_go=self.tombstones_go)
        return self._kept.get(id(ledger))

    @property
    def kept(self) -> Kept | None:
        return self.kept_of(self.ledger)


def judge(evidence: Evidence) -> list[Finding]:
    """Everything that is wrong with one partition."""
    decoded = {broker_id: _decode(log, evidence.starts[broker_id]) for broker_id, log in evidence.logs.items()}
    findings = [*_two_leaders(evidence)]
    if evidence.kept is None:
        findings += _replicas_differ(evidence)
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
        findings += _readers(evidence, records, start)
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
    if before and all(ledger.is_gone(*each, start) for each in before):
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
        or _is_superseded(evidence, place.offset, value)
        or ledger.is_cut_off(place.batch, place.appended.base_offset, place.appended.epoch)
        for place in places
    )


def _is_superseded(evidence: Evidence, offset: int, value: bytes) -> bool:
    """Whether that record was in a compacted log: whether it may be missing there is judged of every offset."""
    return evidence.kept is not None and evidence.kept.stood(offset, value)


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


def _readers(evidence: Evidence, records: dict[int, Entry], start: int) -> list[Finding]:
    """What was read is there, at that offset; a reader skips nothing but what was to be deleted or was compacted, and
    reads nothing again but after what it had read was cut off. In another topic of that name it begins again.
    """
    findings: list[Finding] = []
    for read in evidence.read:
        due, first = 0, 0
        ledger: Ledger | None = None
        for number, (offset, value, epoch) in enumerate(read):
            found = _topic_of(evidence, offset, value, ledger)
            if found is not ledger:
                ledger, first = found, _begins(found, read, number)
                due = 0 if first == number or not _may_skip(evidence, found, 0, read[first][0]) else due
            if offset > due and not _may_skip(evidence, ledger, due, offset):
                findings.append(("poll-skip", f"a reader was given offset {offset} where {due} is due"))
                break
            if offset < due and not _may_go_back(evidence, read[first:number], offset, records, start):
                findings.append(("poll-skip", f"a reader was given offset {offset} again, where {due} is due"))
                break
            due = offset + 1
            stands = records.get(offset)
            if (stands is None or stands.value != value) and not _was_there(evidence, offset, value, epoch, start):
                findings.append(("read-then-lost", f"{value!r} was read at {offset}, where {stands!r} stands"))
    return findings


def _topic_of(evidence: Evidence, offset: int, value: bytes, before: Ledger | None) -> Ledger:
    """The topic in which a record was read: the same as before, if it may be."""
    ledgers = [*evidence.former, evidence.ledger] if before is None else [before, *evidence.former, evidence.ledger]
    return next((ledger for ledger in ledgers if _holds(ledger, offset, value)), before or evidence.ledger)


def _holds(ledger: Ledger, offset: int, value: bytes) -> bool:
    return any(place.offset == offset for place in ledger.places(value))


def _begins(ledger: Ledger, read: list[tuple[int, bytes, int]], number: int) -> int:
    """Since which of its reads a reader may have been in a topic in which it was at ``number``: what was appended to
    the former one and not acknowledged may stand at the same offset in both.
    """
    while number and read[number - 1][0] < read[number][0] and _holds(ledger, *read[number - 1][:2]):
        number -= 1
    return number


def _may_skip(evidence: Evidence, ledger: Ledger, due: int, offset: int) -> bool:
    due = max(due, evidence.gone_below(ledger))
    kept = evidence.kept_of(ledger)
    return due >= offset or (kept is not None and kept.may_be_skipped(due, offset))


def _may_go_back(
    evidence: Evidence, read: list[tuple[int, bytes, int]], offset: int, records: dict[int, Entry], start: int
) -> bool:
    """To where the log begins, or to where it parts from what was read, if it does."""
    if not evidence.ledger.cuts:
        return False
    gone = [
        ((stands := records.get(at)) is None or stands.value != value) and _was_there(evidence, at, value, epoch, start)
        for at, value, epoch in read
        if at >= offset
    ]
    return any(gone) if offset <= evidence.gone_below(evidence.ledger) else all(gone)


def _was_there(evidence: Evidence, offset: int, value: bytes, epoch: int, start: int) -> bool:
    """Whether what a reader was given in an epoch was appended there, and is gone by right."""
    for ledger in evidence.former:
        if any(place.offset == offset and place.appended.epoch <= epoch for place in ledger.places(value)):
            return True
    ledger = evidence.ledger
    places = [
        place for place in ledger.places(value) if place.offset == offset and place.appended.epoch <= epoch
    ]  # fmt: skip
    return bool(places) and (
        offset < start
        or _is_superseded(evidence, offset, value)
        or any(ledger.is_cut_off(place.batch, place.appended.base_offset, epoch) for place in places)
    )
