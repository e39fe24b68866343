"""A change of an ISR as both sides of it speak of it: what a leader proposes, and what the controller answers.

Owns these two shapes and the name of a partition, so that leaders (``cluster.replication``) and controllers
(``cluster.controller``) need not know each other. Does not own who deserves to be in an ISR, whether a controller
agrees, nor the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cluster.protocol.errors import ErrorCode

#: The broker epoch of a follower that does not say in which of its lives it fetches, and so of a member of an ISR.
UNKNOWN_BROKER_EPOCH = -1

#: A partition as both sides name it: topic id and number.
PartitionId = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """What a leader asks for one partition: an ISR to take the place of that of ``partition_epoch`` (KIP-497).

    ``isr`` holds (broker id, broker epoch) of each member. The epoch is the one in which the leader saw the member
    fetch: what a broker has proved by its fetches says nothing of the same broker after a restart (KIP-903).
    """

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovering: bool = False

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """What the controller answered. All but ``error_code`` counts only when that is NONE."""

    error_code: ErrorCode
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    leader_id: int = -1
    recovering: bool = False
