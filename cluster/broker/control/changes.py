"""What the replica side of a broker and its control plane say to each other. Values and errors alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from cluster.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A leader's wish to change one ISR (one partition of AlterPartition, KIP-497).

    ``broker_epochs`` maps members to the broker epoch in which the leader saw them fetch (KIP-903); a member that is
    not in it goes as "unknown", and the controller can then not tell a broker from its former life.
    """

    topic: str
    partition: int
    topic_id: UUID
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[int, ...]
    broker_epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IsrResult:
    """The controller's answer to one ``IsrChange``. The state fields mean something only without an error."""

    topic: str
    partition: int
    error_code: ErrorCode
    leader_id: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class ControllerUnavailable(ConnectionError):
    """There is no controller, it does not answer, or the one we asked is no longer the controller. Try again."""


class CoordinatorLoading(Exception):
    """No producer id is at hand yet; the next block is on its way (KafkaApis.handleInitProducerIdRequest)."""

    error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class NoProducerIds(Exception):
    """The controller cannot make another block: producer ids are exhausted."""

    error_code = ErrorCode.UNKNOWN_SERVER_ERROR


class BrokerIdTaken(Exception):
    """Another live broker is registered under this broker's id."""
