"""Which ports of a cluster are fixed, and where its clients come in. A value; any other port is a free one."""

from __future__ import annotations

from dataclasses import dataclass

HOST = "127.0.0.1"
#: The listener and the group of links by which clients of a cluster without a load come in.
CLIENTS = "producers"


@dataclass(frozen=True, slots=True)
class FixedPorts:
    """The first broker's port for clients and for metrics, 0 for free ones; the other brokers' ports follow.

    With ``behind_links`` clients come in through the links ``producers-b1`` ..., which faults can cut; the ports are
    then those of the links.
    """

    clients: int = 0
    metrics: int = 0
    behind_links: bool = False
    #: Of the port by which faults break a broker's disk and clock: 0 for a free one, -1 for none.
    fault: int = -1

    def control(self, broker_id: int) -> int:
        """The port of a broker's control listener; 0 for a free one, like those below."""
        return 0 if self.behind_links else _following(self.clients, broker_id)

    def metrics_of(self, broker_id: int) -> int:
        """The port of a broker's metrics."""
        return _following(self.metrics, broker_id)

    def listen(self, link: str) -> str:
        """Where a link's proxy is to listen, ``host:port``."""
        group, _, broker = link.rpartition("-b")
        is_clients = self.behind_links and group == CLIENTS
        return f"{HOST}:{_following(self.clients, int(broker)) if is_clients else 0}"


FREE_PORTS = FixedPorts()


def _following(first: int, broker_id: int) -> int:
    return first + broker_id - 1 if first else 0
