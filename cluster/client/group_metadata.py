"""Whose offsets a transaction commits. Owns this shape alone (Kafka's class of the same name)."""

from __future__ import annotations

from typing import NamedTuple


class ConsumerGroupMetadata(NamedTuple):
    """The consumer whose offsets are committed (KIP-447). The defaults fence nothing."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
