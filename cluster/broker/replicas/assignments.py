"""What the controller says about this broker's replicas, partition by partition.

Owns the values. Does not own the messages that they come in (``handlers``), nor what becomes of them (``roles``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Role:
    """What the controller says about one partition (one partition of a LeaderAndIsr)."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    is_unclean: bool = False
    #: Those of ``replicas`` that a reassignment adds.
    adding: tuple[int, ...] = ()


class ReplicaAssignment(NamedTuple):
    """A replica here, or to be made here, and its role (of LeaderAndIsr)."""

    topic: str
    topic_id: UUID
    partition: int
    role: Role
    #: Whether this replica has no log here yet: the topic was just created, or a reassignment adds the replica.
    is_new: bool = False


class ReplicaStop(NamedTuple):
    """A replica that is not wanted here anymore (of StopReplica)."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class ReplicaElsewhere(NamedTuple):
    """A partition that this broker is to have no replica of (of UpdateMetadata)."""

    topic: str
    topic_id: UUID
    partition: int
    leader_epoch: int
    replicas: tuple[int, ...]
