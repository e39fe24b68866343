"""The cluster of a run, no matter who started it: what conductor, load and faults ask of it. Owns only the shape.

``chaos.conductor.deployment`` is the cluster that gapless starts, ``chaos.conductor.foreign_cluster`` one that others
started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from chaos.faults.breakable import Process, ProcessLife
from cluster.process.topology import Topology
from cluster.process.zookeeper import ZooKeeperHandle
from verifier.evidence.run_model import FinalPartition, TopicSpec

if TYPE_CHECKING:
    from chaos.links import Links


class BrokerProcess(Process, Protocol):
    """The process of a broker."""

    def wait(self, timeout_s: float) -> int | None:
        """Its exit status if it ends within this time, and is known."""
        ...


class RunCluster(Protocol):
    """Brokers, and a proxy before every link of theirs that can be reached."""

    @property
    def broker_ids(self) -> tuple[int, ...]: ...

    @property
    def link_names(self) -> tuple[str, ...]: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def is_own(self) -> bool:
        """Whether gapless started its brokers, which then have journals and counters."""
        ...

    @property
    def is_proxied(self) -> bool:
        """Whether the links are there."""
        ...

    @property
    def links(self) -> Links:
        """Raises StartFailure before the proxy is up."""
        ...

    @property
    def zookeeper(self) -> ZooKeeperHandle | None:
        """None if it is not ours."""
        ...

    @property
    def zookeeper_address(self) -> str:
        """Empty if it is not known."""
        ...

    def process(self, broker_id: int) -> BrokerProcess:
        """The broker's present process."""
        ...

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether it runs, as far as that is known."""
        ...

    async def start(self) -> None:
        """Bring up whatever is missing. Raises StartFailure, JavaNotFound or ``OSError``."""
        ...

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again. Raises StartFailure."""
        ...

    async def restart_zookeeper(self) -> None:
        """Start a dead ZooKeeper again. Raises StartFailure."""
        ...

    async def stop_broker(self, broker_id: int, timeout_s: float) -> bool:
        """Ask one broker to stop cleanly; whether it did, in time."""
        ...

    async def collect(self, finals: Sequence[FinalPartition], topics: Sequence[TopicSpec]) -> list[str]:
        """Gather what the brokers leave of these partitions as evidence, and undo that these topics were made; answers
        with what went wrong."""
        ...

    async def stop(self) -> list[int]:
        """Stop what was started; the brokers that had to be killed."""
        ...
