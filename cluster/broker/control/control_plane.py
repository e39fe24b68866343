"""ControlPlane: one broker's part in control. Registration, session, controller role, and the broker's own questions.

Owns the wiring and the life of all of these on one event loop. Does not own replicas or clients' connections: handlers
call in with decoded messages, and ``deliver`` hands the controller's requests to the same handlers in process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cluster.broker.control.changes import ControllerUnavailable, IsrChange, IsrResult
from cluster.broker.control.channels import Peer
from cluster.broker.control.controller_apis import ControllerApis
from cluster.broker.control.controller_link import ControllerLink
from cluster.broker.control.controller_role import ControllerRole, RoleParts
from cluster.broker.control.dynamic_configs import DynamicConfigs
from cluster.broker.control.endpoints import Endpoint, PeerAddresses
from cluster.broker.control.event_queue import EventQueue
from cluster.broker.control.local_peer import Deliver, LocalPeer
from cluster.broker.control.membership import Membership
from cluster.broker.control.metadata_cache import MetadataCache
from cluster.broker.control.peer_link import PeerLink
from cluster.broker.control.producer_id_manager import ProducerIdManager
from cluster.broker.control.session import Session
from cluster.broker.control.shutdown import move_leadership_away
from cluster.broker.journal import Journal
from cluster.config.broker import BrokerConfig
from cluster.controller.rules import ControlRules
from cluster.metadata.paths import CONFIG_CHANGES, broker_path
from cluster.metadata.store import MetadataStore, NoNodeError, SessionExpiredError, StoreError
from cluster.metadata.znodes import BrokerRegistration
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.seams.transport import Transport

logger = logging.getLogger(__name__)


class ControlPlane:
    """``deliver`` must be set, here or as an attribute, before ``start``."""

    def __init__(
        self,
        *,
        broker_id: int,
        properties: BrokerConfig,
        store: MetadataStore,
        transport: Transport,
        clock: Clock,
        random: Random,
        endpoints: Sequence[Endpoint],
        peers: PeerAddresses,
        cache: MetadataCache,
        journal: Journal,
        rules: ControlRules,
        deliver: Deliver | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.deliver = deliver
        #: Called with a topic whose configuration has changed, or None: all topics' defaults have.
        self.settings_changed: Callable[[str | None], None] = lambda topic: None
        self._properties = properties
        self._store = store
        self._transport = transport
        self._clock = clock
        self._random = random
        self._endpoints = tuple(endpoints)
        self._peers = peers
        self._cache = cache
        self._rules = rules
        self._known_controller_epoch = 0
        self._started = False
        self._session = Session(store)
        self._queue = EventQueue(f"control-{broker_id}")
        self._membership = Membership(
            broker_id=broker_id,
            session=self._session,
            queue=self._queue,
            registration=self._registration,
            journal=journal,
        )
        #: Set when the broker epoch is known, or will never be.
        self._is_settled = asyncio.Event()
        self._local = LocalPeer(self._deliver)
        self._role = ControllerRole(
            RoleParts(
                broker_id=broker_id,
                session=self._session,
                queue=self._queue,
                clock=clock,
                random=random,
                properties=properties,
                rules=rules,
                journal=journal,
                inter_broker_listener=peers.inter_broker_listener,
                peer_for=self._peer_for,
                may_run=lambda: self._membership.is_registered,
                controller_changed=self._controller_changed,
                unclean_by_default=lambda: bool(self.configs.broker_config["unclean.leader.election.enable"]),
            )
        )
        self._link = ControllerLink(broker_id, lambda: self.broker_epoch, self.ask_controller)
        self._controller_peer: tuple[int, PeerLink] | None = None
        self._producer_ids = ProducerIdManager(self._link.request_block)
        self.configs = DynamicConfigs(self._session, cache, properties, clock, self._settings_changed)
        self._apis = ControllerApis(self._role, self.configs, clock)

    def __repr__(self) -> str:
        return (
            f"ControlPlane(broker {self.broker_id}, epoch {self.broker_epoch}, controller {self.controller_id}"
            f"{', active' if self.is_controller else ''})"
        )

    @property
    def broker_epoch(self) -> int:
        """The czxid of our registration (KIP-380); -1 before the first, the former one while a new one is made."""
        return self._membership.broker_epoch

    async def knows_its_epoch(self) -> bool:
        """Wait for the first registration; False if this broker leaves without one."""
        if self.broker_epoch < 0:
            await self._is_settled.wait()
        return self.broker_epoch >= 0

    @property
    def is_controller(self) -> bool:
        return self._role.is_active

    @property
    def controller_id(self) -> int | None:
        return self._role.controller_id

    # Life.

    async def open(self) -> str:
        """Open the session, and learn or make the cluster's id. No one hears of us yet.

        Raises TimeoutError without ZooKeeper.
        """
        timeout_ms = self._properties["zookeeper.connection.timeout.ms"]
        await self._store.start(timeout_ms or self._properties["zookeeper.session.timeout.ms"])
        self._cache.cluster_id = found = await self._membership.cluster_id(self._random)
        return found

    async def start(self) -> None:
        """After ``open``: wait for the end of our previous session, register, run for controller, watch.

        Raises BrokerIdTaken if another live broker has our id.
        """
        if self.deliver is None:
            raise RuntimeError("deliver is not set")
        await self._membership.join()
        self._is_settled.set()
        with contextlib.suppress(SessionExpiredError):
            # Else they are read with the first topic's.
            await self.configs.load(())
        self._started = True
        self._queue.start()
        self._role.watch()
        try:
            await self._queue.run(self._role.incumbent_changed)
        except StoreError as error:
            # The session ended again; ``follow_session`` registers again and runs then.
            logger.info("the first look at /controller failed: %r", error)
        self._store.watch_children(CONFIG_CHANGES, lambda: self._queue.post_once("configs", self.configs.heed_changes))
        self._membership.follow_session(self._role)
        self._producer_ids.prefetch()

    async def stop(self, *, controlled: bool) -> None:
        """Leave. ``controlled``: first have leadership moved away, as far as that goes (Kafka's KafkaController)."""
        if controlled and self._started and self._properties["controlled.shutdown.enable"]:
            await move_leadership_away(self.broker_id, self._link, self._cache, self._properties)
        self._started = False
        self._is_settled.set()
        self._membership.stop()
        self._role.close()
        await self._queue.close()
        self._producer_ids.close()
        if self._controller_peer is not None:
            self._controller_peer[1].close()
        await self._store.close()
        self._session.close()

    def _registration(self) -> BrokerRegistration:
        return BrokerRegistration(
            broker_id=self.broker_id,
            endpoints=self._endpoints,
            security_protocols={endpoint.listener: "PLAINTEXT" for endpoint in self._endpoints},
            rack=self._properties["broker.rack"],
            timestamp_ms=self._clock.wall_ms(),
        )

    # What the controller's requests need, called by handlers.

    def check_control_request(self, request: Any) -> ErrorCode:
        """The fence in front of LeaderAndIsr, UpdateMetadata and StopReplica; remembers the newest controller epoch."""
        error = self._rules.control_request_error(
            request.controller_epoch,
            request.broker_epoch,
            known_controller_epoch=self._known_controller_epoch,
            own_broker_epoch=self.broker_epoch,
        )
        if error is ErrorCode.NONE:
            self._known_controller_epoch = request.controller_epoch
        return error

    async def load_topic_configs(self, topics: Iterable[str]) -> None:
        """Have ``MetadataCache.topic_config`` know these topics. To be awaited before their logs are opened."""
        await self.configs.load(topics)

    async def serve(self, request: Any, version: int) -> Any:
        """The response to a decoded request that only the controller serves (``ControllerApis``)."""
        return await self._apis.serve(request, version)

    # This broker's own questions.

    async def propose_isr(self, changes: Sequence[IsrChange]) -> list[IsrResult]:
        """Ask the controller for ISR changes. Raises OSError or StoreError if it cannot be asked: try again."""
        return await self._link.propose_isr(changes)

    async def next_producer_id(self) -> int:
        """An id that no one was given before. Raises CoordinatorLoading, NoProducerIds."""
        return self._producer_ids.take()

    async def ask_controller(self, message: Any, version: int) -> Any:
        """Send a request to the controller, wherever it is, and return its response.

        Raises OSError, ControllerUnavailable among them, if there is none or it cannot be reached.
        """
        controller_id = self.controller_id
        if self.is_controller:
            return await self._apis.serve(message, version)
        if controller_id is None or controller_id == self.broker_id:
            raise ControllerUnavailable("there is no controller")
        if self._controller_peer is None or self._controller_peer[0] != controller_id:
            if self._controller_peer is not None:
                self._controller_peer[1].close()
            self._controller_peer = (controller_id, self._link_to(controller_id))
        return await self._controller_peer[1].ask(message, version)

    # Wiring.

    def _deliver(self) -> Deliver:
        if self.deliver is None:
            raise RuntimeError("deliver is not set")
        return self.deliver

    def _peer_for(self, broker_id: int) -> Peer:
        return self._local if broker_id == self.broker_id else self._link_to(broker_id)

    def _link_to(self, broker_id: int) -> PeerLink:
        timeout_ms = self._properties["controller.socket.timeout.ms"]
        return PeerLink(
            self._transport, lambda: self._locate(broker_id), f"broker-{self.broker_id}-control", timeout_ms
        )

    async def _locate(self, broker_id: int) -> tuple[str, int] | None:
        """Our own link to a peer, else what it has registered, else what we last heard of it."""
        address = self._peers.address(broker_id)
        if address is not None:
            return address
        endpoints = self._cache.endpoints(broker_id)
        if self._session.is_connected:
            try:
                data, _ = await self._session.read(lambda: self._store.get(broker_path(broker_id)))
                endpoints = BrokerRegistration.decode(broker_id, data).endpoints
            except NoNodeError:
                return None
        return self._peers.address(broker_id, endpoints)

    def _controller_changed(self, controller_id: int | None) -> None:
        if controller_id is not None:
            self._cache.controller_id = controller_id
            self._producer_ids.prefetch()

    async def _settings_changed(self, topic: str | None) -> None:
        """The configuration of a topic, or (None) of this broker is another one now."""
        self.settings_changed(topic)
        await self._role.heed_now(lambda office: office.controller.configs_changed(topic))
