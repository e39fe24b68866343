"""A core of a group member whose coordinator is the test, and what its answers may be."""

from __future__ import annotations

from cluster.client.cluster_view import BrokerAddress
from cluster.client.consumer.group.group_core import GroupCore
from cluster.client.consumer.group.group_requests import (
    DropConnection,
    FindGroupCoordinator,
    GroupAnswer,
    GroupRequest,
    JoinGroup,
    MemberHeartbeat,
    SendGroupRequest,
    SyncGroup,
)
from cluster.client.consumer.group.membership_values import (
    DivideAmong,
    MembershipSettings,
    PrepareJoin,
    TakeAssignment,
)
from cluster.protocol.errors import ErrorCode

NODE = BrokerAddress(7, "b", 9092)
SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS, BACKOFF_MS = 6_000, 1_000, 20_000, 100
GONE = [
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
]


class Setting:
    """A core whose program does at once what it is asked, and a coordinator that is this test."""

    def __init__(self, instance: str | None = None) -> None:
        settings = MembershipSettings("g", instance, SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS, 30_000)
        self.core = GroupCore(settings, lambda failures: BACKOFF_MS << failures)
        self.membership = self.core.membership
        self.now_ms = 0
        self.dropped: list[DropConnection] = []

    def tick(self) -> list[GroupRequest]:
        requests = []
        for action in self.core.tick(self.now_ms):
            if isinstance(action, SendGroupRequest):
                assert action.node == (None if isinstance(action.request, FindGroupCoordinator) else NODE)
                requests.append(action.request)
            else:
                self.dropped.append(action)
        return requests

    def only(self, kind: type) -> GroupRequest:
        (request,) = self.tick()
        assert isinstance(request, kind), request
        return request

    def answer(self, request: GroupRequest, code: ErrorCode = ErrorCode.NONE, **fields: object) -> None:
        self.core.answered(request, GroupAnswer(code, **fields), self.now_ms)  # type: ignore[arg-type]

    def find(self) -> None:
        self.answer(self.only(FindGroupCoordinator), coordinator=NODE)

    def prepare(self) -> PrepareJoin:
        step = self.membership.next_step
        assert isinstance(step, PrepareJoin)
        self.membership.prepared(step, (("range", b"s"),))
        return step

    def subscribe(self) -> GroupRequest:
        """As far as the first JoinGroup."""
        self.membership.subscribe(self.now_ms)
        self.prepare()
        self.find()
        return self.only(JoinGroup)

    def join(self, request: GroupRequest, leader: str = "other") -> GroupRequest:
        """As far as SyncGroup; the member is a follower unless it is the leader."""
        self.answer(request, member_id="me", generation_id=3, protocol_name="range", leader=leader)
        step = self.membership.next_step
        if leader == "me":
            assert isinstance(step, DivideAmong)
            self.membership.divided(step, {"me": b"a"})
        return self.only(SyncGroup)

    def settle(self) -> None:
        """As far as Stable, with the assignment taken."""
        self.answer(self.join(self.subscribe()), assignment=b"")
        self.take()

    def take(self) -> None:
        step = self.membership.next_step
        assert isinstance(step, TakeAssignment)
        self.membership.take(step)
        self.membership.taken(step)

    def beat(self) -> GroupRequest:
        self.now_ms += HEARTBEAT_MS
        return self.only(MemberHeartbeat)
