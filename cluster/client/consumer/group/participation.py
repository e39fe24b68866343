"""Participation: what a rebalance asks of the program's thread, step by step: give away, divide, take.

Owns the subscription, the listener's calls and what is read when (Kafka's ConsumerCoordinator). Does not own when a
step is due (``group_membership``), what assignors do, nor offsets (``commits``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from cluster.client.client_metadata import ClientMetadata
from cluster.client.consumer.assignors.subscribers import Subscriber
from cluster.client.consumer.group.commits import Commits
from cluster.client.consumer.group.group_errors import GroupError, ListenerFailed
from cluster.client.consumer.group.group_io import GroupIo
from cluster.client.consumer.group.group_requests import NO_GENERATION
from cluster.client.consumer.group.membership_values import DivideAmong, PrepareJoin, ProgramStep, TakeAssignment
from cluster.client.consumer.group.rebalance_listener import RebalanceListener
from cluster.client.consumer.group.strategies import Strategies, assignments_of, subscribers_of, topics_of
from cluster.client.consumer.positions import Positions
from cluster.client.consumer.results import ConsumerWokenUp
from cluster.client.missing_topics import MissingTopics
from cluster.client.one_thread import OneThread
from cluster.protocol.consumer_protocol import decode_assignment
from cluster.protocol.errors import ErrorCode, MalformedRequest
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Participation:
    """For the program's thread. ``rebalance_ms`` is how long the group waits for this member."""

    def __init__(
        self,
        io: GroupIo,
        positions: Positions,
        metadata: ClientMetadata,
        commits: Commits,
        strategies: Strategies,
        clock: Clock,
        one_thread: OneThread,
        rebalance_ms: int,
    ) -> None:
        self.topics: list[str] = []
        #: In which the assignment was taken last: what is done in its name later is fenced (KIP-447).
        self.generation = NO_GENERATION
        self._io = io
        self._positions = positions
        self._metadata = metadata
        self._commits = commits
        self._strategies = strategies
        self._clock = clock
        self._one_thread = one_thread
        # How long a rebalance waits for a commit, at most.
        self._settling_ms = min(rebalance_ms, commits.timeout_ms)
        self._listener = RebalanceListener()
        self._missing = MissingTopics()
        # As leader: the topics of the whole group, and how many partitions they had when they were divided.
        self._group_topics: set[str] = set()
        self._divided_counts: Mapping[str, int] | None = None
        # The subscription that the last JoinGroup told.
        self._joined_topics: list[str] = []
        # What a listener has raised in this step.
        self._raised: ListenerFailed | None = None

    def __repr__(self) -> str:
        return f"Participation({', '.join(self.topics)}; {self._strategies!r})"

    @property
    def used_topics(self) -> set[str]:
        """What metadata is needed of."""
        return {*self.topics, *self._group_topics}

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> None:
        """Be a member that reads these, instead of others."""
        self.topics = list(dict.fromkeys(topics))
        self._listener = listener or RebalanceListener()
        with self._io.lock:
            self._io.core.membership.subscribe(self._clock.monotonic_ms())
        self._io.wakeup()

    def unsubscribe(self, reason: str, *, remains_in_group: bool = False) -> None:
        """Be a member no longer; what was assigned is given away before. ``remains_in_group``: it does not tell it."""
        with self._io.lock:
            is_lost = self._io.core.membership.generation.is_lost
        self._give_away(self._positions.assignment.assigned, is_lost=is_lost)
        with self._io.lock:
            self._io.core.membership.unsubscribe(reason, remains_in_group=remains_in_group)
        self._io.wakeup()
        self.topics, self._group_topics, self._divided_counts = [], set(), None
        self.generation = NO_GENERATION
        self._raise()

    def step(self, now_ms: int) -> bool:
        """Do what is due, without waiting. Whether records may be taken: not while positions are being committed."""
        with self._io.lock:
            self._io.core.membership.polled(now_ms)
            error = self._io.core.membership.take_error()
        if error is not None:
            # What was refused is asked again.
            self._io.wakeup()
            raise error
        self._watch()
        may_read = True
        while may_read and (due := self._next_step()) is not None:
            if isinstance(due, PrepareJoin):
                may_read = self._prepare(due)
            elif isinstance(due, TakeAssignment):
                may_read = self._take(due)
            elif not self._divide(due):
                break
        self._raise()
        return may_read

    def _next_step(self) -> ProgramStep | None:
        with self._io.lock:
            return self._io.core.membership.next_step

    def _watch(self) -> None:
        """Join again if partitions were added to what was divided, or topics created or deleted."""
        view = self._metadata.view
        self._missing.look(view, [(topic, 0) for topic in self.topics])
        if self._divided_counts is not None and self._divided_counts != self._counts():
            # Again until it is prepared: the end of a rebalance that is under way takes the request for done.
            self._rejoin("the partitions of a topic have changed")

    def _counts(self) -> dict[str, int]:
        """How many partitions each topic of the group has; not those that do not exist."""
        topics = self._metadata.view.topics
        described = {topic: topics[topic] for topic in self._group_topics if topic in topics}
        return {
            topic: max(view.partitions) + 1
            for topic, view in described.items()
            if view.error_code is ErrorCode.NONE and view.partitions
        }

    def _rejoin(self, reason: str) -> None:
        with self._io.lock:
            self._io.core.membership.request_rejoin(reason)
        self._io.wakeup()

    # The steps. Each returns whether it is done; a listener's exception is raised when all are

    def _prepare(self, step: PrepareJoin) -> bool:
        owned = self._positions.assignment.assigned
        if step.is_lost:
            self._commits.abandon()
        elif not self._commits.is_settled(self._settling_ms):
            return False
        if step.is_lost or not self._strategies.is_cooperative:
            self._give_away(owned, is_lost=step.is_lost)
        else:
            self._give_away([key for key in owned if key[0] not in self.topics], is_lost=False)
        self._group_topics, self._divided_counts = set(), None
        self._joined_topics = list(self.topics)
        kept = self._positions.assignment.assigned
        protocols = self._strategies.protocols(self.topics, kept, step.generation)
        with self._io.lock:
            self._io.core.membership.prepared(step, protocols)
        self._io.wakeup()
        return True

    def _divide(self, step: DivideAmong) -> bool:
        subscribers = subscribers_of(step.members)
        self._group_topics = topics_of(subscribers)
        now_ms = self._clock.monotonic_ms()
        for topic in self._group_topics:
            self._metadata.use(topic, now_ms)
        if not self._group_topics <= self._metadata.view.topics.keys():
            return False
        counts = self._counts()
        assignments = {} if step.is_skipped else self._assignments(step, counts, subscribers)
        self._divided_counts = counts
        with self._io.lock:
            self._io.core.membership.divided(step, assignments)
        self._io.wakeup()
        return True

    def _assignments(
        self, step: DivideAmong, counts: Mapping[str, int], subscribers: list[Subscriber]
    ) -> dict[str, bytes]:
        name = step.generation.protocol_name or ""
        assignments = assignments_of(name, counts, subscribers)
        logger.info("divided %d topic(s) among %d member(s) by %s", len(counts), len(subscribers), name)
        return assignments

    def _take(self, step: TakeAssignment) -> bool:
        told = self._read(step)
        # The subscription may have changed since it was told.
        assigned = [key for key in told if key[0] in self.topics]
        owned = self._positions.assignment.assigned
        revoked = [key for key in owned if key not in assigned]
        with self._io.lock:
            self._io.core.membership.take(step)
        self.generation = step.generation
        if revoked and not self._commits.is_settled(self._settling_ms):
            return False
        # Before they are given away: an exception (Ctrl-C) after that leaves no trace of them.
        if revoked and self._strategies.is_cooperative:
            self._rejoin("partitions were revoked, which other members are to get")
        elif self._joined_topics != self.topics or len(assigned) < len(told):
            self._rejoin("the assignment does not match the subscription")
        self._give_away(revoked, is_lost=False)
        added = [key for key in assigned if key not in owned]
        self._read_only(assigned)
        self._strategies.remember(assigned, step.generation)
        self._commits.restart()
        with self._io.lock:
            self._io.core.membership.taken(step)
        self._io.wakeup()
        logger.info("assigned in generation %d: %s", step.generation.generation_id, assigned)
        self._call("on_partitions_assigned", added)
        return True

    def _read(self, step: TakeAssignment) -> list[TopicPartition]:
        try:
            return list(dict.fromkeys(decode_assignment(step.assignment).partitions))
        except MalformedRequest as error:
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the leader's assignment: {error}") from error

    def _give_away(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        """The listener still has them while it is called."""
        if not partitions:
            return
        logger.info("%s: %s", "lost" if is_lost else "revoked", partitions)
        self._call("on_partitions_lost" if is_lost else "on_partitions_revoked", partitions)
        self._read_only([key for key in self._positions.assignment.assigned if key not in partitions])

    def _read_only(self, partitions: list[TopicPartition]) -> None:
        """New ones continue where the group has committed."""
        self._positions.assign(partitions, from_committed=True)
        now_ms = self._clock.monotonic_ms()
        for topic in {topic for topic, _ in partitions}:
            self._metadata.use(topic, now_ms)

    def _call(self, method: str, partitions: list[TopicPartition]) -> None:
        """The rebalance is finished even if the listener raises; the first exception is told then."""
        try:
            with self._one_thread.calling_back():
                getattr(self._listener, method)(list(partitions))
        except ConsumerWokenUp:
            # What it was called for comes again with the next poll.
            raise
        except Exception as error:
            logger.exception("the rebalance listener failed in %s", method)
            self._raised = self._raised or _listener_failed(method, error)

    def _raise(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def _listener_failed(method: str, cause: Exception) -> ListenerFailed:
    failed = ListenerFailed(method, cause)
    failed.__cause__ = cause
    return failed
