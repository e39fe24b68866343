"""How the transactions in a log ended, as far as its compaction must know. Pure.

Owns which batches are of aborted transactions, and where the first one begins that is not decided yet in what was read
(Kafka's CleanedTransactionMetadata). It goes by the markers themselves: a ``.txnindex`` that was lost looks as if
nothing had been aborted. Does not own which records stay (``compaction.py``).
"""

from __future__ import annotations

from bisect import bisect_right

from cluster.protocol.batch import BatchHeader
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker


class TransactionOutcomes:
    """``note`` every batch in the order of the log, until ``is_full``: ``most_aborted`` transactions are remembered."""

    def __init__(self, most_aborted: int) -> None:
        self._most_aborted = max(1, most_aborted)
        self._count = 0
        #: Producer id -> where its transaction begins that has no marker yet.
        self._open: dict[int, int] = {}
        #: Producer id -> (first offset, the marker's) of aborted transactions, in the order of the log.
        self._aborted: dict[int, list[tuple[int, int]]] = {}

    def __repr__(self) -> str:
        return f"TransactionOutcomes({self._count} aborted, {len(self._open)} not decided)"

    @property
    def is_full(self) -> bool:
        return self._count >= self._most_aborted

    @property
    def undecided_from(self) -> int | None:
        """The first offset of a transaction without a marker; None if all are decided."""
        return min(self._open.values(), default=None)

    def note(self, header: BatchHeader, marker: EndTransactionMarker | None) -> None:
        """Take in a batch; ``marker`` is the one in a control batch."""
        if not header.is_control:
            if header.is_transactional:
                self._open.setdefault(header.producer_id, header.base_offset)
        elif marker is not None:
            first_offset = self._open.pop(header.producer_id, None)
            if first_offset is not None and marker.control_type is ControlRecordType.ABORT:
                self._aborted.setdefault(header.producer_id, []).append((first_offset, header.base_offset))
                self._count += 1

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch is of an aborted transaction."""
        if header.is_control or not header.is_transactional:
            return False
        aborted = self._aborted.get(header.producer_id, [])
        index = bisect_right(aborted, header.base_offset, key=lambda each: each[0])
        return index > 0 and header.base_offset < aborted[index - 1][1]
