"""One membership, step by step: what each answer of the coordinator, and each silence, leads to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.consumer.group.group_errors import (
    FencedInstanceId,
    GroupError,
)
from cluster.client.consumer.group.group_requests import (
    GroupRequest,
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    SyncGroup,
)
from cluster.client.consumer.group.membership_values import (
    DivideAmong,
    MembershipState,
    PrepareJoin,
    TakeAssignment,
)
from cluster.protocol.errors import ErrorCode
from tests.cluster.client.consumer.group.membership_setting import (
    BACKOFF_MS,
    GONE,
    HEARTBEAT_MS,
    MAX_POLL_MS,
    NODE,
    SESSION_MS,
    Setting,
)

FATAL = [
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]
_S = MembershipState


def test_the_way_into_a_group():
    """Prepare, find, join without an id, join with the one that was given, sync, take, and show that it is alive."""
    setting = Setting()
    first = setting.subscribe()
    assert isinstance(first, JoinGroup) and first.member_id == "" and first.timeout_ms == 30_000
    setting.answer(first, ErrorCode.MEMBER_ID_REQUIRED, member_id="me")
    again = setting.only(JoinGroup)
    assert isinstance(again, JoinGroup) and again.member_id == "me"
    sync = setting.join(again, leader="me")
    assert isinstance(sync, SyncGroup) and sync.assignments == {"me": b"a"} and sync.generation.generation_id == 3
    assert setting.membership.committing is None
    setting.answer(sync, assignment=b"mine")
    assert setting.membership.state is _S.STABLE
    assert setting.membership.next_step == TakeAssignment(setting.membership.generation, b"mine")
    assert setting.membership.committing is None
    setting.take()
    assert setting.membership.committing == setting.membership.generation
    assert setting.tick() == [] and setting.core.wake_ms() == HEARTBEAT_MS
    setting.answer(setting.beat())
    assert setting.membership.next_step is None


@pytest.mark.parametrize("code", GONE)
@pytest.mark.parametrize("phase", [JoinGroup, SyncGroup])
def test_a_coordinator_that_is_gone(phase: type, code: ErrorCode):
    """Another one is looked for, and joined with the same id; its connection is dropped."""
    setting = Setting()
    request = setting.subscribe()
    if phase is SyncGroup:
        request = setting.join(request)
    setting.answer(request, code)
    assert setting.tick() == [] and [each.node_id for each in setting.dropped] == [NODE.broker_id]
    assert setting.core.wake_ms() == BACKOFF_MS
    setting.now_ms += BACKOFF_MS
    setting.find()
    again = setting.only(JoinGroup)
    assert isinstance(again, JoinGroup) and again.member_id == ("me" if phase is SyncGroup else "")
    assert again.protocols == (("range", b"s"),)


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS])
@pytest.mark.parametrize("phase", [JoinGroup, SyncGroup])
def test_a_rebalance_that_has_to_be_repeated(phase: type, code: ErrorCode):
    """After a pause, at the same coordinator; pauses grow."""
    setting = Setting()
    request = setting.subscribe()
    for failures in range(3):
        if phase is SyncGroup:
            request = setting.join(request)
        setting.answer(request, code)
        assert setting.tick() == [] and setting.core.wake_ms() == setting.now_ms + (BACKOFF_MS << failures)
        setting.now_ms += BACKOFF_MS << failures
        request = setting.only(JoinGroup)


@pytest.mark.parametrize(
    ("phase", "code", "member_id"),
    [
        (JoinGroup, ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (SyncGroup, ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (SyncGroup, ErrorCode.ILLEGAL_GENERATION, "me"),
        (MemberHeartbeat, ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (MemberHeartbeat, ErrorCode.ILLEGAL_GENERATION, "me"),
    ],
)
def test_a_generation_that_is_over(phase: type, code: ErrorCode, member_id: str):
    """The program has lost everything before the member joins again; with its id, if that may hold."""
    setting = Setting()
    if phase is MemberHeartbeat:
        setting.settle()
        request = setting.beat()
    else:
        request = setting.subscribe()
        request = setting.join(request) if phase is SyncGroup else request
    setting.answer(request, code)
    assert setting.membership.state is _S.UNJOINED and setting.tick() == []
    assert setting.prepare().is_lost
    again = setting.only(JoinGroup)
    assert isinstance(again, JoinGroup) and again.member_id == member_id


def test_a_rebalance_that_others_began():
    """The member gives away what the protocol demands, and joins with its id; until then it stays alive."""
    setting = Setting()
    setting.settle()
    setting.answer(setting.beat(), ErrorCode.REBALANCE_IN_PROGRESS)
    setting.answer(setting.beat(), ErrorCode.REBALANCE_IN_PROGRESS)
    assert setting.membership.committing is not None
    assert not setting.prepare().is_lost
    assert setting.membership.committing is None
    request = setting.only(JoinGroup)
    assert isinstance(request, JoinGroup) and request.member_id == "me"


@pytest.mark.parametrize("code", [*GONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_a_heartbeat_without_effect(code: ErrorCode):
    """The member stays in its generation and tries again before the interval is over."""
    setting = Setting()
    setting.settle()
    setting.answer(setting.beat(), code)
    setting.now_ms += BACKOFF_MS
    if code in GONE:
        setting.find()
    setting.only(MemberHeartbeat)
    assert setting.membership.state is _S.STABLE and setting.membership.next_step is None


@pytest.mark.parametrize("code", FATAL)
@pytest.mark.parametrize("phase", [JoinGroup, SyncGroup])
def test_a_refusal_is_told_and_tried_again_after_that(phase: type, code: ErrorCode):
    """Nothing is asked before the program has heard of it."""
    setting = Setting()
    request = setting.subscribe()
    if phase is SyncGroup:
        request = setting.join(request)
    setting.answer(request, code)
    setting.now_ms += 1_000
    assert setting.tick() == []
    error = setting.membership.take_error()
    assert isinstance(error, GroupError) and error.error_code is code
    setting.only(JoinGroup)
    assert setting.membership.take_error() is None


@pytest.mark.parametrize("phase", [JoinGroup, MemberHeartbeat])
def test_who_is_fenced_stays_so(phase: type):
    """Two consumers with one group.instance.id would take its place from each other forever."""
    setting = Setting("a")
    if phase is JoinGroup:
        request = setting.subscribe()
    else:
        setting.settle()
        request = setting.beat()
    setting.answer(request, ErrorCode.FENCED_INSTANCE_ID)
    for _ in range(2):
        setting.now_ms += 10_000
        assert setting.tick() == []
        assert isinstance(setting.membership.take_error(), FencedInstanceId)


def test_groups_of_other_types_are_refused():
    """A group that is not one of consumers, or another protocol than the one that was joined."""
    setting = Setting()
    setting.answer(setting.subscribe(), member_id="me", generation_id=1, protocol_type="connect", leader="x")
    error = setting.membership.take_error()
    assert error is not None and error.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    setting.answer(setting.join(setting.only(JoinGroup)), protocol_name="other")
    error = setting.membership.take_error()
    assert error is not None and error.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_session_without_an_answer():
    """The coordinator is looked for again; the member keeps its place until someone says that it has none."""
    setting = Setting()
    setting.settle()
    setting.beat()
    setting.now_ms += SESSION_MS
    assert setting.tick() == [] and len(setting.dropped) == 1
    setting.now_ms += BACKOFF_MS
    setting.find()
    assert setting.membership.state is _S.STABLE
    assert setting.membership.next_step is None


@pytest.mark.parametrize("instance", [None, "a"])
def test_a_program_that_does_not_poll(instance: str | None):
    """A dynamic member leaves, a static one only falls silent; both lose everything, and join when there is a poll."""
    setting = Setting(instance)
    setting.settle()
    while setting.now_ms + HEARTBEAT_MS < MAX_POLL_MS:
        setting.answer(setting.beat())
    setting.now_ms = MAX_POLL_MS
    left = setting.tick()
    assert [type(each) for each in left] == ([LeaveGroup] if instance is None else [])
    assert setting.prepare().is_lost
    setting.membership.polled(setting.now_ms)
    request = setting.only(JoinGroup)
    assert isinstance(request, JoinGroup) and request.member_id == ""


def test_a_member_may_be_closed_and_remain_in_its_group():
    """KIP-1092: it says nothing to the coordinator, not even over a JoinGroup that waits, and nothing is left to do."""
    for joins in (Setting.settle, Setting.subscribe):
        setting = Setting()
        joins(setting)
        setting.membership.unsubscribe("closed", remains_in_group=True)
        assert setting.tick() == [] and setting.dropped == []
        assert setting.core.is_idle and setting.core.wake_ms() is None
        assert setting.membership.generation.member_id == ""


def test_leaving_does_not_wait_for_a_rebalance():
    """A JoinGroup that waits holds up its connection: the member leaves over another one."""
    setting = Setting()
    request = setting.subscribe()
    setting.answer(request, ErrorCode.MEMBER_ID_REQUIRED, member_id="me")
    setting.only(JoinGroup)
    setting.membership.unsubscribe("closed")
    (leave,) = setting.tick()
    assert isinstance(leave, LeaveGroup) and leave.member_id == "me"
    assert [each.node_id for each in setting.dropped] == [NODE.broker_id]
    assert not setting.core.is_idle
    setting.answer(leave)
    assert setting.core.is_idle and setting.tick() == [] and setting.core.wake_ms() is None


def test_late_answers_are_passed_over():
    """Those to a request of a life before change nothing."""
    setting = Setting()
    setting.settle()
    late = setting.beat()
    setting.membership.reset("out")
    setting.answer(late, ErrorCode.UNKNOWN_MEMBER_ID)
    setting.prepare()
    join = setting.only(JoinGroup)
    setting.membership.reset("out again")
    setting.answer(join, member_id="x", generation_id=9, leader="y")
    assert setting.membership.state is _S.UNJOINED and setting.membership.generation.is_lost


CODES = st.sampled_from(list(ErrorCode))


@given(st.lists(st.tuples(st.integers(0, 3), CODES, st.integers(0, 8_000)), max_size=40), st.booleans())
def test_no_answer_leaves_a_member_stuck(events: list[tuple[int, ErrorCode, int]], is_static: bool):
    """Whatever is answered, or not: there is a request in flight, a step for the program, an error to be told, or a
    time at which there will be; and once all goes well, it is a member again.
    """
    setting = Setting("a" if is_static else None)
    flight: list[GroupRequest] = []
    setting.membership.subscribe(0)

    def carry_on() -> None:
        setting.membership.polled(setting.now_ms)
        step = setting.membership.next_step
        if isinstance(step, PrepareJoin):
            setting.membership.prepared(step, (("range", b""),))
        elif isinstance(step, DivideAmong):
            setting.membership.divided(step, {})
        elif isinstance(step, TakeAssignment):
            setting.membership.take(step)
            setting.membership.taken(step)

    def well(request: GroupRequest) -> None:
        fields = {"member_id": "me", "generation_id": 3, "leader": "me", "coordinator": NODE}
        setting.answer(request, **fields)

    for what, code, pause_ms in events:
        if what == 0:
            carry_on()
        elif what == 1 and flight:
            setting.answer(flight.pop(0), code, member_id="given")
        elif what == 2 and flight:
            well(flight.pop(0))
        else:
            setting.now_ms += pause_ms
        flight += setting.tick()
        wake_ms = setting.core.wake_ms()
        has_error = setting.membership._error is not None
        assert flight or has_error or setting.membership.next_step is not None or wake_ms is not None
    for _ in range(40):
        if isinstance(setting.membership.take_error(), FencedInstanceId):
            return
        carry_on()
        flight += setting.tick()
        while flight:
            well(flight.pop(0))
        setting.now_ms += 300
        if setting.membership.state is _S.STABLE and setting.membership.next_step is None:
            return
    raise AssertionError(f"not a member again: {setting.core}")
