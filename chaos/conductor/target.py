"""The cluster as faults see it: joins the deployment, the observer and the links. Owns no decision.

Everything that blocks (the proxy's HTTP API, starting processes) runs in threads.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chaos.conductor.broker_machine import BrokerMachine
from chaos.conductor.observer import Observer
from chaos.conductor.run_cluster import RunCluster
from chaos.faults.base import CoordinatorOf
from chaos.faults.breakable import LoadUnderTest, Process, ProducerSeen, SeenMember
from chaos.faults.damage import Direction, FrameAct, FrameCounts, LinkTraffic, Marks
from chaos.faults.machine import Machine
from chaos.faults.reaction import ClusterReaction, reaction
from chaos.links import Links, act_on_frames, frames_seen
from cluster.process.zookeeper import serves
from cluster.seams.clock import SystemClock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.run_directory import RunDirectory

#: What a broker leaves in its data directory when it stops cleanly (Kafka's name).
CLEAN_STOP_MARKER = ".kafka_cleanshutdown"


class AsyncLinks:
    """The links of a run, for a caller on the event loop. Every call marks its toxics with a number of its own."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._numbers = itertools.count(1)

    async def cut(self, link: str, direction: Direction, *, lossless: bool) -> Marks:
        name = f"cut{next(self._numbers)}"
        return Marks(link, await asyncio.to_thread(self._links.cut, link, direction, lossless=lossless, name=name))

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> Marks:
        name = f"stall{next(self._numbers)}"

        def both_ways() -> Marks:
            made = self._links.stall(link, "both", probability=probability, min_ms=min_ms, max_ms=max_ms, name=name)
            return Marks(link, made.toxics, made.kind)

        return await asyncio.to_thread(both_ways)

    async def delay(self, link: str, direction: Direction, *, latency_ms: int) -> Marks:
        name = f"delay{next(self._numbers)}"
        made = await asyncio.to_thread(self._links.delay, link, direction, latency_ms=latency_ms, name=name)
        return Marks(link, made)

    async def reset_connections(self, link: str, direction: Direction) -> Marks:
        name = f"reset{next(self._numbers)}"
        return Marks(link, await asyncio.to_thread(self._links.reset_connections, link, direction, name))

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        name = f"{act.act}{next(self._numbers)}"

        def one() -> str:
            more: dict[str, Any] = {"count": act.count, "lossy": act.lossy, "delay_ms": act.delay_ms}
            return act_on_frames(self._links, link, act.act, act.direction, act.api_keys, name=name, **more)

        return Marks(link, (await asyncio.to_thread(one),))

    async def frame_counts(self, marks: Marks) -> FrameCounts:
        asked = (asyncio.to_thread(frames_seen, self._links, marks.link, name) for name in marks.toxics)
        seen = [each for each in await asyncio.gather(*asked) if each is not None]
        return FrameCounts(sum(each.matched for each in seen), sum(each.acted for each in seen))

    async def heal(self, marks: Marks) -> None:
        await asyncio.to_thread(self._links.heal, marks.link, marks.toxics)

    async def remaining(self, marks: Marks) -> tuple[str, ...]:
        there = {toxic.name for toxic in (await asyncio.to_thread(self._links.show, marks.link)).toxics}
        return tuple(name for name in marks.toxics if name in there)

    async def stats(self, link: str) -> LinkTraffic | None:
        found = await asyncio.to_thread(self._links.stats, link)
        if found is None:
            return None
        return LinkTraffic(
            request_bytes=found.request.bytes_out,
            response_bytes=found.response.bytes_out,
            dropped_request_bytes=found.request.bytes_dropped,
            dropped_response_bytes=found.response.bytes_dropped,
            held_bytes=found.request.bytes_held + found.response.bytes_held,
            closed_connections=found.connections_closed,
        )


class Target:
    """``ClusterUnderTest`` over the real thing."""

    def __init__(
        self,
        deployment: RunCluster,
        observer: Observer,
        directory: RunDirectory,
        topic: str,
        partitions: int,
        session_timeout_ms: int,
        load: LoadUnderTest | None = None,
    ) -> None:
        self._deployment = deployment
        self._observer = observer
        self._directory = directory
        self.topic = topic
        self.partitions = partitions
        self.session_timeout_ms = session_timeout_ms
        self.load = load
        self.links = AsyncLinks(deployment.links)
        self.broker_ids = deployment.broker_ids
        self.link_names = deployment.link_names

    def process(self, broker_id: int) -> Process:
        return self._deployment.process(broker_id)

    def machine(self, broker_id: int) -> Machine:
        listeners = self._deployment.topology.listeners[broker_id]
        return BrokerMachine(broker_id, listeners, self.process(broker_id), self._directory, SystemClock())

    async def restart(self, broker_id: int) -> None:
        await self._deployment.restart(broker_id)

    async def stop(self, broker_id: int, timeout_ms: int) -> bool:
        return await self._deployment.stop_broker(broker_id, seconds_of_ms(timeout_ms))

    def stopped_cleanly(self, broker_id: int) -> bool:
        return (self._directory.node(broker_id) / "data" / CLEAN_STOP_MARKER).exists()

    def zookeeper(self) -> Process | None:
        handle = self._deployment.zookeeper
        return None if handle is None else handle.child

    async def restart_zookeeper(self) -> None:
        await self._deployment.restart_zookeeper()

    async def zookeeper_answers(self, timeout_ms: int) -> bool:
        handle = self._deployment.zookeeper
        return handle is not None and await asyncio.to_thread(serves, handle.port, seconds_of_ms(timeout_ms))

    async def journaled(self, event: str) -> int:
        return await asyncio.to_thread(lambda: sum(entry.get("event") == event for entry in self._entries()))

    async def reaction(self) -> ClusterReaction:
        return await asyncio.to_thread(lambda: reaction(self._entries(), self.topic))

    def _entries(self) -> Iterator[Mapping[str, Any]]:
        """The entries of all brokers' journals."""
        for broker_id in self.broker_ids:
            yield from self._directory.read_journal(broker_id)

    async def leader(self, partition: int) -> tuple[int, int] | None:
        seen = (await self._observer.view()).partitions.get(partition)
        return None if seen is None or seen.leader < 0 else (seen.leader, seen.leader_epoch)

    async def replicas(self, partition: int) -> tuple[int, ...]:
        seen = (await self._observer.view()).partitions.get(partition)
        return () if seen is None else seen.replicas

    async def isr(self, partition: int) -> frozenset[int]:
        seen = (await self._observer.view()).partitions.get(partition)
        return frozenset() if seen is None else frozenset(seen.isr)

    async def controller(self) -> int | None:
        return (await self._observer.view()).controller

    async def coordinated(self, kind: CoordinatorOf) -> Mapping[str, int]:
        return await self._observer.coordinators().in_use(kind)

    async def coordinator(self, kind: CoordinatorOf, key: str) -> int | None:
        return await self._observer.coordinators().find(kind, key)

    async def producers(self) -> Mapping[str, ProducerSeen]:
        return await self._observer.coordinators().producers()

    async def members(self, group: str) -> Sequence[SeenMember] | None:
        return await self._observer.coordinators().members(group)

    async def alive(self) -> frozenset[int]:
        return (await self._observer.view()).alive

    async def in_sync(self) -> bool:
        return (await self._observer.view()).in_sync(self.partitions)

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        return await self._observer.answers(broker_id, timeout_ms)

    async def counter(self, broker_id: int, name: str) -> float | None:
        return await self._observer.counter(broker_id, name)
