"""The interface of a run's cluster to conductor, load and faults, no matter who started it. Owns only the interface.

``chaos.conductor.deployment`` implements it for the cluster that gapless starts, ``chaos.conductor.foreign_cluster``
for one that others started.
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
        """The exit status, if the process exits within ``timeout_s``; None if it does not, or if it is not known."""
        ...


class RunCluster(Protocol):
    """The brokers of a run, and the links with a proxy that lead to them."""

    @property
    def broker_ids(self) -> tuple[int, ...]: ...

    @property
    def link_names(self) -> tuple[str, ...]: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def is_own(self) -> bool:
        """Whether gapless started the brokers. Only these have journals and counters."""
        ...

    @property
    def is_proxied(self) -> bool:
        """Whether the links exist."""
        ...

    @property
    def links(self) -> Links:
        """The links. Raises StartFailure before the proxy has started."""
        ...

    @property
    def zookeeper(self) -> ZooKeeperHandle | None:
        """ZooKeeper's process and address; None if gapless did not start it."""
        ...

    @property
    def zookeeper_address(self) -> str:
        """``host:port`` of ZooKeeper; "" if it is not known."""
        ...

    def process(self, broker_id: int) -> BrokerProcess:
        """The broker's current process."""
        ...

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether the broker runs, as far as that is known."""
        ...

    async def start(self) -> None:
        """Start whatever is missing. Raises StartFailure, JavaNotFound or ``OSError``."""
        ...

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again. Raises StartFailure."""
        ...

    async def restart_zookeeper(self) -> None:
        """Start a dead ZooKeeper again. Raises StartFailure."""
        ...

    async def stop_broker(self, broker_id: int, timeout_s: float) -> bool:
        """Ask one broker to stop cleanly. Returns whether it did within ``timeout_s``."""
        ...

    async def collect(self, finals: Sequence[FinalPartition], topics: Sequence[TopicSpec]) -> list[str]:
        """Collect the evidence about these partitions from the brokers and delete these topics, as far as is necessary.

        Returns a line for each thing that failed.
        """
        ...

    async def stop(self) -> list[int]:
        """Stop what was started. Returns the ids of the brokers that had to be killed."""
        ...
