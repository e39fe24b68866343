"""What the coordinators of one broker have done: plain numbers, counted on the event loop.

Owns the counters. Does not own when something happens, nor how it is shown (``coordinator_exposition``).
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.broker.request_metrics import Times
from cluster.coordinator.group.purposes import AssignmentStored, OffsetsStored, Purpose
from cluster.coordinator.transaction.state import TransactionState
from cluster.protocol.errors import ErrorCode

#: The coordinators, as labels.
GROUP, TRANSACTION = "group", "transaction"
#: What became of a transaction. ``TIMED_OUT`` was aborted by its coordinator.
COMMITTED, ABORTED, TIMED_OUT = "committed", "aborted", "timed out"


class CoordinatorCounters:
    """``loads`` are how long partitions took to load, by coordinator, and ``longest_load_ns`` the longest of each."""

    __slots__ = (
        "completed_rebalances",
        "decided",
        "loads",
        "longest_load_ns",
        "offset_commits",
        "verification_failures",
        "verifications",
    )

    def __init__(self) -> None:
        self.offset_commits = 0
        self.completed_rebalances = 0
        self.decided = dict.fromkeys((COMMITTED, ABORTED, TIMED_OUT), 0)
        self.verifications = Times()
        self.verification_failures = 0
        self.loads = {GROUP: Times(), TRANSACTION: Times()}
        self.longest_load_ns = {GROUP: 0, TRANSACTION: 0}

    def __repr__(self) -> str:
        return f"<CoordinatorCounters {self.offset_commits} offsets, {self.decided} transactions>"

    def loaded(self, coordinator: str, elapsed_ns: int) -> None:
        """A partition was read to its end, from when this broker became its leader."""
        self.loads[coordinator].note(elapsed_ns)
        self.longest_load_ns[coordinator] = max(self.longest_load_ns[coordinator], elapsed_ns)

    def group_stored(self, purpose: Purpose) -> None:
        """A batch of the group coordinator is in the log of every replica in sync."""
        if isinstance(purpose, OffsetsStored):
            self.offset_commits += len(purpose.offsets)
        elif isinstance(purpose, AssignmentStored):
            self.completed_rebalances += 1

    def transaction_stored(self, state: TransactionState, *, is_asked: bool) -> None:
        """A record of the transaction coordinator is there. No one asks for the end of what is open too long."""
        if state is TransactionState.PREPARE_COMMIT:
            self.decided[COMMITTED] += 1
        elif state is TransactionState.PREPARE_ABORT:
            self.decided[ABORTED if is_asked else TIMED_OUT] += 1

    def verified(self, elapsed_ns: int, codes: Iterable[ErrorCode]) -> None:
        """A coordinator answered for each partition whether it is in a transaction, or could not be asked."""
        self.verifications.note(elapsed_ns)
        self.verification_failures += sum(code is not ErrorCode.NONE for code in codes)
