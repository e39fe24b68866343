"""How a cluster reacted to a fault, as the brokers' journals tell it: leader epochs, ISRs and logs that were cut. Pure.

Owns the counting. Reads no file; what a fault makes of the figures is its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: The event of a journal that tells a partition's new leader, leader epoch and ISR.
PARTITION_CHANGED = "partition-changed"
#: And the one that reports a follower's cut.
TRUNCATED = "log-truncated"


@dataclass(frozen=True, slots=True)
class ClusterReaction:
    """Counts over all partitions of a topic: leader epochs that began, changes of an ISR, logs that lost a tail."""

    leader_epochs: int = 0
    isr_changes: int = 0
    truncations: int = 0

    def since(self, before: ClusterReaction) -> ClusterReaction:
        """What came after ``before``, which is an earlier count of the same journals."""
        return ClusterReaction(
            self.leader_epochs - before.leader_epochs,
            self.isr_changes - before.isr_changes,
            self.truncations - before.truncations,
        )


def reaction(entries: Iterable[Mapping[str, Any]], topic: str) -> ClusterReaction:
    """Count the changes of this topic's partitions in the entries of all journals."""
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


def epochs_for(entries: Iterable[Mapping[str, object]], place: tuple[str, int], reason: str) -> int:
    """How many leader epochs of one partition began for this reason."""
    ours = (each for each in entries if each.get("event") == PARTITION_CHANGED and each.get("reason") == reason)
    return len({each["leader_epoch"] for each in ours if (each["topic"], each["partition"]) == place})
