"""Who has a log, as the log sees it: what it asks, and what it tells before or after it changes.

Owns the shape, and the owner of a log that no one manages, who heeds nothing. Does not own checkpoints
(``log_checkpoints``).
"""

from __future__ import annotations

from typing import Protocol

from cluster.log.producer_quota import MAX_PRODUCERS, ProducerQuota


class OwnedLog(Protocol):
    """What an owner looks at."""

    topic: str
    partition: int
    log_start_offset: int

    @property
    def log_end_offset(self) -> int: ...

    @property
    def recovery_point(self) -> int: ...

    @property
    def cleaned_to(self) -> int: ...


class LogOwner:
    """Of one or more logs."""

    def __init__(self, producer_room: ProducerQuota | None = None) -> None:
        #: Room in all logs of this owner.
        self.producer_room = producer_room or ProducerQuota(MAX_PRODUCERS, tuple)
        #: Whether a roll puts its snapshot off, because the owner has what is waiting written a little later.
        self.writes_snapshots = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def checkpointed_recovery_point(self, topic: str, partition: int) -> int:
        """The recovery point that a start would find on the disk; 0 if nothing is known of it."""
        return 0

    def snapshot_put_off(self, topic: str, partition: int) -> None:
        """One waits to be written."""

    def recovery_point_moved(self, log: OwnedLog) -> None:
        """A truncation took back what a recovery-point checkpoint may call synced, or synced the log."""

    def may_have_holes(self, log: OwnedLog) -> None:
        """It is to be compacted for the first time, or to copy what its leader has compacted."""

    def cleaned_lowered(self, log: OwnedLog) -> None:
        """A truncation took back what a cleaner checkpoint may call compacted."""

    def log_start_lowered(self, log: OwnedLog) -> None:
        """A cut follows that lets the log begin lower than a log-start checkpoint may say."""

    def log_start_moved(self, log: OwnedLog, before: int, reason: str) -> None:
        """The log start has moved."""
