"""What is noted when a defect of a leadership fires. Owns the fields alone: partition, epoch and an offset.

Counting firings needs the partition, since no check examines the brokers' internal topics.
"""

from __future__ import annotations

from cluster.defects.firings import Firings
from cluster.replication.leader import LeaderState


def note_leadership(name: str, leader: LeaderState, offset: int, firings: Firings) -> None:
    """Raises ``OSError``."""
    firings.note(name, topic=leader.topic, partition=leader.partition, leader_epoch=leader.leader_epoch, offset=offset)
