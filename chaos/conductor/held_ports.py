"""Reserves the ports of a run's brokers, so that no other process gets them while a broker is dead.

The links of a dead broker still lead to its last port. If the system gave that port to a broker of another cluster on
this machine, that broker would acknowledge writes of this run, and they would be missing here. Owns the sockets that
hold the ports. Does not own ports that a user fixed (``chaos.conductor.fixed_ports``).
"""

from __future__ import annotations

from cluster.process.held_port import HeldPort, hold_port, port_of


class HeldPorts:
    """Gives each broker a free port for each purpose, the same one until ``close``."""

    def __init__(self) -> None:
        self._holders: dict[tuple[int, str], HeldPort] = {}

    def port(self, broker_id: int, purpose: str) -> int:
        """The port for a purpose: the name of a listener, ``METRICS`` or ``FAULT``. Raises ``OSError``."""
        holder = self._holders.get((broker_id, purpose))
        if holder is None:
            holder = self._holders[broker_id, purpose] = hold_port()
        return port_of(holder)

    def close(self) -> None:
        """Release all ports. To be called when no broker runs."""
        while self._holders:
            self._holders.popitem()[1].close()
