"""Readings: what must hold of what readers were given: nothing is skipped, given twice, or taken back.

Owns that part of the oracle's judgment.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.evidence import Evidence
from tests.simulation.kept import Finding
from tests.simulation.ledger import Entry, Ledger


def readers(evidence: Evidence, records: Mapping[int, Entry], start: int) -> list[Finding]:
    """What was read is there, at that offset; a reader skips nothing but what was to be deleted or was compacted, and
    reads nothing again but after what it had read was cut off. In another topic of that name it begins again.
    """
    findings: list[Finding] = []
    for read in evidence.read:
        due, first = 0, 0
        ledger: Ledger | None = None
        #: Where it begins a topic that was made again once more, as it has heard now that it is another one.
        again: int | None = None
        for number, (offset, value, epoch) in enumerate(read):
            found = _topic_of(evidence, offset, value, ledger, is_back=offset < due)
            if found is not ledger:
                is_first = ledger is None
                again = None if is_first and not _was_made_again(evidence, found) else _begins_again(read, number)
                ledger, first = found, _begins(found, read, number)
                due = 0 if first == number or not _may_skip(evidence, found, 0, read[first][0]) else due
                if again is not None and not is_first:
                    # Fetch 12 names no topic id: until metadata tell, a consumer goes on where it was.
                    due = offset
            if number == again and not _may_go_back(evidence, read[first:number], offset, records, start):
                # Otherwise an unclean election took what it had read, and it goes back within the topic.
                due, first = 0, number
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


def _topic_of(evidence: Evidence, offset: int, value: bytes, before: Ledger | None, *, is_back: bool) -> Ledger:
    """The topic in which a record was read: the same as before, if it may be. A reader that goes back is rather in
    another, where the same record may stand at the same offset.
    """
    ledgers = [*evidence.former, evidence.ledger]
    if before is not None:
        # Never one that was deleted before.
        later = ledgers[next(place for place, ledger in enumerate(ledgers) if ledger is before) + 1 :]
        ledgers = [*later, before] if is_back else [before, *later]
    return next((ledger for ledger in ledgers if _holds(ledger, offset, value)), before or evidence.ledger)


def _holds(ledger: Ledger, offset: int, value: bytes) -> bool:
    return any(place.offset == offset for place in ledger.places(value))


def _was_made_again(evidence: Evidence, ledger: Ledger) -> bool:
    """Whether a topic had a former one of its name, which a reader may have known without reading anything of it."""
    if ledger is evidence.ledger:
        return evidence.is_remade
    return any(ledger is former for former in evidence.former[1:])


def _begins(ledger: Ledger, read: list[tuple[int, bytes, int]], number: int) -> int:
    """Since which of its reads a reader may have been in a topic in which it was at ``number``: what was appended to
    the former one and not acknowledged may stand at the same offset in both.
    """
    while number and read[number - 1][0] < read[number][0] and _holds(ledger, *read[number - 1][:2]):
        number -= 1
    return number


def _begins_again(read: list[tuple[int, bytes, int]], number: int) -> int | None:
    """Where a reader goes back after ``number``; None if it does not."""
    later = range(number + 1, len(read))
    return next((each for each in later if read[each][0] <= read[each - 1][0]), None)


def _may_skip(evidence: Evidence, ledger: Ledger, due: int, offset: int) -> bool:
    due = max(due, evidence.gone_below(ledger))
    kept = evidence.kept_of(ledger)
    return due >= offset or (kept is not None and kept.may_be_skipped(due, offset))


def _may_go_back(
    evidence: Evidence, read: list[tuple[int, bytes, int]], offset: int, records: Mapping[int, Entry], start: int
) -> bool:
    """To where the log begins, or to where it parts from what was read, if it does; or did, for a leader that is
    elected later may hold what the one before it had lost.
    """
    if not evidence.ledger.cuts:
        return False
    gone = [
        _was_cut_off(evidence, at, value, epoch)
        or (
            ((stands := records.get(at)) is None or stands.value != value)
            and _was_there(evidence, at, value, epoch, start)
        )
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
    was_appended = any(place.offset == offset and place.appended.epoch <= epoch for place in ledger.places(value))
    return was_appended and (
        offset < start or evidence.is_superseded(offset, value) or _was_cut_off(evidence, offset, value, epoch)
    )


def _was_cut_off(evidence: Evidence, offset: int, value: bytes, epoch: int) -> bool:
    """Whether an unclean leader elected after a reader's epoch lacked what the reader was given."""
    ledger = evidence.ledger
    return any(
        ledger.is_cut_off(place.batch, place.appended.base_offset, epoch)
        for place in ledger.places(value)
        if place.offset == offset and place.appended.epoch <= epoch
    )
