"""DescribeCluster (60): the live brokers, as seen on the listener that was asked."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.metadata import brokers_on, controller_on
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import DescribeClusterRequest, DescribeClusterResponse

#: ``endpoint_type`` of the brokers; the other one is for controllers of KRaft.
BROKERS = 1


def handle(services: Services, request: DescribeClusterRequest, exchange: Exchange) -> Steps[DescribeClusterResponse]:
    metadata = services.metadata
    yield None
    if exchange.api_version >= 1 and request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"endpoint type {request.endpoint_type}",
            cluster_id=metadata.cluster_id or "",
            brokers=[],
        )
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=metadata.cluster_id or "",
        controller_id=controller_on(metadata, exchange.listener),
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.broker_id, host=end.host, port=end.port, rack=broker.rack
            )
            for broker, end in brokers_on(metadata, exchange.listener)
        ],
    )
