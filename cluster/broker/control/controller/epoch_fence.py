"""A controller's way to write: nothing is written once another controller is elected, or this one has resigned.

Owns the check of the epoch in every multi, and the errors that say that this broker is not, or no longer, controller.
Does not own lost connections (``Session``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.broker.control.membership.session import Session
from cluster.controller.control_fence import required_version
from cluster.metadata.paths import CONTROLLER_EPOCH
from cluster.metadata.store import (
    BadVersionError,
    Check,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Stat,
)

NOT_CONTROLLER_TEXT = "This is not the correct controller for this cluster."


class NotController(Exception):
    """This broker is not the controller, or stopped being it while it served a request."""


class ControllerMovedError(Exception):
    """/controller_epoch has another version: another controller was elected, and nothing of ours was written."""


class EpochFence:
    """A controller's way to write: every multi checks that /controller_epoch is still its own (KafkaZkClient)."""

    def __init__(
        self,
        session: Session,
        epoch: int,
        version: int,
        required_version: Callable[[int], int | None] = required_version,
    ) -> None:
        self.session = session
        self.epoch = epoch
        self.required_version = required_version
        self._version = version
        self._revoked = False

    def __repr__(self) -> str:
        return f"EpochFence(epoch={self.epoch}, version={self._version}{', revoked' if self._revoked else ''})"

    def revoke(self) -> None:
        """The controller resigned: nothing more is written through this fence."""
        self._revoked = True

    async def write(self, *operations: Operation) -> None:
        """Raises ControllerMovedError if another controller was elected or this one resigned; else as Session.write."""
        self.check_held()
        try:
            await self.session.write([*self._conditions(), *operations])
        except (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError):
            stat = await self.session.read(self._epoch_stat)
            if stat is None or stat.version != self._version:
                raise ControllerMovedError(f"controller epoch {self.epoch} is over") from None
            raise
        self.check_held()

    def _conditions(self) -> list[Operation]:
        required = self.required_version(self._version)
        return [] if required is None else [Check(CONTROLLER_EPOCH, required)]

    def check_held(self) -> None:
        """Raises ControllerMovedError after ``revoke``."""
        if self._revoked:
            raise ControllerMovedError(f"controller epoch {self.epoch} was abandoned")

    async def _epoch_stat(self) -> Stat | None:
        return await self.session.store.exists(CONTROLLER_EPOCH)
