"""The controller's picture of ZooKeeper: reads brokers, topics, states and configurations into a context.

Owns the reading, at failover and when something new appears. A node that cannot be understood is logged and left out;
it must not keep a controller from serving the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from cluster.broker.control.membership.session import Session
from cluster.controller.context import Partition, PartitionState, Topic
from cluster.metadata.paths import (
    BROKER_IDS,
    DELETE_TOPICS,
    TOPICS,
    broker_path,
    state_path,
    topic_config_path,
    topic_path,
)
from cluster.metadata.store import NoNodeError, Stat
from cluster.metadata.znodes import BrokerRegistration, MalformedZnode, StateNode, TopicRegistration, decode_config

logger = logging.getLogger(__name__)

_UNCLEAN = "unclean.leader.election.enable"


class ClusterReader:
    """Reads for one controller."""

    def __init__(self, session: Session, *, unclean_by_default: Callable[[], bool]) -> None:
        self._session = session
        self._store = session.store
        self._unclean_by_default = unclean_by_default

    def __repr__(self) -> str:
        return f"ClusterReader({self._session!r})"

    async def brokers(self) -> dict[int, tuple[int, BrokerRegistration]]:
        """Broker id -> (epoch, registration)."""
        ids = [int(name) for name in await self._children(BROKER_IDS) if name.isascii() and name.isdigit()]
        found = await asyncio.gather(*(self._broker(broker_id) for broker_id in ids))
        return {broker_id: entry for broker_id, entry in zip(ids, found, strict=True) if entry is not None}

    async def topic_names(self) -> list[str]:
        return await self._children(TOPICS)

    async def deletions(self) -> list[str]:
        """Topics whose deletion was asked for."""
        return await self._children(DELETE_TOPICS)

    async def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """The topics of ``names`` that exist, with all partition states."""
        found = await asyncio.gather(*(self._topic(name) for name in names))
        return {topic.name: topic for topic in found if topic is not None}

    async def topic_config(self, name: str) -> dict[str, str]:
        """What is set on the topic; empty if nothing is."""
        path = topic_config_path(name)
        data = await self._get(path)
        if data is None:
            return {}
        try:
            return decode_config(path, data[0])
        except MalformedZnode as error:
            logger.error("%s", error)
            return {}

    def is_unclean(self, config: dict[str, str]) -> bool:
        """Whether a topic with this configuration may be led from outside the ISR."""
        value = config.get(_UNCLEAN)
        return self._unclean_by_default() if value is None else value == "true"

    async def _broker(self, broker_id: int) -> tuple[int, BrokerRegistration] | None:
        data = await self._get(broker_path(broker_id))
        if data is None:
            return None
        try:
            return data[1].created_zxid, BrokerRegistration.decode(broker_id, data[0])
        except MalformedZnode as error:
            logger.error("%s", error)
            return None

    async def _topic(self, name: str) -> Topic | None:
        data = await self._get(topic_path(name))
        if data is None:
            return None
        try:
            registration = TopicRegistration.decode(name, data[0])
            numbers = sorted(registration.partitions)
            states = await asyncio.gather(*(self._state(name, number) for number in numbers))
        except MalformedZnode as error:
            logger.error("topic %s is left out: %s", name, error)
            return None
        if registration.topic_id is None:
            logger.error("topic %s is left out: it has no topic id (Kafka writes one since 2.8)", name)
            return None
        partitions = {
            number: Partition(
                registration.partitions[number],
                state,
                registration.adding.get(number, ()),
                registration.removing.get(number, ()),
                found_zxid,
            )
            for number, (state, found_zxid) in zip(numbers, states, strict=True)
        }
        config = await self.topic_config(name)
        return Topic(name, registration.topic_id, partitions, unclean=self.is_unclean(config))

    async def _state(self, topic: str, partition: int) -> tuple[PartitionState | None, int]:
        """The state, and the zxid of the write that made it."""
        path = state_path(topic, partition)
        data = await self._get(path)
        if data is None:
            return None, 0
        node = StateNode.decode(path, data[0])
        state = PartitionState(
            leader=node.leader,
            leader_epoch=node.leader_epoch,
            isr=node.isr,
            partition_epoch=data[1].version,
            controller_epoch=node.controller_epoch,
            recovering=node.recovering,
        )
        return state, data[1].modified_zxid

    async def _get(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return await self._session.read(lambda: self._store.get(path))
        except NoNodeError:
            return None

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._session.read(lambda: self._store.children(path))
        except NoNodeError:
            return []
