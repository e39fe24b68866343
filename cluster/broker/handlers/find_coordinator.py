"""FindCoordinator (10): single keys up to version 3, several from version 4.

A group has the leader of its partition of ``__consumer_offsets``, a transactional id that of its partition of
``__transaction_state``. These topics are created when first asked for; before there is a leader,
COORDINATOR_NOT_AVAILABLE has clients ask again.
"""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.location import CoordinatorType, Location, not_available, refused
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import FindCoordinatorRequest, FindCoordinatorResponse

BATCH_VERSION = 4


def handle(services: Services, request: FindCoordinatorRequest, exchange: Exchange) -> Steps[FindCoordinatorResponse]:
    if exchange.api_version < BATCH_VERSION:
        found = _located(services, request.key_type, request.key, exchange.listener)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.message,
            node_id=found.broker_id,
            host=found.host,
            port=found.port,
            coordinators=[],
        )
    answers = []
    for key in dict.fromkeys(request.coordinator_keys):
        found = _located(services, request.key_type, key, exchange.listener)
        answers.append(
            FindCoordinatorResponse.Coordinator(
                key=key,
                error_code=found.error_code,
                error_message=found.message,
                node_id=found.broker_id,
                host=found.host,
                port=found.port,
            )
        )
        yield None
    return FindCoordinatorResponse(coordinators=answers)


def _located(services: Services, key_type: int, key: str, listener: str) -> Location:
    """Where the coordinator is, as those who ask on ``listener`` reach it."""
    if key_type == CoordinatorType.GROUP:
        return _leader_of(services, OFFSETS_TOPIC, services.groups.partition_of(key), listener)
    if key_type == CoordinatorType.TRANSACTION:
        return _leader_of(services, TRANSACTIONS_TOPIC, services.transactions.partition_of(key), listener)
    return refused(key_type)


def _leader_of(services: Services, topic: str, number: int, listener: str) -> Location:
    metadata = services.metadata
    if metadata.topic(topic) is None:
        services.topic_creator.create(topic)
        return not_available(f"{topic} is being created")
    partition = metadata.partition(topic, number)
    endpoint = None if partition is None else metadata.endpoint(partition.leader, listener)
    if partition is None or endpoint is None:
        return not_available(f"the partition of {topic} has no leader")
    return Location(ErrorCode.NONE, None, partition.leader, endpoint.host, endpoint.port)
