"""What is noted of a leadership that does wrong. Owns the fields alone: of which partition it is, its epoch, an offset.

Anyone who counts firings needs the partition: what happens to the topics of brokers themselves, no check looks at.
"""

from __future__ import annotations

from cluster.defects.firings import Firings
from cluster.replication.leader import LeaderState


def note_leadership(name: str, leader: LeaderState, offset: int, firings: Firings) -> None:
    """Raises ``OSError``."""
    firings.note(name, topic=leader.topic, partition=leader.partition, leader_epoch=leader.leader_epoch, offset=offset)
