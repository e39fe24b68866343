"""The interface of the cluster to faults: what they may observe, and the few things they may do.

Owns only the interface; ``chaos.conductor.breakable_cluster`` implements it. Links, machines, processes, orders and the
load have their own interfaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from chaos.faults.admin_orders import ClusterOrders
from chaos.faults.breakable import LoadUnderTest, Process, ProcessLife, ProducerSeen, SeenMember
from chaos.faults.damage import LinkControl
from chaos.faults.machine import Machine
from chaos.faults.reaction import ClusterReaction

#: What has a coordinator: a transactional id, or a consumer group.
CoordinatorOf = Literal["transaction", "group"]


class ClusterUnderTest(Protocol):
    """What a fault may observe about the cluster, and the few things it may do to it."""

    @property
    def topic(self) -> str: ...

    @property
    def partitions(self) -> int: ...

    @property
    def broker_ids(self) -> tuple[int, ...]: ...

    @property
    def session_timeout_ms(self) -> int: ...

    @property
    def links(self) -> LinkControl: ...

    @property
    def link_names(self) -> tuple[str, ...]: ...

    @property
    def orders(self) -> ClusterOrders: ...

    @property
    def is_own(self) -> bool:
        """Whether gapless started the brokers. Only these have journals and counters."""
        ...

    def process(self, broker_id: int) -> Process: ...

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether the broker's process runs. Asynchronous, because the check may be a command that takes seconds."""
        ...

    def machine(self, broker_id: int) -> Machine:
        """Disk and clock of the broker's current process."""
        ...

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again on its own data directory, and point its links to it.

        If it is being started already, wait for that instead.
        """
        ...

    async def stop(self, broker_id: int, timeout_ms: int) -> bool:
        """Ask a broker to stop cleanly (a controlled shutdown). Returns whether it did within ``timeout_ms``."""
        ...

    def stopped_cleanly(self, broker_id: int) -> bool:
        """Whether the broker's data directory has the marker of a clean stop."""
        ...

    def zookeeper(self) -> Process | None:
        """ZooKeeper's process; None if gapless did not start it."""
        ...

    async def restart_zookeeper(self) -> None:
        """Restart a dead ZooKeeper with its data and its port. If it is starting already, wait for that instead."""
        ...

    async def zookeeper_answers(self, timeout_ms: int) -> bool:
        """Whether ZooKeeper serves requests, asked without a proxy in between."""
        ...

    async def journaled(self, event: str, broker_id: int | None = None) -> int:
        """How often this event is in the brokers' journals: in that of one broker or, with None, in all of them."""
        ...

    async def leader(self, partition: int) -> tuple[int, int] | None:
        """(leader, leader epoch) as the brokers report it; None if there is no leader now."""
        ...

    async def replicas(self, partition: int) -> tuple[int, ...]:
        """The brokers with a replica, in the order of the assignment; empty if no broker reports them."""
        ...

    async def isr(self, partition: int) -> frozenset[int]:
        """The ISR, as reported with the highest leader epoch; empty if no broker reports it."""
        ...

    async def reaction(self) -> ClusterReaction:
        """How the topic's partitions have changed so far, according to the brokers' journals."""
        ...

    async def elections(self, topic: str, partition: int, reason: str) -> int:
        """How many leader epochs of a partition began for this reason, according to the brokers' journals."""
        ...

    async def controller(self) -> int | None: ...

    async def coordinated(self, kind: CoordinatorOf) -> Mapping[str, int]:
        """The transactional ids or groups in use, each with the id of the broker that coordinates it."""
        ...

    async def coordinator(self, kind: CoordinatorOf, key: str) -> int | None:
        """The coordinator of this transactional id or group, according to most brokers; None if none reports one."""
        ...

    @property
    def load(self) -> LoadUnderTest | None:
        """The load of the run; None without one (``gapless up``)."""
        ...

    async def producers(self) -> Mapping[str, ProducerSeen]:
        """All transactional ids, with what their coordinators report about their producers."""
        ...

    async def members(self, group: str) -> Sequence[SeenMember] | None:
        """The members of a group; None if no broker coordinates it."""
        ...

    async def alive(self) -> frozenset[int]:
        """The brokers that the cluster counts as alive."""
        ...

    async def in_sync(self) -> bool:
        """Whether every replica of every partition is in its ISR."""
        ...

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        """Whether the broker answers a request on its control listener, which has no proxy in front of it."""
        ...

    async def counter(self, broker_id: int, name: str) -> float | None:
        """The sum of a broker's counter over its labels; None if the broker does not answer."""
        ...
