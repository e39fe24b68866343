"""The cluster that gapless starts for a run, with a proxy on every link. Owns starting, restarting and stopping it.

Links are created first, on free ports and without a real upstream. Then brokers bind ports that are held for them
(``chaos.conductor.held_ports``) and report them, and only then do the links get their upstreams. Does not own what is
broken, nor what is read from the cluster (``chaos.conductor.observer``).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chaos.conductor.fixed_ports import FREE_PORTS, HOST, FixedPorts
from chaos.conductor.held_ports import HeldPorts
from chaos.conductor.observer import Observer
from chaos.conductor.starting import START_TIMEOUT_S, StartFailure, message, start_proxy
from chaos.experiment.choices import LOAD_GROUPS
from chaos.experiment.experiment import Experiment
from chaos.faults.breakable import ProcessLife
from cluster.process.java import JavaHome, find_java
from cluster.process.supervisor import Child, Supervisor
from cluster.process.topology import ZOOKEEPER, LinkName, Topology, link_names
from cluster.process.zookeeper import ZooKeeperFailure, ZooKeeperHandle, restart_zookeeper, start_zookeeper
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, TopicSpec

if TYPE_CHECKING:
    from chaos.links import Links

logger = logging.getLogger(__name__)

#: The upstream of a link until its broker has bound its ports: nothing listens on port 1.
NOWHERE = f"{HOST}:1"
#: The file for what a broker's process prints besides its log: nothing, unless it crashes.
OUTPUT = "process.log"


class Deployment:
    """``RunCluster`` for a cluster of gapless's own: ZooKeeper, the proxy and the brokers."""

    def __init__(
        self,
        settings: Experiment,
        directory: RunDirectory,
        supervisor: Supervisor,
        observer: Observer,
        ports: FixedPorts = FREE_PORTS,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._supervisor = supervisor
        self._observer = observer
        self._ports, self.has_fault_ports = ports, ports.fault >= 0
        self._held = HeldPorts()
        self._brokers: dict[int, Child] = {}
        self.broker_ids = tuple(range(1, settings.asked.brokers + 1))
        self.link_names = tuple(str(name) for name in link_names(self.broker_ids, LOAD_GROUPS))
        self.topology = Topology(self.broker_ids)
        self._links: Links | None = None
        self.zookeeper_address = ""
        self._zookeeper: ZooKeeperHandle | None = None
        self._java: JavaHome | None = None
        self._restarting: dict[str, asyncio.Task[None]] = {}
        self.java_source = "none needed"
        self.starts: dict[int, int] = {}

    def process(self, broker_id: int) -> Child:
        """The broker's current process."""
        return self._brokers[broker_id]

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether the broker runs; that is always known, because the broker is a child process."""
        return ProcessLife.RUNS if self._brokers[broker_id].is_running() else ProcessLife.ENDED

    @property
    def is_own(self) -> bool:
        return True

    @property
    def is_proxied(self) -> bool:
        """Whether the links exist."""
        return self._links is not None

    @property
    def links(self) -> Links:
        """The links of the run. Raises StartFailure before the proxy has started."""
        if self._links is None:
            raise StartFailure("the proxy has not been started")
        return self._links

    async def start(self) -> None:
        """Start everything. Raises StartFailure, JavaNotFound or ``OSError``.

        Loading code takes most of the time, so all processes start at once. Brokers get their configuration later, when
        the addresses of the links are known.
        """
        to_zookeeper = [name for name in self.link_names if name.endswith(f"-{ZOOKEEPER}")]
        others = [name for name in self.link_names if name not in to_zookeeper]
        zookeeper = asyncio.create_task(self._start_zookeeper())
        proxying = asyncio.create_task(self._start_proxy(others))
        await asyncio.gather(zookeeper, proxying, *map(self._spawn_broker, self.broker_ids))
        proxy, listen = proxying.result()
        for name in to_zookeeper:
            listen[name] = await asyncio.to_thread(self.links.create, name, self.zookeeper_address)
        self.topology = Topology(self.broker_ids, listen, self.zookeeper_address, {}, proxy)
        await asyncio.gather(*(self._start_broker(broker_id) for broker_id in self.broker_ids))

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again on its own data directory. If it is being started already, wait for that instead.

        Raises StartFailure.
        """

        async def start() -> None:
            await self._spawn_broker(broker_id)
            await self._start_broker(broker_id)

        await self._once(f"broker-{broker_id}", start)

    def is_starting(self, broker_id: int) -> bool:
        """Whether the broker is being restarted: it may have a process, but does not serve yet."""
        task = self._restarting.get(f"broker-{broker_id}")
        return task is not None and not task.done()

    @property
    def zookeeper(self) -> ZooKeeperHandle | None:
        """ZooKeeper's process and address; None if gapless did not start it."""
        return self._zookeeper

    async def restart_zookeeper(self) -> None:
        """Start a dead ZooKeeper again, with its data and its port. Raises StartFailure."""
        await self._once("zookeeper", self._start_zookeeper_again)

    async def stop_broker(self, broker_id: int, timeout_s: float) -> bool:
        """Ask one broker to stop cleanly. Returns whether it did within ``timeout_s``."""
        self._observer.forget(broker_id)
        child = self._brokers[broker_id]
        await asyncio.to_thread(child.terminate)
        return await asyncio.to_thread(child.wait, timeout_s) is not None

    async def _once(self, name: str, start: Callable[[], Awaitable[None]]) -> None:
        """Call ``start``, or if a call under this name is in progress, wait for that: overlapping faults may both ask.

        An interrupt does not cancel the call, which would leave a child process that is not in ``_brokers``.
        """

        async def started() -> None:
            await start()

        task = self._restarting.get(name)
        if task is None or task.done():
            task = self._restarting[name] = asyncio.create_task(started())
        await asyncio.shield(task)

    async def stop(self, timeout_s: float = 15.0) -> list[int]:
        """Stop the brokers cleanly; returns the ids of those that had to be killed.

        Stops one broker after the other, so that a controlled shutdown can move leadership to the remaining ones.
        """
        if under_way := [task for task in self._restarting.values() if not task.done()]:
            await asyncio.wait(under_way, timeout=START_TIMEOUT_S)
        killed = []
        for broker_id, child in self._brokers.items():
            if child.is_running() and not await self.stop_broker(broker_id, timeout_s):
                await asyncio.to_thread(child.kill)
                killed.append(broker_id)
        self._held.close()
        return killed

    async def collect(self, finals: Sequence[FinalPartition], topics: Sequence[TopicSpec]) -> list[str]:
        """Do nothing: the brokers' files are in the run's directory already."""
        return []

    async def _start_zookeeper(self) -> None:
        if self._settings.asked.zookeeper is not None:
            self.zookeeper_address = self._settings.asked.zookeeper
            return
        java = self._java = await asyncio.to_thread(find_java)
        self.java_source = f"{java.source} (Java {java.version})"
        handle = await asyncio.to_thread(start_zookeeper, self._supervisor, self._zookeeper_directory, java)
        self._zookeeper = handle
        self.zookeeper_address = handle.address

    async def _start_zookeeper_again(self) -> None:
        if self._zookeeper is None or self._java is None:
            raise StartFailure("ZooKeeper is not this run's own and cannot be started by it")
        arguments = (self._supervisor, self._zookeeper, self._zookeeper_directory, self._java)
        try:
            self._zookeeper = await asyncio.to_thread(restart_zookeeper, *arguments)
        except ZooKeeperFailure as error:
            raise StartFailure(str(error)) from error

    @property
    def _zookeeper_directory(self) -> str:
        return os.path.join(str(self._directory.nodes_dir), "zookeeper")

    async def _start_proxy(self, link_names: Sequence[str]) -> tuple[str, dict[str, str]]:
        """Start the proxy, create links that lead nowhere yet; returns its URL and each link's ``host:port``."""
        url = self._settings.asked.toxiproxy
        url = url or await start_proxy(self._supervisor, self._directory, self._settings.asked.seed)
        # Imported here: it takes 60 ms, during which the other processes load their code, too.
        from chaos.links import LinkError, Links

        links = self._links = Links(url)
        listen = self._ports.listen
        try:
            return url, {
                name: await asyncio.to_thread(links.create, name, NOWHERE, listen(name)) for name in link_names
            }
        except LinkError as error:
            raise StartFailure(f"the proxy made no link: {error}") from error

    async def _spawn_broker(self, broker_id: int) -> None:
        """Start a broker's process, which loads its code and waits for its configuration."""
        log_path = str(self._directory.node(broker_id) / OUTPUT)
        self._brokers[broker_id] = await asyncio.to_thread(
            self._supervisor.start_python, f"broker-{broker_id}", "cluster.broker.main:serve", None, log_path
        )
        self.starts[broker_id] = self.starts.get(broker_id, 0) + 1

    async def _start_broker(self, broker_id: int) -> None:
        """Send a new broker its configuration and wait until it has started. Raises StartFailure."""
        name, child = f"broker-{broker_id}", self._brokers[broker_id]
        arguments = {
            "broker_id": broker_id,
            "properties": self.properties(broker_id),
            "node_directory": str(self._directory.node(broker_id)),
            "defects": list(self._settings.defects),
            "seed": self._settings.asked.seed,
        }
        try:
            try:
                await asyncio.to_thread(child.send, arguments)
            except EOFError as error:
                raise StartFailure(f"{name} did not come up: {error}") from error
            await self._publish_ports(broker_id, name, child)
        except Exception:
            # If the broker came up after all, no one would know its process.
            await asyncio.to_thread(child.kill)
            raise

    async def _publish_ports(self, broker_id: int, name: str, child: Child) -> None:
        """Learn on which ports a new broker listens; update the topology, its links and the observer."""
        ports: Mapping[str, int] = (await message(child, name, "bound"))["ports"]
        bound = {name: f"{HOST}:{port}" for name, port in ports.items()}
        self.topology = replace(self.topology, listeners={**self.topology.listeners, broker_id: bound})
        await self._point_links_at(broker_id, bound)
        self._observer.set_addresses(broker_id, bound["CONTROL"], bound["METRICS"], child.is_running)
        await message(child, name, "started")

    async def _point_links_at(self, broker_id: int, bound: Mapping[str, str]) -> None:
        target = f"b{broker_id}"
        leading_here = [name for name in map(LinkName.parse, self.link_names) if name.target == target]
        await asyncio.gather(
            *(
                asyncio.to_thread(self.links.set_upstream, str(link), bound[_listener(link.opener)])
                for link in leading_here
            )
        )

    def properties(self, broker_id: int) -> dict[str, str]:
        """The broker's configuration: from the profile and the user, its listeners, and the addresses of its peers."""
        names = [*(group.upper() for group in LOAD_GROUPS), "PEERS", "CONTROL"]
        ports = {name: self._held.port(broker_id, name) for name in names}
        # load and peers use links, so these ports do not matter; users may connect to the control listener directly
        ports["CONTROL"] = self._ports.control(broker_id) or ports["CONTROL"]
        metrics = self._ports.metrics_of(broker_id) or self._held.port(broker_id, "METRICS")
        fault = self._ports.fault or self._held.port(broker_id, "FAULT")
        return {
            "min.insync.replicas": str(self._settings.min_insync_replicas),
            "default.replication.factor": str(self._settings.asked.replication_factor),
            "offsets.topic.replication.factor": str(self._settings.asked.replication_factor),
            "transaction.state.log.replication.factor": str(self._settings.asked.replication_factor),
            "transaction.state.log.min.isr": str(self._settings.min_insync_replicas),
            **self._settings.broker_config.as_text(),
            "broker.id": str(broker_id),
            "listeners": ",".join(f"{name}://{HOST}:{ports[name]}" for name in names),
            "advertised.listeners": self.topology.advertised_listeners(broker_id, LOAD_GROUPS),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            "inter.broker.listener.name": "PEERS",
            "gapless.peer.addresses": self.topology.peer_addresses(broker_id),
            "gapless.metrics.port": str(metrics),
            "gapless.fault.port": str(fault),
            "zookeeper.connect": self.topology.zookeeper_connect(broker_id),
            # not log.dirs, which is a list: a comma in the path would split it
            "log.dirs": "",
            "log.dir": os.path.join(str(self._directory.node(broker_id)), "data"),
        }


def _listener(opener: str) -> str:
    """The listener at which links of this opener end: that of its group of clients, else the one for peers."""
    return opener.upper() if opener in LOAD_GROUPS else "PEERS"
