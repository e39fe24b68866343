"""The transactions of one log, batch after batch: which are open, which have ended, and how. Pure.

Owns the replay (Kafka's ProducerStateManager): a producer's first transactional batch since its last marker begins a
transaction, its next marker ends it. Judges nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from verifier.files.headers import NO_CONTROL, NO_MARKER, Headers
from verifier.segments.markers import TRANSACTIONAL
from verifier.segments.walk import CONTROL


class Opened(NamedTuple):
    """A transaction that no marker has ended yet: its first batch here."""

    producer_id: int
    producer_epoch: int
    first_offset: int


class Ended(NamedTuple):
    """A marker, ABORT or COMMIT, and the transaction that it ends.

    ``first_offset`` is -1 if the producer had none open here; ``begun_epoch`` is the epoch in which it began, or else
    the marker's. ``last_stable_offset``: from there on other transactions
    are open, or else it is the offset behind the marker.
    """

    producer_id: int
    producer_epoch: int
    kind: int
    first_offset: int
    marker_offset: int
    coordinator_epoch: int
    last_stable_offset: int
    begun_epoch: int


class LateAppend(NamedTuple):
    """A transactional batch, or a marker, of a lower producer epoch than a batch or a marker before it."""

    offset: int
    producer_id: int
    producer_epoch: int
    after_epoch: int
    is_marker: bool


class FencedMarker(NamedTuple):
    """A marker of a lower coordinator epoch than an earlier marker of its producer."""

    marker: Ended
    after_epoch: int


class TransactionReplay:
    """Takes the batches of a log in their order. ``ended``, ``late`` and ``fenced`` are for the caller to take and to
    clear.

    ``unreadable`` is the offset of the first control batch without a marker that can be read, -1 without one.
    """

    def __init__(self) -> None:
        #: By producer, in the order of their first offsets.
        self.open: dict[int, Opened] = {}
        self.ended: list[Ended] = []
        self.late: list[LateAppend] = []
        self.fenced: list[FencedMarker] = []
        self.unreadable = -1
        self._newest_epochs: dict[int, int] = {}
        self._newest_coordinators: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"TransactionReplay({len(self.open)} open, {len(self.ended)} ended)"

    def advance(self, headers: Headers, first: int, end: int) -> None:
        """Take the batches ``first`` up to, not with, ``end`` of a segment."""
        some = slice(first, end)
        of_transactions = (headers.attributes[some] & (TRANSACTIONAL | CONTROL) != 0) & (
            headers.producer_ids[some] >= 0
        )
        at = first + np.flatnonzero(of_transactions)
        columns = (
            headers.base_offsets, headers.producer_ids, headers.producer_epochs, headers.markers,
            headers.coordinator_epochs, headers.record_counts,
        )  # fmt: skip
        for row in zip(*(column[at].tolist() for column in columns), strict=True):
            self._take(*row)

    def _take(
        self, offset: int, producer_id: int, producer_epoch: int, kind: int, coordinator_epoch: int, records: int
    ) -> None:
        newest = self._newest_epochs.get(producer_id, producer_epoch)
        if producer_epoch < newest:
            self.late.append(LateAppend(offset, producer_id, producer_epoch, newest, kind != NO_CONTROL))
        self._newest_epochs[producer_id] = max(newest, producer_epoch)
        if kind == NO_CONTROL:
            self.open.setdefault(producer_id, Opened(producer_id, producer_epoch, offset))
        elif kind == NO_MARKER:
            # compaction leaves batches without a record
            if records > 0 and self.unreadable < 0:
                self.unreadable = offset
        else:
            begun = self.open.pop(producer_id, None)
            stable = next((each.first_offset for each in self.open.values()), offset + 1)
            first_offset, epoch = (-1, producer_epoch) if begun is None else (begun.first_offset, begun.producer_epoch)
            ended = Ended(producer_id, producer_epoch, kind, first_offset, offset, coordinator_epoch, stable, epoch)
            self.ended.append(ended)
            newest = self._newest_coordinators.get(producer_id, coordinator_epoch)
            if coordinator_epoch < newest:
                self.fenced.append(FencedMarker(ended, newest))
            self._newest_coordinators[producer_id] = max(newest, coordinator_epoch)
