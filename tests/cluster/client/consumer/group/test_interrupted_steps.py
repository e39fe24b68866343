"""A rebalance whose steps an exception (Ctrl-C) cuts short at any line: the next poll does what is left of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from cluster.client.consumer.group.group_requests import Generation, MemberToAssign
from cluster.client.consumer.group.membership_values import DivideAmong, MembershipState
from cluster.protocol.consumer_protocol import PartitionAssignment, encode_assignment
from tests.cluster.client.consumer.group.test_group_interrupts import OutsideOfLocks
from tests.cluster.client.consumer.group.test_participation import Setting

KEPT, REVOKED = ("t", 0), ("t", 1)
#: What the steps change.
STATE = (
    "group/member_life.py",
    "group/group_membership.py",
    "group/participation.py",
    "consumer/positions.py",
    "consumer/assignment.py",
)


class EachLineOnce(OutsideOfLocks):
    """Of the modules that keep state, the first time that it is run."""

    def __init__(self, at: int | None) -> None:
        super().__init__(at)
        self._seen: set[tuple[str, int]] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return super().__call__(frame, event, argument) if frame.f_code.co_filename.endswith(STATE) else None

    def line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        place = frame.f_code.co_filename, frame.f_lineno
        if event != "line" or place in self._seen:
            return self.line
        self._seen.add(place)
        return super().line(frame, event, argument)


class Rebalance:
    """A consumer that leads a group of one, has both partitions, and is to keep one of them: interrupted meanwhile."""

    def __init__(self, strategy: str, interrupter: EachLineOnce) -> None:
        self._interrupter = EachLineOnce(None)
        self.setting = Setting(group_id="g", partition_assignment_strategy=strategy, enable_auto_commit=False)
        group = self.setting.consumer._group
        assert group is not None
        self.group = group
        self.membership = group.io.core.membership
        self.positions = self.setting.consumer._core
        self._strategy = strategy
        self.setting.consumer.subscribe(["t"])
        # Metadata comes, and the first join is prepared.
        self.setting.consumer.poll(0.1)
        self._divide_and_take(1, [KEPT, REVOKED])
        self.membership.request_rejoin("told to")
        self._interrupter = interrupter
        self.steps()
        assert self.membership.state is MembershipState.PREPARING_REBALANCE
        self._divide_and_take(2, [KEPT])

    def steps(self) -> None:
        """As polls make them, of which one is interrupted."""
        before = sys.gettrace()
        for _ in range(2):
            sys.settrace(self._interrupter)
            try:
                self.group.participation.step(0)
            except KeyboardInterrupt:
                continue
            finally:
                sys.settrace(before)

    def _divide_and_take(self, number: int, assigned: list[tuple[str, int]]) -> None:
        assert self.membership._protocols is not None
        ((name, metadata),) = self.membership._protocols
        generation = Generation(number, "me", name)
        members = (MemberToAssign("me", None, metadata),)
        self.membership.joined(generation, DivideAmong(generation, members, is_skipped=False), 0)
        self.steps()
        assert self.membership.next_step is None and self.membership._assignments is not None
        self.membership.synced(encode_assignment(PartitionAssignment(tuple(assigned))), 0)
        self.steps()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_what_is_left_of_an_interrupted_step_is_done(strategy: str) -> None:
    """The leader divides, a cooperative member that gave something away joins again, and nothing is looked for that
    is not assigned.
    """
    counting = EachLineOnce(None)
    Rebalance(strategy, counting)
    assert counting.count > 80
    for at in range(counting.count):
        interrupter = EachLineOnce(at)
        member = Rebalance(strategy, interrupter)
        assert interrupter.where
        assert member.positions.assignment.assigned == [KEPT], interrupter.where
        assert list(member.positions.awaiting) == [KEPT], interrupter.where
        joins_again = member.membership.state is MembershipState.PREPARING_REBALANCE
        assert joins_again == (strategy == "cooperative-sticky"), interrupter.where
        assert joins_again or member.membership.committing == Generation(2, "me", strategy), interrupter.where
