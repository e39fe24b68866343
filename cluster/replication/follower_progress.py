"""How far one follower of a leader is, and when it was last caught up (Kafka's Replica and ReplicaState).

Owns what the follower's fetches report. Does not own what follows for the ISR and the high watermark (``leader``).
"""

from __future__ import annotations

from typing import Protocol

from cluster.isr import UNKNOWN_BROKER_EPOCH

#: The log end offset of a follower that has not fetched in this leader epoch.
UNKNOWN_OFFSET = -1


class IdleFetches(Protocol):
    """The fetches of a session that did not name a partition, because nothing had changed there."""

    @property
    def fetched_ms(self) -> int:
        """When the last of them came. It stands still from the leader's next append on, until it is settled again."""
        ...


class FollowerProgress:
    """How far one follower is: a fetch at offset X proves that it holds everything below X."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "fetch_leader_end_offset",
        "fetched_ms",
        "idle_fetches",
        "log_end_offset",
        "log_start_offset",
        "replica_id",
    )

    def __init__(self, replica_id: int, caught_up_ms: int) -> None:
        self.replica_id = replica_id
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.caught_up_ms = caught_up_ms
        #: Of its fetch session, since it was found at our end: they ask for our end too, without saying so.
        self.idle_fetches: IdleFetches | None = None
        #: When it fetched last, and what the leader's log end offset was then.
        self.fetched_ms = 0
        self.fetch_leader_end_offset = UNKNOWN_OFFSET

    def __repr__(self) -> str:
        return f"<FollowerProgress {self.replica_id} end {self.log_end_offset} caught up at {self.caught_up_ms} ms>"

    def fetched(self, fetch_offset: int, leader_end_offset: int, now_ms: int) -> bool:
        """Note a fetch. True if it shows progress (or, after a truncation, regress).

        It is caught up now if it asked for our end, and was at its previous fetch if it now asks for our end of then.
        """
        self._note_idle_fetches()
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self.fetch_leader_end_offset != UNKNOWN_OFFSET:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        self.fetched_ms = now_ms
        self.fetch_leader_end_offset = max(self.fetch_leader_end_offset, leader_end_offset)
        return moved

    def _note_idle_fetches(self) -> None:
        if self.idle_fetches is not None:
            self.fetched_ms = max(self.fetched_ms, self.idle_fetches.fetched_ms)
            self.caught_up_ms = max(self.caught_up_ms, self.idle_fetches.fetched_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        self._note_idle_fetches()
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms
