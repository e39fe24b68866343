"""``aborted-index-audit``: the index of aborted transactions of a segment against its batches. Pure.

Owns the comparison (Kafka's TransactionIndex). What the log no longer has cannot be compared: where a transaction began
before the first batch that is left, only that its entry says so is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from verifier.files.formats import AbortedEntry, FormatError, OutOfBounds, aborted_entries
from verifier.files.model import ABORTED_INDEX, Finding
from verifier.files.transactions import Ended
from verifier.segments.markers import ABORT


def aborted_index(
    name: str, data: bytes | OutOfBounds | None, ended: Sequence[Ended], begins: int
) -> Iterator[Finding]:
    """What is wrong with a ``.txnindex``; ``data`` None: there is no such file.

    ``ended`` are the transactions whose markers are in its segment, ``begins`` is the first offset of the log.
    """
    try:
        entries = aborted_entries(b"" if data is None else data)
    except FormatError as error:
        yield Finding(ABORTED_INDEX, None, name, None, 1, str(error))
        return
    aborts = {each.marker_offset: each for each in ended if each.kind == ABORT}
    problems: dict[int, str] = {}
    before = -1
    for entry in entries:
        problem = _problem(entry, aborts.get(entry.last_offset), begins)
        if problem is None and entry.last_offset <= before:
            problem = f"{_said(entry)} does not come after the one before it, at {before}"
        if problem is not None:
            problems.setdefault(entry.last_offset, problem)
        before = max(before, entry.last_offset)
    named = {entry.last_offset for entry in entries}
    for offset in sorted(aborts.keys() - named):
        # a marker may come where the producer has written nothing
        if aborts[offset].first_offset >= 0:
            problems[offset] = f"it lacks {_expected(aborts[offset])}"
    if problems:
        offset = min(problems)
        yield Finding(ABORTED_INDEX, None, name, max(offset, 0), len(problems), problems[offset])


def _problem(entry: AbortedEntry, abort: Ended | None, begins: int) -> str | None:
    if abort is None or abort.producer_id != entry.producer_id:
        return f"{_said(entry)}, where the segment has no ABORT of that producer"

    def fits(said: int, told: int) -> bool:
        # it may have begun, and so may another that was open, before what the log still has
        return said >= 0 and (said == told or said < begins)

    if fits(entry.first_offset, abort.first_offset) and fits(entry.last_stable_offset, abort.last_stable_offset):
        return None
    return f"{_said(entry)}, where the log has {_expected(abort)}"


def _said(entry: AbortedEntry) -> str:
    return (
        f"the transaction of producer {entry.producer_id} from {entry.first_offset} to {entry.last_offset}, "
        f"last stable offset {entry.last_stable_offset}"
    )


def _expected(abort: Ended) -> str:
    if abort.first_offset < 0:
        return f"an ABORT of producer {abort.producer_id} at {abort.marker_offset} that ends nothing"
    return (
        f"that of producer {abort.producer_id} from {abort.first_offset} to {abort.marker_offset}, "
        f"last stable offset {abort.last_stable_offset}"
    )
