"""The shape of one history's account. Owns what each of its fields says; ``verifier.accounts.summing`` fills them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifier.accounts.columns import Where

#: Attempts are counted by intervals of this length.
INTERVAL_NS = 100_000_000

#: A function and an outcome.
EventKind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class HistoryAccount:
    """One history: what its rows add up to, and what its totals claim."""

    process: str
    file: str
    #: ``closed``, ``torn`` or ``damaged``; ``error`` says how it is damaged.
    state: str
    torn_bytes: int = 0
    error: str | None = None
    #: (function, outcome) -> (rows, values): counted (``rows``), and according to the file's last rows (``totals``).
    rows: Mapping[EventKind, tuple[int, int]] = field(default_factory=dict)
    totals: Mapping[EventKind, tuple[int, int]] = field(default_factory=dict)
    #: Sequences that were reserved twice, have two outcomes, or have an outcome without a reservation.
    complaints: tuple[str, ...] = ()
    #: Reserved sequences without an outcome. A process that is killed leaves some.
    unanswered: tuple[str, ...] = ()
    #: (outcome, name) -> values of ``send`` rows.
    errors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Values that were acknowledged, and that were read.
    acked: Mapping[Where, int] = field(default_factory=dict)
    read: Mapping[Where, int] = field(default_factory=dict)
    #: Ranges of intervals of time (first and last number) in which records were in transit.
    attempts: tuple[tuple[int, int], ...] = ()
    #: The streams that any row names.
    streams: frozenset[int] = frozenset()
    #: The offset below which DeleteRecords was asked to delete.
    deleted: Mapping[Where, int] = field(default_factory=dict)
    #: When something was last acknowledged; when something was last sent or due, or had an outcome.
    last_acked_ns: Mapping[Where, int] = field(default_factory=dict)
    last_tried_ns: Mapping[Where, int] = field(default_factory=dict)
    #: Partitions in which something was acknowledged, read or deleted; those with an acknowledgement without an offset.
    partitions: frozenset[Where] = frozenset()
    partitions_without_offsets: frozenset[Where] = frozenset()
    #: The processes that rows name as their own.
    writers: frozenset[str] = frozenset()
    #: (function, phase) of all rows.
    phases: frozenset[tuple[str, str]] = frozenset()
    #: The number of polls without an offset.
    polls_without_offset: int = 0
    #: The number of polls that have neither a sequence for each offset nor the reason why there is none.
    polls_without_value: int = 0
    #: Rows with impossible times, by function: how many, and the first of them.
    without_times: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    #: The number of polls that report the high watermark that the client knew.
    polls_with_watermark: int = 0
    #: When the last row's outcome was known.
    last_ns: int = -1
    #: Whether any acknowledgement has a producer id, and whether any has an offset.
    has_producer_ids: bool = False
    has_offsets: bool = False
    #: Sequences that were acknowledged without an offset, and never resent.
    unplaced: tuple[str, ...] = ()
    #: (session, topic, partition) that was polled and never assigned.
    unassigned: frozenset[tuple[int, str, int]] = frozenset()
    #: Where the first assignment of each partition began.
    began: Mapping[Where, int] = field(default_factory=dict)
    #: The highest offset that a poll returned; the highest that had been acknowledged by the time ``due_ns``.
    reached: Mapping[Where, int] = field(default_factory=dict)
    due: Mapping[Where, int] = field(default_factory=dict)
    #: The highest high watermark that a reader was told.
    watermarks: Mapping[Where, int] = field(default_factory=dict)
    #: Sessions with an assignment; sessions that are handed only committed records.
    assigned: frozenset[int] = frozenset()
    isolated: frozenset[int] = frozenset()
    #: Sessions that read something or committed offsets of a group, but have no ``member`` row.
    memberless: frozenset[int] = frozenset()
    #: Ranges (first and last number) of transactions that were begun and have no end, and of those that something was
    #: sent in although they never began; the number of rows of sends outside of transactions.
    unended: tuple[tuple[int, int], ...] = ()
    unbegun: tuple[tuple[int, int], ...] = ()
    sent_outside: int = 0

    def values(self, f: str, *outcomes: str) -> int:
        """How many values the rows of a function are about."""
        return sum(
            values
            for (name, outcome), (_, values) in self.rows.items()
            if name == f and outcome in (outcomes or (outcome,))
        )
