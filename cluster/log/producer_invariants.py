"""Invariants of what one log knows about its producers.

They hold whenever no method of the log is running, unless its disk has failed. ``validate`` checks, and
``validate_entry`` for one producer:

* ``producer-window``: an entry is stored under its producer's id, and has at most the last five batches.
* ``producer-sequences``: a batch has as many sequences as offsets. While the history is known to be complete, each
  batch continues the sequence of the previous one, modulo 2^31.
* ``producer-offsets``: the batches of an entry ascend in offset without an overlap, and all are below the log end:
  truncated batches are not remembered.
* ``producer-transactions``: the open transactions by offset are those of the entries, ascend, and begin below the log
  end; those that are decided ascend by their markers, which are below the log end.
* ``producer-marks``: there are at most eight marks of each kind, which ascend, and none is above the log end.

``validate_batches`` checks the entries against the batch headers in the log:

* ``producer-batches``: a remembered batch that the log should still have is at its offset in the log, with the same
  producer, epoch and sequence. For a known producer, the newest batch in the log is the newest one remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from cluster.invariants import InvariantBroken
from cluster.log.producer_marks import MARKS
from cluster.log.producers import ProducerStates
from cluster.log.sequence import SEQUENCE_MASK, WINDOW, ProducerEntry
from cluster.protocol.batch import BatchHeader


def validate(producers: ProducerStates, log_end_offset: int) -> None:
    """Every entry, and the marks. Raises ``InvariantBroken``."""
    for producer_id, entry in producers.entries.items():
        validate_entry(producer_id, entry, log_end_offset)
    _validate_transactions(producers, log_end_offset)
    offsets = [mark.offset for mark in producers._marks]
    rolls = sum(mark.is_roll for mark in producers._marks)
    if max(rolls, len(offsets) - rolls) > MARKS or offsets != sorted(offsets) or offsets[-1:] > [log_end_offset]:
        raise InvariantBroken(producers, "producer-marks", f"{offsets}, log end {log_end_offset}")


def _validate_transactions(producers: ProducerStates, log_end_offset: int) -> None:
    transactions = producers.transactions
    begun = sorted((entry.txn_first_offset, entry.producer_id) for entry in producers if entry.txn_first_offset >= 0)
    if [*transactions.open.items()] != begun or [first for first, _ in begun[-1:]] >= [log_end_offset]:
        values = f"{transactions.open} of entries with {begun}, log end {log_end_offset}"
        raise InvariantBroken(producers, "producer-transactions", values)
    markers = [decided.last_offset for decided in transactions.unreplicated]
    newest = transactions.newest_unsequenced
    if markers != sorted(markers) or markers[-1:] >= [log_end_offset] or markers[-1:] > [newest]:
        values = f"markers {markers}, the newest {newest}, log end {log_end_offset}"
        raise InvariantBroken(producers, "producer-transactions", values)


def validate_entry(producer_id: int, entry: ProducerEntry, log_end_offset: int) -> None:
    """What is known about one producer. Raises ``InvariantBroken``."""
    subject = f"producer {producer_id}"
    batches = entry.batches
    if entry.producer_id != producer_id or len(batches) > WINDOW:
        values = f"{len(batches)} batches of producer {entry.producer_id}"
        raise InvariantBroken(subject, "producer-window", values)
    for batch in batches:
        if (batch.base_sequence + batch.last_offset - batch.base_offset) & SEQUENCE_MASK != batch.last_sequence:
            raise InvariantBroken(subject, "producer-sequences", f"{batch}")
        if batch.last_offset >= log_end_offset or batch.last_offset < batch.base_offset:
            raise InvariantBroken(subject, "producer-offsets", f"{batch}, log end {log_end_offset}")
    for one, after in pairwise(batches):
        if after.base_offset <= one.last_offset:
            raise InvariantBroken(subject, "producer-offsets", f"{one} before {after}")
        if entry.complete and after.base_sequence != (one.last_sequence + 1) & SEQUENCE_MASK:
            raise InvariantBroken(subject, "producer-sequences", f"{one} before {after}")


def validate_batches(
    producers: ProducerStates, headers: Mapping[int, BatchHeader], log_start_offset: int, *, holes_allowed: bool
) -> None:
    """``headers`` are all headers in the log, ascending, by base offset. Raises ``InvariantBroken``."""
    newest = {header.producer_id: header for header in headers.values() if header.base_sequence >= 0}
    for producer_id, entry in producers.entries.items():
        subject = f"producer {producer_id}"
        for batch in entry.batches:
            found = headers.get(batch.base_offset)
            if found is None and (holes_allowed or batch.base_offset < log_start_offset):
                continue
            is_it = found is not None and (
                (found.producer_id, found.producer_epoch) == (producer_id, entry.producer_epoch)
                and (found.base_sequence, found.last_offset) == (batch.base_sequence, batch.last_offset)
            )
            if not is_it:
                raise InvariantBroken(subject, "producer-batches", f"{batch} is {found} in the log")
        last = newest.get(producer_id)
        if last is not None and entry.batches and entry.last_offset != last.last_offset:
            raise InvariantBroken(subject, "producer-batches", f"the newest is {entry.batches[-1]}, the log has {last}")
