"""ListGroups (16): the groups that this broker coordinates, of some states from version 4 on, of some types from 5."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.protocol.message_classes import ListGroupsRequest, ListGroupsResponse

#: The one type there is here.
_CLASSIC = "classic"


def handle(services: Services, request: ListGroupsRequest, _exchange: Exchange) -> Steps[ListGroupsResponse]:
    error_code, listed = services.groups.coordinator.listing(request.states_filter or ())
    types = {each.lower() for each in request.types_filter or ()}
    groups = []
    for group in listed if not types or _CLASSIC in types else ():
        if group is not None:
            groups.append(
                ListGroupsResponse.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state.value,
                    group_type=_CLASSIC,
                )
            )
        yield None
    return ListGroupsResponse(error_code=error_code, groups=groups)
