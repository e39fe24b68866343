"""Scenes: a cluster that coordinates transactions, and the plain requests of a producer that has them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cluster.broker.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from cluster.broker.rules import Rules
from cluster.broker.transactions.transaction_service import TransactionService
from cluster.coordinator.transaction.describing import describe
from cluster.coordinator.transaction.invariants import validate
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState
from cluster.protocol import fetch
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import iter_batches
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.protocol.records import decode_records
from tests.cluster.broker.scenes import TOPIC
from tests.simulation.client import Client, Produced, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

ID = "tx"
GROUP = "g"
PARTITIONS = 4
IDLE = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

Partitions = list[tuple[str, int]]
Check = Callable[[MemoryCluster, "TxnProducer"], Awaitable[None]]


def with_transactions(check: Check, brokers: int = 1, rules: Rules | None = None, **properties: str) -> None:
    """Run ``check`` on a fresh cluster that has a topic of three partitions, with a producer that knows its
    coordinator."""
    given = {key.replace("_", "."): value for key, value in properties.items()}

    async def main() -> None:
        defaults = {
            "transaction.state.log.num.partitions": str(PARTITIONS),
            "transaction.state.log.replication.factor": str(brokers),
            "transaction.state.log.min.isr": "2" if brokers > 1 else "1",
            "offsets.topic.num.partitions": str(PARTITIONS),
            "offsets.topic.replication.factor": str(brokers),
            "group.initial.rebalance.delay.ms": "0",
        }
        async with MemoryCluster(brokers, {**defaults, **given}, rules) as cluster:
            await cluster.create_topic(TOPIC, partitions=3)
            await cluster.create_topic(OFFSETS_TOPIC, partitions=PARTITIONS)
            await create(cluster)
            await check(cluster, TxnProducer(cluster))
            for broker_id in cluster.nodes:
                validate(service(cluster, broker_id).coordinator)

    run(main())


async def create(cluster: MemoryCluster) -> None:
    """Have the topic made as clients do, and wait for coordinators."""
    client = Client(await cluster.connect(cluster.broker_ids[0]))
    await client.send(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[ID])
    await cluster.until(lambda: all(is_served(cluster, number) for number in range(PARTITIONS)))


def service(cluster: MemoryCluster, broker_id: int) -> TransactionService:
    coordinators = cluster.nodes[broker_id]._coordinators
    assert coordinators is not None
    return coordinators.transactions


def is_served(cluster: MemoryCluster, partition: int) -> bool:
    """Whether the partition has a coordinator that has read it."""
    broker_id = cluster.leader(TRANSACTIONS_TOPIC, partition)
    return broker_id > 0 and partition in service(cluster, broker_id).coordinator.owned.served


def partition_of(cluster: MemoryCluster, transactional_id: str = ID) -> int:
    return service(cluster, next(iter(cluster.nodes))).partition_of(transactional_id)


def coordinator_of(cluster: MemoryCluster, transactional_id: str = ID) -> int:
    """The broker that leads the id's partition; -1 if none does."""
    return cluster.leader(TRANSACTIONS_TOPIC, partition_of(cluster, transactional_id))


def known(cluster: MemoryCluster, transactional_id: str = ID) -> TransactionMetadata | ErrorCode:
    """What its coordinator knows of an id."""
    owned = service(cluster, coordinator_of(cluster, transactional_id)).coordinator.owned
    return describe(owned, transactional_id)


def is_over(cluster: MemoryCluster, transactional_id: str = ID) -> bool:
    """Whether the id has no transaction, and nothing is pending."""
    if coordinator_of(cluster, transactional_id) < 0:
        return False
    found = known(cluster, transactional_id)
    return isinstance(found, TransactionMetadata) and found.state in IDLE and found.pending is None


class TxnProducer:
    """One transactional id, and who it is. Each request goes to the coordinator or the leader of that moment."""

    def __init__(self, cluster: MemoryCluster, transactional_id: str = ID) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequences: dict[int, int] = {}

    async def ask(self, api_key: ApiKey, version: int, broker_id: int | None = None, **fields: Any) -> Any:
        wanted = coordinator_of(self.cluster, self.transactional_id) if broker_id is None else broker_id
        return await Client(await self.cluster.connect(wanted)).send(api_key, version, **fields)

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
        }

    async def init(
        self, *, timeout_ms: int = 60_000, version: int = 4, expected: tuple[int, int] = (-1, -1)
    ) -> ErrorCode:
        """One InitProducerId; what it was told is kept."""
        answer = await self.ask(
            ApiKey.INIT_PRODUCER_ID, version, transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms, producer_id=expected[0], producer_epoch=expected[1],
        )  # fmt: skip
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.producer_epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return ErrorCode(answer.error_code)

    async def begin(self, **fields: Any) -> None:
        """InitProducerId as often as it takes."""
        while (code := await self.init(**fields)) is not ErrorCode.NONE:
            assert code.retriable, code
            await self.cluster.until(lambda: coordinator_of(self.cluster, self.transactional_id) > 0)

    async def add(self, partitions: Partitions, *, version: int = 3) -> dict[tuple[str, int], ErrorCode]:
        """AddPartitionsToTxn."""
        topic_class = request_class(ApiKey.ADD_PARTITIONS_TO_TXN).AddPartitionsToTxnTopic
        answer = await self.ask(
            ApiKey.ADD_PARTITIONS_TO_TXN, version,
            **{f"v3_and_below_{name}": value for name, value in self.identity.items()},
            v3_and_below_topics=[topic_class(name=topic, partitions=[number]) for topic, number in partitions],
        )  # fmt: skip
        return {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }

    async def add_offsets(self, group_id: str = GROUP, *, version: int = 3) -> ErrorCode:
        answer = await self.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, **self.identity, group_id=group_id)
        return ErrorCode(answer.error_code)

    async def end(self, *, commit: bool, version: int = 3) -> ErrorCode:
        answer = await self.ask(ApiKey.END_TXN, version, **self.identity, committed=commit)
        return ErrorCode(answer.error_code)

    async def write(self, value: bytes, partition: int = 0, **fields: Any) -> Produced:
        """One transactional batch of one record."""
        sequence = self.sequences.get(partition, 0)
        records = batch(
            value, producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence,
            transactional=True,
        )  # fmt: skip
        client = Client(await self.cluster.connect(self.cluster.leader(TOPIC, partition)))
        given = {"transactional_id": self.transactional_id, **fields}
        produced = await client.produce(TOPIC, records, partition=partition, **given)
        if produced.error is ErrorCode.NONE:
            self.sequences[partition] = sequence + 1
        return produced

    async def commit_offsets(
        self, offsets: dict[tuple[str, int], int], group_id: str = GROUP, *, version: int = 3, **fields: Any
    ) -> dict[tuple[str, int], ErrorCode]:
        """TxnOffsetCommit, at the coordinator of the group."""
        coordinators = self.cluster.nodes[next(iter(self.cluster.nodes))]._coordinators
        assert coordinators is not None
        leader = self.cluster.leader(OFFSETS_TOPIC, coordinators.groups.partition_of(group_id))
        topic_class = request_class(ApiKey.TXN_OFFSET_COMMIT).TxnOffsetCommitRequestTopic
        topics = [
            topic_class(
                name=topic,
                partitions=[
                    topic_class.TxnOffsetCommitRequestPartition(
                        partition_index=number, committed_offset=offset, committed_metadata=None
                    )
                ],
            )
            for (topic, number), offset in offsets.items()
        ]
        member = {"member_id": "", "group_instance_id": None, "generation_id": -1}
        answer = await self.ask(
            ApiKey.TXN_OFFSET_COMMIT, version, leader,
            **{**self.identity, **member, "group_id": group_id, "topics": topics, **fields},
        )  # fmt: skip
        return {
            (topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }


async def read_committed(cluster: MemoryCluster, partition: int = 0, *, isolation: int = 1) -> list[bytes]:
    """What a reader of committed records reads from the start; with ``isolation`` 0 one that reads all."""
    connection = await cluster.connect(cluster.leader(TOPIC, partition))
    wanted = fetch.FetchPartition(TOPIC, partition, -1, 0, -1, -1, 1 << 20)
    asked = fetch.FetchRequest(-1, 0, 0, 1 << 20, isolation, 0, -1, [wanted])
    frame = await connection.send_raw(fetch.build_request(12, connection.next_correlation_id(), "client", asked))
    (found,) = fetch.parse_response(frame, 12).partitions
    aborted = sorted(found.aborted or (), key=lambda each: each[1])
    raw = bytes(found.records) if isinstance(found.records, memoryview) else b""
    values: list[bytes] = []
    in_aborted: set[int] = set()
    for position, header in iter_batches(raw):
        while aborted and aborted[0][1] <= header.last_offset:
            in_aborted.add(aborted.pop(0)[0])
        if header.is_control:
            in_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in in_aborted):
            records = decode_records(raw[position : position + header.size_bytes])
            values += [record.value or b"" for record in records]
    return values


async def committed_offset(cluster: MemoryCluster, group_id: str, partition: tuple[str, int]) -> int:
    """What its coordinator tells of a group, once nothing is pending; -1 for nothing."""
    coordinators = cluster.nodes[next(iter(cluster.nodes))]._coordinators
    assert coordinators is not None
    number = coordinators.groups.partition_of(group_id)
    await cluster.until(lambda: cluster.leader(OFFSETS_TOPIC, number) > 0)
    request = request_class(ApiKey.OFFSET_FETCH)
    group_class = request.OffsetFetchRequestGroup
    topics = [group_class.OffsetFetchRequestTopics(name=partition[0], partition_indexes=[partition[1]])]
    while True:
        client = Client(await cluster.connect(cluster.leader(OFFSETS_TOPIC, number)))
        groups = [group_class(group_id=group_id, topics=topics)]
        answer = await client.send(ApiKey.OFFSET_FETCH, 8, group_id="", topics=None, groups=groups, require_stable=True)
        (found,) = answer.groups
        if not found.error_code and not found.topics[0].partitions[0].error_code:
            return int(found.topics[0].partitions[0].committed_offset)
        await asyncio.sleep(0.1)
