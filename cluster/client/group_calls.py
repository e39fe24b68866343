"""Questions and orders about groups: list, describe and delete them, and their committed offsets.

Owns the calls, and that each goes to the coordinator of its group, which is looked for again when it is another one.
Does not own membership: that is a consumer's (``cluster.client.consumer.group``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from cluster.client.argument_checks import checked_keys, checked_list, checked_text
from cluster.client.cluster_calls import require
from cluster.client.cluster_view import BrokerAddress
from cluster.client.committed_offset import OffsetAndMetadata, checked_offsets
from cluster.client.coordinator_lookup import GROUP, find_coordinator_request, found_coordinator
from cluster.client.group_descriptions import DescribedGroup, ListedGroup, described_group
from cluster.client.offset_messages import commit_codes, commit_request, fetch_request, fetched_offsets
from cluster.client.partition_calls import PartitionCalls
from cluster.client.retried_calls import Retriable
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    Request,
)
from cluster.topic_partition import TopicPartition, partition_name

Found = TypeVar("Found")
Answer = TypeVar("Answer")


class GroupCalls(PartitionCalls):
    """Every call raises ``TimeoutError`` at the deadline, and ``AdminError`` for what waiting does not change."""

    async def list_groups(self, states: Iterable[str] = ()) -> list[ListedGroup]:
        """All groups, or those in these states (Kafka's names of them), by their ids. All brokers must answer."""
        wanted = [checked_text(each, "the state of a group") for each in checked_list(states, "states of groups")]

        async def attempt() -> list[ListedGroup]:
            view = await self._metadata([])
            found: dict[str, ListedGroup] = {}
            for broker_id in view.brokers:
                response = await self._ask_broker(broker_id, ListGroupsRequest(states_filter=wanted, types_filter=[]))
                require(response.error_code, f"groups of broker {broker_id}")
                for each in response.groups:
                    # brokers write the type in small letters, and Kafka's tools do not
                    told = each.group_state or "", (each.group_type or "").capitalize()
                    found[each.group_id] = ListedGroup(each.group_id, each.protocol_type, *told)
            return [found[group_id] for group_id in sorted(found)]

        return await self._retrying("ListGroups", attempt)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, DescribedGroup]:
        """State, members and what each is assigned. A group that does not exist is Dead."""
        return {group_id: await self._describe(group_id) for group_id in _checked_groups(group_ids)}

    async def _describe(self, group_id: str) -> DescribedGroup:
        async def ask(coordinator: BrokerAddress) -> DescribedGroup:
            question = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=False)
            [told] = (await self._ask_coordinator(coordinator, question)).groups
            require(told.error_code, f"group {group_id}")
            return described_group(told, coordinator.broker_id)

        return await self._of_coordinator("DescribeGroups", group_id, ask)

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Forget groups without members, with their offsets; one that was there at no attempt is an error."""
        for group_id in _checked_groups(group_ids):
            await self._delete(group_id)

    async def _delete(self, group_id: str) -> None:
        is_unsure = False

        async def ask(coordinator: BrokerAddress) -> None:
            nonlocal is_unsure
            try:
                response = await self._ask_coordinator(coordinator, DeleteGroupsRequest(groups_names=[group_id]))
            except OSError:
                is_unsure = True
                raise
            for result in response.results:
                code = ErrorCode.of(result.error_code)
                if not (is_unsure and code is ErrorCode.GROUP_ID_NOT_FOUND):
                    require(code, f"group {group_id} is not deleted")

        await self._of_coordinator("DeleteGroups", group_id, ask)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget what a group has committed of topics that no member subscribes to (KIP-496)."""
        wanted = checked_keys(partitions)
        topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic

        async def ask(coordinator: BrokerAddress) -> None:
            topics = [
                topic_class(
                    name=topic,
                    partitions=[topic_class.OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
                )
                for topic, numbers in by_topic(wanted).items()
            ]
            response = await self._ask_coordinator(coordinator, OffsetDeleteRequest(group_id=group_id, topics=topics))
            require(response.error_code, f"offsets of group {group_id} are not deleted")
            for topic in response.topics:
                for each in topic.partitions:
                    require(each.error_code, f"the offset of {topic.name}-{each.partition_index} is not deleted")

        await self._of_coordinator("OffsetDelete", checked_text(group_id, "the id of a group"), ask)

    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed of these, or of all; a partition without an offset is left out."""
        wanted = None if partitions is None else checked_keys(partitions)

        async def ask(coordinator: BrokerAddress) -> dict[TopicPartition, OffsetAndMetadata]:
            question = fetch_request(group_id, wanted, require_stable=require_stable)
            found = fetched_offsets(await self._ask_coordinator(coordinator, question))
            if isinstance(found, ErrorCode):
                require(found, f"offsets of group {group_id}")
                return {}
            offsets = {}
            for key, place in found.items():
                if isinstance(place, ErrorCode):
                    require(place, f"the offset of {partition_name(key)}")
                elif place is not None:
                    offsets[key] = place
            return offsets

        return await self._of_coordinator("OffsetFetch", checked_text(group_id, "the id of a group"), ask)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Have a group without members continue there. With members it is UNKNOWN_MEMBER_ID: they must leave before."""
        wanted = checked_offsets(offsets)

        async def ask(coordinator: BrokerAddress) -> None:
            response = await self._ask_coordinator(coordinator, commit_request(group_id, wanted))
            for key, code in commit_codes(response).items():
                require(code, f"the offset of {partition_name(key)} in group {group_id} is not altered")

        await self._of_coordinator("OffsetCommit", checked_text(group_id, "the id of a group"), ask)

    async def _of_coordinator(
        self, what: str, key: str, ask: Callable[[BrokerAddress], Awaitable[Found]], key_type: int = GROUP
    ) -> Found:
        """What the coordinator of a group, or of a transactional id, says; asked again as long as that may change."""
        whose = f"{'group' if key_type == GROUP else 'transactional id'} {key}"

        async def attempt() -> Found:
            found = found_coordinator(await self._ask_any(find_coordinator_request(key, key_type)))
            require(found.error_code, f"the coordinator of {whose}")
            if found.broker is None:
                raise Retriable(f"no coordinator of {whose}")
            return await ask(found.broker)

        return await self._retrying(f"{what} of {whose}", attempt)

    async def _ask_coordinator(self, coordinator: BrokerAddress, message: Request[Answer]) -> Answer:
        return await self._send((coordinator.host, coordinator.port), message)


def _checked_groups(group_ids: object) -> list[str]:
    return [checked_text(each, "the id of a group") for each in checked_list(group_ids, "ids of groups")]
