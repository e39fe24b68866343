"""Which connections a broker takes, and which it does not keep: ``max.connections``, ``max.connections.per.ip`` and
``connections.max.idle.ms`` (Kafka's ConnectionQuotas and IdleExpiryManager).

Owns the open connections by listener and address, and the timers that look for idle ones and for peers that have left.
Unlike in Kafka, anyone who comes when there are enough is not left waiting in the backlog but turned away at once:
there is one loop, and who waits in silence learns nothing. A peer is never turned away for the total: then the client
that has been silent for longest has to go. Does not own the sockets, nor the file descriptors that are kept back
(``cluster.seams.descriptors``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from cluster.broker.metrics import Counters
from cluster.broker.server import ClientConnection
from cluster.config.broker import BrokerConfig
from cluster.seams.pace import Pace
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: The idle ones are looked for this often within ``connections.max.idle.ms``, with pauses between these two.
_LOOKS = 10
_LOOK_MS = (1000, 60_000)
#: Connections are told this often to check whether their peers have left.
CHECK_EACH_S = 1.0
#: Refusals are logged at most this often: the first of a period at once, the outcome of the others at its end.
_LOGGED_NS = 10_000_000_000
#: Addresses of idle connections that one line names.
_MOST_NAMED = 3
_NS_PER_MS = 1_000_000


class Admission:
    """For one broker."""

    def __init__(self, config: BrokerConfig, counters: Counters) -> None:
        self._most = config["max.connections"]
        self._most_per_ip = config["max.connections.per.ip"]
        self._idle_ms = config["connections.max.idle.ms"]
        self._peers = config.inter_broker_listener_name
        self._counters = counters
        self._open: dict[ClientConnection, None] = {}
        self._by_ip: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._pace = Pace(1, _LOGGED_NS)
        #: The line of the last refusal that was not logged.
        self._last = ""

    def __repr__(self) -> str:
        return f"<Admission: {len(self._open)} connections of {len(self._by_ip)} addresses>"

    def start(self) -> None:
        """Begin to check connections, also for idle ones if ``connections.max.idle.ms`` is not negative."""
        self._check_timer = asyncio.get_running_loop().call_later(CHECK_EACH_S, self._check)
        self._look_later()

    def _look_later(self) -> None:
        if self._idle_ms >= 0:
            least, most = _LOOK_MS
            delay_ms = min(most, max(least, self._idle_ms // _LOOKS))
            self._timer = asyncio.get_running_loop().call_later(seconds_of_ms(delay_ms), self._look)

    def close(self) -> None:
        for timer in (self._timer, self._check_timer):
            if timer is not None:
                timer.cancel()

    def enter(self, client: ClientConnection) -> None:
        """Take a connection in, or turn it away. ``leave`` must follow, in either case, when it is closed."""
        reason = self._refusal(client)
        if reason is not None:
            self._counters.refused_connections += 1
            self._log(f"a connection of {client.ip} is turned away: {reason}")
            client.abort()
            return
        self._open[client] = None
        self._by_ip[client.ip] += 1
        connections = self._counters.connections
        connections[client.listener] = connections.get(client.listener, 0) + 1

    def leave(self, client: ClientConnection) -> None:
        """It is closed; nothing happens if it was turned away."""
        if client not in self._open:
            return
        del self._open[client]
        self._counters.connections[client.listener] -= 1
        self._by_ip[client.ip] -= 1
        if not self._by_ip[client.ip]:
            del self._by_ip[client.ip]

    def _refusal(self, client: ClientConnection) -> str | None:
        if self._by_ip[client.ip] >= self._most_per_ip:
            return f"{client.ip} has max.connections.per.ip={self._most_per_ip} connections"
        if len(self._open) < self._most:
            return None
        if client.listener == self._peers:
            others = [each for each in self._open if each.listener != self._peers]
            if others:
                self._make_room(min(others, key=lambda each: each.active_ns))
                return None
        return f"there are max.connections={self._most} connections"

    def _make_room(self, client: ClientConnection) -> None:
        self._counters.refused_connections += 1
        self._log(f"a connection of {client.ip} is closed for one of a broker: there are max.connections={self._most}")
        client.abort()

    def _log(self, told: str) -> None:
        self._log_others()
        if self._pace.take(self._counters.now_ns()) is None:
            self._last = told
        else:
            logger.warning("%s", told)

    def _log_others(self) -> None:
        """Those that were not logged in a period that is over."""
        others = self._pace.take_summary(self._counters.now_ns())
        if others:
            logger.warning("%d more connections were refused; the last: %s", others, self._last)

    def _look(self) -> None:
        since_ns = self._counters.now_ns() - self._idle_ms * _NS_PER_MS
        idle = [client for client in self._open if client.active_ns < since_ns]
        for client in idle:
            client.abort()
        if idle:
            by_ip = Counter(client.ip for client in idle).most_common(_MOST_NAMED)
            addresses = ", ".join(f"{count} of {ip}" for ip, count in by_ip)
            logger.info(
                "%d connections closed: silent for connections.max.idle.ms=%d (%s)", len(idle), self._idle_ms, addresses
            )
            self._counters.idle_connections += len(idle)
        self._look_later()

    def _check(self) -> None:
        self._log_others()
        for client in list(self._open):
            client.check()
        self._check_timer = asyncio.get_running_loop().call_later(CHECK_EACH_S, self._check)
