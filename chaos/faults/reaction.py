"""Counts how a cluster reacted to a fault, from the brokers' journals: leader epochs, ISR changes, truncations. Pure.

Reads no file. Does not own what the figures mean for a fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: The journal event for a partition's new leader, leader epoch or ISR.
PARTITION_CHANGED = "partition-changed"
#: The journal event for a truncation of a follower's log.
TRUNCATED = "log-truncated"


@dataclass(frozen=True, slots=True)
class ClusterReaction:
    """Counts over all partitions of a topic: leader epochs that began, ISR changes, and truncations of logs."""

    leader_epochs: int = 0
    #: None if it is not known
    isr_changes: int | None = 0
    truncations: int = 0

    def since(self, before: ClusterReaction) -> ClusterReaction:
        """The difference from ``before``, an earlier count from the same source."""
        told = self.isr_changes is not None and before.isr_changes is not None
        return ClusterReaction(
            # not below 0, since fewer brokers may answer now
            max(0, self.leader_epochs - before.leader_epochs),
            (self.isr_changes or 0) - (before.isr_changes or 0) if told else None,
            self.truncations - before.truncations,
        )

    def figures(self) -> dict[str, int]:
        """The known figures, for the record."""
        isr_changes = {} if self.isr_changes is None else {"isr_changes": self.isr_changes}
        return {"leader_epochs": self.leader_epochs, **isr_changes}


def reaction(entries: Iterable[Mapping[str, Any]], topic: str) -> ClusterReaction:
    """Count the changes of this topic's partitions in these journal entries."""
    ours = [each for each in entries if each.get("topic") == topic]
    cuts = sum(each.get("event") == TRUNCATED and each["offset"] < each["log_end_offset"] for each in ours)
    changes = [each for each in ours if each.get("event") == PARTITION_CHANGED]
    epochs = {(each["partition"], each["leader_epoch"]) for each in changes}
    isrs: dict[int, frozenset[int]] = {}
    changed = 0
    for each in sorted(changes, key=lambda entry: int(entry["monotonic_ns"])):
        isr = frozenset(each["isr"])
        changed += isrs.get(each["partition"], isr) != isr
        isrs[each["partition"]] = isr
    return ClusterReaction(len(epochs), changed, cuts)


def told_epochs(epochs: Iterable[int]) -> ClusterReaction:
    """The same from the leader epoch of each partition in Metadata, for brokers without journals."""
    return ClusterReaction(sum(max(0, each) for each in epochs), None)


def epochs_for(entries: Iterable[Mapping[str, object]], place: tuple[str, int], reason: str) -> int:
    """How many leader epochs of one partition began for this reason."""
    ours = (each for each in entries if each.get("event") == PARTITION_CHANGED and each.get("reason") == reason)
    return len({each["leader_epoch"] for each in ours if (each["topic"], each["partition"]) == place})
