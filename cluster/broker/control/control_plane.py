"""ControlPlane: one broker's part in control, wired: membership, office, links, configurations and producer ids.

Owns the wiring, and the order in which these start and stop on one event loop. Does not own a decision, nor replicas or
clients' connections: handlers call in with values, and the controller's requests to this broker go to the same
handlers in process (``deliver``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from functools import partial

from cluster.broker.control.links.controller_client import ControllerClient
from cluster.broker.control.links.peers import Deliver, Peer, Peers
from cluster.broker.control.links.producer_ids import CoordinatorLoading, ProducerIdManager
from cluster.broker.control.membership.event_queue import EventQueue, Shift
from cluster.broker.control.membership.leaving import move_leadership_away
from cluster.broker.control.membership.membership import Membership, registration
from cluster.broker.control.membership.session import Session
from cluster.broker.control.office.apis import ControllerApis
from cluster.broker.control.office.candidate import Candidate
from cluster.broker.control.office.office import OfficeParts
from cluster.broker.dynamic_configs import Changed, DynamicConfigs
from cluster.broker.endpoints import Endpoint, PeerAddresses
from cluster.broker.journal import Journal
from cluster.broker.metadata_cache import MetadataCache
from cluster.config.broker import BrokerConfig
from cluster.controller.rules import ControlRules
from cluster.metadata.paths import CONFIG_CHANGES, topic_path
from cluster.metadata.store import MetadataStore, NoNodeError, SessionExpiredError, StoreError
from cluster.metadata.znodes import TopicRegistration
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.seams.transport import Transport

logger = logging.getLogger(__name__)


async def _not_heeded(topic: str | None) -> None:
    """For a broker without replicas."""


class ControlPlane:
    """``deliver`` handles the controller's requests to this broker. ``settings_changed`` is called with a topic whose
    configuration has changed, or None: the defaults of all topics have.
    """

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
        deliver: Deliver,
        settings_changed: Changed = _not_heeded,
    ) -> None:
        self.broker_id = broker_id
        self._properties = properties
        self._store = store
        self._clock = clock
        self._random = random
        self._cache = cache
        self._tell_settings_changed = settings_changed
        self._is_started = False
        self._session = Session(store)
        self._queue = EventQueue(f"control-{broker_id}")
        self._membership = Membership(
            broker_id=broker_id,
            session=self._session,
            queue=self._queue,
            registration=partial(registration, broker_id, tuple(endpoints), properties["broker.rack"], clock),
            journal=journal,
            control_request_error=rules.control_request_error,
        )
        links = self._links = Peers(
            broker_id=broker_id,
            transport=transport,
            session=self._session,
            addresses=peers,
            cache=cache,
            timeout_ms=properties["controller.socket.timeout.ms"],
            deliver=deliver,
        )
        self.configs = DynamicConfigs(self._session, cache, properties, clock, self._settings_changed)
        self._candidate = Candidate(
            OfficeParts(
                broker_id=broker_id,
                session=self._session,
                queue=self._queue,
                clock=clock,
                random=random,
                properties=properties,
                rules=rules,
                journal=journal,
                inter_broker_listener=peers.inter_broker_listener,
                peer_for=links.link_to,
                may_run=lambda: self._membership.is_registered,
                controller_changed=self._controller_changed,
                unclean_by_default=lambda: self.configs.broker_config["unclean.leader.election.enable"],
            )
        )
        #: What only the controller does.
        self.apis = ControllerApis(self._candidate, self.configs, clock)
        #: This broker's own questions.
        self.controller = ControllerClient(
            broker_id, lambda: self.broker_epoch, self._candidate, self.apis, links.link_to
        )
        self._producer_ids = ProducerIdManager(self.controller.request_block)

    def __repr__(self) -> str:
        return (
            f"ControlPlane(broker {self.broker_id}, epoch {self.broker_epoch}, controller {self.controller_id}"
            f"{', active' if self.is_controller else ''})"
        )

    @property
    def broker_epoch(self) -> int:
        """The czxid of our registration (KIP-380); -1 before the first, the former one while a new one is made."""
        return self._membership.broker_epoch

    @property
    def is_controller(self) -> bool:
        return self._candidate.is_active

    @property
    def controller_id(self) -> int | None:
        return self._candidate.controller_id

    # Life.

    async def open(self) -> str:
        """Open the session, and learn or make the cluster's id. No one learns of us yet.

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
        await self._membership.join()
        with contextlib.suppress(SessionExpiredError):
            # Else they are read with the first topic's.
            await self.configs.load(())
        self._is_started = True
        self._queue.start()
        self._candidate.watch()
        try:
            await self._queue.run(self._candidate.incumbent_changed)
        except StoreError as error:
            # The session ended again; ``follow_session`` registers again and runs then.
            logger.info("the first look at /controller failed: %r", error)
        self._store.watch_children(CONFIG_CHANGES, self._configs_changed)
        self._membership.follow_session(self._candidate)
        self._producer_ids.prefetch()

    def _configs_changed(self) -> None:
        """Patient: elections do not wait until each of thousands of changes was read."""
        self._queue.post_once("configs", self._heed_configs, patient=True)

    async def _heed_configs(self) -> None:
        if not await self.configs.heed_changes(Shift(self._queue, self._clock).is_over):
            self._configs_changed()

    async def stop(self, *, controlled: bool) -> None:
        """Leave. ``controlled``: first have leadership moved away, as far as that goes (Kafka's KafkaController)."""
        if controlled and self._is_started and self._properties["controlled.shutdown.enable"]:
            ask = self.controller.controlled_shutdown
            await move_leadership_away(self.broker_id, ask, self._cache, self._properties)
        self._is_started = False
        self._membership.stop()
        self._candidate.close()
        await self._queue.close()
        self._producer_ids.close()
        self.controller.close()
        await self._store.close()
        self._session.close()

    # What handlers ask of it.

    async def knows_its_epoch(self) -> bool:
        """Wait for the first registration; False if this broker leaves without one."""
        return await self._membership.knows_its_epoch()

    def check_control_request(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """The fence in front of LeaderAndIsr, UpdateMetadata and StopReplica; remembers the newest controller epoch."""
        return self._membership.check_control_request(controller_epoch, broker_epoch)

    async def load_topic_configs(self, topics: Iterable[str]) -> None:
        """Have ``MetadataCache.topic_config`` know these topics. To be awaited before their logs are opened."""
        await self.configs.load(topics)

    async def stored_partitions(self, topic: str) -> int | None:
        """How many partitions a topic has, by ZooKeeper; None if there is no such topic."""
        try:
            data, _ = await self._session.read(lambda: self._store.get(topic_path(topic)))
        except NoNodeError:
            return None
        return len(TopicRegistration.decode(topic, data).partitions)

    def link_to(self, broker_id: int) -> Peer:
        """A connection of its own to a broker, in process to this one."""
        return self._links.link_to(broker_id)

    async def next_producer_id(self) -> int:
        """An id that no one was given before. Raises CoordinatorLoading, NoProducerIds."""
        return self._producer_ids.take()

    def take_producer_id(self) -> int | None:
        """The same, or None while none is at hand. Raises NoProducerIds."""
        try:
            return self._producer_ids.take()
        except CoordinatorLoading:
            return None

    # What the parts tell each other.

    def _controller_changed(self, controller_id: int | None) -> None:
        if controller_id is not None:
            self._cache.controller_id = controller_id
            self._producer_ids.prefetch()

    async def _settings_changed(self, topic: str | None) -> None:
        """The configuration of a topic, or (None) of this broker is another one now."""
        await self._tell_settings_changed(topic)
        await self._candidate.heed_now(lambda office: office.controller.configs_changed(topic))
