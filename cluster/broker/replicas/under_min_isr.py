"""The journal's lines on a leader with fewer replicas in sync than ``min.insync.replicas``.

Owns when there is news, and what is told. A line says what its leader has adopted already, and of what follows from
that, no one has been told yet: so it is written before any request that waits is answered. What is asked for are the
topic's settings, and not what the leadership makes of them: a witness of a defect must not share it. For the same
reason the high watermark is the one from before the change: with too few in sync it does not move.
"""

from __future__ import annotations

from cluster.broker.journal import Journal
from cluster.replication.leader import LeaderState
from cluster.topic_partition import TopicPartition

#: The events of the journal: too few are in sync, in this leader epoch; no longer, or this broker leads no longer.
UNDER_MIN_ISR = "under-min-isr"
UNDER_MIN_ISR_OVER = "under-min-isr-over"


class UnderMinIsr:
    """Of one replica: what the journal was told last."""

    __slots__ = ("_journal", "_key", "_told")

    def __init__(self, key: TopicPartition, journal: Journal) -> None:
        self._key = key
        self._journal = journal
        self._told: dict[str, object] | None = None

    def __repr__(self) -> str:
        return f"<UnderMinIsr {self._key}: {self._told}>"

    def look(self, leader: LeaderState | None, min_insync_replicas: int, high_watermark: int) -> None:
        """The leadership has changed, or its ISR, or what its topic asks for; the watermark is the one before that."""
        now = None if leader is None else _lack(leader, min_insync_replicas)
        if now == self._told:
            return
        self._told = now
        topic, partition = self._key
        place: dict[str, object] = {"topic": topic, "partition": partition}
        if leader is None or now is None:
            self._journal(UNDER_MIN_ISR_OVER, place)
        else:
            where = {"high_watermark": high_watermark, "epoch_start_offset": leader.epoch_start_offset}
            self._journal(UNDER_MIN_ISR, place | now | where)


def _lack(leader: LeaderState, min_insync_replicas: int) -> dict[str, object] | None:
    """What is told of a leader with too few in sync. There may be fewer replicas than are asked for."""
    isr, wanted = leader.isr.committed, min(min_insync_replicas, len(leader.followers) + 1)
    if len(isr) >= wanted:
        return None
    return {"leader_epoch": leader.leader_epoch, "isr": sorted(isr), "min_insync_replicas": wanted}
