"""A member that an exception interrupts anywhere in the program's thread, as Ctrl-C may, also while it rebalances.

The connection to the coordinator is another thread's, where no interrupt comes: it has its turns while the program
waits.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from cluster.client import Consumer
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from cluster.seams.selector import SelectorHandler
from tests.cluster.client.consumer.test_consumer import describe
from tests.cluster.client.consumer.test_interrupts import KEY, RECORDS, Interrupter, Selector, fetched, listed
from tests.cluster.client.scripted_selector import ScriptedSelector

#: Turns of the coordinator's connection while the program waits once.
TURNS = 4
HEARTBEAT_MS = 100


class Coordinator:
    """Of one member, which it lets join three times: at first, and twice more when that reads."""

    def __init__(self) -> None:
        self.generation = 0
        self.committed: dict[tuple[str, int], int] = {}
        self.rebalances = 0
        self.answers = {
            ApiKey.METADATA: describe,
            ApiKey.FIND_COORDINATOR: self.found,
            ApiKey.JOIN_GROUP: self.joined,
            ApiKey.SYNC_GROUP: self.synced,
            ApiKey.HEARTBEAT: self.beaten,
            ApiKey.OFFSET_COMMIT: self.commit,
            ApiKey.OFFSET_FETCH: self.fetch,
            ApiKey.LEAVE_GROUP: lambda request, header: response_class(ApiKey.LEAVE_GROUP)(members=[]),
        }

    def begins(self, count: int) -> bool:
        """Whether a rebalance begins at this number of records read."""
        begins = not self.rebalances and self.generation < 3 and count >= 3 * self.generation
        self.rebalances += begins
        return begins

    def found(self, request: Any, _header: Any) -> Any:
        response = response_class(ApiKey.FIND_COORDINATOR)
        return response(coordinators=[response.Coordinator(key="g", node_id=1, host="b1", port=9092)])

    def joined(self, request: Any, _header: Any) -> Any:
        response = response_class(ApiKey.JOIN_GROUP)
        self.generation += 1
        self.rebalances = 0
        name, metadata = request.protocols[0].name, request.protocols[0].metadata
        member = response.JoinGroupResponseMember(member_id="me", metadata=metadata)
        return response(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=name,
            leader="me",
            member_id="me",
            members=[member],
        )

    def synced(self, request: Any, _header: Any) -> Any:
        (mine,) = request.assignments
        response = response_class(ApiKey.SYNC_GROUP)
        return response(protocol_type="consumer", protocol_name=request.protocol_name, assignment=mine.assignment)

    def beaten(self, request: Any, _header: Any) -> Any:
        response = response_class(ApiKey.HEARTBEAT)
        if self.rebalances:
            return response(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return response(error_code=ErrorCode.NONE)

    def commit(self, request: Any, _header: Any) -> Any:
        response = response_class(ApiKey.OFFSET_COMMIT)
        topics = []
        for topic in request.topics:
            for each in topic.partitions:
                self.committed[topic.name, each.partition_index] = each.committed_offset
            of_partition = response.OffsetCommitResponseTopic.OffsetCommitResponsePartition
            partitions = [of_partition(partition_index=each.partition_index) for each in topic.partitions]
            topics.append(response.OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        return response(topics=topics)

    def fetch(self, request: Any, _header: Any) -> Any:
        response = response_class(ApiKey.OFFSET_FETCH)
        of_topic = response.OffsetFetchResponseGroup.OffsetFetchResponseTopics
        topics = [
            of_topic(
                name=topic.name,
                partitions=[
                    of_topic.OffsetFetchResponsePartitions(
                        partition_index=number,
                        committed_offset=self.committed.get((topic.name, number), -1),
                        metadata="",
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.groups[0].topics
        ]
        return response(groups=[response.OffsetFetchResponseGroup(group_id="g", topics=topics)])


class OutsideOfLocks(Interrupter):
    """Not where a lock is taken or released: CPython looks for no signals there."""

    def line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        return self.line if text == "with self._io.lock:" else super().line(frame, event, argument)


class Patient(ScriptedSelector):
    """Time passes for the program alone."""

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        for _ in range(len(self.events)):
            self.events.popleft()(handler)


class Turns:
    """The runner: its steps are made by the selector of the program."""

    has_ended = False
    is_current = False
    step: Callable[[], bool] | None = None

    def start(self, step: Callable[[], bool]) -> None:
        self.step = step

    def make(self) -> None:
        trace = sys.gettrace()
        sys.settrace(None)
        try:
            for _ in range(TURNS):
                if self.step is not None and not self.has_ended:
                    self.has_ended = not self.step()
        finally:
            sys.settrace(trace)

    def join(self, timeout_s: float | None) -> bool:
        while not self.has_ended:
            self.make()
        return True


class Waiting(Selector):
    """While the program waits, the other thread has its turns."""

    def __init__(self, clock: ManualClock, turns: Turns) -> None:
        super().__init__(clock)
        self._turns = turns

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        self._turns.make()
        super().poll(0 if timeout_ms is None else min(timeout_ms, HEARTBEAT_MS), handler)


def offsets_read(interrupter: Interrupter, strategy: str) -> list[int]:
    """What a member reads that is interrupted, while its group rebalances twice."""
    clock, coordinator, turns = ManualClock(), Coordinator(), Turns()
    selector, group_selector = Waiting(clock, turns), Patient(clock)

    def waited(request: Any, header: Any) -> Any:
        if request.topics[0].partitions[0].fetch_offset >= RECORDS:
            clock.advance_ms(request.max_wait_ms)
        return fetched(request, header)

    selector.answers |= {ApiKey.METADATA: describe, ApiKey.FETCH: waited, ApiKey.LIST_OFFSETS: listed}
    group_selector.answers |= coordinator.answers
    config = {
        "bootstrap.servers": "b1:9092",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "max.poll.records": 2,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": strategy,
    }
    consumer = Consumer(
        config,
        selector=selector,
        clock=clock,
        random=Random(1),
        group_selector=group_selector,
        group_runner=turns,
    )
    read: list[int] = []
    is_subscribed = False
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        for _ in range(120):
            try:
                if not is_subscribed:
                    consumer.subscribe(["t"])
                    is_subscribed = True
                read += [record.offset for record in consumer.poll(0.5)]
            except KeyboardInterrupt:
                continue
            if coordinator.begins(len(read)):
                clock.advance_ms(HEARTBEAT_MS)
                turns.make()
            if len(read) >= RECORDS:
                break
    finally:
        sys.settrace(before)
    for _ in range(20):
        # A rebalance may be under way, in which nothing can be committed.
        assert consumer.poll(0.1) == []
    assert consumer.position(KEY) == RECORDS
    consumer.close()
    assert coordinator.generation >= 2
    assert coordinator.committed[KEY] == RECORDS
    return read


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_an_interrupted_member_reads_each_record_once(strategy: str) -> None:
    """Wherever it comes: in a listener's place, in a commit before partitions are given away, in taking new ones."""
    play(strategy, 401)


@pytest.mark.full
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_member_that_is_interrupted_at_any_line_reads_each_record_once(strategy: str) -> None:
    """The same for every line that is run."""
    play(strategy, 1)


def play(strategy: str, step: int) -> None:
    counting = OutsideOfLocks(None)
    assert offsets_read(counting, strategy) == list(range(RECORDS))
    for at in range(0, counting.count, step):
        interrupter = OutsideOfLocks(at)
        try:
            read = offsets_read(interrupter, strategy)
        except (AssertionError, RuntimeError) as error:
            raise AssertionError(f"line {at}: {interrupter.where}: {error!r}") from error
        assert read == list(range(RECORDS)), f"line {at}: {interrupter.where}"
