"""The cluster as a fault sees it: what it may observe, and the few things it may do. Owns that shape alone.

The real thing is ``chaos.conductor.breakable_cluster``. Links, disks, processes, orders and loads have shapes of their
own.
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
    """What a fault may observe of the cluster, and the few things it may do to it."""

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
        """Whether gapless started its brokers, which then have journals and counters."""
        ...

    def process(self, broker_id: int) -> Process: ...

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether the broker's process runs: asked here, since it may take a command of others and seconds."""
        ...

    def machine(self, broker_id: int) -> Machine:
        """Disk and clock of the broker's current process."""
        ...

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again on its own data directory, and point its links at its new ports; waits for a start
        in progress."""
        ...

    async def stop(self, broker_id: int, timeout_ms: int) -> bool:
        """Ask a broker to stop cleanly (a controlled shutdown); whether it did, in time."""
        ...

    def stopped_cleanly(self, broker_id: int) -> bool:
        """Whether the broker's data directory has the marker of a clean stop."""
        ...

    def zookeeper(self) -> Process | None:
        """ZooKeeper's process, None if it is not ours."""
        ...

    async def restart_zookeeper(self) -> None:
        """Restart a dead ZooKeeper on its data directory and its port; waits for a start in progress."""
        ...

    async def zookeeper_answers(self, timeout_ms: int) -> bool:
        """Whether ZooKeeper serves requests, asked without a proxy in between."""
        ...

    async def journaled(self, event: str, broker_id: int | None = None) -> int:
        """How often the brokers' journals name this event: one broker's, or those of all together."""
        ...

    async def leader(self, partition: int) -> tuple[int, int] | None:
        """(leader, leader epoch) as reported by the other brokers, None if there is no leader now."""
        ...

    async def replicas(self, partition: int) -> tuple[int, ...]:
        """The brokers that have a replica, in the order of the assignment; empty if no broker knows."""
        ...

    async def isr(self, partition: int) -> frozenset[int]:
        """The ISR as its leader tells it; empty if no broker knows."""
        ...

    async def reaction(self) -> ClusterReaction:
        """What the controllers' journals hold of the topic's partitions so far."""
        ...

    async def elections(self, topic: str, partition: int, reason: str) -> int:
        """How many leader epochs of a partition began for this reason, as the controllers' journals have it."""
        ...

    async def controller(self) -> int | None: ...

    async def coordinated(self, kind: CoordinatorOf) -> Mapping[str, int]:
        """The transactional ids or groups in use, each with the broker that says it coordinates it."""
        ...

    async def coordinator(self, kind: CoordinatorOf, key: str) -> int | None:
        """Where most brokers say the coordinator of this transactional id or group is; None if they know of none."""
        ...

    @property
    def load(self) -> LoadUnderTest | None:
        """The load of the run; None if others use the cluster."""
        ...

    async def producers(self) -> Mapping[str, ProducerSeen]:
        """All transactional ids, as their coordinators know them."""
        ...

    async def members(self, group: str) -> Sequence[SeenMember] | None:
        """The members of a group; None if no broker says that it coordinates it."""
        ...

    async def alive(self) -> frozenset[int]:
        """The brokers that the cluster itself counts as alive."""
        ...

    async def in_sync(self) -> bool:
        """Whether every replica of every partition is in its ISR."""
        ...

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        """Whether the broker answers one request on its control listener, which has no proxy in front of it."""
        ...

    async def counter(self, broker_id: int, name: str) -> float | None:
        """A counter of the broker summed over its labels; None if the broker does not answer."""
        ...
