"""Joining and rebalancing: delays, who is left out, who leads, which protocol, and what a failed append does."""

from __future__ import annotations

import pytest

from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.group.world import GROUP, REBALANCE_MS, SESSION_MS, WAITS, World, protocols

A, B, C = "c-1", "c-2", "c-3"
DELAY_MS = 3_000


def test_a_first_rebalance_waits_for_more_members() -> None:
    """KIP-134: the delay runs again for each round with a new member, and the leader alone is told the members."""
    world = World()
    first = world.join()
    world.advance(DELAY_MS - 1)
    second = world.join()
    world.advance(1)
    assert world.answer(first) is world.answer(second) is WAITS
    world.advance(DELAY_MS)
    assert [each.member_id for each in world.answers[first].members] == [A, B]
    assert world.answers[second].members == ()
    assert world.answers[second].leader == A
    assert world.answers[second].generation_id == 1


def test_the_delay_ends_with_the_rebalance_timeout() -> None:
    """Members that come all the time cannot hold the first generation back for longer."""
    world = World()
    first = world.join(rebalance_ms=10_000)
    begin_ms = world.now_ms
    while world.answer(first) is WAITS:
        world.advance(1_000)
        if world.answer(first) is WAITS:
            world.join(rebalance_ms=10_000)
    assert world.now_ms - begin_ms == 10_000


def test_a_returning_group_waits_for_one_delay() -> None:
    """The delay is extended in the first generation alone."""
    world = World()
    (member,) = world.form(None)
    world.leave(MemberIdentity(member))
    world.settle()
    waiter = world.join()
    world.advance(DELAY_MS - 1)
    world.join()
    world.advance(1)
    assert world.answers[waiter].generation_id == 3


def test_who_does_not_join_again_is_left_out() -> None:
    """After the largest rebalance timeout; another member leads if that was the leader."""
    world = World()
    world.form(None, None)
    joined = world.join(B, protocols=protocols("range", topic="u"))
    for _ in range(3):
        world.advance(REBALANCE_MS // 3 - 1)
        world.heartbeat(A, 1)
    assert world.answer(joined) is WAITS
    world.advance(3)
    answer = world.answers[joined]
    assert (answer.error_code, answer.leader, answer.generation_id) == (ErrorCode.NONE, B, 2)
    assert list(world.group.members) == [B]
    assert world.heartbeat(A, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_dead_member_does_not_hold_a_rebalance_back() -> None:
    """Its session ends, and the rest continue without it."""
    world = World()
    world.form(None, None)
    joined = world.join(A)
    world.advance(SESSION_MS)
    assert world.answers[joined].generation_id == 2
    assert list(world.group.members) == [A]


def test_who_does_not_sync_is_removed() -> None:
    """After the rebalance timeout, although its heartbeats come; the others join again."""
    world = World()
    world.form(None, None)
    world.join(A)
    world.join(B)
    waiter = world.sync(A, 2)
    world.settle()
    assert world.answers[waiter].error_code is ErrorCode.NONE
    for _ in range(7):
        world.advance(4_300)
        for member_id in (A, B):
            world.heartbeat(member_id, 2)
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert list(world.group.members) == [A]
    joined = world.join(A)
    assert world.answers[joined].generation_id == 3


def test_a_leader_that_does_not_sync_is_removed() -> None:
    """Those that wait for its assignment are told to join again."""
    world = World()
    world.form(None, None)
    world.join(A)
    world.join(B)
    waiting = world.sync(B, 2)
    for _ in range(7):
        world.advance(4_300)
        world.heartbeat(A, 2)
    assert world.answers[waiting].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.group.members) == [B]


def test_a_session_does_not_end_while_the_member_waits() -> None:
    """A known member in a rebalance sends no heartbeats; its session begins with the answer."""
    world = World()
    world.form(None, None)
    joined = world.join(A, session_ms=6_000)
    for _ in range(3):
        world.advance(8_000)
        world.heartbeat(B, 1)
    assert world.answer(joined) is WAITS
    world.join(B)
    assert world.answers[joined].generation_id == 2
    world.advance(5_999)
    assert A in world.group.members
    world.advance(1)
    assert A not in world.group.members


def test_a_new_member_does_not_wait_forever() -> None:
    """Whether its connection is there is not known: after five minutes it is removed and told to come again."""
    world = World()
    world.form("static")
    waiter = world.join(rebalance_ms=1_000_000)
    for _ in range(60):
        world.advance(5_000)
        world.heartbeat("static-1", 1, "static")
    assert world.answers[waiter].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_assignment_is_told_when_it_is_stored() -> None:
    """No one gets it before; members that the leader left out get nothing."""
    world = World()
    waiters = [world.join(), world.join()]
    world.advance(2 * DELAY_MS)
    follower = world.sync(B, 1)
    leader = world.sync(A, 1, {A: b"all", "c-9": b"a stranger's"})
    assert world.answer(follower) is world.answer(leader) is WAITS
    world.settle()
    assert (world.answers[leader].assignment, world.answers[follower].assignment) == (b"all", b"")
    assert world.group.state is GroupState.STABLE
    assert len(waiters) == 2


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_an_assignment_that_is_not_stored_is_told_to_no_one(failed: ErrorCode, told: ErrorCode) -> None:
    """All that wait get the error, and the group rebalances."""
    world = World()
    for _ in range(2):
        world.join()
    world.advance(2 * DELAY_MS)
    waiters = [world.sync(B, 1), world.sync(A, 1, {A: b"all"})]
    world.settle(failed)
    assert [world.answers[each].error_code for each in waiters] == [told, told]
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_generation_has_one_assignment() -> None:
    """A leader that asks again with another one, while the first is being stored, gets the first."""
    world = World()
    world.join()
    world.advance(DELAY_MS)
    first = world.sync(A, 1, {A: b"one"})
    second = world.sync(A, 1, {A: b"other"})
    assert world.answers[first].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.settle()
    assert world.answers[second].assignment == b"one"
    assert len(world.log) == 1


def test_an_assignment_of_a_generation_that_is_over_is_told_to_no_one() -> None:
    """A member came while it was being stored."""
    world = World()
    world.form(None, None)
    world.join(A)
    world.join(B)
    waiting = world.sync(A, 2, {A: b"old"})
    world.join()
    assert world.answers[waiting].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    world.settle()
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_an_assignment_of_the_generation_before_is_told_to_no_one() -> None:
    """Its append ends when the next generation waits for its own."""
    world = World()
    world.form(None, None)
    for member_id in (A, B):
        world.join(member_id)
    world.sync(A, 2, {A: b"old"})
    world.join(B, protocols=protocols("range", topic="u"))
    world.join(A)
    waiting = world.sync(B, 3)
    world.settle()
    assert world.answer(waiting) is WAITS
    world.sync(A, 3, {B: b"new"})
    world.settle()
    assert world.answers[waiting].assignment == b"new"


def test_a_member_that_joins_twice_is_answered_twice() -> None:
    """The first request is a lost connection's: it ends when the second comes."""
    world = World()
    world.form(None, None)
    first = world.join(A)
    second = world.join(A)
    assert world.answers[first].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.answer(second) is WAITS


def test_a_member_that_leaves_ends_its_own_requests() -> None:
    """What waits of it is told that it is no member."""
    world = World()
    world.form(None, None)
    joining = world.join(A)
    world.leave(MemberIdentity(A))
    assert world.answers[joining].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    world.join(B)
    world.join()
    world.join(B)
    waiting = world.sync(C, 3)
    world.leave(MemberIdentity(C))
    assert world.answers[waiting].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_several_members_leave_at_once() -> None:
    """Each is answered by itself (a static one by its instance), and the last one empties the group."""
    world = World()
    world.form(None, "i")
    answer = world.leave(MemberIdentity(A), MemberIdentity("", "i"), MemberIdentity("c-9"), MemberIdentity("", "x"))
    errors = [each.error_code for each in answer.members]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.group.state is GroupState.EMPTY
    assert world.group.generation_id == 2


def test_a_member_id_is_required_first() -> None:
    """KIP-394: the id that was handed out is used within a session, and a rebalance waits for it that long."""
    world = World()
    refused = world.answers[world.join(version=4)]
    assert (refused.error_code, refused.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, A)
    waiter = world.join(A, version=4)
    world.advance(DELAY_MS)
    assert world.answers[waiter].member_id == A
    world.sync(A, 1)
    world.settle()
    world.join(version=4)
    again = world.join(A, version=4)
    assert world.answer(again) is WAITS
    world.advance(SESSION_MS)
    assert world.answers[again].generation_id == 2
    assert world.answers[world.join(B, version=4)].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_may_leave() -> None:
    """An id that was handed out and is given back no longer holds a rebalance back."""
    world = World()
    world.form(None)
    world.join(version=4)
    waiter = world.join(A)
    assert world.leave(MemberIdentity(B)).members[0].error_code is ErrorCode.NONE
    assert world.answers[waiter].generation_id == 2


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_sessions_have_bounds(session_ms: int) -> None:
    """Neither too short nor too long ones."""
    world = World()
    assert world.answers[world.join(session_ms=session_ms)].error_code is ErrorCode.INVALID_SESSION_TIMEOUT


def test_the_group_id_and_the_coordinator_are_checked_first() -> None:
    """An empty id, a partition that is led elsewhere, and one that is being read."""
    world = World()
    assert world.coordinator.status("") is ErrorCode.INVALID_GROUP_ID
    assert world.coordinator.status("another") is ErrorCode.NOT_COORDINATOR
    world.coordinator.resigned(42, 0)
    world.coordinator.elected(42, 9)
    assert world.answers[world.join()].error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.answers[world.sync(A, 1)].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(A, 1) is ErrorCode.NONE
    error_code, listed = world.coordinator.listing()
    assert (error_code, list(listed)) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


def test_a_group_has_room_for_so_and_so_many() -> None:
    """KIP-389: new members are refused in a full group; in a rebalance, the last ones to join."""
    world = World(GroupSettings(group_max_size=2))
    world.form(None, None)
    assert world.answers[world.join()].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    world.join(A)
    assert world.answers[world.join(B)].error_code is ErrorCode.NONE
    assert world.group.state is GroupState.COMPLETING_REBALANCE


def test_a_group_has_room_for_some_bytes() -> None:
    """Of ids, protocols and metadata, and a kilobyte for each member: what does not fit is refused, to no effect."""
    small, large = (("range", bytes(size)) for size in (1_000, 7_000))
    world = World(GroupSettings(group_max_bytes=10_000))
    world.form(None, None)
    before = world.group.size_bytes
    assert world.answers[world.join(protocols=(large,) * 2)].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.answers[world.join(A, protocols=(large,) * 2)].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert (world.group.state, world.group.size_bytes) == (GroupState.STABLE, before)
    world.join(A, protocols=(*protocols("range"), small))
    assert world.group.size_bytes > before + 1_000
    world.leave(MemberIdentity(A), MemberIdentity(B))
    assert world.group.size_bytes == 0


def test_ids_that_are_handed_out_count() -> None:
    """A new member that finds no room gets none; those that are members can join again."""
    world = World(GroupSettings(group_max_bytes=10_000))
    world.form(None)
    answers = [world.answers[world.join(version=9)].error_code for _ in range(20)]
    assert answers[0] is ErrorCode.MEMBER_ID_REQUIRED
    assert answers[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.group.size_bytes <= 10_000 + 1_000
    world.join(A)
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_a_version_without_rebalance_timeout_uses_the_session() -> None:
    """JoinGroup 0 has no rebalance timeout: the session timeout takes its place (KIP-62)."""
    world = World()
    world.join(version=0)
    assert world.group.members[A].rebalance_timeout_ms == SESSION_MS


def test_most_votes_choose_the_protocol() -> None:
    """Each member votes for its first protocol that all support."""
    world = World()
    waiters = [
        world.join(protocols=protocols(*names))
        for names in (("range", "sticky", "roundrobin"), ("own", "sticky", "range"), ("sticky", "range"))
    ]
    world.advance(2 * DELAY_MS)
    assert {world.answers[each].protocol_name for each in waiters} == {"sticky"}
    assert world.answers[waiters[0]].members[1].metadata == protocols("sticky")[0][1]


def test_groups_are_described_and_listed() -> None:
    """Metadata and assignments in Stable alone; an unknown group is Dead; states are named in any case."""
    world = World()
    world.form(None)
    told = world.coordinator.describe(GROUP)
    assert (told.state, told.protocol_type, told.protocol_name) == (GroupState.STABLE, "consumer", "range")
    assert (told.members[0].metadata, told.members[0].assignment) == (protocols("range")[0][1], A.encode())
    world.join()
    told = world.coordinator.describe(GROUP)
    assert (told.state, told.protocol_name) == (GroupState.PREPARING_REBALANCE, "")
    assert [each.metadata for each in told.members] == [b"", b""]
    assert world.coordinator.describe("test-group").error_code is ErrorCode.NOT_COORDINATOR
    assert [each and each.group_id for each in world.coordinator.listing(["preparingREBALANCE"])[1]] == [GROUP]
    assert list(world.coordinator.listing(["Stable"])[1]) == [None]
    unknown = World().coordinator.describe(GROUP)
    assert (unknown.error_code, unknown.state) == (ErrorCode.NONE, GroupState.DEAD)


def test_an_assignment_that_cannot_be_stored_is_refused_before_it_is_made() -> None:
    """Its members are told, and join again."""
    world = World(GroupSettings(message_max_bytes=1000))
    waiter = world.join()
    world.advance(world.settings.group_initial_rebalance_delay_ms)
    member_id = world.answers[waiter].member_id
    synced = world.sync(member_id, 1, {member_id: b"a" * 2000})
    assert world.answers[synced].error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.appends and world.group.state is GroupState.PREPARING_REBALANCE


def test_names_of_protocols_that_no_member_offers_are_forgotten() -> None:
    """A member may offer other names each time it joins."""
    world = World()
    [member_id] = world.form(None)
    for number in range(50):
        world.join(member_id, protocols=protocols("range", f"of-{number}"))
    assert world.group.supporters.offered == {"range", "of-49"}
