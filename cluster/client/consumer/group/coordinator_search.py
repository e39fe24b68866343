"""CoordinatorSearch: which broker coordinates the group, as far as that is known, and when to ask for it again. Pure.

Owns what Kafka's AbstractCoordinator keeps as ``coordinator`` and ``findCoordinatorFuture``. Does not own what is asked
of the coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.client.cluster_view import BrokerAddress
from cluster.client.consumer.group.group_requests import (
    DropConnection,
    FindGroupCoordinator,
    GroupAction,
    GroupAnswer,
    SendGroupRequest,
)
from cluster.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

#: After these the answer may be another one soon.
_TRANSIENT = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})


class CoordinatorSearch:
    """NOT thread-safe. ``backoff_ms`` gives the pause by the number of failures before the last one."""

    def __init__(self, group_id: str, backoff_ms: Callable[[int], int]) -> None:
        self.node: BrokerAddress | None = None
        self._group_id = group_id
        self._backoff_ms = backoff_ms
        self._asked: FindGroupCoordinator | None = None
        self._failures = 0
        self._retry_ms = 0
        self._dropped: list[DropConnection] = []

    def __repr__(self) -> str:
        state = "asking" if self._asked is not None else f"{self._failures} failures"
        return f"CoordinatorSearch({self.node or state})"

    def tick(self, *, is_wanted: bool, now_ms: int) -> list[GroupAction]:
        """What to do now; it is looked for only while someone needs it."""
        actions: list[GroupAction] = [*self._dropped]
        self._dropped.clear()
        if is_wanted and self.node is None and self._asked is None and self._retry_ms <= now_ms:
            self._asked = FindGroupCoordinator(self._group_id)
            actions.append(SendGroupRequest(None, self._asked))
        return actions

    def wake_ms(self, *, is_wanted: bool) -> int | None:
        """When ``tick`` will have something to do, unless something happens before."""
        is_waiting = is_wanted and self.node is None and self._asked is None
        return self._retry_ms if is_waiting else None

    def answered(self, request: FindGroupCoordinator, answer: GroupAnswer, now_ms: int) -> ErrorCode | None:
        """Returns the error that waiting does not change."""
        if request is not self._asked:
            return None
        self._asked = None
        code = answer.error_code
        if code is ErrorCode.NONE and answer.coordinator is not None:
            logger.info("group %s is coordinated by broker %d", self._group_id, answer.coordinator.broker_id)
            self.node = answer.coordinator
            self._failures = 0
            return None
        logger.debug("the coordinator of group %s is not known: %s", self._group_id, code.name)
        self._retry_ms = now_ms + self._backoff_ms(self._failures)
        self._failures += 1
        return None if code.retriable or code in _TRANSIENT else code

    def unknown(self, reason: str, now_ms: int) -> None:
        """The coordinator is another one, or cannot be reached: look for it again, after a pause."""
        if self.node is None:
            return
        logger.info("group %s: the coordinator is to be found again: %s", self._group_id, reason)
        self._dropped.append(DropConnection(self.node.broker_id, reason))
        self.node = None
        self._retry_ms = now_ms + self._backoff_ms(0)

    def reconnect(self, reason: str) -> None:
        """What is in flight to the coordinator is of no use anymore; it stays the coordinator."""
        if self.node is not None:
            self._dropped.append(DropConnection(self.node.broker_id, reason))
