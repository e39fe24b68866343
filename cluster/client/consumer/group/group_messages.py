"""A member's requests as messages, and what the responses say. Owns which field is what, for every version spoken.

Does not own decisions. Where a version names one key or group and a later one several, both are filled in.
"""

from __future__ import annotations

from typing import Any

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.consumer.group.group_requests import (
    CommitOffsets,
    FetchOffsets,
    FindGroupCoordinator,
    GroupAnswer,
    GroupRequest,
    JoinGroup,
    LeaveGroup,
    MemberHeartbeat,
    MemberToAssign,
    SyncGroup,
)
from cluster.client.coordinator_lookup import find_coordinator_request, found_coordinator
from cluster.client.offset_messages import commit_codes, commit_request, fetch_request, fetched_offsets
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Message,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from cluster.topic_partition import TopicPartition


def message_of(request: GroupRequest) -> Message:
    """The message to send."""
    if isinstance(request, FindGroupCoordinator):
        return find_coordinator_request(request.group_id)
    if isinstance(request, JoinGroup):
        return _join(request)
    if isinstance(request, SyncGroup):
        return _sync(request)
    if isinstance(request, MemberHeartbeat):
        return HeartbeatRequest(
            group_id=request.group_id,
            generation_id=request.generation.generation_id,
            member_id=request.generation.member_id,
            group_instance_id=request.group_instance_id,
        )
    if isinstance(request, LeaveGroup):
        member = LeaveGroupRequest.MemberIdentity(
            member_id=request.member_id, group_instance_id=None, reason=request.reason
        )
        return LeaveGroupRequest(group_id=request.group_id, member_id=request.member_id, members=[member])
    if isinstance(request, CommitOffsets):
        return commit_request(
            request.group_id,
            request.offsets,
            generation_id=request.generation.generation_id,
            member_id=request.generation.member_id,
            group_instance_id=request.group_instance_id,
        )
    return fetch_request(request.group_id, request.partitions, require_stable=True)


def answer_of(request: GroupRequest, response: Any) -> GroupAnswer:
    """What the response to ``request`` says."""
    if isinstance(request, FindGroupCoordinator):
        found = found_coordinator(response)
        return GroupAnswer(found.error_code, coordinator=found.broker)
    if isinstance(request, JoinGroup):
        return _joined(response)
    if isinstance(request, SyncGroup):
        return _synced(response)
    if isinstance(request, CommitOffsets):
        return GroupAnswer(partitions=commit_codes(response))
    if isinstance(request, FetchOffsets):
        return _fetched(request, response)
    return GroupAnswer(ErrorCode.of(response.error_code))


def _join(request: JoinGroup) -> JoinGroupRequest:
    protocol_class = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=request.group_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=[protocol_class(name=name, metadata=metadata) for name, metadata in request.protocols],
        reason=request.reason,
    )


def _joined(response: JoinGroupResponse) -> GroupAnswer:
    return GroupAnswer(
        ErrorCode.of(response.error_code),
        member_id=response.member_id,
        generation_id=response.generation_id,
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        leader=response.leader,
        skip_assignment=bool(response.skip_assignment),
        members=tuple(
            MemberToAssign(each.member_id, each.group_instance_id, bytes(each.metadata)) for each in response.members
        ),
    )


def _sync(request: SyncGroup) -> SyncGroupRequest:
    assignment_class = SyncGroupRequest.SyncGroupRequestAssignment
    return SyncGroupRequest(
        group_id=request.group_id,
        generation_id=request.generation.generation_id,
        member_id=request.generation.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.generation.protocol_name,
        assignments=[
            assignment_class(member_id=member_id, assignment=assignment)
            for member_id, assignment in request.assignments.items()
        ],
    )


def _synced(response: SyncGroupResponse) -> GroupAnswer:
    return GroupAnswer(
        ErrorCode.of(response.error_code),
        protocol_type=response.protocol_type,
        protocol_name=response.protocol_name,
        assignment=bytes(response.assignment or b""),
    )


def _fetched(request: FetchOffsets, response: OffsetFetchResponse) -> GroupAnswer:
    found = fetched_offsets(response)
    if isinstance(found, ErrorCode):
        return GroupAnswer(found)
    codes: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for key in request.partitions:
        answer = found.get(key)
        if isinstance(answer, ErrorCode):
            codes[key] = answer
        else:
            offsets[key] = answer
    return GroupAnswer(partitions=codes, offsets=offsets)
