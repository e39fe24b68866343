"""MemberLife: the states of one consumer in its group and their changes, and what it has the program do. Pure.

Owns what the program wants and has done, what is in flight, and what an answer changes (Kafka's AbstractCoordinator).
Does not own when something is asked (``group_membership``), what an answer means (``membership_answers``) nor
assignments.
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
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    MemberProtocols,
    SyncGroup,
)
from cluster.client.consumer.group.heartbeat_times import HeartbeatTimes
from cluster.client.consumer.group.membership_values import (
    DivideAmong,
    MembershipSettings,
    MembershipState,
    PrepareJoin,
    ProgramStep,
    TakeAssignment,
)
from cluster.client.consumer.results import ConsumerError

logger = logging.getLogger(__name__)


class MemberLife:
    """The program's thread asks for ``next_step``, carries it out, and says so; everything else needs no program. The
    step is ended last, as an exception (Ctrl-C) may come before any line: then it is the next step again."""

    def __init__(
        self, settings: MembershipSettings, search: CoordinatorSearch, backoff_ms: Callable[[int], int]
    ) -> None:
        self.settings = settings
        self.search = search
        self.times = HeartbeatTimes(
            settings.session_timeout_ms, settings.heartbeat_interval_ms, settings.max_poll_interval_ms
        )
        self.state = MembershipState.UNJOINED
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
        member_id, generation_id = self.generation.member_id, self.generation.generation_id
        return f"{type(self).__name__}({self.state.value}, {member_id!r} in generation {generation_id})"

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
        waits = self.state in (MembershipState.UNJOINED, MembershipState.STABLE)
        if self.is_subscribed and waits and self._reason is not None:
            return PrepareJoin(self.generation, self.generation.is_lost)
        return None

    def prepared(self, step: PrepareJoin, protocols: MemberProtocols) -> None:
        """The program has given away what it must. Passed over if the generation was lost meanwhile: then it has more
        to give away."""
        if step == self.next_step:
            self._protocols = protocols
            self._retry_ms = 0
            self.state = MembershipState.PREPARING_REBALANCE

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
        is_known = self.state is not MembershipState.UNJOINED and self.generation.member_id != NO_MEMBER_ID
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
        return self.generation if self.state is MembershipState.STABLE and is_taken else None

    @property
    def is_rebalancing(self) -> bool:
        return self.state not in (MembershipState.UNJOINED, MembershipState.STABLE) or self._step is not None

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
        self.state = MembershipState.UNJOINED
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
        self.state = MembershipState.PREPARING_REBALANCE
        self._step = self._assignments = None
        self._retry_ms = now_ms + self._backoff_ms(self._failures)
        self._failures += 1

    def joined(self, generation: Generation, step: DivideAmong | None, now_ms: int) -> None:
        """All have joined; ``step`` is the leader's."""
        self.generation = generation
        self.state = MembershipState.COMPLETING_REBALANCE
        self._step = step
        self._assignments = None if step is not None else {}
        self.times.joined(now_ms)

    def synced(self, assignment: bytes, now_ms: int) -> None:
        """The rebalance is complete."""
        self.state = MembershipState.STABLE
        self._step = TakeAssignment(self.generation, assignment)
        self._protocols = self._assignments = self._reason = None
        self._failures = 0
        self.times.joined(now_ms)

    def fail(self, error: ConsumerError) -> None:
        """Nothing is asked before the program has learned of it."""
        self._error = error
        if self.state is MembershipState.COMPLETING_REBALANCE:
            self.state = MembershipState.PREPARING_REBALANCE
            self._step = self._assignments = None

    def retry_heartbeat(self, now_ms: int) -> None:
        self.times.failed(now_ms, self._backoff_ms(0))
