"""GroupMembership: one consumer in its group: what it asks of the coordinator, and what it has the program do. Pure.

Owns the states and their changes (Kafka's AbstractCoordinator): when to join, sync, show that it is alive and leave.
Does not own what an answer means (``membership_answers``), who coordinates (``coordinator_search``) nor assignments.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster.client.consumer.group.coordinator_search import CoordinatorSearch
from cluster.client.consumer.group.group_errors import FencedInstanceId
from cluster.client.consumer.group.group_requests import (
    NO_GENERATION,
    NO_GENERATION_ID,
    NO_MEMBER_ID,
    Generation,
    GroupAction,
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    MemberProtocols,
    SendGroupRequest,
    SyncGroup,
)
from cluster.client.consumer.group.heartbeat_times import HeartbeatTimes
from cluster.client.consumer.group.membership_values import (
    JOINED,
    DivideAmong,
    MembershipSettings,
    MembershipState,
    PrepareJoin,
    ProgramStep,
    TakeAssignment,
)
from cluster.client.consumer.results import ConsumerError

logger = logging.getLogger(__name__)

#: How much longer than a rebalance the answer to JoinGroup may take (Kafka's JOIN_GROUP_TIMEOUT_LAPSE).
_JOIN_LAPSE_MS = 5_000

_S = MembershipState


class GroupMembership:
    """NOT thread-safe. Times are milliseconds of one monotonic clock.

    The program's thread asks for ``next_step``, carries it out, and says so; everything else needs no program. The step
    is ended last, as an exception (Ctrl-C) may come before any line: then it is the next step again.
    """

    def __init__(
        self, settings: MembershipSettings, search: CoordinatorSearch, backoff_ms: Callable[[int], int]
    ) -> None:
        self.settings = settings
        self.search = search
        intervals_ms = settings.heartbeat_interval_ms, settings.max_poll_interval_ms
        self.times = HeartbeatTimes(settings.session_timeout_ms, *intervals_ms)
        self.state = _S.UNJOINED
        self.generation = NO_GENERATION
        #: Whether the program wants to be a member.
        self.is_subscribed = False
        #: In flight, one of each kind; an answer to another one is ignored.
        self.asked: JoinGroup | SyncGroup | None = None
        self.heartbeat: MemberHeartbeat | None = None
        self.leaving: LeaveGroup | None = None
        self._backoff_ms = backoff_ms
        self._failures = 0
        self._retry_ms = 0
        self._error: ConsumerError | None = None
        # What the program gave for JoinGroup; it is kept until the rebalance is complete.
        self._protocols: MemberProtocols | None = None
        self._reason: str | None = None
        self._step: DivideAmong | TakeAssignment | None = None
        self._is_taking = False
        # For SyncGroup; None while a leader divides.
        self._assignments: Mapping[str, bytes] | None = None
        self._to_leave: LeaveGroup | None = None

    def __repr__(self) -> str:
        generation = self.generation
        return f"GroupMembership({self.state.value}, {generation.member_id!r} in generation {generation.generation_id})"

    # For the program

    def subscribe(self, now_ms: int) -> None:
        """The program wants partitions of topics, or of others than before."""
        if not self.is_subscribed:
            self.is_subscribed = True
            self.times.polled(now_ms)
        self.request_rejoin("the subscription has changed")

    def polled(self, now_ms: int) -> None:
        """The program takes part: max.poll.interval.ms begins again."""
        self.times.polled(now_ms)

    def request_rejoin(self, reason: str) -> None:
        """Join again as soon as the program has prepared for that."""
        if not self.is_subscribed:
            self._reason = None
            return
        if self._reason is None:
            logger.info("group %s: joining again: %s", self.settings.group_id, reason)
        self._reason = reason

    @property
    def next_step(self) -> ProgramStep | None:
        """What the program is to do now. The same again until it says that it has done it."""
        if self._step is not None:
            return self._step
        waits = self.state in (_S.UNJOINED, _S.STABLE)
        if self.is_subscribed and waits and self._reason is not None:
            return PrepareJoin(self.generation, self.generation.is_lost)
        return None

    def prepared(self, step: PrepareJoin, protocols: MemberProtocols) -> None:
        """The program has given away what it must. Passed over if the generation was lost meanwhile: then it has more
        to give away."""
        if step == self.next_step:
            self._protocols = protocols
            self._retry_ms = 0
            self.state = _S.PREPARING_REBALANCE

    def divided(self, step: DivideAmong, assignments: Mapping[str, bytes]) -> None:
        """What each member gets, by its id."""
        if step is self._step:
            self._assignments = assignments
            self._step = None

    def take(self, step: TakeAssignment) -> None:
        """The program begins to take its assignment: from now on it commits in the new generation."""
        self._is_taking = self._is_taking or step is self._step

    def taken(self, step: TakeAssignment) -> None:
        """The program reads what it was assigned."""
        if step is self._step:
            self._is_taking = False
            self._step = None

    def take_error(self) -> ConsumerError | None:
        """What the program is to be told, once: then the request is sent again. Who is fenced stays so."""
        error = self._error
        if not isinstance(error, FencedInstanceId):
            self._error = None
        return error

    def leave(self, reason: str) -> None:
        """Be a member no longer. A dynamic one says so (KIP-345); a static one is awaited for its session timeout."""
        is_known = self.state is not _S.UNJOINED and self.generation.member_id != NO_MEMBER_ID
        if is_known and self.settings.group_instance_id is None and self.search.node is not None:
            if self.asked is not None:
                # On the same connection the coordinator reads it only when everyone has joined.
                self.search.reconnect(reason)
            self._to_leave = LeaveGroup(self.settings.group_id, self.generation.member_id, reason)
            logger.info("group %s: member %s leaves: %s", self.settings.group_id, self.generation.member_id, reason)
        self.reset(reason)

    def unsubscribe(self, reason: str, *, remains_in_group: bool = False) -> None:
        """The program wants to be a member no longer; the group is not told if the member remains in it (KIP-1092)."""
        self.is_subscribed = False
        self.reset(reason) if remains_in_group else self.leave(reason)
        self._error = None

    @property
    def committing(self) -> Generation | None:
        """In whose name offsets are committed; None while the member has no assignment that is certain."""
        if not self.is_subscribed:
            return NO_GENERATION
        is_taken = self._is_taking or not isinstance(self._step, TakeAssignment)
        return self.generation if self.state is _S.STABLE and is_taken else None

    @property
    def is_rebalancing(self) -> bool:
        return self.state not in (_S.UNJOINED, _S.STABLE) or self._step is not None

    @property
    def is_leaving(self) -> bool:
        """Whether the coordinator has not confirmed yet that the member left."""
        return self._to_leave is not None or self.leaving is not None

    @property
    def needs_coordinator(self) -> bool:
        return (self.is_subscribed and self._error is None) or self._to_leave is not None

    # What follows from answers

    def reset(self, reason: str, *, keeps_member_id: bool = False) -> None:
        """The generation is over (Kafka's ``resetStateAndRejoin``). Nothing in flight counts anymore."""
        member_id = self.generation.member_id if keeps_member_id else NO_MEMBER_ID
        self.state = _S.UNJOINED
        self.generation = Generation(NO_GENERATION_ID, member_id)
        self.asked = self.heartbeat = self._step = self._protocols = self._assignments = None
        self._is_taking = False
        self.request_rejoin(reason)

    def require_member_id(self, member_id: str) -> None:
        """Join again at once, with the id that the coordinator has given (KIP-394)."""
        self.generation = Generation(NO_GENERATION_ID, member_id)
        self._retry_ms = 0

    def join_later(self, now_ms: int) -> None:
        """The rebalance did not succeed this time."""
        self.state = _S.PREPARING_REBALANCE
        self._step = self._assignments = None
        self._retry_ms = now_ms + self._backoff_ms(self._failures)
        self._failures += 1

    def joined(self, generation: Generation, step: DivideAmong | None, now_ms: int) -> None:
        """All have joined; ``step`` is the leader's."""
        self.generation = generation
        self.state = _S.COMPLETING_REBALANCE
        self._step = step
        self._assignments = None if step is not None else {}
        self.times.joined(now_ms)

    def synced(self, assignment: bytes, now_ms: int) -> None:
        """The rebalance is complete."""
        self.state = _S.STABLE
        self._step = TakeAssignment(self.generation, assignment)
        self._protocols = self._assignments = self._reason = None
        self._failures = 0
        self.times.joined(now_ms)

    def fail(self, error: ConsumerError) -> None:
        """Nothing is asked before the program has learned of it."""
        self._error = error
        if self.state is _S.COMPLETING_REBALANCE:
            self.state = _S.PREPARING_REBALANCE
            self._step = self._assignments = None

    def retry_heartbeat(self, now_ms: int) -> None:
        self.times.failed(now_ms, self._backoff_ms(0))

    # What to do

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
            self.leaving, self._to_leave = self._to_leave, None
            actions.append(SendGroupRequest(node, self.leaving))
        if not self.is_subscribed or self._error is not None or self.asked is not None:
            return actions
        if self.state is _S.PREPARING_REBALANCE and self._retry_ms <= now_ms:
            self.asked = self._join_group()
        elif self.state is _S.COMPLETING_REBALANCE and self._assignments is not None:
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
        waits = self.state is _S.PREPARING_REBALANCE and self.asked is None and self.search.node is not None
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
