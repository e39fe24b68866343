"""A run on a cluster that gapless did not start (docs/target.md): adds a proxy and relays between clients and brokers.

A client connects to a relay, which rewrites the addresses in responses; the relay connects to a link with its toxics,
and the link to the broker. Owns these, and collects the evidence from such a cluster. Does not own how its processes
are killed and started (``chaos.conductor.nodes``).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.conductor.declared import topic_ids
from chaos.conductor.nodes import ForeignNodes
from chaos.conductor.observer import Observer
from chaos.conductor.run_cluster import BrokerProcess
from chaos.conductor.served_logs import NotServed, save_served_log
from chaos.conductor.starting import StartFailure, message, start_proxy
from chaos.conductor.target_look import NotSeen, look
from chaos.experiment.choices import LOAD_GROUPS
from chaos.experiment.experiment import Experiment
from chaos.experiment.target_options import replica_directories, target_addresses
from chaos.faults.breakable import ProcessLife
from cluster.client.errors import AdminError
from cluster.process.supervisor import Supervisor
from cluster.process.topology import LinkName, Topology
from cluster.process.zookeeper import ZooKeeperHandle
from cluster.seams.transport import Transport
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, TopicSpec

if TYPE_CHECKING:
    from chaos.links import Links

#: The listener name under which ``Topology`` has the addresses that the cluster advertises.
LISTENER = "CLIENTS"
DELETE_MS = 20_000
#: The files of a replica that are safe to copy while its broker runs: without load, they do not change.
_STABLE_FILES = ("*.log", "partition.metadata")


class ForeignCluster:
    """``RunCluster`` for brokers that gapless did not start."""

    zookeeper: ZooKeeperHandle | None = None
    zookeeper_address = ""

    def __init__(
        self,
        settings: Experiment,
        directory: RunDirectory,
        supervisor: Supervisor,
        observer: Observer,
        transport: Transport,
        note: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._supervisor = supervisor
        self._observer = observer
        self._transport = transport
        self._note = note
        self._doubted: set[int] = set()
        self._nodes = ForeignNodes.of(settings.asked.nodes)
        self._replicas = replica_directories(settings.asked)
        self._addresses: Mapping[int, str] = {}
        self._links: Links | None = None
        self.broker_ids: tuple[int, ...] = ()
        self.link_names: tuple[str, ...] = ()
        self.topology = Topology(())

    def __repr__(self) -> str:
        return f"ForeignCluster({self._settings.asked.target}, brokers {self.broker_ids})"

    @property
    def is_own(self) -> bool:
        return False

    @property
    def is_proxied(self) -> bool:
        return self._links is not None

    @property
    def links(self) -> Links:
        if self._links is None:
            raise StartFailure("the proxy has not been started")
        return self._links

    async def start(self) -> None:
        """Discover the brokers, and put a link and a relay in front of each broker for each group of clients.

        Raises StartFailure.
        """
        asked = self._settings.asked
        try:
            seen = await look(target_addresses(asked.target or ""), self._transport)
        except NotSeen as error:
            raise StartFailure(f"--target: {error}") from error
        if len(seen.addresses) != asked.brokers:
            brokers = how_many(len(seen.addresses), "broker")
            raise StartFailure(f"--target has {brokers} now, but had {asked.brokers} a moment ago")
        self._addresses = seen.addresses
        self.broker_ids = tuple(sorted(seen.addresses))
        names = [LinkName(group, f"b{broker}") for group in LOAD_GROUPS for broker in self.broker_ids]
        self.link_names = tuple(map(str, names))
        url = asked.toxiproxy or await start_proxy(self._supervisor, self._directory, asked.seed)
        from chaos.links import LinkError, Links

        links = self._links = Links(url)
        listen: dict[str, str] = {}
        try:
            for name in names:
                upstream = seen.addresses[int(name.target[1:])]
                listen[str(name)] = await asyncio.to_thread(links.create, str(name), upstream)
        except LinkError as error:
            raise StartFailure(f"the proxy could not create a link: {error}") from error
        told = await self._start_relays(listen)
        listeners = {broker: {LISTENER: address} for broker, address in seen.addresses.items()}
        self.topology = Topology(self.broker_ids, told, "", listeners, url)
        for broker_id, address in seen.addresses.items():
            self._observer.set_addresses(broker_id, address, "")

    async def _start_relays(self, listen: Mapping[str, str]) -> dict[str, str]:
        """Start a relay for each link. ``listen`` maps link names to ``host:port``; returns the same for the relays."""
        links: dict[str, dict[str, list[object]]] = {group: {} for group in LOAD_GROUPS}
        for text, address in listen.items():
            name, (host, _, port) = LinkName.parse(text), address.rpartition(":")
            links[name.opener][name.target[1:]] = [host, int(port)]
        child = await asyncio.to_thread(
            self._supervisor.start_python,
            "relays",
            "chaos.rewriting.relay_process:serve",
            {"links": links},
            str(self._directory.path / "relays.log"),
            service=True,
        )
        ports = (await message(child, "relays", "bound"))["ports"]
        return {
            f"{group}-b{broker}": f"127.0.0.1:{port}"
            for group, by_broker in ports.items()
            for broker, port in by_broker.items()
        }

    def process(self, broker_id: int) -> BrokerProcess:
        return self._nodes.process(broker_id)

    async def life(self, broker_id: int) -> ProcessLife:
        """Whether the broker runs, according to ``--nodes``. If that is not known, notes the reason once per broker."""
        look = await asyncio.to_thread(self._nodes.process(broker_id).look)
        if look.doubt and broker_id not in self._doubted:
            self._doubted.add(broker_id)
            self._note(f"{look.doubt}: it is not known whether this broker runs")
        return look.life

    async def restart(self, broker_id: int) -> None:
        """Start a dead broker again with its ``start`` command in ``--nodes``. Raises StartFailure."""
        await asyncio.to_thread(self._nodes.start, broker_id)

    async def restart_zookeeper(self) -> None:
        raise StartFailure("gapless did not start this ZooKeeper and cannot restart it")

    async def stop_broker(self, broker_id: int, timeout_s: float) -> bool:
        raise StartFailure(f"gapless did not start broker {broker_id} and does not shut it down")

    async def collect(self, finals: Sequence[FinalPartition], topics: Sequence[TopicSpec]) -> list[str]:
        """Copy the files of ``--replica-dir``, fetch the logs of the other leaders, and delete the run's topics.

        Returns a line for each thing that failed.
        """
        problems: list[str] = []
        for final in finals:
            name = f"{final.topic}-{final.partition}"
            for broker, place in self._replicas.items():
                if broker in final.log_end_offsets:
                    try:
                        await asyncio.to_thread(copy_replica, place / name, self._data(broker) / name)
                    except OSError as error:
                        problems.append(f"--replica-dir {broker}={place}: {name} cannot be read: {error}")
            if final.status == "ok" and final.leader not in self._replicas:
                if (address := self._addresses.get(final.leader)) is None:
                    problems.append(
                        f"the log of {name} could not be fetched: broker {final.leader} was not in the cluster at the "
                        "start"
                    )
                    continue
                try:
                    await save_served_log(final, address, self._data(final.leader) / name, self._transport)
                except (NotServed, OSError) as error:
                    problems.append(f"the log of {name} could not be fetched from broker {final.leader}: {error}")
        return [*problems, *await self._delete(topics)]

    def _data(self, broker_id: int) -> Path:
        return self._directory.node(broker_id) / "data"

    async def _delete(self, topics: Sequence[TopicSpec]) -> list[str]:
        """Delete the topics that this run created; returns a line for each problem.

        A topic with the same name but another id belongs to someone else and stays.
        """
        problems: list[str] = []
        own: list[str] = []
        for topic in topics:
            now = (await topic_ids(self._observer, topic.name)).get(topic.name) if topic.topic_id else None
            if now and now != topic.topic_id:
                problems.append(f"topic {topic.name} is not deleted: others have created it again, with the id {now}")
            else:
                own.append(topic.name)
        if not own:
            return problems
        admin = self._observer.admin(DELETE_MS)
        try:
            await admin.delete_topics(own)
        except (OSError, AdminError) as error:
            problems.append(f"topic {', '.join(own)} could not be deleted and is still in the cluster: {error}")
        finally:
            await admin.close()
        return problems

    async def stop(self) -> list[int]:
        """Stop nothing, because gapless started no broker."""
        return []


def copy_replica(source: Path, target: Path) -> None:
    """Copy the segments of one replica. Blocks.

    Raises ``OSError``, and ``FileNotFoundError`` if the replica has no segments.
    """
    target.mkdir(parents=True, exist_ok=True)
    found = [path for pattern in _STABLE_FILES for path in sorted(source.glob(pattern))]
    if not any(path.suffix == ".log" for path in found):
        raise FileNotFoundError(f"{source} has no segments")
    for path in found:
        shutil.copyfile(path, target / path.name)
