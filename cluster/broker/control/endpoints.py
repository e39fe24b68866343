"""Where this broker reaches its peers. Owns the choice between its own link and what the peer registered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.metadata.znodes import Endpoint

__all__ = ["Endpoint", "PeerAddresses"]


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
