"""ListGroups (16): the groups that this broker coordinates, of some states from version 4 on, of some types from 5."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class

#: The one type there is here.
_CLASSIC = "classic"


def handle(services: Services, request: Any, _exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.LIST_GROUPS)
    error_code, listed = services.groups.coordinator.listing(request.states_filter or ())
    types = {each.lower() for each in request.types_filter or ()}
    groups = []
    for group in listed if not types or _CLASSIC in types else ():
        groups.append(
            response.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state.value,
                group_type=_CLASSIC,
            )
        )
        yield None
    return response(error_code=error_code, groups=groups)
