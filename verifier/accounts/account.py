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
    """One history: what it holds, and what it says it holds."""

    process: str
    file: str
    #: ``closed``, ``torn`` or ``damaged``; ``error`` says how it is damaged.
    state: str
    torn_bytes: int = 0
    error: str | None = None
    #: (function, outcome) -> (rows, values), as counted, and as the file's last rows say.
    rows: Mapping[EventKind, tuple[int, int]] = field(default_factory=dict)
    totals: Mapping[EventKind, tuple[int, int]] = field(default_factory=dict)
    #: Sequences that were reserved twice, have two outcomes, or an outcome and no reservation.
    complaints: tuple[str, ...] = ()
    #: Reserved sequences without an outcome. A process that is killed leaves some.
    unanswered: tuple[str, ...] = ()
    #: (outcome, name) -> values of ``send`` rows.
    errors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Values that were acknowledged, and that were read.
    acked: Mapping[Where, int] = field(default_factory=dict)
    read: Mapping[Where, int] = field(default_factory=dict)
    #: Spans of intervals (their first and last number) in which records were under way.
    attempts: tuple[tuple[int, int], ...] = ()
    #: Those with a row.
    streams: frozenset[int] = frozenset()
    #: Below which offset DeleteRecords was asked for.
    deleted: Mapping[Where, int] = field(default_factory=dict)
    #: When something was last acknowledged; when something was last to be sent, or had an outcome.
    last_acked_ns: Mapping[Where, int] = field(default_factory=dict)
    last_tried_ns: Mapping[Where, int] = field(default_factory=dict)
    #: Where something was acknowledged, read or deleted; where an acknowledgement came without an offset.
    partitions: frozenset[Where] = frozenset()
    partitions_without_offsets: frozenset[Where] = frozenset()
    #: The processes that rows name as theirs.
    writers: frozenset[str] = frozenset()
    #: (function, phase) of all rows.
    phases: frozenset[tuple[str, str]] = frozenset()
    #: How many polls have no offset.
    polls_without_offset: int = 0
    #: How many say neither what they brought, a sequence for each offset, nor why that cannot be told.
    polls_without_value: int = 0
    #: Rows with impossible times, by function: how many, and the first of them.
    without_times: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    #: How many tell the high watermark that the client knew.
    polls_with_watermark: int = 0
    #: When the last row's outcome was known.
    last_ns: int = -1
    #: Whether any acknowledgement has a producer id, and whether any has an offset.
    has_producer_ids: bool = False
    has_offsets: bool = False
    #: Sequences that were acknowledged without an offset, and never sent again.
    unplaced: tuple[str, ...] = ()
    #: (session, topic, partition) that was polled and never assigned.
    unassigned: frozenset[tuple[int, str, int]] = frozenset()
    #: Where the first assignment of each partition began.
    began: Mapping[Where, int] = field(default_factory=dict)
    #: The last offset that a poll brought; the last one that had been acknowledged at a given time.
    reached: Mapping[Where, int] = field(default_factory=dict)
    due: Mapping[Where, int] = field(default_factory=dict)
    #: The highest high watermark that a reader was told.
    watermarks: Mapping[Where, int] = field(default_factory=dict)
    #: Sessions with an assignment, and those that are handed only what is committed.
    assigned: frozenset[int] = frozenset()
    isolated: frozenset[int] = frozenset()
    #: Sessions in which something was read, or committed for a group, and no ``member`` row says whose they are.
    memberless: frozenset[int] = frozenset()
    #: Transactions that were begun and have no end, and those in which something was sent and that never began: the
    #: first and last numbers of each range. Rows of sends outside of any.
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
