"""What an admin is told about groups: listings, descriptions and their members. Owns these shapes and their reading."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, decode_assignment
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.message_classes import DescribeGroupsResponse
from cluster.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """``state`` is Kafka's name of it, empty if the broker does not tell (before KIP-518).

    ``group_type`` is Kafka's name, too: Classic, or Consumer of the newer protocol; empty before KIP-848. Of either,
    ``protocol_type`` says what its members are, such as ``consumer`` or ``connect``.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str = ""


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """``partitions`` are what a consumer is assigned; None if that is not told, or cannot be read."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """``protocol_name`` is the assignor of a group of consumers; ``state`` is Dead for a group that does not exist."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    coordinator_id: int
    members: tuple[DescribedMember, ...]


def described_group(told: DescribeGroupsResponse.DescribedGroup, coordinator_id: int) -> DescribedGroup:
    """One group of the answer of its coordinator."""
    is_of_consumers = told.protocol_type == CONSUMER_PROTOCOL_TYPE
    members = tuple(
        DescribedMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _partitions(bytes(each.member_assignment)) if is_of_consumers else None,
        )
        for each in told.members
    )
    return DescribedGroup(
        told.group_id, told.group_state, told.protocol_type, told.protocol_data, coordinator_id, members
    )


def _partitions(assignment: bytes) -> tuple[TopicPartition, ...] | None:
    try:
        return decode_assignment(assignment).partitions
    except MalformedRequest:
        return None
