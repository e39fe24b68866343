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
    #: None: not told
    isr_changes: int | None = 0
    truncations: int = 0

    def since(self, before: ClusterReaction) -> ClusterReaction:
        """What came after ``before``, which is an earlier count from the same source."""
        told = self.isr_changes is not None and before.isr_changes is not None
        return ClusterReaction(
            # no broker may answer now, or only some
            max(0, self.leader_epochs - before.leader_epochs),
            (self.isr_changes or 0) - (before.isr_changes or 0) if told else None,
            self.truncations - before.truncations,
        )

    def figures(self) -> dict[str, int]:
        """For the record: what is told."""
        isr_changes = {} if self.isr_changes is None else {"isr_changes": self.isr_changes}
        return {"leader_epochs": self.leader_epochs, **isr_changes}


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


def told_epochs(epochs: Iterable[int]) -> ClusterReaction:
    """The same from each partition's leader epoch in Metadata, which is all that brokers without journals tell."""
    return ClusterReaction(sum(max(0, each) for each in epochs), None)


def epochs_for(entries: Iterable[Mapping[str, object]], place: tuple[str, int], reason: str) -> int:
    """How many leader epochs of one partition began for this reason."""
    ours = (each for each in entries if each.get("event") == PARTITION_CHANGED and each.get("reason") == reason)
    return len({each["leader_epoch"] for each in ours if (each["topic"], each["partition"]) == place})
