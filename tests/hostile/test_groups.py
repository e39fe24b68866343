"""Requests of groups that name very much, or tell very much: each is answered, and no other client waits for it."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_request, request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target

pytestmark = pytest.mark.integration

MANY = 100_000
#: As many as a request may name, nearly.
MOST = 499_000
GROUP = "group"
#: Members of a large group, each with a connection; and what holds for a turn then, in which others are served.
LARGE = 3000
LARGE_BOUND_S = 0.1
#: Of the loop's processor time: a busy machine adds to it, and what is decoded in another thread does as well.
BOUND_S = 0.25


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker that coordinates groups all alone."""
    alone = {
        "offsets_topic_replication_factor": "1",
        "offsets_topic_num_partitions": "1",
        "group_initial_rebalance_delay_ms": "500",
    }
    with target(tmp_path_factory.mktemp("coordinator"), **alone) as found, Plain(found.port) as plain:
        assert until(lambda: is_found(plain), 30)
        yield found


def is_found(plain: Plain) -> bool:
    """Whether the coordinator is there, and has loaded its groups."""
    found = plain.send(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[GROUP])
    listed = plain.send(ApiKey.LIST_GROUPS, 4, states_filter=[])
    return not found.coordinators[0].error_code and not listed.error_code


@pytest.fixture
def member(coordinator: Target) -> Iterator[Plain]:
    with Plain(coordinator.port) as plain:
        yield plain


def join(plain: Plain, protocols: list[tuple[str, bytes]]) -> ErrorCode:
    request = request_class(ApiKey.JOIN_GROUP)
    offered = [request.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols]
    answer = plain.send(
        ApiKey.JOIN_GROUP, 9, group_id=GROUP, session_timeout_ms=6000, rebalance_timeout_ms=1000, member_id="",
        group_instance_id=None, protocol_type="consumer", protocols=offered, reason=None,
    )  # fmt: skip
    return ErrorCode(answer.error_code)


@pytest.mark.parametrize("protocols", [[("range", bytes(30_000_000))], [(f"{n}", b"") for n in range(MANY)]])
def test_a_member_that_tells_very_much(coordinator: Target, member: Plain, protocols: list[tuple[str, bytes]]) -> None:
    """gapless.group.max.bytes: it is refused, and nothing of it is kept."""
    for _ in range(2):
        assert join(member, protocols) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert coordinator.memory_at_rest_bytes() < 150_000_000
    assert join(member, [("range", b"")]) is ErrorCode.MEMBER_ID_REQUIRED


def join_frame(group_id: str, member_id: str = "", told: bytes = b"", version: int = 3, **fields: Any) -> bytes:
    """JoinGroup; up to version 3 of one who becomes a member at once."""
    request = request_class(ApiKey.JOIN_GROUP)
    who = {"group_id": group_id, "member_id": member_id, "group_instance_id": None, "protocol_type": "consumer"}
    timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, **fields}
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=told)]
    return encode_request(request(**who, **timeouts, protocols=protocols, reason=None), version, 1, "h")


def test_members_that_subscribe_to_very_many_topics(coordinator: Target) -> None:
    """Half a million each, which have no names: a rebalance does not read them."""
    frame = join_frame("topics", told=struct.pack(">hi", 0, MOST) + bytes(2 * MOST) + struct.pack(">i", -1))
    with watching(coordinator) as watch, Plain(coordinator.port) as one, Plain(coordinator.port) as other:
        for plain in (one, other):
            plain.put(frame)
        for plain in (one, other):
            _, answer = decode_response(ApiKey.JOIN_GROUP, 3, plain.take())
            assert answer.error_code == ErrorCode.NONE
    assert watch.turn_s < BOUND_S, watch


def sync_frame(group_id: str, member_id: str, told: list[str]) -> bytes:
    """SyncGroup in the first generation; a leader tells members an assignment."""
    request = request_class(ApiKey.SYNC_GROUP)
    given = [request.SyncGroupRequestAssignment(member_id=each, assignment=b"") for each in told]
    who = {"group_id": group_id, "member_id": member_id, "group_instance_id": None, "generation_id": 1}
    return encode_request(request(**who, protocol_type=None, protocol_name=None, assignments=given), 2, 1, "h")


def test_a_group_of_very_many_members(coordinator: Target) -> None:
    """All of them are answered when the last one has joined, and again when the leader has assigned: not in one turn
    of the loop, in which each answer takes 50 us."""
    with ExitStack() as stack:
        members = [stack.enter_context(Plain(coordinator.port)) for _ in range(LARGE)]
        for plain in members:
            plain.put(join_frame("large"))
        with watching(coordinator) as watch:
            joined = [decode_response(ApiKey.JOIN_GROUP, 3, plain.take())[1] for plain in members]
        assert {answer.error_code for answer in joined} == {ErrorCode.NONE}
        assert watch.turn_s < LARGE_BOUND_S, watch
        ids = [answer.member_id for answer in joined]
        for plain, member_id in zip(members[1:], ids[1:], strict=True):
            plain.put(sync_frame("large", member_id, []))
        with watching(coordinator) as watch:
            members[0].put(sync_frame("large", ids[0], ids))
            synced = [decode_response(ApiKey.SYNC_GROUP, 2, plain.take())[1] for plain in members]
        assert {answer.error_code for answer in synced} == {ErrorCode.NONE}
        assert watch.turn_s < LARGE_BOUND_S, watch


def fetch_partitions(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    group = request_class(ApiKey.OFFSET_FETCH).OffsetFetchRequestGroup
    topics = [group.OffsetFetchRequestTopics(name="t", partition_indexes=list(range(count)))]
    asked = [group(group_id=GROUP, topics=topics)]
    return ApiKey.OFFSET_FETCH, 8, {"group_id": "", "topics": None, "groups": asked, "require_stable": True}


def fetch_groups(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    group = request_class(ApiKey.OFFSET_FETCH).OffsetFetchRequestGroup
    asked = [group(group_id=f"{number}", topics=None) for number in range(count)]
    return ApiKey.OFFSET_FETCH, 8, {"group_id": "", "topics": None, "groups": asked, "require_stable": True}


def leave(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    identity = request_class(ApiKey.LEAVE_GROUP).MemberIdentity
    members = [identity(member_id=f"{number}", group_instance_id=None, reason=None) for number in range(count)]
    return ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "member_id": "", "members": members}


def commit(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    topic = request_class(ApiKey.OFFSET_COMMIT).OffsetCommitRequestTopic
    fields = {"committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
    partitions = [topic.OffsetCommitRequestPartition(partition_index=number, **fields) for number in range(count)]
    who = {"group_id": GROUP, "member_id": "", "group_instance_id": None, "generation_id_or_member_epoch": -1}
    return ApiKey.OFFSET_COMMIT, 8, {**who, "retention_time_ms": -1, "topics": [topic(name="t", partitions=partitions)]}


def delete_groups(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    return ApiKey.DELETE_GROUPS, 2, {"groups_names": [f"{number}" for number in range(count)]}


def describe_groups(count: int) -> tuple[ApiKey, int, dict[str, Any]]:
    names = [f"{number}" for number in range(count)]
    return ApiKey.DESCRIBE_GROUPS, 5, {"groups": names, "include_authorized_operations": False}


@pytest.mark.parametrize("count", [MANY, pytest.param(MOST, marks=pytest.mark.full)])
@pytest.mark.parametrize("asked", [fetch_partitions, fetch_groups, leave, commit, delete_groups, describe_groups])
def test_a_request_that_names_very_much(coordinator: Target, member: Plain, asked: Any, count: int) -> None:
    """A hundred thousand things that are not there: each is answered."""
    api_key, version, fields = asked(count)
    with watching(coordinator) as watch:
        answer = member.send(api_key, version, **fields)
    assert len(answers(api_key, answer)) == count
    assert watch.turn_s < BOUND_S, watch


def answers(api_key: ApiKey, answer: Any) -> list[Any]:
    if api_key is ApiKey.OFFSET_FETCH:
        return answer.groups if len(answer.groups) > 1 else answer.groups[0].topics[0].partitions
    if api_key is ApiKey.OFFSET_COMMIT:
        return answer.topics[0].partitions
    names = {ApiKey.LEAVE_GROUP: "members", ApiKey.DELETE_GROUPS: "results", ApiKey.DESCRIBE_GROUPS: "groups"}
    return getattr(answer, names[api_key])


def commit_frame(group_id: str, partitions: range, topic: str = "t") -> bytes:
    """OffsetCommit of one who is no member."""
    topic_class = request_class(ApiKey.OFFSET_COMMIT).OffsetCommitRequestTopic
    fields = {"committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
    asked = [topic_class.OffsetCommitRequestPartition(partition_index=number, **fields) for number in partitions]
    who = {"group_id": group_id, "member_id": "", "group_instance_id": None, "generation_id_or_member_epoch": -1}
    topics = [topic_class(name=topic, partitions=asked)]
    return encode_request(request_class(ApiKey.OFFSET_COMMIT)(**who, retention_time_ms=-1, topics=topics), 8, 1, "h")


def commits(plain: Plain, frames: list[bytes]) -> set[ErrorCode]:
    """Send all at once; what they are answered."""
    sender = threading.Thread(target=lambda: [plain.put(frame) for frame in frames])
    sender.start()
    errors = set()
    for _ in frames:
        _, answer = decode_response(ApiKey.OFFSET_COMMIT, 8, plain.take())
        errors |= {ErrorCode(each.error_code) for topic in answer.topics for each in topic.partitions}
    sender.join()
    return errors


def test_a_member_that_offers_other_protocols_each_time(coordinator: Target, member: Plain) -> None:
    """No name is kept that no member offers: 25 MB of them come here."""
    request = request_class(ApiKey.JOIN_GROUP)
    told = {
        "group_id": "names", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "group_instance_id": None,
        "protocol_type": "consumer", "reason": None,
    }  # fmt: skip
    member_id, before = "", coordinator.memory_at_rest_bytes()
    for round_ in range(25):
        names = ["range", *(f"{round_}-{number}".ljust(10_000, "x") for number in range(100))]
        offered = [request.JoinGroupRequestProtocol(name=name, metadata=b"") for name in names]
        answer = member.send(ApiKey.JOIN_GROUP, 3, member_id=member_id, protocols=offered, **told)
        assert answer.error_code == ErrorCode.NONE
        member_id = answer.member_id
    assert coordinator.memory_at_rest_bytes() < before + 15_000_000


def test_a_group_with_a_long_id_and_very_much_committed(coordinator: Target, member: Plain) -> None:
    """A commit that does not fit is refused before it is made; the group can be deleted, in many batches."""
    assert member.create_topic("t", 2000) == ErrorCode.NONE
    group_id = "g" * 32_767
    with watching(coordinator) as watch:
        assert commits(member, [commit_frame(group_id, range(2000))]) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        some = [commit_frame(group_id, range(first, first + 25)) for first in range(0, 1000, 25)]
        assert commits(member, some) == {ErrorCode.NONE}
        deleted = member.send(ApiKey.DELETE_GROUPS, 2, groups_names=[group_id])
        again = member.send(ApiKey.DELETE_GROUPS, 2, groups_names=[group_id])
    codes = [ErrorCode(answer.results[0].error_code) for answer in (deleted, again)]
    assert codes == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert watch.turn_s < BOUND_S, watch


def test_a_topic_goes_of_which_very_many_groups_have_offsets(coordinator: Target, member: Plain) -> None:
    """Their tombstones are written few at a time."""
    assert member.create_topic("read", 1) == ErrorCode.NONE
    assert commits(member, [commit_frame(f"{number}", range(1), "read") for number in range(4000)]) == {ErrorCode.NONE}
    with watching(coordinator) as watch:
        answer = member.send(ApiKey.DELETE_TOPICS, 5, topic_names=["read"], timeout_ms=30_000, topics=[])
        assert answer.responses[0].error_code == ErrorCode.NONE
        gone = {"group_id": "3999", "topics": None, "require_stable": False}
        assert until(lambda: not member.send(ApiKey.OFFSET_FETCH, 7, **gone).topics, 30)
    assert watch.turn_s < BOUND_S, watch
