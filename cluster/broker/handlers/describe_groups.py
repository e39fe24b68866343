"""DescribeGroups (15): the state of groups and what their members told and were assigned."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.protocol.message_classes import DescribeGroupsRequest, DescribeGroupsResponse


def handle(services: Services, request: DescribeGroupsRequest, _exchange: Exchange) -> Steps[DescribeGroupsResponse]:
    group_class = DescribeGroupsResponse.DescribedGroup
    groups = []
    for group_id in dict.fromkeys(request.groups):
        found = services.groups.coordinator.describe(group_id)
        members = []
        for member in found.members:
            members.append(
                group_class.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata,
                    member_assignment=member.assignment,
                )
            )
            yield None
        groups.append(
            group_class(
                error_code=found.error_code,
                group_id=group_id,
                group_state="" if found.state is None else found.state.value,
                protocol_type=found.protocol_type,
                protocol_data=found.protocol_name,
                members=members,
            )
        )
        yield None
    return DescribeGroupsResponse(groups=groups)
