"""The ports of a run's brokers, which stay theirs while they are dead.

Owns the sockets that hold them. The links of a dead broker, and those who ask it, lead to where it listened last. If
the system gave that port to a broker of another cluster on this machine, writes of this run would be acknowledged
there, and missing here. Does not own ports that a user fixed (``chaos.conductor.fixed_ports``).
"""

from __future__ import annotations

from cluster.process.held_port import HeldPort, hold_port, port_of


class HeldPorts:
    """A free port for each broker and purpose, the same one for as long as these are open."""

    def __init__(self) -> None:
        self._holders: dict[tuple[int, str], HeldPort] = {}

    def port(self, broker_id: int, purpose: str) -> int:
        """The port of a broker's listener of that name, or of its ``METRICS`` or ``FAULT``. Raises ``OSError``."""
        holder = self._holders.get((broker_id, purpose))
        if holder is None:
            holder = self._holders[broker_id, purpose] = hold_port()
        return port_of(holder)

    def close(self) -> None:
        """Let go of all; to be called when no broker runs"""
        while self._holders:
            self._holders.popitem()[1].close()
