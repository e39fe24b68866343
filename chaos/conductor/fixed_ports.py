"""Says which ports of a cluster are fixed, and whether clients connect through links. Every other port is a free one.

Owns the value and the arithmetic. Binds no port (``chaos.conductor.held_ports`` holds the free ones).
"""

from __future__ import annotations

from dataclasses import dataclass

HOST = "127.0.0.1"
#: The name of the listener and of the group of links at which clients connect to a cluster without a load.
CLIENTS = "producers"


@dataclass(frozen=True, slots=True)
class FixedPorts:
    """The first broker's ports for clients and for metrics, 0 for free ones. The other brokers get the following ones.

    With ``behind_links``, clients connect through the links ``producers-b1`` and so on, which faults can cut. Then
    ``clients`` is the port of the first of these links.
    """

    clients: int = 0
    metrics: int = 0
    behind_links: bool = False
    #: The fault port, by which faults break a broker's disk and clock: 0 for a free one, -1 for none.
    fault: int = -1

    def control(self, broker_id: int) -> int:
        """The port of a broker's control listener; 0 for a free one."""
        return 0 if self.behind_links else _following(self.clients, broker_id)

    def metrics_of(self, broker_id: int) -> int:
        """The port of a broker's metrics; 0 for a free one."""
        return _following(self.metrics, broker_id)

    def listen(self, link: str) -> str:
        """The ``host:port`` on which a link listens, with port 0 for a free one."""
        group, _, broker = link.rpartition("-b")
        is_clients = self.behind_links and group == CLIENTS
        return f"{HOST}:{_following(self.clients, int(broker)) if is_clients else 0}"


FREE_PORTS = FixedPorts()


def _following(first: int, broker_id: int) -> int:
    return first + broker_id - 1 if first else 0
