"""The cluster as faults see it: joins the deployment, the observer and the links. Owns no decision.

Everything that blocks (the proxy's HTTP API, starting processes) runs in threads.
"""

from __future__ import annotations

import asyncio

from chaos.conductor.deployment import Deployment
from chaos.conductor.observer import Observer
from chaos.faults.base import Direction, LinkStats, Process
from chaos.links import Links


class AsyncLinks:
    """The links of a run, for a caller on the event loop."""

    def __init__(self, links: Links) -> None:
        self._links = links

    async def cut(self, link: str, direction: Direction, *, lossless: bool) -> None:
        await asyncio.to_thread(self._links.cut, link, direction, lossless=lossless)

    async def heal(self, link: str) -> None:
        await asyncio.to_thread(self._links.heal, link)

    async def is_clear(self, link: str) -> bool:
        return await asyncio.to_thread(self._links.is_clear, link)

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> str:
        def both_ways() -> str:
            return self._links.stall(link, "both", probability=probability, min_ms=min_ms, max_ms=max_ms).kind

        return await asyncio.to_thread(both_ways)

    async def stats(self, link: str) -> LinkStats | None:
        found = await asyncio.to_thread(self._links.stats, link)
        if found is None:
            return None
        return LinkStats(
            request_bytes=found.request.bytes_out,
            response_bytes=found.response.bytes_out,
            dropped_request_bytes=found.request.bytes_dropped,
            dropped_response_bytes=found.response.bytes_dropped,
            held_bytes=found.request.bytes_held + found.response.bytes_held,
        )


class Target:
    """``ClusterUnderTest`` over the real thing."""

    def __init__(
        self, deployment: Deployment, observer: Observer, topic: str, partitions: int, session_timeout_ms: int
    ) -> None:
        self._deployment = deployment
        self._observer = observer
        self.topic = topic
        self.partitions = partitions
        self.session_timeout_ms = session_timeout_ms
        self.links = AsyncLinks(deployment.links)
        self.broker_ids = deployment.broker_ids
        self.link_names = deployment.link_names

    def process(self, broker_id: int) -> Process:
        return self._deployment.process(broker_id)

    async def restart(self, broker_id: int) -> None:
        await self._deployment.restart(broker_id)

    async def leader(self, partition: int) -> tuple[int, int] | None:
        seen = (await self._observer.view()).partitions.get(partition)
        return None if seen is None or seen.leader < 0 else (seen.leader, seen.leader_epoch)

    async def controller(self) -> int | None:
        return (await self._observer.view()).controller

    async def alive(self) -> frozenset[int]:
        return (await self._observer.view()).alive

    async def in_sync(self) -> bool:
        return (await self._observer.view()).in_sync(self.partitions)

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        return await self._observer.answers(broker_id, timeout_ms)

    async def counter(self, broker_id: int, name: str) -> float | None:
        return await self._observer.counter(broker_id, name)
