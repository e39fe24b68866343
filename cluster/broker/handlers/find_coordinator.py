"""FindCoordinator (10): single keys up to version 3, several from version 4.

A group has the leader of its partition of ``__consumer_offsets``. That topic is created when first asked for; before
there is a leader, COORDINATOR_NOT_AVAILABLE has clients ask again. Transactions have none: the first refusal is logged.
"""

from __future__ import annotations

import logging
from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.location import CoordinatorType, Location, not_available, refused
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
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
    """Where the coordinator is. The first refusal of each kind is logged, and no other: clients may ask again."""
    if key_type == CoordinatorType.GROUP:
        return _of_group(services, key, exchange.listener)
    found = refused(key_type, key)
    if key_type not in services.not_coordinated and found.message is not None:
        services.not_coordinated.add(key_type)
        client = f"client {exchange.client_id!r}"
        logger.warning("%.200s asked without success: %.300s. Said once; see docs/apis.md", client, found.message)
    return found


def _of_group(services: Services, group_id: str, listener: str) -> Location:
    """The leader of the group's partition, as those who ask on ``listener`` reach it."""
    metadata = services.metadata
    if metadata.topic(OFFSETS_TOPIC) is None:
        services.topic_creator.create(OFFSETS_TOPIC)
        return not_available(f"{OFFSETS_TOPIC} is being created")
    partition = metadata.partition(OFFSETS_TOPIC, services.groups.partition_of(group_id))
    endpoint = None if partition is None else metadata.endpoint(partition.leader, listener)
    if partition is None or endpoint is None:
        return not_available(f"the partition of {OFFSETS_TOPIC} has no leader")
    return Location(ErrorCode.NONE, None, partition.leader, endpoint.host, endpoint.port)
