"""What a rebalance does in the program's thread, and what a program may and may not ask of a consumer with a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.client import Consumer, ConsumerWokenUp, RebalanceListener
from cluster.client.consumer.group.group_errors import GroupError, ListenerFailed
from cluster.client.consumer.group.membership_values import MembershipState
from cluster.config.errors import ConfigError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.cluster.client.consumer.group.model_group import ModelGroup
from tests.cluster.client.consumer.test_consumer import describe
from tests.cluster.client.scripted_selector import ScriptedSelector


class Steps:
    """A runner whose steps are a test's to make."""

    has_ended = False
    is_current = True

    def start(self, step: Callable[[], bool]) -> None:
        self.step = step

    def join(self, timeout_s: float | None) -> bool:
        return False


class Setting:
    """A consumer on a cluster that tells who leads, and nothing else."""

    def __init__(self, **keys: Any) -> None:
        self.clock = ManualClock()
        self.selector, self.group_selector = ScriptedSelector(self.clock), ScriptedSelector(self.clock)
        self.selector.answers[ApiKey.METADATA] = self.group_selector.answers[ApiKey.METADATA] = describe
        self.runner = Steps()
        given = {name.replace("_", "."): value for name, value in keys.items()}
        self.consumer = Consumer(
            {"bootstrap.servers": "b1:9092", **given},
            selector=self.selector,
            clock=self.clock,
            random=Random(1),
            group_selector=self.group_selector,
            group_runner=self.runner,
        )


def test_what_needs_a_group_says_so() -> None:
    """Without a group.id nothing is subscribed to, nor committed; and it is one or the other way to get partitions."""
    consumer = Setting().consumer
    for call in (
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.commit_sync({("t", 0): 1}),
        lambda: consumer.commit_async(),
        lambda: consumer.committed([("t", 0)]),
        consumer.group_metadata,
    ):
        with pytest.raises(RuntimeError, match=r"set 'group\.id'"):
            call()
    with pytest.raises(RuntimeError, match="assigned any partitions: call subscribe or assign first"):
        consumer.poll()
    member = Setting(group_id="g").consumer
    member.subscribe(["t"])
    with pytest.raises(RuntimeError, match="mutually exclusive"):
        member.assign([("t", 0)])
    member.subscribe([])
    member.assign([("t", 0)])
    with pytest.raises(RuntimeError, match="mutually exclusive"):
        member.subscribe(["t"])
    for wrong, error in (("t", TypeError), ([1], TypeError), ([""], ValueError)):
        with pytest.raises(error):
            member.subscribe(wrong)
    for offsets in ({("t", 0): -1}, {("t", 0): 2**63}, {("t", 0): "1"}, {("t", 0): (1, 2, 3, 4)}, [("t", 0)]):
        with pytest.raises((TypeError, ValueError)):
            member.commit_sync(offsets)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"enable.auto.commit": True}, r"needs 'group\.id'"),
        ({"group.instance.id": "a"}, r"needs 'group\.id'"),
        ({"group.id": "g", "partition.assignment.strategy": ""}, "is empty"),
        ({"group.id": "g", "partition.assignment.strategy": "rnage"}, "range, roundrobin, sticky"),
        ({"group.id": "g", "session.timeout.ms": 1000}, "must be below"),
    ],
)
def test_settings_of_groups_are_checked(keys: dict[str, Any], says: str) -> None:
    """Before anything is connected to."""
    with pytest.raises(ConfigError, match=says):
        Consumer({"bootstrap.servers": "b1:9092", **keys})


def test_a_wait_is_ended_by_wakeup() -> None:
    """The call that waits, or else the next one, and only that one; nothing is lost."""
    setting = Setting(group_id="g")
    consumer = setting.consumer
    consumer.assign([("t", 0)])
    consumer.seek(("t", 0), 7)
    consumer.wakeup()
    with pytest.raises(ConsumerWokenUp):
        consumer.poll(1)
    assert consumer.poll(0.1) == []
    setting.selector.events.append(lambda _handler: consumer.wakeup())
    with pytest.raises(ConsumerWokenUp):
        consumer.commit_sync(timeout_s=1)
    with pytest.raises(TimeoutError, match="a commit of offsets"):
        consumer.commit_sync(timeout_s=1)
    assert consumer.position(("t", 0)) == 7


def test_a_poll_that_waits_long_is_a_poll() -> None:
    """It takes part in the group in time, whatever its own timeout is."""
    setting = Setting(group_id="g", max_poll_interval_ms=10_000)
    setting.consumer.subscribe(["t"])
    setting.consumer.poll(60)
    assert max(timeout_ms or 0 for timeout_ms in setting.selector.timeouts) <= 5_000


def stable(group: ModelGroup) -> None:
    """Let the one member have everything."""
    group.come_to_rest()
    assert group.members[0].core.membership.state is MembershipState.STABLE


def test_a_listener_that_fails_ends_no_rebalance() -> None:
    """The first exception is told when the step is done, once; what was assigned is read."""

    class Failing(RebalanceListener):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def on_partitions_assigned(self, partitions: list[tuple[str, int]]) -> None:
            self.calls.append("assigned")
            raise ValueError("mine")

        def on_partitions_revoked(self, partitions: list[tuple[str, int]]) -> None:
            self.calls.append("revoked")
            raise KeyError("mine too")

    group = ModelGroup(3)
    (member,) = group.members
    listener = Failing()
    stable(group)
    member.participation.subscribe(["t", "u"], listener)
    raised = []
    for _ in range(60):
        try:
            member.participation.step(group.now_ms)
        except ListenerFailed as error:
            raised.append(error.__cause__)
        member.commits.tell_ended()
        member.tick()
        group.deliver_of(member)
        group.settle()
        group.pass_time(100)
    assert len(member.positions.assignment.assigned) == sum(group.counts.values())
    assert [type(each) for each in raised] == [
        {"assigned": ValueError, "revoked": KeyError}[call] for call in listener.calls
    ]
    assert "assigned" in listener.calls


def test_a_refused_request_is_sent_again_after_it_was_told() -> None:
    """Nothing else wakes the connection then: it was left to wait for the program."""
    setting = Setting(group_id="g")
    setting.consumer.subscribe(["t"])
    group = setting.consumer._group
    assert group is not None
    with group.io.lock:
        group.io.core.membership.fail(GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, "full"))
    before = setting.group_selector.wakeups
    with pytest.raises(GroupError, match="full"):
        setting.consumer.poll()
    assert setting.group_selector.wakeups == before + 1
