"""Statistics of the server: event-loop lag, and the JSON of ``/gapless/stats`` and ``/proxies/{p}/connections``.

Does not own the counters, which links and proxies keep. Toxiproxy does not have these routes.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from chaos.proxy.connection import ProxiedConnection
from chaos.proxy.pipe import PipeDirection, StreamCounters
from chaos.proxy.proxy import Proxy
from chaos.proxy.toxics.frame_types import FRAME_TOXICS
from cluster.seams.units import ms_of_seconds

_LAG_INTERVAL_S = 0.05


class LagMonitor:
    """Measures how late the event loop runs its timers: the largest delay since the last ``read``, and overall."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_s = 0.0
        self._recent_max_s = 0.0
        self._handle = self._loop.call_later(_LAG_INTERVAL_S, self._tick, self._loop.time() + _LAG_INTERVAL_S)

    def __repr__(self) -> str:
        return f"LagMonitor(max {ms_of_seconds(self._max_s):.1f} ms)"

    def _tick(self, due_at: float) -> None:
        now = self._loop.time()
        lag = max(0.0, now - due_at)
        self._recent_max_s = max(self._recent_max_s, lag)
        self._max_s = max(self._max_s, lag)
        self._handle = self._loop.call_later(_LAG_INTERVAL_S, self._tick, now + _LAG_INTERVAL_S)

    def read(self) -> dict[str, float]:
        """The largest delays in ms: since the last call, and overall."""
        recent, self._recent_max_s = self._recent_max_s, 0.0
        return {
            "max_since_last_read_ms": round(ms_of_seconds(recent), 3),
            "max_ms": round(ms_of_seconds(self._max_s), 3),
        }

    def stop(self) -> None:
        self._handle.cancel()


def proxy_stats(proxy: Proxy) -> dict[str, object]:
    """The counters of one proxy since it was created, including its open connections."""
    counters = proxy.counters
    return {
        "listen": proxy.listen,
        "upstream": proxy.upstream,
        "enabled": proxy.enabled,
        "connections": {
            "active": counters.accepted - counters.closed,
            "accepted": counters.accepted,
            "closed": counters.closed,
            "dial_failed": counters.dial_failed,
        },
        "streams": {direction.value: _stream(*proxy.stream_totals(direction)) for direction in PipeDirection},
        "frames": {toxic.name: asdict(toxic.tally) for toxic in proxy.all_toxics() if toxic.toxic_type in FRAME_TOXICS},
    }


def connection_stats(connection: ProxiedConnection, now: float) -> dict[str, object]:
    """The statistics of one open connection. ``now`` is the loop's time in seconds."""
    return {
        "index": connection.index,
        "client": connection.client_address,
        "upstream": connection.upstream_address,
        "state": connection.state,
        "age_ms": int(ms_of_seconds(now - connection.accepted_at)),
        "streams": {
            direction.value: _stream(link.counters, link.held_bytes) | {"toxics": link.applied_toxics()}
            for direction, link in connection.links.items()
        },
    }


def _stream(counters: StreamCounters, held_bytes: int) -> dict[str, object]:
    return {
        "bytes_in": counters.bytes_in,
        "bytes_out": counters.bytes_out,
        "bytes_held": held_bytes,
        "bytes_dropped": counters.bytes_dropped,
        "bytes_discarded": counters.bytes_discarded,
    }
