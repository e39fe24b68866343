"""``ClusterUnderTest`` for faults: joins the cluster, the observer and the links of a run.

Does not decide what is broken (``chaos.faults``). Everything that blocks (the proxy's HTTP API, starting processes)
runs in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chaos.conductor.async_links import AsyncLinks
from chaos.conductor.broker_machine import BrokerMachine
from chaos.conductor.observer import Observer
from chaos.conductor.run_cluster import RunCluster
from chaos.faults.admin_orders import ClusterOrders
from chaos.faults.breakable import LoadUnderTest, Process, ProcessLife, ProducerSeen, SeenMember
from chaos.faults.machine import Machine
from chaos.faults.reaction import ClusterReaction, epochs_for, reaction, told_epochs
from chaos.faults.under_test import CoordinatorOf
from cluster.process.zookeeper import serves
from cluster.seams.clock import SystemClock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.run_directory import RunDirectory

#: The file that a broker leaves in its data directory when it stops cleanly (Kafka's name).
CLEAN_STOP_MARKER = ".kafka_cleanshutdown"

#: The prefix of the transactional ids and groups of gapless's own load.
OWN_KEYS = "gapless-"


class BreakableCluster:
    """``ClusterUnderTest`` for the cluster of a run. ``load`` is None if there is no load (``gapless up``)."""

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
        self.is_own = deployment.is_own
        self.links = AsyncLinks(deployment.links)
        self.broker_ids = deployment.broker_ids
        self.link_names = deployment.link_names

    @property
    def orders(self) -> ClusterOrders:
        return self._observer.orders()

    def process(self, broker_id: int) -> Process:
        return self._deployment.process(broker_id)

    async def life(self, broker_id: int) -> ProcessLife:
        return await self._deployment.life(broker_id)

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

    async def journaled(self, event: str, broker_id: int | None = None) -> int:
        whose = self.broker_ids if broker_id is None else (broker_id,)
        return await asyncio.to_thread(lambda: sum(entry.get("event") == event for entry in self._entries(whose)))

    async def reaction(self) -> ClusterReaction:
        if not self._deployment.is_own:
            return told_epochs(each.leader_epoch for each in (await self._observer.view()).partitions.values())
        return await asyncio.to_thread(lambda: reaction(self._entries(self.broker_ids), self.topic))

    async def elections(self, topic: str, partition: int, reason: str) -> int:
        return await asyncio.to_thread(lambda: epochs_for(self._entries(self.broker_ids), (topic, partition), reason))

    def _entries(self, brokers: Sequence[int]) -> Iterator[Mapping[str, Any]]:
        """The entries of these brokers' journals, one broker after the other."""
        for broker_id in brokers:
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
        found = await self._observer.coordinators().in_use(kind)
        # other clients may use a cluster that gapless did not start; faults must not hit their coordinators
        return found if self.is_own else {key: broker for key, broker in found.items() if key.startswith(OWN_KEYS)}

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
