"""The group coordinator's decision functions in one frozen value, so that a defect can wrap one of them at start-up.

Owns nothing but the bundle (docs/design.md "Pure decisions, six seams").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from cluster.coordinator.group.answers import FetchedOffset
from cluster.coordinator.group.committing import commit, fetch
from cluster.coordinator.group.decisions import GroupDecision
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.removing import ExpiredOffsets, expired_offsets
from cluster.coordinator.group.requests import CommitRequest, Waiter
from cluster.topic_partition import TopicPartition


class FetchCommitted(Protocol):
    """(group, partitions or None for all) -> what is committed for each."""

    def __call__(
        self, group: Group | None, partitions: Iterable[TopicPartition] | None, /, *, require_stable: bool
    ) -> dict[TopicPartition, FetchedOffset]: ...


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What a group coordinator decides by. The defaults are the correct rules."""

    #: (decision, group, request, waiter): offsets that are to be committed; adds to the decision what follows
    commit: Callable[[GroupDecision, Group, CommitRequest, Waiter], None] = commit
    fetch: FetchCommitted = fetch
    expired_offsets: ExpiredOffsets = expired_offsets


CORRECT = GroupRules()
