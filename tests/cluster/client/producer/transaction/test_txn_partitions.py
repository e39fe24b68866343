"""New, pending, added: a partition is in one of the sets."""

from __future__ import annotations

from cluster.client.producer.transaction.txn_partitions import TxnPartitions
from tests.cluster.client.producer.transaction.txn_bench import T0, T1, U0


def sets(partitions):
    return partitions.new, partitions.pending, partitions.added


def test_a_partition_goes_from_set_to_set():
    """It is asked for until it is confirmed or refused, together with what is new by then."""
    partitions = TxnPartitions()
    partitions.use(T1)
    assert partitions.ask() == (T1,)
    partitions.use(T1)
    partitions.use(T0)
    assert sets(partitions) == ({T0}, {T1}, set())
    assert partitions.ask() == (T0, T1)
    partitions.confirm([T0, U0])
    partitions.use(T0)
    assert sets(partitions) == (set(), {T1}, {T0})
    partitions.refuse([T1])
    partitions.use(U0)
    partitions.drop_unasked()
    assert sets(partitions) == (set(), set(), {T0})
    partitions.clear()
    assert sets(partitions) == (set(), set(), set())
