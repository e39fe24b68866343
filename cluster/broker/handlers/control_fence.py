"""The fence in front of what a controller sends: who speaks, for which life of ours, and of what.

Owns the values of the check that all three requests share, and its order. Does not own which epochs are known
(``ControlPlane``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from cluster.broker.services import Services
from cluster.controller.topics import is_legal_name
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

logger = logging.getLogger(__name__)


class ControllerOrigin(NamedTuple):
    """Who sends a request, and to which life of this broker."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int

    @classmethod
    def of(cls, request: LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest) -> ControllerOrigin:
        """From any of the three messages."""
        return cls(request.controller_id, request.controller_epoch, request.broker_epoch)


def can_be(names: Iterable[str], ids: Iterable[int]) -> bool:
    """Whether a controller may know such topics, partitions and brokers. If not, it comes from none, and nothing of it
    is obeyed: a name becomes a directory, a broker's id one whom we follow.
    """
    return all(map(is_legal_name, names)) and min(ids, default=0) >= 0


async def check(services: Services, key: ApiKey, origin: ControllerOrigin, *, is_possible: bool) -> ErrorCode:
    """The fence of Kafka's ReplicaManager, once we know in which life we are.

    Before that a request for this life cannot be told from one for the former: the controller may learn of our
    registration before we do.
    """
    control = services.control
    if not await control.knows_its_epoch():
        return ErrorCode.STALE_BROKER_EPOCH
    error = ErrorCode.INVALID_REQUEST
    if is_possible and min(origin.controller_id, origin.controller_epoch) >= 0:
        error = control.check_control_request(origin.controller_epoch, origin.broker_epoch)
    if error is not ErrorCode.NONE:
        logger.info("%s of controller %d (epoch %d, for broker epoch %d) refused: %s", key.name, *origin, error.name)
    return error
