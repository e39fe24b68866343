"""FindCoordinator (10): single keys up to version 3, several from version 4."""

from __future__ import annotations

from typing import Any

from cluster.broker.portions import Steps
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.coordinator.location import locate
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class

BATCH_VERSION = 4


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.FIND_COORDINATOR)
    if exchange.api_version < BATCH_VERSION:
        found = locate(request.key_type, request.key)
        return response(
            error_code=found.error_code,
            error_message=found.message,
            node_id=found.broker_id,
            host=found.host,
            port=found.port,
            coordinators=[],
        )
    answers = []
    for key in dict.fromkeys(request.coordinator_keys):
        found = locate(request.key_type, key)
        answers.append(
            response.Coordinator(
                key=key,
                error_code=found.error_code,
                error_message=found.message,
                node_id=found.broker_id,
                host=found.host,
                port=found.port,
            )
        )
        yield None
    return response(coordinators=answers)
