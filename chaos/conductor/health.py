"""Measures how overloaded the harness is, since that must not look like a broken cluster.

Measures the event-loop lag of the conductor, and collects that of the proxy and the brokers (docs/design.md "Processes
and links"). Does not own what the figures mean for the verdict (the verifier).
"""

from __future__ import annotations

import asyncio

from chaos.conductor.observer import Observer
from chaos.conductor.run_cluster import RunCluster
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms, seconds_of_ns
from verifier.evidence.run_model import HarnessHealth

#: Short enough to notice a stall of the harness, long enough to cost nothing.
TICK_S = 0.1
LOOP_LAG = "gapless_event_loop_lag_seconds"
LONGEST_TURN = "gapless_event_loop_longest_turn_seconds"


class LagMeter:
    """Measures how late timers of the event loop fire. ``worst_s`` is the largest delay so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.worst_s = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            before_ns = self._clock.monotonic_ns()
            await asyncio.sleep(TICK_S)
            late_s = seconds_of_ns(self._clock.monotonic_ns() - before_ns) - TICK_S
            self.worst_s = max(self.worst_s, late_s)


async def harness_health(deployment: RunCluster, observer: Observer, own: LagMeter) -> HarnessHealth:
    """The worst event-loop lag in seconds: of the conductor (``own``), the proxy and each broker.

    A process that does not answer is left out.
    """
    lags = {"conductor": own.worst_s}
    proxy = await asyncio.to_thread(deployment.links.server_stats) if deployment.is_proxied else None
    if proxy is not None:
        lags["proxy"] = seconds_of_ms(proxy.lag_max_ms)
    for broker_id in deployment.broker_ids:
        samples = await observer.metrics(broker_id)
        found = [value for name in (LOOP_LAG, LONGEST_TURN) for _, value in (samples or {}).get(name, [])]
        if found:
            lags[f"broker-{broker_id}"] = max(found)
    return HarnessHealth(event_loop_lag_s={name: round(lag_s, 4) for name, lag_s in lags.items()})
