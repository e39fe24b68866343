"""``pause-zookeeper``: SIGSTOP ZooKeeper for shorter or for longer than a session, SIGCONT it after a while.

A short pause must leave no trace. A long one is worse than a restart: every broker considers its session lost, and when
ZooKeeper wakes up, all sessions have expired at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from chaos.faults.base import Probe, until
from chaos.faults.damage import LinkTraffic, stats_of
from chaos.faults.link_fault import NO_COUNTERS
from chaos.faults.zookeeper_fault import ZooKeeperFault
from cluster.seams.units import seconds_of_ms

#: A broker that has nothing to ask pings ZooKeeper every third of its session, and a little later.
_PINGS_PER_SESSION = 3
_LATE_MS = 250


class PauseZookeeper(ZooKeeperFault):
    """Bites when the process is stopped, does not respond, and the brokers' requests to it get no response.

    The record says whether sessions expired and the controller changed: after a long pause they may, in a race between
    ZooKeeper's own clock and the brokers' next pings.
    """

    name = "pause-zookeeper"
    summary = "SIGSTOP ZooKeeper for shorter or for longer than a session; SIGCONT it"
    duration_s = (0.8, 5.0)
    recovery_s = 5.0
    done = "paused"

    @classmethod
    def usual_duration_s(cls, session_timeout_ms: int) -> float:
        """Also long enough for a broker to ask for something meanwhile."""
        return max(super().usual_duration_s(session_timeout_ms), seconds_of_ms(asked_within_ms(session_timeout_ms)))

    @classmethod
    def missed(cls, seen: Mapping[str, Any]) -> str:
        if seen.get("asked_bytes") == 0:
            return "no request to ZooKeeper was seen while it was stopped"
        return super().missed(seen)

    @property
    def _ends_sessions(self) -> bool:
        return self.injection.duration_s > self._session_s

    @property
    def _session_s(self) -> float:
        return seconds_of_ms(self.cluster.session_timeout_ms)

    def _told(self) -> str:
        than = "longer" if self._ends_sessions else "shorter"
        return f"ZooKeeper for {self.injection.duration_s:g} s, {than} than the session of {self._session_s:g} s"

    def _break(self) -> None:
        self._process.suspend()

    async def bites(self) -> Probe:
        stopped = self._process.is_suspended()
        links = [name for name in self.cluster.link_names if name.endswith("-zk")]
        first = await stats_of(self.cluster.links, links)
        silent = not await self.cluster.zookeeper_answers(timeout_ms=200)
        seen: dict[str, Any] = {"stopped": stopped, "silent": silent}
        if first is None:
            seen["counters"] = NO_COUNTERS
            return Probe(stopped and silent, seen)
        asked, answered = _bytes(first)

        async def unanswered() -> bool:
            now = await stats_of(self.cluster.links, links)
            asked_now, answered_now = (asked, answered) if now is None else _bytes(now)
            seen["asked_bytes"], seen["answered_bytes"] = asked_now - asked, answered_now - answered
            return asked_now > asked

        patience_ms = asked_within_ms(self.cluster.session_timeout_ms)
        # one ping without an answer shows that requests stall
        stalled = await until(unanswered, clock=self.clock, timeout_ms=patience_ms) and not seen["answered_bytes"]
        return Probe(stopped and silent and stalled, seen)

    async def heal(self) -> None:
        await asyncio.to_thread(self._process.resume)


def asked_within_ms(session_timeout_ms: int) -> int:
    """How long it may take until a broker asks ZooKeeper for anything."""
    return session_timeout_ms // _PINGS_PER_SESSION + _LATE_MS


def _bytes(stats: Sequence[LinkTraffic]) -> tuple[int, int]:
    return sum(each.request_bytes for each in stats), sum(each.response_bytes for each in stats)
