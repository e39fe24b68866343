"""A member of a group with gapless's own client. Owns the adapter. Under Locust, other greenlets run while it waits."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client import Consumer, RebalanceListener
from cluster.client.consumer.group.group_errors import CommitFailed, FencedInstanceId, RebalanceInProgress
from cluster.client.consumer.results import ConsumerError
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition
from loadgen.clients.base import Watermarks, first_line
from loadgen.members.events import (
    POLL_RECORDS,
    Assigned,
    Committed,
    Delivered,
    Failed,
    MemberEvent,
    PositionKnown,
    Revoked,
)
from loadgen.members.member_offsets import Standing
from loadgen.settings import ConfigValue
from loadgen.spans import ReadRecord

DEFAULTS: dict[str, ConfigValue] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
    "fetch.max.wait.ms": 100,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "max.poll.interval.ms": 10_000,
    "max.poll.records": POLL_RECORDS,
}
COMMIT_TIMEOUT_S = 5.0
POSITION_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0


class NativeMember:
    """``MemberClient`` on gapless's own consumer."""

    is_cooperative = True

    def __init__(self, topic: str, config: Mapping[str, object], clock: Clock, *, commits: bool = True) -> None:
        """``commits``: the member commits itself; if not, transactions do. Raises ``ConfigError``."""
        self._commits = commits
        self._topic = topic
        self._clock = clock
        self._standing = Standing()
        self._events: list[MemberEvent] = []
        self._is_abandoned = False
        self.consumer = Consumer(config)
        self.consumer.subscribe([topic], _RebalanceEvents(self))

    def __repr__(self) -> str:
        return f"NativeMember({self._standing})"

    def poll(self, timeout_s: float) -> list[MemberEvent]:
        begin_ns = self._clock.monotonic_ns()
        try:
            found = self.consumer.poll(timeout_s)
        except (ConsumerError, TimeoutError) as error:
            self._fail(error)
            return self._taken()
        if found:
            records = [ReadRecord(each.partition, each.offset, each.value) for each in found]
            for record in records:
                self._standing.delivered(record.partition, record.offset)
            seen = {
                partition: Watermarks(*self.consumer.watermarks((self._topic, partition)))
                for partition in dict.fromkeys(record.partition for record in records)
            }
            self._events.append(Delivered(records, seen, begin_ns, self._clock.monotonic_ns()))
        return self._taken()

    def pass_on(self) -> None:
        """Do nothing: this client logs directly, since all of its threads are greenlets."""

    def commit(self) -> list[MemberEvent]:
        self._commit(self._standing.uncommitted())
        return self._taken()

    def close(self) -> list[MemberEvent]:
        try:
            self.consumer.close(CLOSE_TIMEOUT_S)
        except (ConsumerError, TimeoutError) as error:
            self._fail(error)
        return self._taken()

    def abandon(self) -> list[MemberEvent]:
        self._is_abandoned = True
        self.consumer.close(0.0, remains_in_group=True)
        return self._taken()

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """Called by the rebalance listener about new partitions."""
        numbers = [partition for topic, partition in partitions if topic == self._topic]
        if not numbers:
            return
        begin_ns = self._clock.monotonic_ns()
        who = self.consumer.group_metadata()
        self._standing.take(numbers)
        self._events.append(Assigned(numbers, who.member_id, who.generation_id, begin_ns))
        for number in numbers:
            try:
                offset = self.consumer.position((self._topic, number), POSITION_TIMEOUT_S)
            except (ConsumerError, TimeoutError) as error:
                # the first record will show where it begins
                self._fail(error)
                continue
            self._events.append(PositionKnown(number, offset, begin_ns, self._clock.monotonic_ns()))

    def revoked(self, partitions: list[TopicPartition], *, is_lost: bool) -> None:
        """Called by the rebalance listener before these partitions are revoked, or after they were lost."""
        numbers = [partition for topic, partition in partitions if topic == self._topic]
        if not is_lost and not self._is_abandoned:
            self._commit(self._standing.uncommitted(numbers))
        self._events.append(Revoked(self._standing.give_away(numbers), is_lost, self._clock.monotonic_ns()))

    def _commit(self, offsets: Mapping[int, int]) -> None:
        if not offsets or not self._commits:
            return
        begin_ns, before = self._clock.monotonic_ns(), self.consumer.group_metadata().generation_id
        error: Exception | None = None
        try:
            self.consumer.commit_sync({(self._topic, each): at for each, at in offsets.items()}, COMMIT_TIMEOUT_S)
        except (ConsumerError, TimeoutError) as raised:
            error = raised
        end_ns, after = self._clock.monotonic_ns(), self.consumer.group_metadata().generation_id
        generation = before if before == after else -1
        if error is None:
            self._standing.committed(offsets)
            self._events.append(Committed(offsets, "ok", None, generation, begin_ns, end_ns))
            return
        # never "fail": an earlier attempt may have succeeded, with its response lost
        self._events.append(Committed(offsets, "info", _described(error), generation, begin_ns, end_ns))
        if not isinstance(error, CommitFailed | RebalanceInProgress):
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._events.append(Failed(_described(error), isinstance(error, FencedInstanceId)))

    def _taken(self) -> list[MemberEvent]:
        events, self._events = self._events, []
        return events


class _RebalanceEvents(RebalanceListener):
    """Passes rebalances on to the member."""

    def __init__(self, member: NativeMember) -> None:
        self._member = member

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._member.revoked(partitions, is_lost=False)

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._member.assigned(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._member.revoked(partitions, is_lost=True)


def _described(error: Exception) -> str:
    name = error.error_code.name if isinstance(error, ConsumerError) else type(error).__name__
    return f"{name}: {first_line(error)}"
