"""A broker's place in ZooKeeper: the persistent paths, the cluster's id, and its own ephemeral node.

Owns the rule that a previous node of this id is waited for and never deleted (Kafka's KafkaZkClient; KIP-380 for the
broker epoch, the node's czxid). Does not own when to register again: the control plane does.
"""

from __future__ import annotations

import asyncio
import base64
import logging

from cluster.broker.control.changes import BrokerIdTaken
from cluster.broker.control.session import Session
from cluster.metadata.paths import CLUSTER_ID, FEATURE, PERSISTENT_PATHS, broker_path
from cluster.metadata.store import ConnectionLostError, NodeExistsError, NoNodeError, Stat
from cluster.metadata.znodes import NO_FEATURES, BrokerRegistration, decode_cluster_id, encode_cluster_id
from cluster.seams.randomness import Random

logger = logging.getLogger(__name__)

#: Between two looks at a previous node. A watch wakes earlier; this is for a watch that was lost with its connection.
POLL_S = 0.5


async def prepare_paths(session: Session) -> None:
    """Create what every cluster has, if it is not there."""
    for path in PERSISTENT_PATHS:
        await _create_if_absent(session, path, b"")
    await _create_if_absent(session, FEATURE, NO_FEATURES)


async def cluster_id(session: Session, random: Random) -> str:
    """The cluster's id: read, or drawn and written by the first broker."""
    drawn = base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    await _create_if_absent(session, CLUSTER_ID, encode_cluster_id(drawn))
    data, _ = await session.read(lambda: session.store.get(CLUSTER_ID))
    return decode_cluster_id(data)


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


async def _create_if_absent(session: Session, path: str, data: bytes) -> None:
    async def create() -> None:
        try:
            await session.store.create(path, data)
        except NodeExistsError:
            return
        except NoNodeError:
            await session.store.create(path, data, make_parents=True)

    await session.read(create)
