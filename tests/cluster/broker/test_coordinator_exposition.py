"""Metrics of the coordinators: what they have done, what there is now, and what is late."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.broker.coordinator_exposition import LATE_MS, CoordinatorCollector
from cluster.broker.node import Node
from cluster.broker.rules import Rules
from cluster.coordinator.transaction.state import TransactionState
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.groups.scenes import Member, stable, with_groups
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import ID, PARTITIONS, TxnProducer, is_over, service, with_transactions
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import LoopClock

KEY = (TOPIC, 0)


def read(*nodes: Node) -> Mapping[tuple[str, ...], float]:
    """(name, values of its labels) -> value, of all these brokers together."""
    found: dict[tuple[str, ...], float] = {}
    for node in nodes:
        for family in CoordinatorCollector(node, LoopClock().wall_ms).collect():
            for sample in family.samples:
                key = (sample.name.removeprefix("gapless_"), *(value for _, value in sorted(sample.labels.items())))
                found[key] = found.get(key, 0) + sample.value
    return found


def test_what_becomes_of_transactions() -> None:
    """Ids by their state; transactions committed, aborted and timed out; verifications that failed; loads."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        (node,) = cluster.nodes.values()
        others = {name: TxnProducer(cluster, name) for name in ("aborted", "slow", "open", "new")}
        await producer.begin()
        await producer.add([KEY])
        assert (await producer.write(b"a")).error is ErrorCode.NONE
        assert (await producer.write(b"not added", 1)).error is ErrorCode.INVALID_TXN_STATE
        assert await producer.end(commit=True) is ErrorCode.NONE
        for name, other in others.items():
            await other.begin(timeout_ms=1_000 if name == "slow" else 600_000)
        for name in ("aborted", "slow", "open"):
            await others[name].add([KEY])
        assert await others["aborted"].end(commit=False) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster, "slow") and is_over(cluster, "aborted") and is_over(cluster))
        samples = read(node)
        decided = {what: samples["transactions_decided_total", what] for what in ("committed", "aborted", "timed out")}
        assert decided == {"committed": 1, "aborted": 1, "timed out": 1}
        states = {name: samples["transactional_ids", name] for name in ("Ongoing", "Empty", "CompleteCommit", "Dead")}
        assert states == {"Ongoing": 1, "Empty": 1, "CompleteCommit": 1, "Dead": 0}
        assert samples["transactional_ids", "CompleteAbort"] == 2
        assert samples["transaction_verification_seconds_count",] == 2
        assert samples["transaction_verification_failures_total",] == 1
        assert samples["coordinator_load_seconds_count", "transaction"] == PARTITIONS
        assert (
            samples["coordinator_longest_load_seconds", "transaction"]
            <= samples["coordinator_load_seconds_sum", "transaction"]
        )
        waiting = ("broker", "unknown destination", "retry", "log append retry")
        assert [samples["transaction_queue_size", name] for name in waiting] == [0, 0, 0, 0]

    with_transactions(check)


def test_partitions_with_late_transactions() -> None:
    """Where no coordinator ends a transaction, after the longest time that one may take and five minutes: once for each
    partition, at its leader."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        late_ms = service(cluster, 1).wall_ms() - 60_000 - LATE_MS
        for partition, timestamp in ((0, late_ms - 10_000), (1, late_ms + 100_000)):
            client = Client(await cluster.connect(cluster.leader(TOPIC, partition)))
            for producer_id in (producer.producer_id, producer.producer_id + 1):
                identity = {"producer_id": producer_id, "base_sequence": 0, "transactional": True}
                records = batch(b"v", timestamp=timestamp, **identity)
                produced = await client.produce(TOPIC, records, partition=partition, transactional_id=ID)
                assert produced.error is ErrorCode.NONE
        assert read(*cluster.nodes.values())["partitions_with_late_transactions",] == 1

    properties = {"transaction_partition_verification_enable": "false", "transaction_max_timeout_ms": "60000"}
    with_transactions(check, brokers=3, **properties)


def test_groups_and_their_offsets() -> None:
    """By state; offsets committed and stored; rebalances that came to an assignment, not those that wait for one."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        (node,) = cluster.nodes.values()
        assert read(node)["groups", "Stable"] == 0
        first, _ = await stable(cluster, 2)
        await first.commit({KEY: 1, (TOPIC, 1): 2})
        await first.commit({KEY: 3})
        await first.commit({("unknown", 0): 1})
        samples = read(node)
        states = {state: samples["groups", state] for state in ("Empty", "Stable", "Dead")}
        assert states == {"Empty": 0, "Stable": 1, "Dead": 0}
        assert (samples["offset_commits_total",], samples["committed_offsets",]) == (3, 2)
        assert samples["completed_rebalances_total",] == 1
        assert samples["coordinator_load_seconds_count", "group"] == 4

    with_groups(check)


def test_nothing_but_zeros_before_the_start() -> None:
    """Counters are there from the beginning; of groups and transactions nothing is known yet, of whatever state."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        (node,) = cluster.nodes.values()
        shown = {key[1] for key in read(node) if key[0] == "transactional_ids"}
        assert len(shown) == len(TransactionState)
        starting = Node(node.config, Rules(), node._seams, "starting", lambda _error: None)
        samples = read(starting)
        assert samples["offset_commits_total",] == samples["transactions_decided_total", "committed"] == 0
        assert not any(name in ("groups", "transactional_ids") for name, *_ in samples)

    with_transactions(check)
