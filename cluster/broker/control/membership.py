"""Being a member of the cluster: the session, the registration in it, and what happens when it is cut off or ends.

Owns the broker epoch. Order at the end of a session: resign first, then register again (a new broker epoch), then run
again (Kafka's KafkaZkClient). Does not own what a controller does, nor when the broker starts or stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from cluster.broker.control.controller_role import ControllerRole
from cluster.broker.control.event_queue import EventQueue
from cluster.broker.control.registration import Registrar, cluster_id, prepare_paths
from cluster.broker.control.session import Session
from cluster.broker.journal import Journal
from cluster.metadata.store import SessionExpiredError, SessionState
from cluster.metadata.znodes import BrokerRegistration
from cluster.seams.randomness import Random

logger = logging.getLogger(__name__)

#: A previous node of this broker id is waited for this many sessions long, but at least this many seconds.
PATIENCE_SESSIONS = 3
PATIENCE_MIN_S = 10.0


class Membership:
    """One broker's. ``registration`` builds the node's data, with the current time."""

    def __init__(
        self,
        *,
        broker_id: int,
        session: Session,
        queue: EventQueue,
        registration: Callable[[], BrokerRegistration],
        journal: Journal,
    ) -> None:
        self.broker_epoch = -1
        self._broker_id = broker_id
        self._session = session
        self._store = session.store
        self._queue = queue
        self._registration = registration
        self._journal = journal
        self._registrar = Registrar(session, broker_id)
        self._registered_session = 0
        self._role: ControllerRole | None = None
        self._silence: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"Membership(broker {self._broker_id}, epoch {self.broker_epoch}, registered={self.is_registered})"

    @property
    def is_registered(self) -> bool:
        """Whether the current session, as far as we know it, holds our registration."""
        return self._registered_session != 0 and self._registered_session == self._store.session_id

    async def cluster_id(self, random: Random) -> str:
        """The id of the cluster that this is, which is a new one if it has none."""
        while True:
            try:
                await prepare_paths(self._session)
                return await cluster_id(self._session, random)
            except SessionExpiredError:
                logger.warning("the ZooKeeper session ended before broker %d knew its cluster", self._broker_id)
                await self._session.renewed()

    async def join(self) -> None:
        """Register for the first time, when our previous node is gone. Raises BrokerIdTaken."""
        while True:
            try:
                await self._register(max(PATIENCE_MIN_S, PATIENCE_SESSIONS * self._store.session_timeout_ms / 1000))
                return
            except SessionExpiredError:
                logger.warning("the ZooKeeper session ended before broker %d was registered", self._broker_id)
                await self._session.renewed()

    def follow_session(self, role: ControllerRole) -> None:
        """From now on stay registered, and keep ``role`` to its session."""
        self._role = role
        self._store.on_session(self._session_changed)
        # It may have ended since ``join``, unheard.
        self._queue.post_once("session", self._register_again)

    def stop(self) -> None:
        self._role = None
        self._cancel_silence()

    async def _register(self, patience_s: float | None) -> None:
        self.broker_epoch = await self._registrar.register(self._registration(), patience_s=patience_s)
        self._registered_session = self._store.session_id
        logger.info(
            "broker %d is registered: epoch %d, session %#x, timeout %d ms",
            self._broker_id,
            self.broker_epoch,
            self._registered_session,
            self._store.session_timeout_ms,
        )
        self._journal("registered", {"broker_epoch": self.broker_epoch, "session": self._registered_session})

    async def _register_again(self) -> None:
        """After each connection: a new session needs a new registration, then a look at /controller."""
        try:
            if not self.is_registered:
                await self._register(None)
        except SessionExpiredError:
            logger.info("the session ended again; waiting for the next one")
        else:
            if self._role is not None:
                await self._role.incumbent_changed()

    def _session_changed(self, state: SessionState) -> None:
        self._cancel_silence()
        role = self._role
        if role is None:
            return
        if state is SessionState.EXPIRED:
            self._journal("session-expired", {})
            role.resign("the ZooKeeper session expired")
        elif state is SessionState.SUSPENDED:
            # Our writes are fenced in any case; this is so that we stop telling brokers what we cannot know anymore.
            timeout_ms = self._store.session_timeout_ms
            self._silence = asyncio.get_running_loop().call_later(
                timeout_ms / 1000, role.resign, f"no connection to ZooKeeper for {timeout_ms} ms"
            )
        else:
            self._queue.post_once("session", self._register_again)

    def _cancel_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
