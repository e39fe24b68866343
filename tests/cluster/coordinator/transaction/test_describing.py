"""What is told about transactions: one by one, as a list that a filter lets through, and partition by partition."""

from __future__ import annotations

import pytest

from cluster.coordinator.transaction.describing import (
    STATE_NAMES,
    TransactionFilter,
    describe,
    listing,
    verify_partitions,
)
from cluster.protocol.errors import ErrorCode
from tests.cluster.coordinator.transaction.situations import EPOCH, NOW, PID, T0, T1, Bench, S, metadata_in


def test_the_names_of_states():
    """States are named as Kafka's tools write them."""
    assert [*STATE_NAMES.values()] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


def test_one_id():
    """What is known of it; another is not found, and none while its partition is read or led elsewhere."""
    bench = Bench(metadata_in(S.ONGOING))
    owned = bench.coordinator.owned
    assert describe(owned, "id") is owned.served[0].transactions["id"]
    assert describe(owned, "other") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    bench.coordinator.elected(0, 2)
    assert describe(owned, "id") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.coordinator.resigned(0, None)
    assert describe(owned, "id") is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("wanted", "is_listed"),
    [
        (TransactionFilter(), True),
        (TransactionFilter(states=set()), False),
        (TransactionFilter(states={"Ongoing"}), True),
        (TransactionFilter(states={"Empty", "Unheard"}), False),
        (TransactionFilter(producer_ids={PID}), True),
        (TransactionFilter(producer_ids={PID + 1}), False),
        (TransactionFilter(least_ms=0), True),
        (TransactionFilter(least_ms=1_000_000_000), False),
    ],
)
def test_filters(wanted, is_listed):
    """By state, by producer, and by how long the transaction is open."""
    bench = Bench(metadata_in(S.ONGOING))
    code, found = listing(bench.coordinator.owned, wanted, NOW + 1_000_000)
    assert code is ErrorCode.NONE
    assert [each for each in found if each is not None] == ([metadata_in(S.ONGOING)] if is_listed else [])


def test_a_list_while_something_is_loading():
    """ListTransactions answers COORDINATOR_LOAD_IN_PROGRESS, not a part of the list."""
    bench = Bench()
    bench.coordinator.elected(0, 2)
    code, found = listing(bench.coordinator.owned, TransactionFilter(), NOW)
    assert (code, [*found]) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


def test_partitions_in_a_transaction():
    """Each has its code; an error of the whole is that of each."""
    bench = Bench(metadata_in(S.ONGOING))
    owned = bench.coordinator.owned
    both = verify_partitions(owned, "id", PID, EPOCH, {T0, T1})
    assert both == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert verify_partitions(owned, "", PID, EPOCH, {T0}) == {T0: ErrorCode.INVALID_REQUEST}
    assert verify_partitions(owned, "id", PID, EPOCH + 1, {T0}) == {T0: ErrorCode.PRODUCER_FENCED}
    bench.coordinator.resigned(0, None)
    assert verify_partitions(owned, "id", PID, EPOCH, {T0}) == {T0: ErrorCode.NOT_COORDINATOR}
