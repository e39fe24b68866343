"""What a fault may order of the cluster through Kafka's own admin APIs, and ask each broker. Owns only the shapes.

Faults on the cluster's configuration break nothing by force: they do what an operator does, while the load runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class SeenReplicas(NamedTuple):
    """A partition as one broker's Metadata response describes it; ``leader`` is -1 without a leader."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class RoundTrip(NamedTuple):
    """One record with acks=all: where it was stored and whether a reader got it back, or the error that refused it."""

    offset: int
    was_read: bool
    refusal: str


class ClusterOrders(Protocol):
    """Orders go to the controller and wait for its answer; what cannot be done in time raises ``TimeoutError``.

    A question to one broker is answered with None if the broker does not answer.
    """

    async def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None: ...

    async def delete_topic(self, topic: str) -> None:
        """Delete it; nothing if there is no such topic."""
        ...

    async def add_partitions(self, topic: str, total: int) -> None: ...

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Begin to move the partition to these brokers, the preferred leader first."""
        ...

    async def elect(self, topic: str, partition: int) -> str:
        """Elect the preferred leader; the name of the error code, ``NONE`` if done."""
        ...

    async def elect_unclean(self, topic: str, partition: int) -> str:
        """Elect any replica that is alive if no one of the ISR is; the name of the error code, ``NONE`` if done."""
        ...

    async def set_config(self, topic: str, values: Mapping[str, str | None]) -> None:
        """Set what has a value, remove what has None."""
        ...

    async def config_on(self, broker_id: int, topic: str) -> Mapping[str, str] | None:
        """What holds for the topic, as this broker's DescribeConfigs tells it."""
        ...

    async def overrides(self, topic: str) -> Mapping[str, str]:
        """What is set for this topic alone."""
        ...

    async def topic_on(self, broker_id: int, topic: str) -> Mapping[int, SeenReplicas] | None:
        """The topic's partitions as this broker's Metadata tells them; empty if it knows no such topic."""
        ...

    async def held_on(self, broker_id: int, topic: str) -> Mapping[int, int] | None:
        """The bytes of the topic's partitions on this broker, as its DescribeLogDirs tells them."""
        ...

    async def round_trip(self, topic: str, partition: int, size_bytes: int = 100) -> RoundTrip:
        """Write a record of this size and read it back, from outside."""
        ...
