"""Requests of groups that name very much, or tell very much: each is answered, and no other client waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target

MANY = 100_000
GROUP = "group"
#: Of the loop's processor time: a busy machine adds to it, and what is decoded in another thread does as well.
BOUND_S = 0.25


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker that coordinates groups all alone."""
    alone = {"offsets_topic_replication_factor": "1", "offsets_topic_num_partitions": "1"}
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


def fetch_partitions() -> tuple[ApiKey, int, dict[str, Any]]:
    group = request_class(ApiKey.OFFSET_FETCH).OffsetFetchRequestGroup
    topics = [group.OffsetFetchRequestTopics(name="t", partition_indexes=list(range(MANY)))]
    asked = [group(group_id=GROUP, topics=topics)]
    return ApiKey.OFFSET_FETCH, 8, {"group_id": "", "topics": None, "groups": asked, "require_stable": True}


def fetch_groups() -> tuple[ApiKey, int, dict[str, Any]]:
    group = request_class(ApiKey.OFFSET_FETCH).OffsetFetchRequestGroup
    asked = [group(group_id=f"{number}", topics=None) for number in range(MANY)]
    return ApiKey.OFFSET_FETCH, 8, {"group_id": "", "topics": None, "groups": asked, "require_stable": True}


def leave() -> tuple[ApiKey, int, dict[str, Any]]:
    identity = request_class(ApiKey.LEAVE_GROUP).MemberIdentity
    members = [identity(member_id=f"{number}", group_instance_id=None, reason=None) for number in range(MANY)]
    return ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "member_id": "", "members": members}


def commit() -> tuple[ApiKey, int, dict[str, Any]]:
    topic = request_class(ApiKey.OFFSET_COMMIT).OffsetCommitRequestTopic
    fields = {"committed_offset": 1, "committed_leader_epoch": 0, "committed_metadata": ""}
    partitions = [topic.OffsetCommitRequestPartition(partition_index=number, **fields) for number in range(MANY)]
    who = {"group_id": GROUP, "member_id": "", "group_instance_id": None, "generation_id_or_member_epoch": -1}
    return ApiKey.OFFSET_COMMIT, 8, {**who, "retention_time_ms": -1, "topics": [topic(name="t", partitions=partitions)]}


def delete_groups() -> tuple[ApiKey, int, dict[str, Any]]:
    return ApiKey.DELETE_GROUPS, 2, {"groups_names": [f"{number}" for number in range(MANY)]}


def describe_groups() -> tuple[ApiKey, int, dict[str, Any]]:
    names = [f"{number}" for number in range(MANY)]
    return ApiKey.DESCRIBE_GROUPS, 5, {"groups": names, "include_authorized_operations": False}


@pytest.mark.parametrize("asked", [fetch_partitions, fetch_groups, leave, commit, delete_groups, describe_groups])
def test_a_request_that_names_very_much(coordinator: Target, member: Plain, asked: Any) -> None:
    """A hundred thousand things that are not there: each is answered."""
    api_key, version, fields = asked()
    with watching(coordinator) as watch:
        answer = member.send(api_key, version, **fields)
    assert len(answers(api_key, answer)) == MANY
    assert watch.turn_s < BOUND_S, watch


def answers(api_key: ApiKey, answer: Any) -> list[Any]:
    if api_key is ApiKey.OFFSET_FETCH:
        return answer.groups if len(answer.groups) > 1 else answer.groups[0].topics[0].partitions
    if api_key is ApiKey.OFFSET_COMMIT:
        return answer.topics[0].partitions
    names = {ApiKey.LEAVE_GROUP: "members", ApiKey.DELETE_GROUPS: "results", ApiKey.DESCRIBE_GROUPS: "groups"}
    return getattr(answer, names[api_key])


def test_a_group_id_that_is_very_long(member: Plain) -> None:
    """Kafka's strings have 32,767 bytes at most, also where their length is a varint."""
    asked = {"key_type": 0, "coordinator_keys": ["g" * 32_767]}
    assert len(member.send(ApiKey.FIND_COORDINATOR, 4, **asked).coordinators) == 1
    with pytest.raises((EOFError, ConnectionError)):
        member.send(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["g" * 32_768])
