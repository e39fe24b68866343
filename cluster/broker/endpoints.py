"""Where a broker is reached, and where it reaches its peers.

Owns two choices: between what was bound and what is advertised, and between this broker's own link to a peer and what
the peer has registered. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.config.broker import BrokerConfig
from cluster.metadata.znodes import Endpoint

__all__ = ["Endpoint", "PeerAddresses", "advertised_endpoints"]


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


class PeerAddresses:
    """Broker id -> (host, port) as seen from here.

    ``links`` is ``gapless.peer.addresses``: this broker's own, perhaps proxied, way to each peer. A peer without a
    link there is reached at its registered endpoint of the inter-broker listener.
    """

    def __init__(self, links: Mapping[int, tuple[str, int]], inter_broker_listener: str) -> None:
        self._links = dict(links)
        self.inter_broker_listener = inter_broker_listener

    def __repr__(self) -> str:
        return f"PeerAddresses({self._links}, {self.inter_broker_listener})"

    def address(self, broker_id: int, endpoints: Iterable[Endpoint] = ()) -> tuple[str, int] | None:
        """``endpoints`` are those that the peer registered. None if nothing is known of it."""
        link = self._links.get(broker_id)
        if link is not None:
            return link
        for endpoint in endpoints:
            if endpoint.listener == self.inter_broker_listener:
                return endpoint.host, endpoint.port
        return None
