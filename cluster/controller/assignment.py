"""Which brokers hold which replicas of a new topic: Kafka's rack-unaware placement (AdminUtils; docs/reference/kafka.md
"Replica placement"). Pure.

Partition p starts at broker (s + p) mod n; its j-th other replica is (first + 1 + (k + j) mod (n - 1)) mod n, where k
grows by one each time p wraps n. s and k are drawn for a new topic; partitions that are added later continue the
placement of the topic's first.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.seams.randomness import Random


class AssignmentError(ValueError):
    """No placement is possible; the text is for the client."""


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Partition -> replicas, the preferred leader first. Raises AssignmentError if there are too few brokers."""
    ordered = sorted(brokers)
    count = len(ordered)
    if replication_factor < 1:
        raise AssignmentError("Replication factor must be larger than 0.")
    if replication_factor > count:
        raise AssignmentError(f"Replication factor: {replication_factor} larger than available brokers: {count}.")
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (start_index + partition) % count
        others = ((first + 1 + (shift + j) % (count - 1)) % count for j in range(replication_factor - 1))
        assignment[partition] = (ordered[first], *(ordered[index] for index in others))
    return assignment


def assign_new_topic(
    brokers: Sequence[int], partitions: int, replication_factor: int, random: Random
) -> dict[int, tuple[int, ...]]:
    """With a drawn start and shift, so that topics do not all begin on the same broker."""
    if not brokers:
        raise AssignmentError(f"Replication factor: {replication_factor} larger than available brokers: 0.")
    start_index = random.randrange(len(brokers))
    shift = random.randrange(len(brokers))
    return assign_replicas(brokers, partitions, replication_factor, start_index=start_index, shift=shift)


def assign_added_partitions(
    brokers: Sequence[int], existing: dict[int, tuple[int, ...]], added: int
) -> dict[int, tuple[int, ...]]:
    """Partitions ``len(existing)`` and up, placed as a continuation of partition 0's placement."""
    ordered = sorted(brokers)
    first_replicas = existing[min(existing)]
    start_index = ordered.index(first_replicas[0]) if first_replicas[0] in ordered else 0
    return assign_replicas(
        ordered,
        added,
        len(first_replicas),
        start_index=start_index,
        shift=start_index,
        first_partition=len(existing),
    )
