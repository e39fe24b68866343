"""What a replica needs of its broker, and what both say about a request that cannot be served.

Owns shapes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from cluster.broker.journal import Journal
from cluster.broker.metrics import Counters
from cluster.broker.rules import Rules
from cluster.isr import IsrAnswer, IsrProposal
from cluster.log.config import LogConfig
from cluster.log.errors import LogError
from cluster.protocol.errors import ErrorCode
from cluster.replication.isr import IsrOutcome
from cluster.topic_partition import TopicPartition


class WrittenBy(NamedTuple):
    """The client of a produce request: its own name, and the address of its host."""

    client_id: str | None
    host: str


class RequestRefused(Exception):
    """What this broker must refuse now, all or part of a request: with the code to answer, and a text for people."""

    def __init__(self, error_code: ErrorCode, message: str = "") -> None:
        super().__init__(f"{error_code.name}: {message}")
        self.error_code = error_code
        self.message = message


class ProducerGone(ConnectionError):
    """No one is there for the acknowledgement of a request of which nothing was appended yet. Nothing that follows it
    on its connection may be appended either: that would change the order."""

    def __init__(self) -> None:
        super().__init__("its client has gone while it waited for others")


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic's configuration means for its partitions here."""

    log: LogConfig
    min_insync_replicas: int


class Proposing(Protocol):
    """A partition, as far as its ISR proposals are concerned."""

    topic: str
    partition: int
    topic_id: UUID

    @property
    def key(self) -> TopicPartition: ...

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer, now_ms: int) -> IsrOutcome:
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
    journal: Journal
    lag_time_max_ms: int

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered, as far as we have been told."""
        ...

    def storage_failed(self, error: LogError) -> None:
        """The disk failed: this broker cannot continue."""
        ...
