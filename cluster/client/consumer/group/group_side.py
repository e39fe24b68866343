"""GroupSide: the parts of a consumer that has a group.id, put together, and what each poll has them do.

Owns which key means which argument, and the order of one poll's work for the group. Does not own the face to programs
(``consumer``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.client.backoff import ExponentialBackoff
from cluster.client.consumer.group.commits import Commits
from cluster.client.consumer.group.group_core import GroupCore
from cluster.client.consumer.group.group_io import GroupIo
from cluster.client.consumer.group.membership_values import MembershipSettings
from cluster.client.consumer.group.participation import Participation
from cluster.client.consumer.group.resumption import Resumption
from cluster.client.consumer.group.strategies import Strategies
from cluster.client.consumer.positions import Positions
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.one_thread import OneThread
from cluster.client.wiring import ClientIo, client_io
from cluster.config.consumer import ConsumerConfig
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.seams.runner import Runner
from cluster.seams.selector import Selector

logger = logging.getLogger(__name__)

#: Requests in flight to the coordinator: Kafka's consumer has the same.
_MAX_IN_FLIGHT = 100


class GroupSide:
    """For the program's thread; ``io`` has its own."""

    def __init__(
        self,
        config: ConsumerConfig,
        reader_io: ClientIo,
        positions: Positions,
        selector: Selector,
        clock: Clock,
        random: Random,
        runner: Runner,
        one_thread: OneThread,
        on_change: Callable[[], object],
    ) -> None:
        """``selector`` and ``runner`` are of the connection to the coordinator; ``on_change`` ends a wait for it."""
        self._config = config
        self._positions = positions
        self._clock = clock
        # Drawn from in another thread than the consumer's.
        own = Random(random.getrandbits(64))
        backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"], own)
        io = client_io(config, selector, clock, own, max_in_flight=_MAX_IN_FLIGHT, max_idle_topic_ms=None)
        self.io = GroupIo(GroupCore(_settings(config), backoff.delay_ms), io, clock, runner, on_change)
        self.commits = Commits(
            self.io,
            positions,
            clock,
            one_thread,
            timeout_ms=config["default.api.timeout.ms"],
            interval_ms=config["auto.commit.interval.ms"] if config["enable.auto.commit"] else None,
            retry_ms=config["retry.backoff.ms"],
        )
        self.participation = Participation(
            self.io,
            positions,
            reader_io.metadata,
            self.commits,
            Strategies(config["partition.assignment.strategy"]),
            clock,
            one_thread,
            config["max.poll.interval.ms"],
        )
        self._resumption = Resumption(self.commits, positions)

    def __repr__(self) -> str:
        return f"GroupSide({self.participation!r}, {self.io!r})"

    @property
    def is_subscribed(self) -> bool:
        return bool(self.participation.topics)

    def step(self) -> bool:
        """What a poll does for the group, without waiting. Whether records may be taken."""
        now_ms = self._clock.monotonic_ms()
        self.commits.tell_ended()
        may_take = self.participation.step(now_ms) if self.is_subscribed else True
        self.commits.commit_if_due(now_ms)
        self.look_up()
        return may_take

    def look_up(self) -> None:
        """What any call that waits for a position does."""
        self._resumption.step()

    def longest_wait_ms(self) -> float:
        """How long a poll may wait before it is to call ``step`` again: a member that waits is one that polls."""
        due_ms = max(0.0, self.commits.next_ms() - self._clock.monotonic_ms())
        longest_ms = self._config["max.poll.interval.ms"] / 2
        return min(due_ms, longest_ms) if self._positions.assignment.assigned else longest_ms

    def metadata(self) -> ConsumerGroupMetadata:
        """Who the consumer is in its group (KIP-447), or was before the rebalance that is under way."""
        generation = self.participation.generation
        return ConsumerGroupMetadata(
            self._config["group.id"] or "",
            generation.generation_id,
            generation.member_id,
            self._config["group.instance.id"],
        )


def _settings(config: ConsumerConfig) -> MembershipSettings:
    return MembershipSettings(
        config["group.id"] or "",
        config["group.instance.id"],
        config["session.timeout.ms"],
        config["heartbeat.interval.ms"],
        config["max.poll.interval.ms"],
        config["request.timeout.ms"],
    )
