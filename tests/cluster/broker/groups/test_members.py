"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup over the wire: what members are told, in every version."""

from __future__ import annotations

import asyncio

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.groups.scenes import GROUP, Member, coordinator_of, member_of, service, stable, with_groups
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins(version: int) -> None:
    """From version 4 on it gets its id first, and comes again with it. It leads, and is told its members."""

    async def check(_cluster: MemoryCluster, member: Member) -> None:
        answer = await member.join(version=version)
        if version >= 4:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert answer.protocol_name == (None if version >= 7 else "")
            answer = await member.join(version=version)
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
        assert answer.leader == answer.member_id == member.member_id
        assert member.member_id.startswith("client-")
        assert [(each.member_id, each.metadata) for each in answer.members] == [(member.member_id, b"subscription")]
        assert getattr(answer, "protocol_type", None) == ("consumer" if version >= 7 else None)

    with_groups(check)


@pytest.mark.parametrize("version", range(6))
def test_an_assignment_is_told(version: int) -> None:
    """What the leader brings is stored before anybody is told."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        await member.joined()
        answer = await member.sync({member.member_id: b"all"}, version=version)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
        group = service(cluster, coordinator_of(cluster)).coordinator.group(GROUP)
        assert group is not None and group.members[member.member_id].client_host.startswith("/")

    with_groups(check)


def test_a_member_must_name_its_protocol() -> None:
    """From version 5 of SyncGroup on; another one than the group's is refused as well."""

    async def check(_cluster: MemoryCluster, member: Member) -> None:
        await member.joined()
        for names in ({"protocol_name": None}, {"protocol_type": None}, {"protocol_name": "other"}):
            answer = await member.sync({member.member_id: b"all"}, **names)
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    with_groups(check)


@pytest.mark.parametrize("version", range(5))
def test_heartbeats(version: int) -> None:
    """Members are alive; strangers and former generations are told that they are none."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        (member,) = await stable(cluster, 1)
        assert await member.heartbeat(version=version) is ErrorCode.NONE
        member.generation_id += 1
        assert await member.heartbeat(version=version) is ErrorCode.ILLEGAL_GENERATION
        member.member_id = "stranger"
        assert await member.heartbeat(version=version) is ErrorCode.UNKNOWN_MEMBER_ID
        member.group_id = ""
        assert await member.heartbeat(version=version) is ErrorCode.INVALID_GROUP_ID

    with_groups(check)


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves(version: int) -> None:
    """The others are told to join again; up to version 2 a stranger is an error of the whole, then of its own."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        first, second = await stable(cluster, 2)
        assert (await second.leave(version=version)).error_code == ErrorCode.NONE
        assert await first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        again = await second.leave(version=version)
        if version < 3:
            assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        else:
            assert again.error_code == ErrorCode.NONE
            assert [each.error_code for each in again.members] == [ErrorCode.UNKNOWN_MEMBER_ID]
        answer = await first.join()
        assert [each.member_id for each in answer.members] == [first.member_id]

    with_groups(check)


def test_a_rebalance_waits_for_all() -> None:
    """A third member makes the others join again; its own JoinGroup is answered when they have."""

    async def check(cluster: MemoryCluster, third: Member) -> None:
        first, second = await stable(cluster, 2)
        waiting = asyncio.ensure_future(third.joined())
        await asyncio.sleep(0.5)
        assert not waiting.done()
        assert await first.heartbeat() is await second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        await asyncio.gather(first.join(), second.join())
        assert (await waiting).generation_id == first.generation_id == second.generation_id == 2

    with_groups(check)


def test_a_silent_member_goes() -> None:
    """After its session timeout, and not before; the rebalance that follows does not wait for it."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        first, second = await stable(cluster, 2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        heard = [await first.heartbeat()]
        while heard[-1] is ErrorCode.NONE:
            await asyncio.sleep(0.1)
            heard.append(await first.heartbeat())
        assert heard[-1] is ErrorCode.REBALANCE_IN_PROGRESS
        assert 9.9 <= loop.time() - began <= 10.2
        assert len((await first.join()).members) == 1
        assert await second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID

    with_groups(check)


def test_a_connection_that_waits_can_be_lost() -> None:
    """A member whose connection ends while it waits joins again on another one, and no answer goes astray."""

    async def check(cluster: MemoryCluster, third: Member) -> None:
        first, _second = await stable(cluster, 2)
        await third.join()
        waiting = asyncio.ensure_future(third.join())
        await asyncio.sleep(0.1)
        third.client.connection.close()
        with pytest.raises(ConnectionError):
            await waiting
        third.client = Client(await cluster.connect(coordinator_of(cluster)))
        waiting = asyncio.ensure_future(third.join())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await asyncio.gather(first.join(), _second.join())
        assert (await waiting).error_code == ErrorCode.NONE

    with_groups(check)


def test_settings_are_the_brokers() -> None:
    """Session timeouts outside the bounds, and one member more than a group may have."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        for timeout_ms in (6999, 20_001):
            answer = await member.join(session_timeout_ms=timeout_ms)
            assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        await stable(cluster, 1)
        answer = await member.joined()
        assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED

    with_groups(
        check,
        group_min_session_timeout_ms="7000",
        group_max_session_timeout_ms="20000",
        group_max_size="1",
    )


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    """It takes the place of its former life, which is fenced; the group stays as it is (KIP-345)."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        await member.join(instance="i")
        await member.sync({member.member_id: b"all"}, group_instance_id="i")
        former = member.member_id
        again = await member_of(cluster)
        answer = await again.join(instance="i")
        assert (answer.error_code, answer.generation_id, answer.skip_assignment) == (ErrorCode.NONE, 1, True)
        assert again.member_id != former and again.member_id.startswith("i-")
        identity = request_class(ApiKey.LEAVE_GROUP).MemberIdentity
        left = await again.client.send(
            ApiKey.LEAVE_GROUP, 5, group_id=GROUP,
            members=[
                identity(member_id=former, group_instance_id="i", reason=None),
                identity(member_id="", group_instance_id="i", reason=None),
            ],
        )  # fmt: skip
        codes = [each.error_code for each in left.members]
        assert codes == [ErrorCode.FENCED_INSTANCE_ID, ErrorCode.NONE]

    with_groups(check)


def test_another_broker_is_no_coordinator() -> None:
    """NOT_COORDINATOR, for every request of a member."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        other = next(broker for broker in cluster.broker_ids if broker != coordinator_of(cluster))
        member = Member(Client(await cluster.connect(other)))
        assert (await member.join()).error_code == ErrorCode.NOT_COORDINATOR
        assert (await member.sync()).error_code == ErrorCode.NOT_COORDINATOR
        assert await member.heartbeat() is ErrorCode.NOT_COORDINATOR
        assert (await member.leave()).error_code == ErrorCode.NOT_COORDINATOR
        assert set((await member.commit({("t", 0): 1})).values()) == {ErrorCode.NOT_COORDINATOR}
        assert await member.committed() == (ErrorCode.NOT_COORDINATOR, {})

    with_groups(check, brokers=3)
