"""FindCoordinator (10): single keys up to version 3, several from version 4. Logs each kind of key once."""

from __future__ import annotations

import logging
from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.location import Location, locate
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class

logger = logging.getLogger(__name__)

BATCH_VERSION = 4


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.FIND_COORDINATOR)
    if exchange.api_version < BATCH_VERSION:
        found = located(services, request.key_type, request.key, exchange)
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
        found = located(services, request.key_type, key, exchange)
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


def located(services: Services, key_type: int, key: str, exchange: Exchange) -> Location:
    """Where the coordinator is. The first refusal of each kind is logged, and no other: clients ask again and again."""
    found = locate(key_type, key)
    if key_type not in services.not_coordinated and found.message is not None:
        services.not_coordinated.add(key_type)
        client = f"client {exchange.client_id!r}"
        logger.warning("%.200s asked without success: %.300s. Said once; see docs/apis.md", client, found.message)
    return found
