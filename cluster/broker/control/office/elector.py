"""Running for controller: one multi that creates /controller and raises /controller_epoch (Kafka's KafkaController).

Owns the race and the question, after a lost answer, whether we have won it. Does not own what a winner does.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass

from cluster.broker.control.controller.epoch_fence import EpochFence
from cluster.broker.control.membership.session import Session
from cluster.controller.rules import ControlRules
from cluster.metadata.paths import CONTROLLER, CONTROLLER_EPOCH
from cluster.metadata.store import (
    BadVersionError,
    Check,
    ConnectionLostError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
)
from cluster.metadata.znodes import (
    INITIAL_CONTROLLER_EPOCH,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Incumbent:
    """Who holds /controller. ``ours``: this very session does."""

    broker_id: int
    ours: bool


class Elector:
    """One broker's candidacy."""

    def __init__(self, session: Session, broker_id: int, clock: Clock, rules: ControlRules | None = None) -> None:
        self._session = session
        self._store = session.store
        self._broker_id = broker_id
        self._clock = clock
        self._rules = rules or ControlRules()

    def __repr__(self) -> str:
        return f"Elector(broker {self._broker_id})"

    async def incumbent(self) -> Incumbent | None:
        """Who is controller now; None if no one is."""
        try:
            data, stat = await self._session.read(lambda: self._store.get(CONTROLLER))
        except NoNodeError:
            return None
        return Incumbent(decode_controller(data), stat.ephemeral_owner == self._store.session_id)

    async def run(self) -> EpochFence | None:
        """Try to become controller once. The fence of the new epoch if we won, None if another broker did.

        Raises SessionExpiredError.
        """
        generation = self._session.generation
        epoch, version = await self._session.read(self._read_epoch)
        proposed = epoch + 1
        operations: list[Operation] = [
            Create(CONTROLLER, encode_controller(self._broker_id, self._clock.wall_ms()), ephemeral=True),
            SetData(CONTROLLER_EPOCH, encode_controller_epoch(proposed), version),
        ]
        try:
            await self._store.multi(operations)
        except (NodeExistsError, BadVersionError) as error:
            logger.debug("the election of epoch %d was refused: %r", proposed, error)
        except ConnectionLostError:
            await self._session.reconnected(generation)
        else:
            return self._fence(proposed, version + 1)
        return await self._won_after_all(proposed, version + 1)

    async def _won_after_all(self, proposed: int, version: int) -> EpochFence | None:
        """The answer was lost or negative: we won only if the node is of our session and the epoch is our proposal."""
        incumbent = await self.incumbent()
        epoch, current_version = await self._session.read(self._read_epoch)
        if incumbent is not None and incumbent.ours and (epoch, current_version) == (proposed, version):
            logger.info("won the election of epoch %d, though its answer was lost", proposed)
            return self._fence(proposed, version)
        return None

    def _fence(self, epoch: int, version: int) -> EpochFence:
        return EpochFence(self._session, epoch, version, self._rules.required_version)

    async def release(self) -> None:
        """Delete /controller if it is our own session's, so that the others can elect.

        The check of the epoch makes it impossible to delete a successor's node: every election raises that version.
        """
        _, version = await self._session.read(self._read_epoch)
        incumbent = await self.incumbent()
        if incumbent is not None and incumbent.ours:
            try:
                await self._session.write([Check(CONTROLLER_EPOCH, version), Delete(CONTROLLER)])
            except (NoNodeError, BadVersionError):
                logger.debug("/controller was gone already")

    async def _read_epoch(self) -> tuple[int, int]:
        """(epoch, version of its node). The first broker ever creates it."""
        try:
            data, stat = await self._store.get(CONTROLLER_EPOCH)
        except NoNodeError:
            with contextlib.suppress(NodeExistsError):
                await self._store.create(CONTROLLER_EPOCH, encode_controller_epoch(INITIAL_CONTROLLER_EPOCH))
            data, stat = await self._store.get(CONTROLLER_EPOCH)
        return decode_controller_epoch(data), stat.version
