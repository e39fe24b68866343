"""What a broker tells others of its listeners. Pure: owns the choice between what was bound and what is advertised."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.broker.control.endpoints import Endpoint
from cluster.config.broker import BrokerConfig


def advertised_endpoints(config: BrokerConfig, ports: Mapping[str, int]) -> list[Endpoint]:
    """One endpoint a listener, in the order of ``listeners``; ``ports`` are those that were bound.

    ``advertised.listeners`` wins; a listener that is absent there, or has the port 0, is told as it was bound.
    """
    advertised = {address.name: address for address in config.advertised_listeners}
    endpoints = []
    for bound in config.listeners:
        host, port = bound.told_host, ports[bound.name]
        told = advertised.get(bound.name)
        if told is not None:
            host, port = told.told_host if told.host else host, told.port or port
        endpoints.append(Endpoint(bound.name, host, port))
    return endpoints
