"""The inspector sees what is broken in a running cluster, and the document names all that it looks for."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from pathlib import Path

import pytest

from cluster.broker.replicas import invariants as replica_invariants
from cluster.client.producer import invariants as producer_invariants
from cluster.controller import invariants as context_invariants
from cluster.coordinator.group import invariants as group_invariants
from cluster.coordinator.group.requests import MemberIdentity
from cluster.coordinator.transaction import invariants as transaction_invariants
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.state import TransactionMetadata
from cluster.invariants import InvariantBroken
from cluster.log import invariants as log_invariants
from cluster.log import producer_invariants as log_producer_invariants
from cluster.replication import invariants as leader_invariants
from tests.simulation.client import Client, batch
from tests.simulation.inspector import Inspector
from tests.simulation.nodes import MemoryCluster
from tests.support.invariants import stated
from tests.support.virtual_time import OWNER, run

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"
MODULES = (
    context_invariants,
    group_invariants,
    leader_invariants,
    log_invariants,
    log_producer_invariants,
    producer_invariants,
    replica_invariants,
    transaction_invariants,
)


def commit_too_much(cluster: MemoryCluster, leader: int) -> None:
    """Whoever leads takes as committed what nobody has."""
    state = cluster.nodes[leader].replicas.partitions["t", 0].leader
    assert state is not None
    state.high_watermark += 1


def forget_a_batch(cluster: MemoryCluster, leader: int) -> None:
    """What the producer sent last is forgotten, and would be taken twice; a cut makes it be looked for."""
    log = cluster.nodes[leader].replicas.partitions["t", 0].log
    (entry,) = log.producers
    log.producers.put(entry._replace(batches=entry.batches[:-1]))
    log._local.cuts += 1


def fetch_from_elsewhere(cluster: MemoryCluster, leader: int) -> None:
    """A follower's log has lost a record that it told its leader of."""
    follower = next(broker_id for broker_id in cluster.broker_ids if broker_id != leader)
    partition = cluster.nodes[follower].replicas.partitions["t", 0]
    partition.log.truncate_to(1)
    partition._follower_log.high_watermark = 1


def elect_somebody_else(cluster: MemoryCluster, leader: int) -> None:
    """The controller believes what it has not written."""
    office = next(node.control._candidate._office for node in cluster.nodes.values() if node.control._candidate._office)
    partition = office.controller.context.topics["t"].partitions[0]
    assert partition.state is not None
    partition.state = type(partition.state)(
        next(each for each in partition.state.isr if each != leader),
        partition.state.leader_epoch + 1,
        partition.state.isr,
        partition.state.partition_epoch,
        partition.state.controller_epoch,
    )


def coordinate_no_producer(cluster: MemoryCluster, leader: int) -> None:
    """A coordinator has a transactional id that it gave no producer id."""
    owned = cluster.nodes[leader]._coordinators.transactions.coordinator.owned
    metadata = TransactionMetadata("id", -1, 0, 1000, 0)
    owned.served[owned.partition_of("id")] = ServedPartition(0, {"id": metadata})


def miscount_a_group(cluster: MemoryCluster, leader: int) -> None:
    """A coordinator's groups take more than any of them does; it is seen when somebody asks it for anything."""
    groups = cluster.nodes[leader]._coordinators.groups
    groups.coordinator.room.taken_bytes += 1
    context = copy_context()
    context.run(OWNER.set, cluster.processes[leader].life)
    asked = MemberIdentity("m", generation_id=1)
    asyncio.get_running_loop().call_soon(groups.heartbeat, "g", asked, context=context)


BREAKS = [
    ("producer-ids", coordinate_no_producer),
    ("room-counted", miscount_a_group),
    ("watermark-in-log", commit_too_much),
    ("producer-batches", forget_a_batch),
    ("fetch-at-the-end", fetch_from_elsewhere),
    ("not-ahead", elect_somebody_else),
]


@pytest.mark.parametrize(("name", "break_it"), BREAKS)
def test_what_is_broken_in_a_running_cluster_is_told(name: str, break_it) -> None:
    """At the next callback of the broker, once; and nothing before."""

    async def main() -> list[str]:
        found: list[InvariantBroken] = []
        async with MemoryCluster() as cluster:
            inspector = Inspector(cluster, lambda _broker, error: found.append(error))
            inspector.install()
            await cluster.create_topic("t")
            leader = cluster.leader("t")
            client = Client(await cluster.connect(leader))
            for sequence in range(3):
                records = batch(b"v", producer_id=9, base_sequence=sequence)
                assert (await client.produce("t", records)).base_offset == sequence
            await asyncio.sleep(1)
            inspector.inspect_all()
            assert (found, inspector.looks > 20) == ([], True)
            break_it(cluster, leader)
            await asyncio.sleep(0.3)
            names = [error.name for error in found]
        return names

    names = run(main())
    assert names[:1] == [name]


def test_the_document_names_every_invariant() -> None:
    """docs/simulation.md has every invariant that the code states."""
    text = DOCUMENT.read_text()
    names = set().union(*map(stated, MODULES))
    assert len(names) > 40
    assert sorted(name for name in names if f"`{name}`" not in text) == []
