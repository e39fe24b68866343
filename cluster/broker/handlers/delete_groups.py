"""DeleteGroups (42): groups without members go, with what they have committed."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.protocol.message_classes import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(services: Services, request: DeleteGroupsRequest, _exchange: Exchange) -> DeleteGroupsResponse:
    pause = Pauses(services.shares)
    deletions = {}
    for group_id in dict.fromkeys(request.groups_names):
        deletions[group_id] = services.groups.delete_group(group_id)
        await pause()
    results = []
    for group_id, deletion in deletions.items():
        results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=await deletion))
        await pause()
    return DeleteGroupsResponse(results=results)
