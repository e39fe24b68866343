"""Transactions: which transactions of one log are open, and which are decided but not replicated yet. Pure.

Owns the offset from which on nothing is stable (Kafka's ``ProducerStateManager``: ``ongoingTxns``,
``unreplicatedTxns``), and the checks of a coordinator's batch (its ``ProducerAppendInfo``). Does not own the producers'
entries, each of which says where its own transaction begins (``producers.py``), or the index of aborted transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from cluster.log.errors import LogError
from cluster.log.sequence import ProducerEntry
from cluster.protocol.batch import BatchHeader
from cluster.protocol.control_records import EndTransactionMarker, parse_marker_batch
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.protocol.primitives import Buffer

_ANYWHERE = 2**63 - 1


class DecidedTransaction(NamedTuple):
    """A transaction that was committed or aborted; ``last_offset`` is the marker's."""

    first_offset: int
    last_offset: int


class OpenTransactions:
    """See the module's text."""

    __slots__ = ("newest_unsequenced", "open", "unreplicated")

    def __init__(self) -> None:
        #: The producer id of each open transaction by its first offset, ascending.
        self.open: dict[int, int] = {}
        #: Those that may be decided above the high watermark, in the order of their markers.
        self.unreplicated: deque[DecidedTransaction] = deque()
        #: No batch without a sequence, and so no marker, begins above this offset.
        self.newest_unsequenced = -1

    def __repr__(self) -> str:
        return f"OpenTransactions({len(self.open)} open, {len(self.unreplicated)} decided)"

    def begin(self, producer_id: int, first_offset: int) -> int:
        """A producer's first transactional batch since its last marker; returns ``first_offset``."""
        self.open[first_offset] = producer_id
        return first_offset

    def end(self, first_offset: int, last_offset: int) -> int:
        """The marker at ``last_offset`` decides a transaction; returns from where on others are open."""
        self.open.pop(first_offset, None)
        self.unreplicated.append(DecidedTransaction(first_offset, last_offset))
        return next(iter(self.open), last_offset + 1)

    def committed(self, high_watermark: int) -> None:
        """Markers below ``high_watermark`` are replicated: what they decide stays decided."""
        while self.unreplicated and self.unreplicated[0].last_offset < high_watermark:
            self.unreplicated.popleft()

    def first_undecided(self, high_watermark: int) -> int | None:
        """The first offset of a transaction that is open, or whose marker is not replicated; None without one."""
        self.committed(high_watermark)
        firsts = [decided.first_offset for decided in self.unreplicated]
        firsts += [*self.open][:1]
        return min(firsts, default=None)

    def replace(self, entries: Iterable[ProducerEntry], offset: int | None = None) -> None:
        """Take the open transactions of ``entries``, as they were when the log ended at ``offset`` (None: unknown)."""
        entries = [*entries]
        begun = sorted((entry.txn_first_offset, entry.producer_id) for entry in entries if entry.txn_first_offset >= 0)
        self.open = dict(begun)
        if offset is not None:
            self.cut(offset)
            return
        self.unreplicated.clear()
        had_any = any(entry.txn_first_offset >= 0 or entry.coordinator_epoch >= 0 for entry in entries)
        self.newest_unsequenced = _ANYWHERE if had_any else -1

    def cut(self, offset: int) -> None:
        """The log ends at ``offset`` now. What is open is to be replaced if a marker, or where one began, is cut."""
        while self.unreplicated and self.unreplicated[-1].last_offset >= offset:
            self.unreplicated.pop()
        self.newest_unsequenced = min(self.newest_unsequenced, offset - 1)


def marker_in(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a control batch; None if compaction has emptied it, or if it is no transaction's."""
    try:
        return parse_marker_batch(batch).marker
    except CorruptBatch:
        return None


def check_coordinators_batch(
    entry: ProducerEntry | None, header: BatchHeader, marker: EndTransactionMarker | None
) -> None:
    """Judge a batch that a coordinator writes for a producer: a marker, or offsets in its transaction.

    It has no sequence, so only epochs count. Raises ``LogError``.
    """
    if entry is None:
        return
    if header.producer_epoch < entry.producer_epoch:
        raise LogError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {entry.producer_epoch} here, not {header.producer_epoch}",
        )
    if marker is None:
        check_in_transaction(entry, header)
    elif marker.coordinator_epoch < entry.coordinator_epoch:
        raise LogError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"a marker for producer {header.producer_id} of coordinator epoch {marker.coordinator_epoch} "
            f"after epoch {entry.coordinator_epoch}",
        )


def check_in_transaction(entry: ProducerEntry, header: BatchHeader) -> None:
    """A producer with an open transaction writes nothing outside it. Raises ``LogError``."""
    if entry.txn_first_offset >= 0 and not header.is_transactional:
        raise LogError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has a transaction open here since offset {entry.txn_first_offset}, "
            "and this batch is not transactional",
        )
