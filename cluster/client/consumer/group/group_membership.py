"""GroupMembership: one consumer in its group: what it asks of the coordinator, and when. Pure.

Owns when to join, sync, show that it is alive and say that it leaves (Kafka's AbstractCoordinator). Does not own the
states and their changes (``member_life``), what an answer means (``membership_answers``), nor who coordinates
(``coordinator_search``).
"""

from __future__ import annotations

import logging

from cluster.client.consumer.group.group_requests import (
    GroupAction,
    JoinGroup,
    MemberHeartbeat,
    SendGroupRequest,
    SyncGroup,
)
from cluster.client.consumer.group.member_life import MemberLife
from cluster.client.consumer.group.membership_values import JOINED, MembershipState

logger = logging.getLogger(__name__)

#: How much longer than a rebalance the answer to JoinGroup may take (Kafka's JOIN_GROUP_TIMEOUT_LAPSE).
_JOIN_LAPSE_MS = 5_000


class GroupMembership(MemberLife):
    """NOT thread-safe. Times are milliseconds of one monotonic clock."""

    def expire(self, now_ms: int) -> None:
        """What time alone has brought about."""
        if self.state not in JOINED:
            return
        if self.times.is_poll_overdue(now_ms):
            logger.warning(
                "group %s: the time between two polls was longer than max.poll.interval.ms (%d ms), so this member "
                "leaves the group: poll more often, raise max.poll.interval.ms or lower max.poll.records",
                self.settings.group_id,
                self.settings.max_poll_interval_ms,
            )
            self.leave("consumer poll timeout has expired.")
        elif self.asked is None and self.search.node is not None and self.times.is_session_over(now_ms):
            self.search.unknown("no heartbeat was answered within session.timeout.ms", now_ms)

    def tick(self, now_ms: int) -> list[GroupAction]:
        """What to send now."""
        node = self.search.node
        if node is None:
            return []
        actions: list[GroupAction] = []
        if self._to_leave is not None:
            self.leaving = self._to_leave
            self._to_leave = None
            actions.append(SendGroupRequest(node, self.leaving))
        if not self.is_subscribed or self._error is not None or self.asked is not None:
            return actions
        if self.state is MembershipState.PREPARING_REBALANCE and self._retry_ms <= now_ms:
            self.asked = self._join_group()
        elif self.state is MembershipState.COMPLETING_REBALANCE and self._assignments is not None:
            instance = self.settings.group_instance_id
            self.asked = SyncGroup(self.settings.group_id, self.generation, instance, self._assignments)
        if self.asked is not None:
            actions.append(SendGroupRequest(node, self.asked))
        elif self.state in JOINED and self.heartbeat is None and self.times.is_due(now_ms):
            instance = self.settings.group_instance_id
            self.heartbeat = MemberHeartbeat(self.settings.group_id, self.generation, instance)
            self.times.sent(now_ms)
            actions.append(SendGroupRequest(node, self.heartbeat))
        return actions

    def wake_ms(self) -> int | None:
        """When there will be something to do, unless something happens before."""
        if self._error is not None or not self.is_subscribed:
            return None
        if self.state in JOINED:
            if self.asked is not None or self.search.node is None:
                return self.times.poll_end_ms
            return self.times.next_ms(is_sent=self.heartbeat is not None)
        waits = (
            self.state is MembershipState.PREPARING_REBALANCE and self.asked is None and self.search.node is not None
        )
        return self._retry_ms if waits else None

    def _join_group(self) -> JoinGroup:
        settings = self.settings
        return JoinGroup(
            settings.group_id,
            self.generation.member_id,
            settings.group_instance_id,
            settings.session_timeout_ms,
            settings.max_poll_interval_ms,
            self._protocols or (),
            self._reason or "",
            max(settings.request_timeout_ms, settings.max_poll_interval_ms + _JOIN_LAPSE_MS),
        )
