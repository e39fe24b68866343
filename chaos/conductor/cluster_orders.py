"""``ClusterOrders`` for faults: sends admin requests to the cluster, and questions to single brokers.

Owns these requests. Does not decide what is changed (``chaos.faults``). Requests use the control listeners, so that a
broken link does not keep the harness from undoing what it did.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chaos.conductor.broker_question import ask
from chaos.faults.admin_orders import RoundTrip, SeenReplicas
from cluster.client import AdminError, Consumer, NewTopic, Producer
from cluster.client.async_admin import AsyncAdmin
from cluster.client.cluster_calls import PREFERRED, TOPIC_RESOURCE, UNCLEAN
from cluster.client.producer.delivery import ProduceError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    MetadataRequest,
)
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport
from cluster.seams.units import seconds_of_ms

#: The time limit for one admin request. If the controller has just died, it has a successor by then.
ORDER_MS = 20_000
#: ``config_source`` in a DescribeConfigs response for a value that is set on the topic (Kafka's ConfigSource).
_OF_TOPIC = 1
#: The error codes of a leader election that count as done. ELECTION_NOT_NEEDED: the replica leads already.
_NOT_DUE = frozenset((ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED))
_ROUND_TRIP_MS = 8_000
_REQUEST_MS = 3_000
_READ_S = 5.0


@dataclass(frozen=True, slots=True)
class BrokerOrders:
    """Admin requests over the known control listeners.

    ``control`` maps broker ids to ``host:port``. ``timeout_ms`` is for one question to a broker.
    """

    control: Mapping[int, str]
    transport: Transport
    clock: Clock
    timeout_ms: int

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AsyncAdmin]:
        admin = AsyncAdmin([*self.control.values()], self.transport, self.clock, ORDER_MS)
        try:
            yield admin
        finally:
            await admin.close()

    async def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        async with self._admin() as admin:
            await admin.create_topics([NewTopic(topic, partitions, replicas, config)])
            await admin.describe([topic])

    async def delete_topic(self, topic: str) -> None:
        async with self._admin() as admin:
            try:
                await admin.delete_topics([topic])
            except AdminError as error:
                if error.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise

    async def add_partitions(self, topic: str, total: int) -> None:
        async with self._admin() as admin:
            await admin.create_partitions(topic, total)

    async def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        async with self._admin() as admin:
            await admin.reassign({(topic, partition): replicas})

    async def elect(self, topic: str, partition: int) -> str:
        return await self._elect(PREFERRED, topic, partition)

    async def elect_unclean(self, topic: str, partition: int) -> str:
        return await self._elect(UNCLEAN, topic, partition)

    async def _elect(self, kind: int, topic: str, partition: int) -> str:
        async with self._admin() as admin:
            found = await admin.elect_leaders(kind, [(topic, partition)])
        code = found.get((topic, partition), ErrorCode.NONE)
        return ErrorCode.NONE.name if code in _NOT_DUE else code.name

    async def set_config(self, topic: str, values: Mapping[str, str | None]) -> None:
        async with self._admin() as admin:
            await admin.set_config(TOPIC_RESOURCE, topic, values)

    async def config_on(self, broker_id: int, topic: str) -> Mapping[str, str] | None:
        answer = await self._configs(self.control.get(broker_id), topic)
        return None if answer is None else {name: value for name, (value, _) in answer.items()}

    async def overrides(self, topic: str) -> Mapping[str, str]:
        for address in self.control.values():
            if (answer := await self._configs(address, topic)) is not None:
                return {name: value for name, (value, source) in answer.items() if source == _OF_TOPIC}
        raise TimeoutError(f"no broker described {topic}")

    async def _configs(self, address: str | None, topic: str) -> dict[str, tuple[str, int]] | None:
        """The settings of a topic at one broker: name -> (value, source). None if the broker does not answer."""
        if address is None:
            return None
        resource = DescribeConfigsRequest.DescribeConfigsResource
        question = DescribeConfigsRequest(
            resources=[resource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None)],
            include_synonyms=False,
            include_documentation=False,
        )
        answer: DescribeConfigsResponse | None = await ask(address, self.transport, self.timeout_ms, question)
        results = [] if answer is None else [each for each in answer.results if each.error_code == ErrorCode.NONE]
        if not results:
            return None
        return {entry.name: (entry.value or "", entry.config_source) for entry in results[0].configs}

    async def topic_on(self, broker_id: int, topic: str) -> Mapping[int, SeenReplicas] | None:
        address = self.control.get(broker_id)
        if address is None:
            return None
        wanted = [MetadataRequest.MetadataRequestTopic(name=topic)]
        question = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        answer = await ask(address, self.transport, self.timeout_ms, question)
        if answer is None:
            return None
        return {
            each.partition_index: SeenReplicas(
                each.leader_id, each.leader_epoch, tuple(each.replica_nodes), tuple(each.isr_nodes)
            )
            for found in answer.topics
            if found.name == topic and found.error_code == ErrorCode.NONE
            for each in found.partitions
        }

    async def held_on(self, broker_id: int, topic: str) -> Mapping[int, int] | None:
        address = self.control.get(broker_id)
        if address is None:
            return None
        answer = await ask(address, self.transport, self.timeout_ms, DescribeLogDirsRequest(topics=None))
        if answer is None:
            return None
        return {
            each.partition_index: each.partition_size
            for directory in answer.results
            for found in directory.topics
            if found.name == topic
            for each in found.partitions
        }

    async def round_trip(self, topic: str, partition: int, size_bytes: int = 100) -> RoundTrip:
        return await asyncio.to_thread(_round_trip, ",".join(self.control.values()), topic, partition, size_bytes)


def _round_trip(bootstrap: str, topic: str, partition: int, size_bytes: int) -> RoundTrip:
    """Write a record and read it back. A single attempt, so that a refusal shows and is not retried.

    ``bootstrap`` is a comma-separated list of ``host:port``; ``size_bytes`` is the size of the value. Blocks.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": False,
            "retries": 0,
            "linger.ms": 0,
            "max.block.ms": _ROUND_TRIP_MS,
            "request.timeout.ms": _REQUEST_MS,
            "delivery.timeout.ms": _ROUND_TRIP_MS,
            "client.id": "gapless-beside",
        }
    )
    value = b"beside".ljust(size_bytes, b".")
    with contextlib.closing(producer):
        try:
            offset = producer.send(topic, value, None, partition).result(seconds_of_ms(2 * _ROUND_TRIP_MS)).offset
        except ProduceError as error:
            return RoundTrip(-1, False, error.error_code.name)
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": "gapless-beside"})
    with contextlib.closing(consumer):
        consumer.assign([(topic, partition)])
        consumer.seek((topic, partition), offset)
        records = consumer.poll(_READ_S)
    return RoundTrip(offset, any(each.value == value and each.offset == offset for each in records), "")
