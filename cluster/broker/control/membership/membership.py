"""Being a member of the cluster: the registration under this broker's id, and what happens when its session ends.

Owns the broker epoch (the czxid of the registration, KIP-380) and what it fences; the rule that a previous node of this
id is waited for and never deleted (Kafka's KafkaZkClient); the order at the end of a session: resign first, then
register again (a new broker epoch), then run again. Does not own what a controller does, nor when the broker starts or
stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from cluster.broker.control.membership.cluster_id import cluster_id, prepare_paths
from cluster.broker.control.membership.event_queue import EventQueue
from cluster.broker.control.membership.session import Session
from cluster.broker.journal import Journal
from cluster.controller.control_fence import control_request_error
from cluster.metadata.paths import broker_path
from cluster.metadata.store import (
    ConnectionLostError,
    NodeExistsError,
    SessionExpiredError,
    SessionState,
    Stat,
)
from cluster.metadata.znodes import BrokerRegistration, Endpoint
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.randomness import Random
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: How many sessions a previous node of this broker id is waited for, and for how many seconds at least.
PATIENCE_SESSIONS = 3
PATIENCE_MIN_S = 10.0
#: Between two looks at a previous node. A watch wakes earlier; this is for a watch that was lost with its connection.
POLL_S = 0.5


class BrokerIdTaken(Exception):
    """Another live broker is registered under this broker's id."""


class Candidacy(Protocol):
    """What follows the session: the candidate for controller in it."""

    def resign(self, reason: str) -> None:
        """Stop being controller now; a no-op on any other broker."""
        ...

    async def incumbent_changed(self) -> None:
        """Look who is controller, and run if no broker is."""
        ...


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
        control_request_error: Callable[..., ErrorCode] = control_request_error,
    ) -> None:
        #: Of the current registration; -1 before the first, the former one while a new one is made.
        self.broker_epoch = -1
        self._broker_id = broker_id
        self._session = session
        self._store = session.store
        self._queue = queue
        self._registration = registration
        self._journal = journal
        self._registrar = Registrar(session, broker_id)
        self._registered_session = 0
        self._control_request_error = control_request_error
        self._known_controller_epoch = 0
        #: Set when the broker epoch is known, or will never be.
        self._is_settled = asyncio.Event()
        self._candidate: Candidacy | None = None
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
                await self._register(
                    max(PATIENCE_MIN_S, seconds_of_ms(PATIENCE_SESSIONS * self._store.session_timeout_ms))
                )
                self._is_settled.set()
                return
            except SessionExpiredError:
                logger.warning("the ZooKeeper session ended before broker %d was registered", self._broker_id)
                await self._session.renewed()

    def follow_session(self, candidate: Candidacy) -> None:
        """From now on stay registered, and keep ``candidate`` to its session."""
        self._candidate = candidate
        self._store.on_session(self._session_changed)
        # It may have ended since ``join``, unheard.
        self._queue.post_once("session", self._register_again)

    def stop(self) -> None:
        self._is_settled.set()
        self._candidate = None
        self._cancel_silence()

    async def knows_its_epoch(self) -> bool:
        """Wait for the first registration; False if this broker leaves without one."""
        if self.broker_epoch < 0:
            await self._is_settled.wait()
        return self.broker_epoch >= 0

    def check_control_request(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """The fence in front of LeaderAndIsr, UpdateMetadata and StopReplica; remembers the newest controller epoch."""
        error = self._control_request_error(
            controller_epoch,
            broker_epoch,
            known_controller_epoch=self._known_controller_epoch,
            own_broker_epoch=self.broker_epoch,
        )
        if error is ErrorCode.NONE:
            self._known_controller_epoch = controller_epoch
        return error

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
            if self._candidate is not None:
                await self._candidate.incumbent_changed()

    def _session_changed(self, state: SessionState) -> None:
        self._cancel_silence()
        candidate = self._candidate
        if candidate is None:
            return
        if state is SessionState.EXPIRED:
            self._journal("session-expired", {})
            candidate.resign("the ZooKeeper session expired")
        elif state is SessionState.SUSPENDED:
            # Our writes are fenced in any case; this is so that we stop telling brokers what we can no longer know.
            timeout_ms = self._store.session_timeout_ms
            self._silence = asyncio.get_running_loop().call_later(
                seconds_of_ms(timeout_ms), candidate.resign, f"no connection to ZooKeeper for {timeout_ms} ms"
            )
        else:
            self._queue.post_once("session", self._register_again)

    def _cancel_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None


class Registrar:
    """Registers one broker id, once per session."""

    def __init__(self, session: Session, broker_id: int) -> None:
        self._session = session
        self._store = session.store
        self._broker_id = broker_id
        self._path = broker_path(broker_id)
        self._changed = asyncio.Event()
        self._watching = False

    def __repr__(self) -> str:
        return f"Registrar(broker {self._broker_id})"

    async def register(self, registration: BrokerRegistration, *, patience_s: float | None) -> int:
        """Create the node in the current session and return the broker epoch.

        A node of another session is waited for: it is our former life, or another broker's. After ``patience_s``
        without its end BrokerIdTaken is raised (None: wait forever). Raises SessionExpiredError.
        """
        if not self._watching:
            self._watching = True
            self._store.watch_data(self._path, self._changed.set)
        data = registration.encode()
        while True:
            await self._wait_until_gone(patience_s)
            generation = self._session.generation
            try:
                await self._store.create(self._path, data, ephemeral=True)
            except NodeExistsError:
                pass
            except ConnectionLostError:
                await self._session.reconnected(generation)
            stat = await self._session.read(lambda: self._store.exists(self._path))
            if stat is not None and stat.ephemeral_owner == self._store.session_id:
                return stat.created_zxid

    async def _wait_until_gone(self, patience_s: float | None) -> None:
        """The time is counted while ZooKeeper answers: it ends no session while it is down."""
        former: Stat | None = None
        waited_s = 0.0
        while True:
            self._changed.clear()
            stat = await self._session.read(lambda: self._store.exists(self._path))
            if stat is None or stat.ephemeral_owner == self._store.session_id:
                return
            if former is None or former.created_zxid != stat.created_zxid:
                former, waited_s = stat, 0.0
                logger.info(
                    "broker id %d is still registered by session %#x; waiting for its end",
                    self._broker_id,
                    stat.ephemeral_owner,
                )
            elif patience_s is not None and waited_s >= patience_s:
                raise BrokerIdTaken(
                    f"broker id {self._broker_id} is registered by another live broker (session "
                    f"{stat.ephemeral_owner:#x} did not end within {patience_s:.1f} s); give this one another broker.id"
                )
            try:
                async with asyncio.timeout(POLL_S):
                    await self._changed.wait()
            except TimeoutError:
                waited_s += POLL_S


def registration(broker_id: int, endpoints: tuple[Endpoint, ...], rack: str | None, clock: Clock) -> BrokerRegistration:
    """What a broker's node holds, as of now."""
    protocols = {endpoint.listener: "PLAINTEXT" for endpoint in endpoints}
    return BrokerRegistration(
        broker_id=broker_id,
        endpoints=endpoints,
        security_protocols=protocols,
        rack=rack,
        timestamp_ms=clock.wall_ms(),
    )
