"""``pause-zookeeper``: SIGSTOP ZooKeeper for shorter or for longer than a session, SIGCONT it after a while.

A short pause must be ridden out without a trace. A long one is worse than a restart: every broker gives its session
up for lost, and when ZooKeeper wakes up, it finds that the sessions have expired, all of them at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.faults.base import Probe, until
from chaos.faults.damage import stats_of
from chaos.faults.zookeeper_fault import ZooKeeperFault
from cluster.seams.units import seconds_of_ms

#: A broker pings ZooKeeper every third of its session; one ping without an answer shows that requests stall.
_STALL_MS = 900


class PauseZookeeper(ZooKeeperFault):
    """Bites when the process is stopped, does not respond, and the brokers' requests to it stay without response.

    Whether sessions expired and the controller changed is on record: after a long pause they may, in a race between
    ZooKeeper's own clock and the brokers' next pings.
    """

    name = "pause-zookeeper"
    summary = "SIGSTOP ZooKeeper for shorter or for longer than a session; SIGCONT it"
    duration_s = (0.8, 5.0)
    recovery_s = 5.0
    done = "paused"

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
            seen["counters"] = "none: an external Toxiproxy has no counters"
            return Probe(stopped and silent, seen)
        asked, answered = _bytes(first)

        async def unanswered() -> bool:
            now = await stats_of(self.cluster.links, links)
            asked_now, answered_now = (asked, answered) if now is None else _bytes(now)
            seen["asked_bytes"], seen["answered_bytes"] = asked_now - asked, answered_now - answered
            return asked_now > asked

        stalled = await until(unanswered, clock=self.clock, timeout_ms=_STALL_MS) and not seen["answered_bytes"]
        return Probe(stopped and silent and stalled, seen)

    async def heal(self) -> None:
        await asyncio.to_thread(self._process.resume)


def _bytes(stats: Any) -> tuple[int, int]:
    return sum(each.request_bytes for each in stats), sum(each.response_bytes for each in stats)
