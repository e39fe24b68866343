"""The interface for faults that use Kafka's admin APIs: orders to the cluster, and questions to single brokers.

Such faults break nothing by force: they do what an operator does, while the load runs. Owns only the interface;
``chaos.conductor.cluster_orders`` implements it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class SeenReplicas(NamedTuple):
    """A partition as one broker's Metadata response describes it. ``leader`` is -1 if there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class RoundTrip(NamedTuple):
    """What happened to one record sent with acks=all.

    ``offset`` is where it was stored, -1 if it was refused. ``was_read`` is whether a consumer read it back.
    ``refusal`` is the name of the error that refused it, "" if none did.
    """

    offset: int
    was_read: bool
    refusal: str


class ClusterOrders(Protocol):
    """Orders go to the controller and wait for its answer. They raise ``TimeoutError`` if that takes too long.

    A question to one broker returns None if the broker does not answer.
    """

    async def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None: ...

    async def delete_topic(self, topic: str) -> None:
        """Delete the topic, if it exists."""
        ...

    async def add_partitions(self, topic: str, total: int) -> None: ...

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """Start moving the partition to these brokers. The first one becomes the preferred leader."""
        ...

    async def elect(self, topic: str, partition: int) -> str:
        """Elect the preferred leader. Returns the name of the error code, ``NONE`` if it leads now."""
        ...

    async def elect_unclean(self, topic: str, partition: int) -> str:
        """Elect any live replica, if none in the ISR is alive. Returns the name of the error code, or ``NONE``."""
        ...

    async def set_config(self, topic: str, values: Mapping[str, str | None]) -> None:
        """Set these keys of the topic's configuration. None as a value removes the key."""
        ...

    async def config_on(self, broker_id: int, topic: str) -> Mapping[str, str] | None:
        """The topic's effective configuration, from this broker's DescribeConfigs."""
        ...

    async def overrides(self, topic: str) -> Mapping[str, str]:
        """The configuration keys that are set on the topic itself."""
        ...

    async def topic_on(self, broker_id: int, topic: str) -> Mapping[int, SeenReplicas] | None:
        """The topic's partitions, from this broker's Metadata; empty if it does not know the topic."""
        ...

    async def held_on(self, broker_id: int, topic: str) -> Mapping[int, int] | None:
        """The bytes of each of the topic's partitions on this broker, from its DescribeLogDirs."""
        ...

    async def round_trip(self, topic: str, partition: int, size_bytes: int = 100) -> RoundTrip:
        """Write a record of this size and read it back, with clients of its own."""
        ...
