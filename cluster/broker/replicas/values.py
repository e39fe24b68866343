"""The values of the replicas room: what a partition is told, what it refuses, what it needs of its broker.

Owns shapes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from cluster.broker.metrics import Counters
from cluster.broker.rules import Rules
from cluster.log.config import LogConfig
from cluster.log.errors import LogError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResult
from cluster.replication.isr import IsrAnswer, IsrProposal, Outcome

#: (topic, partition number)
TopicPartition = tuple[str, int]

#: ``replica_id`` of a consumer; followers send their broker id.
CONSUMER = -1


#: Topics that only brokers write to.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class Reader:
    """Who fetches: a consumer, or a follower in one of its lives (its broker epoch, -1 if it does not say)."""

    __slots__ = ("broker_epoch", "is_follower", "replica_id")

    def __init__(self, replica_id: int = CONSUMER, broker_epoch: int = -1) -> None:
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self.is_follower = replica_id >= 0

    def __repr__(self) -> str:
        return f"<Reader {self.replica_id} epoch {self.broker_epoch}>" if self.is_follower else "<Reader>"

    def is_same(self, other: Reader) -> bool:
        """Whether both are one broker in one life."""
        return (self.replica_id, self.broker_epoch) == (other.replica_id, other.broker_epoch)


class Refused(Exception):
    """A request that this replica must refuse now. Carries the code to answer and a text for people."""

    def __init__(self, error_code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{error_code.name}: {message}")
        self.error_code = error_code
        self.message = message


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic's configuration means for its partitions here."""

    log: LogConfig
    min_insync_replicas: int


@dataclass(frozen=True, slots=True)
class Role:
    """What the controller says of one partition (one partition of a LeaderAndIsr)."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    is_unclean: bool = False
    #: Those of ``replicas`` that a reassignment adds.
    adding: tuple[int, ...] = ()


class Proposing(Protocol):
    """A partition, as far as its ISR proposals are concerned."""

    topic: str
    partition: int
    topic_id: UUID

    @property
    def key(self) -> TopicPartition: ...

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer, now_ms: int) -> Outcome:
        """Settle a proposal by the controller's answer."""
        ...

    def is_pending(self, proposal: IsrProposal) -> bool:
        """Whether a proposal is not settled yet, neither by an answer nor by what the controller told since."""
        ...


class Proposer(Protocol):
    """Brings ISR changes to the controller; the answer comes by ``isr_answered``."""

    def propose(self, partition: Proposing, proposal: IsrProposal) -> None: ...


class Host(Proposer, Protocol):
    """What a partition needs of its broker."""

    broker_id: int
    rules: Rules
    counters: Counters
    lag_time_max_ms: int

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered, as far as we have been told."""
        ...

    def storage_failed(self, error: LogError) -> None:
        """The disk failed: this broker cannot go on."""
        ...


def fetch_error(topic: str, partition: int, error_code: ErrorCode) -> FetchResult:
    """The answer for a partition that cannot be read."""
    return FetchResult(topic, partition, error_code, -1, -1, -1)
