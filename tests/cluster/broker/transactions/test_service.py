"""The coordinator's shell over the wire: its answers to what is odd, what is due by time, and what it stores."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from cluster.broker.coordinator_loading import RETRY_S
from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.broker.replicas.replica import Replica
from cluster.broker.server import ClientConnection
from cluster.broker.transactions.idle_id_eviction import EVICTABLE_AFTER_MS, EVICTION_PAUSE_S
from cluster.coordinator.partitioning import partition_for
from cluster.coordinator.transaction.describing import describe
from cluster.coordinator.transaction.records import decode_key, decode_value, encode_key
from cluster.coordinator.transaction.state import TransactionState
from cluster.log.errors import StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import iter_batches, parse_header
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    ID,
    PARTITIONS,
    TxnProducer,
    coordinator_of,
    is_over,
    is_served,
    known,
    partition_of,
    read_committed,
    service,
    with_transactions,
)
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster

BOTH = [(TOPIC, 0), (TOPIC, 1)]
S = TransactionState


def stored(cluster: MemoryCluster, broker_id: int, transactional_id: str = ID) -> list[TransactionState | None]:
    """The states that a replica has of an id, in the order of its log; None is a tombstone."""
    data = cluster.log_bytes(broker_id, TRANSACTIONS_TOPIC, partition_of(cluster, transactional_id))
    states = []
    for position, header in iter_batches(data):
        for record in decode_records(data[position : position + header.size_bytes]):
            if decode_key(record.key) == transactional_id:
                value = record.value
                states.append(None if value is None else decode_value(transactional_id, value).state)
    return states


def test_every_transition_is_on_every_replica() -> None:
    """Before it is answered, in the order in which it was decided; the topic is made with Kafka's settings."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        await producer.add(BOTH[:1])
        await producer.end(commit=True)
        await cluster.until(lambda: is_over(cluster))
        await cluster.until(lambda: all(len(stored(cluster, each)) == 4 for each in cluster.broker_ids))
        for broker_id in cluster.broker_ids:
            assert stored(cluster, broker_id) == [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT]
        config = cluster.nodes[1].metadata.topic_config(TRANSACTIONS_TOPIC)
        assert dict(config) == {
            "cleanup.policy": "compact", "compression.type": "uncompressed", "min.insync.replicas": "2",
            "segment.bytes": "104857600", "unclean.leader.election.enable": "false",
        }  # fmt: skip

    with_transactions(check, brokers=3)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_init_producer_id(version: int) -> None:
    """One that shows its old identity keeps it, with the next epoch; another is fenced, by the version's name."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin(version=version)
        first = producer.producer_id, producer.producer_epoch
        assert first[1] == 0
        await producer.begin(version=version)
        assert (producer.producer_id, producer.producer_epoch) == (first[0], 1)
        if version < 3:
            return
        assert await producer.init(version=version, expected=(first[0], 1)) is ErrorCode.NONE
        code = ErrorCode.PRODUCER_FENCED if version == 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.init(version=version, expected=(first[0] + 1, 1)) is code

    with_transactions(check)


def test_timeouts_that_cannot_be() -> None:
    """Not positive, or above transaction.max.timeout.ms."""

    async def check(_cluster: MemoryCluster, producer: TxnProducer) -> None:
        for timeout_ms in (0, -1, 2001):
            assert await producer.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        await producer.begin(timeout_ms=2000)

    with_transactions(check, transaction_max_timeout_ms="2000")


@pytest.mark.parametrize("version", range(4))
def test_partitions_that_cannot_be_added(version: int) -> None:
    """All or none: what is wrong with one keeps the others out. Internal topics are no client's to add."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        wrong = [(TOPIC, 9), ("nowhere", 0), (TRANSACTIONS_TOPIC, 0)]
        assert await producer.add([*BOTH, *wrong], version=version) == {
            **dict.fromkeys(BOTH, ErrorCode.OPERATION_NOT_ATTEMPTED),
            **dict.fromkeys(wrong[:2], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            wrong[2]: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        assert await producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
        assert await producer.add(BOTH * 2, version=version) == dict.fromkeys(BOTH, ErrorCode.NONE)

    with_transactions(check)


def test_at_another_broker() -> None:
    """NOT_COORDINATOR, for each request; an empty id is none."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        other = next(each for each in cluster.broker_ids if each != coordinator_of(cluster))
        end = {**producer.identity, "committed": True}
        assert (await producer.ask(ApiKey.END_TXN, 3, other, **end)).error_code == ErrorCode.NOT_COORDINATOR
        end["transactional_id"] = ""
        assert (await producer.ask(ApiKey.END_TXN, 3, other, **end)).error_code == ErrorCode.INVALID_REQUEST
        added = await producer.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, other, **producer.identity, group_id="g")
        assert added.error_code == ErrorCode.NOT_COORDINATOR
        described = await producer.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, other, transactional_ids=[ID, ID])
        assert [each.error_code for each in described.transaction_states] == [ErrorCode.NOT_COORDINATOR]

    with_transactions(check, brokers=3)


def test_what_admins_see() -> None:
    """DescribeTransactions and ListTransactions: the open transaction with its partitions; unknown states by name."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        asked = [ID, "unheard"]
        found = (await producer.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=asked)).transaction_states
        codes = [each.error_code for each in found]
        assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]
        assert (found[0].transaction_state, found[0].transaction_timeout_ms) == ("Ongoing", 60_000)
        assert (found[0].producer_id, found[0].producer_epoch) == (producer.producer_id, producer.producer_epoch)
        assert [(each.topic, each.partitions) for each in found[0].topics] == [(TOPIC, [0, 1])]
        for version, states, producer_ids, duration_ms, expected in (
            (0, [], [], 0, [ID]),
            (1, ["Ongoing"], [producer.producer_id], -1, [ID]),
            (1, ["Empty"], [], -1, []),
            (1, ["Unheard"], [], -1, []),
            (1, [], [producer.producer_id + 1], -1, []),
            (1, [], [], 1_000_000, []),
        ):
            listed = await producer.ask(
                ApiKey.LIST_TRANSACTIONS, version, state_filters=states, producer_id_filters=producer_ids,
                duration_filter=duration_ms,
            )  # fmt: skip
            assert [each.transactional_id for each in listed.transaction_states] == expected
            assert listed.unknown_state_filters == [each for each in states if each == "Unheard"]

    with_transactions(check)


def test_ids_that_no_one_uses_are_forgotten() -> None:
    """After transactional.id.expiration.ms, by a tombstone; the next producer of the id is a new one."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        producer_id = producer.producer_id
        await asyncio.sleep(3)
        assert known(cluster) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert stored(cluster, 1) == [S.EMPTY, None]
        await producer.begin()
        assert producer.producer_id != producer_id

    with_transactions(
        check,
        transactional_id_expiration_ms="1000",
        transaction_remove_expired_transaction_cleanup_interval_ms="500",
    )


def test_idle_ids_make_room() -> None:
    """Beyond gapless.max.transactional.ids a new one is told to wait; an idle one goes, an open transaction stays."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin(timeout_ms=900_000)
        await producer.add(BOTH)
        await TxnProducer(cluster, "idle").begin()
        new = TxnProducer(cluster, "new")
        assert await new.init() is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        await asyncio.sleep(EVICTABLE_AFTER_MS / 1000)
        assert await new.init() is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        await asyncio.sleep(EVICTION_PAUSE_S)
        assert await new.init() is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert known(cluster, "idle") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    with_transactions(check, gapless_max_transactional_ids="2")


def test_one_host_does_not_take_all_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up ids leave room for those of another host, and idle ids of that stay when they make room."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.10")
        await producer.begin()
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.9")
        codes = [await TxnProducer(cluster, f"made-up-{number}").init() for number in range(16)]
        assert codes == [ErrorCode.NONE] * 13 + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 3
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.11")
        assert await TxnProducer(cluster, "another").init() is ErrorCode.NONE
        await asyncio.sleep(EVICTABLE_AFTER_MS / 1000)
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.9")
        assert await TxnProducer(cluster, "made-up").init() is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        await asyncio.sleep(EVICTION_PAUSE_S)
        assert known(cluster, "made-up-0") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert not isinstance(known(cluster, "another"), ErrorCode)
        assert set((await producer.add(BOTH)).values()) == {ErrorCode.NONE}

    with_transactions(check, gapless_max_transactional_ids="16")


def test_too_few_replicas() -> None:
    """COORDINATOR_NOT_AVAILABLE, and nothing has changed; when they are back the request succeeds."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        coordinator = coordinator_of(cluster)
        others = [each for each in cluster.broker_ids if each != coordinator]
        for broker_id in others:
            await cluster.crash(broker_id)
        alone = (TRANSACTIONS_TOPIC, partition_of(cluster))
        await cluster.until(lambda: cluster.isr(*alone) == {coordinator})
        assert await producer.end(commit=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        for broker_id in others:
            await cluster.start(broker_id)
        await cluster.until(lambda: len(cluster.isr(*alone)) == 3)
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))

    with_transactions(check, brokers=3)


def test_a_leader_that_is_elected_again_reads_again() -> None:
    """A new epoch of the same leader is a new coordinator: what was begun before is not completed in it."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        await producer.write(b"a")
        number = partition_of(cluster)
        replica = cluster.nodes[coordinator_of(cluster)].replicas.partitions[TRANSACTIONS_TOPIC, number]
        epoch, shell = replica.leader_epoch, service(cluster, coordinator_of(cluster))
        shell.coordinator.elected(number, epoch)
        replica.leader_epoch += 1
        assert replica.leader is not None
        replica.leader.leader_epoch += 1
        shell.role_taken(replica)
        assert not is_served(cluster, number)
        await cluster.until(lambda: is_served(cluster, number))
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"a"]

    with_transactions(check)


def append_directly(cluster: MemoryCluster, *records: NewRecord) -> Replica:
    """Have records in the log that no broker would take from a client. The replica of ``__transaction_state``, which
    is about to be led in another epoch."""
    replica = cluster.nodes[1].replicas.partitions[TRANSACTIONS_TOPIC, partition_of(cluster)]
    packed = bytearray(build_batch(records))
    replica.append_of_coordinator(packed, parse_header(packed), 0)
    replica.leader_epoch += 1
    assert replica.leader is not None
    replica.leader.leader_epoch += 1
    return replica


def test_a_record_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """The ids of its partition are served, but for the one that it is about. It is logged, counted, and gone when
    another one replaces it."""
    home = partition_for(ID, PARTITIONS)
    lost = next(each for each in map(str, range(1000)) if partition_for(each, PARTITIONS) == home)

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        number, other = partition_of(cluster), TxnProducer(cluster, lost)
        replica = append_directly(
            cluster, NewRecord(0, b"\0\0?", b"x"), NewRecord(0, encode_key(lost), b"\0\x09")
        )  # fmt: skip
        service(cluster, 1).role_taken(replica)
        await cluster.until(lambda: is_served(cluster, number))
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await other.init() is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert describe(service(cluster, 1).coordinator.owned, lost) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert cluster.nodes[1].replicas.counters.unreadable_records == 2
        await cluster.until(lambda: is_over(cluster))
        service(cluster, 1).role_taken(append_directly(cluster, NewRecord(0, encode_key(lost), None)))
        await cluster.until(lambda: is_served(cluster, number))
        assert await other.init() is ErrorCode.NONE

    with caplog.at_level(logging.CRITICAL):
        with_transactions(check)
    (told, again) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"2 records of {TRANSACTIONS_TOPIC}-{home} cannot be read")
    assert "at offset 2: a key" in told and "at offset 3: the value of" in told
    assert again.startswith(f"2 records of {TRANSACTIONS_TOPIC}")


@pytest.mark.parametrize("error", [StorageFailed("broken"), CorruptBatch("rotten")])
def test_a_partition_that_cannot_be_read(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Its ids have no coordinator until it can be read; the log says so once. A disk that fails is told as
    everywhere. What other partitions have is listed meanwhile, with the error."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        number = partition_of(cluster)
        other = next(each for each in map(str, range(1000)) if partition_for(each, PARTITIONS) != number)
        await TxnProducer(cluster, other).begin()
        replica = cluster.nodes[1].replicas.partitions[TRANSACTIONS_TOPIC, number]
        replica.leader_epoch += 1
        assert replica.leader is not None
        replica.leader.leader_epoch += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionLog, "read", raising(error))
            service(cluster, 1).role_taken(replica)
            await asyncio.sleep(2.5 * RETRY_S)
        assert not is_served(cluster, number)
        assert await producer.end(commit=True) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        client = Client(await cluster.connect(1))
        listed = await client.send(ApiKey.LIST_TRANSACTIONS, 0, state_filters=[], producer_id_filters=[])
        assert listed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert [each.transactional_id for each in listed.transaction_states] == [other]
        assert bool(cluster.failures) is isinstance(error, StorageFailed)
        cluster.failures.clear()
        await cluster.until(lambda: is_served(cluster, number))
        assert await producer.init() is ErrorCode.NONE

    with caplog.at_level(logging.CRITICAL):
        with_transactions(check)
    assert caplog.text.count("cannot be loaded, and has no coordinator") == 1


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_arguments: Any, **_named: Any) -> None:
        raise error

    return fail


def test_a_topic_that_is_deleted_is_not_waited_for() -> None:
    """The transaction is completed without a marker for it."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await cluster.create_topic("doomed")
        await producer.begin()
        await producer.add([*BOTH, ("doomed", 0)])
        await producer.write(b"a")
        controller = next(each for each, node in cluster.nodes.items() if node.control.is_controller)
        client = Client(await cluster.connect(controller))
        await client.send(ApiKey.DELETE_TOPICS, 5, topic_names=["doomed"], timeout_ms=5000, topics=[])
        await cluster.until(lambda: all(node.metadata.topic("doomed") is None for node in cluster.nodes.values()))
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"a"]

    with_transactions(check, brokers=3)


def test_a_stopped_coordinator_hands_over() -> None:
    """A controlled shutdown in the middle of a transaction."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        await producer.write(b"a")
        former = coordinator_of(cluster)
        process = cluster.processes[former]
        await cluster.stop(former)
        assert cluster.left_of(process) == []
        await cluster.until(lambda: coordinator_of(cluster) not in (-1, former))
        await cluster.until(lambda: is_served(cluster, partition_of(cluster)))
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"a"]

    with_transactions(check, brokers=3)


def test_a_broker_that_dies_leaves_nothing_behind() -> None:
    """Requests whose records, offsets or markers wait for replicas end with it."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        await producer.add_offsets()
        victim = coordinator_of(cluster)
        for other in cluster.broker_ids:
            if other != victim:
                cluster.network.cut(f"b{other}", f"b{victim}")
                cluster.network.cut(f"b{victim}", f"b{other}")
        waiting = asyncio.gather(producer.end(commit=True), TxnProducer(cluster).init(), return_exceptions=True)
        await asyncio.sleep(0.1)
        process = cluster.processes[victim]
        await cluster.crash(victim)
        await waiting
        assert cluster.left_of(process) == []

    with_transactions(check, brokers=3)
