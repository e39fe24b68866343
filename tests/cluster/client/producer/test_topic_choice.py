"""Which partition the next record without a key goes to, from batch to batch (KIP-794)."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.partitioner import BuiltInPartitioner
from cluster.client.producer.topic_choice import TopicChoice
from cluster.seams.randomness import Random
from tests.cluster.client.producer.batches import a_batch, a_view

STICKY_BYTES = 300


def a_choice(load: Mapping[int, int] | None = None) -> tuple[TopicChoice, dict[int, ProducerBatch]]:
    opened: dict[int, ProducerBatch] = {}
    choice = TopicChoice("t", BuiltInPartitioner(STICKY_BYTES, Random(1)), opened, lambda asked: load)
    choice.update(a_view(dict.fromkeys(range(3), (1, 0))).topics["t"])
    return choice, opened


def test_a_partition_is_kept_until_enough_went_to_it() -> None:
    """Batches that were drained half full count with what they had; the one that is left takes no record any more."""
    choice, _opened = a_choice()
    first = choice.next_partition()
    for _ in range(2):
        choice.sticky_batch = a_batch(partition=first, value=b"x" * 110)
        assert choice.next_partition() == first
    batch = choice.sticky_batch = a_batch(partition=first, value=b"x" * 110)
    drawn = [choice.next_partition() for _ in range(3)]
    assert batch.is_closed
    assert choice.sticky_batch is None
    assert len(set(drawn)) == 1


def test_it_is_drawn_by_load() -> None:
    """Where nothing else is available, the only partition with a leader that takes requests."""
    choice, _opened = a_choice({2: 0})
    for _ in range(5):
        choice.sticky_batch = a_batch(partition=choice.partitioner.partition, value=b"x" * 900, limit_bytes=2_000)
        assert choice.next_partition() == 2


def test_partitions_without_a_leader_are_not_available() -> None:
    """They count for keys, and are not drawn."""
    choice, _opened = a_choice()
    choice.update(a_view({0: (1, 0), 1: (-1, 0), 4: (2, 0)}).topics["t"])
    assert choice.partition_count == 5
    assert choice.available == (0, 4)
    assert choice.leaders == {0: 1, 4: 2}
