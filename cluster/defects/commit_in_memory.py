"""commit-in-memory: OffsetCommit is answered, but what it commits is only in the coordinator's memory (KAFKA-20634).

The next coordinator of the group does not know about it, and the group falls back to an earlier offset.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.coordinator.group.committing import offsets_stored
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.purposes import OffsetsStored
from cluster.coordinator.group.requests import CommitRequest, Waiter
from cluster.defects.firings import Firings
from cluster.protocol.errors import ErrorCode

NAME = "commit-in-memory"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """Keep a commit in memory with ``probability``; all others are handled correctly, as are those of transactions."""
    right = rules.groups.commit

    def commit(decision: GroupDecision, group: Group, request: CommitRequest, waiter: Waiter) -> None:
        known = len(decision.appends)
        right(decision, group, request, waiter)
        if request.is_transactional or random.random() >= probability:
            return
        begun = decision.appends[known:]
        del decision.appends[known:]
        for append in begun:
            purpose = append.purpose
            if not isinstance(purpose, OffsetsStored):
                decision.appends.append(append)
                continue
            for (topic, partition), committed in purpose.offsets.items():
                offset = committed.offset
                firings.note(NAME, group=group.group_id, topic=topic, partition=partition, offset=offset)
            last = max((placed.position for placed in group.offsets.committed.values()), default=0)
            offsets_stored(decision, group, purpose, ErrorCode.NONE, last)

    return replace(rules, groups=replace(rules.groups, commit=commit))
