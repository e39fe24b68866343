"""Node: one broker from its configuration and its seams: what it consists of, and how it starts and stops.

Owns the wiring and the order of start and stop. Does not own which seams these are (``main`` passes the real ones, a
simulation others) nor the process around it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar

from cluster.broker.admission import Admission
from cluster.broker.api_table import api_table
from cluster.broker.checkpoints import Blocking, Checkpoints, in_thread
from cluster.broker.control.control_plane import ControlPlane
from cluster.broker.coordinators import Coordinators, StoredPartitions
from cluster.broker.disk_failures import DiskFailures
from cluster.broker.endpoints import PeerAddresses, advertised_endpoints
from cluster.broker.exchange import Api
from cluster.broker.handlers.from_controller import deliver
from cluster.broker.handlers.metadata import MetadataHandler
from cluster.broker.housekeeping import Housekeeping, note_log_start
from cluster.broker.internal_topics import plan
from cluster.broker.journal import JournalFile
from cluster.broker.listening import listen
from cluster.broker.loading import LOADED, load_logs
from cluster.broker.metadata_cache import MetadataCache
from cluster.broker.metrics import Counters
from cluster.broker.pauses import Shares
from cluster.broker.replicas.fetch_sessions import FetchSessions
from cluster.broker.replicas.fetcher import Fetcher, FetcherSettings
from cluster.broker.replicas.fetchers import Fetchers
from cluster.broker.replicas.host import TopicSettings
from cluster.broker.replicas.isr_proposals import IsrProposals
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.replicas.roles import Roles
from cluster.broker.rules import Rules
from cluster.broker.server import ClientConnection
from cluster.broker.services import Services
from cluster.broker.topic_creation import TopicCreator
from cluster.broker.topic_settings import log_config, log_defaults, max_producers, topic_settings
from cluster.config.broker import BrokerConfig
from cluster.log.manager import LogManager
from cluster.metadata.store import MetadataStore
from cluster.protocol.message_classes import Request
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage
from cluster.seams.transport import Connection, FrameHandler, Listener, Transport

_Answer = TypeVar("_Answer")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seams:
    """The seams of one broker, and how it runs what blocks."""

    clock: Clock
    random: Random
    transport: Transport
    store: MetadataStore
    storage: Storage
    blocking: Blocking = in_thread
    #: Returns free memory to the system; simulated brokers share a process, which has no need of it.
    give_back_memory: Callable[[], None] | None = None


class Node:
    """One broker. ``failed`` is called once if it cannot continue (its disk failed): it should be stopped, uncleanly.

    ``node_directory`` is where it keeps its journal; the data directory is the configuration's.
    """

    def __init__(
        self,
        config: BrokerConfig,
        rules: Rules,
        seams: Seams,
        node_directory: str,
        failed: Callable[[Exception], None],
    ) -> None:
        self.config = config
        self.counters = Counters(seams.clock.monotonic_ns)
        seams.store.on_session(self.counters.session_changed)
        self._admission = Admission(config, self.counters)
        self.metadata = MetadataCache()
        self._rules = rules
        self._seams = seams
        self._journal = JournalFile(node_directory, seams.storage, seams.clock)
        self._storage_failed = DiskFailures(seams.clock, failed)
        self._listeners: dict[str, Listener] = {}
        self._apis: dict[str, dict[int, Api]] = {}
        self._held: list[ClientConnection] | None = []
        #: Peers that came before there was anything to answer them with.
        self._early: list[ClientConnection] = []
        self._log_defaults = log_defaults(config)
        self.logs = LogManager(
            config.data_directory,
            seams.storage,
            seams.clock,
            log_config(config.topic_defaults(), config, self._log_defaults),
            rules.check_sequence,
            max_producers(config),
            partial(note_log_start, self._journal.write),
            rules.open_log,
        )
        self._control: ControlPlane | None = None
        self._proposals: IsrProposals | None = None
        self._fetchers = Fetchers(self._make_fetcher)
        self._replicas: ReplicaManager | None = None
        self._coordinators: Coordinators | None = None
        self._roles: Roles | None = None
        self._checkpoints: Checkpoints | None = None
        self._housekeeping: Housekeeping | None = None
        self._services: Services | None = None

    def __repr__(self) -> str:
        return f"<Node {self.config.broker_id} {self.ports} {self._replicas!r}>"

    @property
    def ports(self) -> dict[str, int]:
        """Listener name -> bound port."""
        return {name: listener.port for name, listener in self._listeners.items()}

    @property
    def replicas(self) -> ReplicaManager:
        """Raises ``RuntimeError`` before ``start``."""
        if self._replicas is None:
            raise RuntimeError("the broker is not started")
        return self._replicas

    @property
    def control(self) -> ControlPlane:
        """Raises ``RuntimeError`` before ``start``."""
        if self._control is None:
            raise RuntimeError("the broker is not started")
        return self._control

    @property
    def coordinators(self) -> Coordinators | None:
        """None before ``start``."""
        return self._coordinators

    @property
    def is_started(self) -> bool:
        """Whether there are ``replicas`` and ``control``."""
        return self._replicas is not None and self._control is not None

    # Start

    async def bind(self) -> dict[str, int]:
        """Listen on every listener and return its ports. Raises ``OSError``. Nothing is served before ``start``."""
        for address in self.config.listeners:
            accept = partial(self._accept, address.name)
            self._listeners[address.name] = await listen(self._seams.transport, self.config, address, accept)
        return self.ports

    def _accept(self, listener: str, connection: Connection) -> FrameHandler:
        client = ClientConnection(connection, listener, self._table(listener), self.counters, self._admission.leave)
        self._admission.enter(client)
        if self._held is not None and listener != self.config.inter_broker_listener_name:
            client.hold()
            self._held.append(client)
        elif not self._table(listener):
            client.hold()
            self._early.append(client)
        return client

    async def start(self) -> int:
        """Claim the data directory, recover the logs, register, and serve; returns the broker epoch.

        That is the order of Kafka's ``KafkaServer.startup``: a directory of another broker or cluster is not touched,
        and its logs are never given a role. Raises ``LogError``, ``BrokerIdTaken``, ``TimeoutError`` (no ZooKeeper).
        """
        self.logs.lock()
        control = self._control = self._make_control()
        self.logs.claim(self.config.broker_id, await control.open())
        self._journal.write(LOADED, loaded := await load_logs(self.logs, self._seams.clock, self._seams.blocking))
        self.counters.log_load_ns = int(loaded["elapsed_ms"] * 1_000_000)
        loop = asyncio.get_running_loop()
        config, clock = self.config, self._seams.clock
        stored = await StoredPartitions.read(control)
        self._proposals = IsrProposals(control.controller.alter_partition, clock, loop)
        shares = Shares(clock.monotonic_ns)
        replicas = self._replicas = ReplicaManager(
            broker_id=config.broker_id,
            rules=self._rules,
            counters=self.counters,
            clock=clock,
            loop=loop,
            proposer=self._proposals,
            partition_exists=lambda topic, partition: self.metadata.partition(topic, partition) is not None,
            storage_failed=self._storage_failed,
            lag_time_max_ms=config["replica.lag.time.max.ms"],
            fetch_max_bytes=config["fetch.max.bytes"],
            sessions=FetchSessions(self._seams.random, config["max.incremental.fetch.session.cache.slots"]),
            journal=self._journal.write,
            blocking=self._seams.blocking,
            shares=shares,
            verifies_transactions=config["transaction.partition.verification.enable"],
        )
        coordinators = self._coordinators = Coordinators.make(
            stored, config, replicas, self.metadata, control, clock, self._seams.random, self._seams.blocking
        )
        roles = self._roles = Roles(
            replicas, self._fetchers, self.logs, topic_settings=self._topic_settings, clock=clock,
            storage=self._seams.storage, blocking=self._blocking, storage_failed=self._storage_failed,
            role_taken=coordinators.role_taken,
        )  # fmt: skip
        checkpoints = self._checkpoints = Checkpoints(
            self.logs, replicas.high_watermarks, config, clock, self._storage_failed, self._blocking
        )
        usable_bytes = partial(self._seams.storage.free_bytes, config.data_directory)
        self._housekeeping = Housekeeping(
            self.logs, replicas.high_watermarks, config, clock, self._seams.storage, self._storage_failed,
            self._seams.blocking, self._seams.give_back_memory,
        )  # fmt: skip
        creator = TopicCreator(control.controller.create_topic, partial(plan, config), config["request.timeout.ms"])
        services = self._services = Services(
            config, self.counters, self.metadata, control, replicas, roles, checkpoints, *coordinators, creator,
            usable_bytes, self._seams.blocking, shares,
        )  # fmt: skip
        self._fill_api_tables(services)
        self.metadata.on_update(self._metadata_updated)
        await control.start()
        replicas.start()
        coordinators.start()
        checkpoints.start()
        self._admission.start()
        self._housekeeping.start()
        return control.broker_epoch

    def _make_control(self) -> ControlPlane:
        seams, config = self._seams, self.config
        return ControlPlane(
            broker_id=config.broker_id,
            properties=config,
            store=seams.store,
            transport=seams.transport,
            clock=seams.clock,
            random=seams.random,
            endpoints=advertised_endpoints(config, self.ports),
            peers=PeerAddresses(config.peer_addresses, config.inter_broker_listener_name),
            cache=self.metadata,
            journal=self._journal.write,
            rules=self._rules.control,
            deliver=self._deliver,
            settings_changed=self._settings_changed,
        )

    async def _deliver(self, request: Request[_Answer]) -> _Answer:
        if self._services is None:
            raise RuntimeError("the broker is not started")
        return await deliver(self._services, request)

    async def _settings_changed(self, topic: str | None) -> None:
        if self._roles is not None:
            await self._roles.configure(topic)

    def _fill_api_tables(self, services: Services) -> None:
        may_create = self.config["auto.create.topics.enable"]
        metadata = MetadataHandler(self.metadata, services.topic_creator.create if may_create else None)
        for name in self._listeners:
            is_for_brokers = name == self.config.inter_broker_listener_name
            # Filled in place: connections that were accepted before hold the same table.
            self._table(name).update(api_table(services, metadata, for_brokers=is_for_brokers))
        early, self._early = self._early, []
        for client in early:
            client.release()

    def _table(self, listener: str) -> dict[int, Api]:
        return self._apis.setdefault(listener, {})

    def _make_fetcher(self, leader_id: int) -> Fetcher:
        config = self.config
        peers = PeerAddresses(config.peer_addresses, config.inter_broker_listener_name)
        return Fetcher(
            leader_id,
            FetcherSettings.of(config),
            address=lambda broker_id: peers.address(broker_id, self.metadata.endpoints(broker_id)),
            broker_epoch=lambda: self.control.broker_epoch,
            transport=self._seams.transport,
            clock=self._seams.clock,
            loop=asyncio.get_running_loop(),
            storage_failed=self._storage_failed,
        )

    def _topic_settings(self, topic: str) -> TopicSettings:
        given = self.metadata.topic_config(topic)
        return topic_settings(topic, given, self.control.configs.broker_config, self._log_defaults)

    def _metadata_updated(self) -> None:
        self.replicas.brokers_changed({broker.broker_id for broker in self.metadata.alive_brokers()})
        # Before the controller has told us anything, every answer to a client would say that there is nothing.
        held, self._held = self._held, None
        for client in held or ():
            client.release()

    async def _blocking(self, work: Callable[[], None]) -> None:
        """Work of the disk off the loop, timed."""
        began_ns = self._seams.clock.monotonic_ns()
        try:
            await self._seams.blocking(work)
        finally:
            self.counters.background_disk.note(self._seams.clock.monotonic_ns() - began_ns)

    # Stop

    async def stop(self, *, controlled: bool) -> None:
        """Leave; ``controlled``: move leadership away first, write the checkpoints and the marker of a clean stop.

        Raises ``LogError`` if the logs could not be closed cleanly.
        """
        if self._control is not None:
            await self._control.stop(controlled=controlled)
        if self._proposals is not None:
            await self._proposals.close()
        self._fetchers.close()
        if self._services is not None:
            self._services.topic_creator.close()
        if self._coordinators is not None:
            await self._coordinators.stop()
        self._admission.close()
        for listener in self._listeners.values():
            await listener.close()
        if self._replicas is not None:
            self._replicas.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        checkpoints = self._checkpoints
        if checkpoints is not None:
            await checkpoints.stop()
            if controlled:
                await checkpoints.write_high_watermarks()
        self.logs.close(clean=controlled)
