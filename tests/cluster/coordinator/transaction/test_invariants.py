"""Each invariant of what a coordinator knows, broken by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.coordinator.transaction import invariants
from cluster.coordinator.transaction.transitions import prepare_increment_producer_epoch
from tests.cluster.coordinator.transaction.situations import NOW, PID, SITUATIONS, T0, Bench, S, metadata_in
from tests.support.invariants import is_named, raised, stated

EMPTYING = prepare_increment_producer_epoch(metadata_in(S.EMPTY), 1, None, NOW)

#: (name, what is known, what is changed of it).
BREAKS = [
    ("filed-by-id", metadata_in(S.EMPTY), {"transactional_id": "other"}),
    ("stored-states", metadata_in(S.EMPTY), {"state": S.DEAD}),
    ("stored-states", metadata_in(S.ONGOING), {"state": S.PREPARE_EPOCH_FENCE}),
    ("producer-ids", metadata_in(S.EMPTY), {"producer_id": -1}),
    ("producer-ids", metadata_in(S.EMPTY), {"producer_epoch": 32768}),
    ("producer-ids", metadata_in(S.ONGOING), {"producer_epoch": -1}),
    ("partitions-of-open", metadata_in(S.COMPLETE_ABORT), {"topic_partitions": frozenset({T0})}),
    ("partitions-of-open", metadata_in(S.EMPTY), {"start_timestamp_ms": 5}),
    ("partitions-of-open", metadata_in(S.ONGOING), {"start_timestamp_ms": -1}),
    ("pending-is-legal", metadata_in(S.EMPTY), {"pending": SITUATIONS["ONGOING -> PREPARE_ABORT"].pending}),
    ("pending-epochs", EMPTYING, {"producer_epoch": 2}),
    ("pending-epochs", EMPTYING, {"producer_id": PID + 1}),
    ("decided-completes", metadata_in(S.PREPARE_COMMIT), {"pending": None}),
    ("decided-completes", metadata_in(S.PREPARE_COMMIT), {"pending": metadata_in(S.PREPARE_ABORT).pending}),
]


@pytest.mark.parametrize(("name", "known", "fields"), BREAKS)
def test_a_broken_one_is_named(name, known, fields):
    """What is sound passes; what is broken is told by its name."""
    bench = Bench()
    bench.coordinator.owned.served[0].put(known)
    is_named(
        name,
        lambda: invariants.validate(bench.coordinator),
        lambda: served_by(bench).update(id=replace(known, **fields)),
    )


def served_by(bench):
    return bench.coordinator.owned.served[0]._transactions


def test_bytes_are_counted():
    """The bytes of IDs are counted as these come, grow and go."""
    bench = Bench(metadata_in(S.ONGOING))
    is_named("room-counted", lambda: invariants.validate(bench.coordinator), lambda: served_by(bench).clear())


def test_a_partition_has_one_role():
    """Loading or served, and one that exists."""
    for partition in (0, 1):
        bench = Bench()
        is_named(
            "one-role",
            lambda bench=bench: invariants.validate(bench.coordinator),
            lambda bench=bench, partition=partition: bench.coordinator.owned.loading.update({partition: 2}),
        )


def test_successors():
    """Epochs ascend under one producer id, and a decision is completed as it was made."""
    decided = metadata_in(S.PREPARE_COMMIT)
    for after in (decided, metadata_in(S.COMPLETE_COMMIT)):
        invariants.validate_successor(decided, after)
    for name, before, after in (
        ("epochs-ascend", metadata_in(S.EMPTY), metadata_in(S.EMPTY, producer_epoch=3)),
        ("decision-stands", decided, metadata_in(S.COMPLETE_ABORT)),
    ):
        with pytest.raises(invariants.InvariantBroken, match=f": {name}: "):
            invariants.validate_successor(before, after)


def test_all_are_broken_here():
    """What the module states is what it raises, and each is broken above."""
    assert stated(invariants) == raised(invariants)
    assert stated(invariants) == {name for name, *_ in BREAKS} | {
        "room-counted",
        "one-role",
        "epochs-ascend",
        "decision-stands",
    }
