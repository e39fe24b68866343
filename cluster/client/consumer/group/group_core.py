"""GroupCore: a consumer's membership, its offsets and the search for the coordinator, as one machine. Pure.

Owns the order in which they act, and who an answer is for. Events and answers go in, actions come out; it never waits
and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.client.consumer.group.coordinator_search import CoordinatorSearch
from cluster.client.consumer.group.group_errors import group_error
from cluster.client.consumer.group.group_membership import GroupMembership
from cluster.client.consumer.group.group_requests import (
    CommitOffsets,
    FetchOffsets,
    FindGroupCoordinator,
    GroupAction,
    GroupAnswer,
    GroupRequest,
)
from cluster.client.consumer.group.membership_answers import membership_answered
from cluster.client.consumer.group.membership_values import MembershipSettings
from cluster.client.consumer.group.offset_calls import OffsetCalls


class GroupCore:
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def __init__(self, settings: MembershipSettings, backoff_ms: Callable[[int], int]) -> None:
        self.settings = settings
        self.search = CoordinatorSearch(settings.group_id, backoff_ms)
        self.membership = GroupMembership(settings, self.search, backoff_ms)
        self.offsets = OffsetCalls(self.membership, backoff_ms)

    def __repr__(self) -> str:
        return f"GroupCore({self.membership!r}, {self.search!r}, {self.offsets!r})"

    def tick(self, now_ms: int) -> list[GroupAction]:
        """What to do now, in this order."""
        self.membership.expire(now_ms)
        self.offsets.expire(now_ms)
        actions = self.search.tick(is_wanted=self._needs_coordinator, now_ms=now_ms)
        # What is committed before a rebalance is sent before it.
        return [*actions, *self.offsets.tick(now_ms), *self.membership.tick(now_ms)]

    def wake_ms(self) -> int | None:
        """When ``tick`` will have something to do, unless something happens before."""
        times = (
            self.search.wake_ms(is_wanted=self._needs_coordinator),
            self.membership.wake_ms(),
            self.offsets.wake_ms(),
        )
        return min((each for each in times if each is not None), default=None)

    def answered(self, request: GroupRequest, answer: GroupAnswer, now_ms: int) -> None:
        """An answer came, or will not come: then its error says why."""
        if isinstance(request, FindGroupCoordinator):
            refused = self.search.answered(request, answer, now_ms)
            if refused is not None:
                error = group_error(refused, self.settings.group_id, "looking for the coordinator of")
                self.offsets.failed(error)
                if self.membership.is_subscribed:
                    self.membership.fail(error)
            elif self.search.node is not None:
                self.membership.times.answered(now_ms)
        elif isinstance(request, CommitOffsets | FetchOffsets):
            self.offsets.answered(request, answer, now_ms)
        else:
            membership_answered(self.membership, request, answer, now_ms)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be sent or answered, for one that is closing."""
        return self.offsets.is_empty and not self.membership.is_leaving

    @property
    def _needs_coordinator(self) -> bool:
        return self.membership.needs_coordinator or not self.offsets.is_empty
