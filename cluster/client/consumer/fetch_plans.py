"""What a consumer asks for: the settings that shape a fetch, one fetch as it was sent, and whom to ask now.

Owns these shapes and the fetch request. Does not own which partitions are due (``fetching``). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.client.cluster_view import ClusterView
from cluster.client.consumer.assignment import AssignedPartition
from cluster.client.consumer.lookup import Sought
from cluster.client.offset_listing import CONSUMER, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.config.consumer import ConsumerConfig
from cluster.protocol.fetch import FetchPartition, FetchRequest
from cluster.topic_partition import TopicPartition

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
#: Fetch sessions are declined: an epoch of -1 asks for everything, and for no session (KIP-227).
_NO_SESSION, _FINAL_EPOCH = 0, -1
_RESET = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP, "none": None}


class FetchSettings(NamedTuple):
    """The consumer's keys that shape a fetch. ``reset_timestamp`` is auto.offset.reset; None is ``none``."""

    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    partition_max_bytes: int
    isolation_level: int
    check_crcs: bool
    reset_timestamp: int | None

    @classmethod
    def of(cls, config: ConsumerConfig) -> FetchSettings:
        return cls(
            config["fetch.min.bytes"],
            config["fetch.max.bytes"],
            config["fetch.max.wait.ms"],
            config["max.partition.fetch.bytes"],
            READ_COMMITTED if config["isolation.level"] == "read_committed" else READ_UNCOMMITTED,
            config["check.crcs"],
            _RESET[config["auto.offset.reset"]],
        )


class AskedPosition(NamedTuple):
    """Where a partition was when it was asked for, after how many moves, and the epoch of the leader that was asked."""

    position: int
    moves: int
    leader_epoch: int


class Fetch(NamedTuple):
    """One request to one node, and the places of its partitions."""

    node_id: int
    request: FetchRequest
    places: dict[TopicPartition, AskedPosition]


@dataclass(slots=True)
class Plan:
    """Whom to ask now: for records, for offsets; and the topics whose metadata does not say whom."""

    fetches: dict[int, list[AssignedPartition]] = field(default_factory=dict)
    lookups: dict[int, dict[TopicPartition, Sought]] = field(default_factory=dict)
    stale_topics: set[str] = field(default_factory=set)


def fetch_of(
    node_id: int, partitions: Iterable[AssignedPartition], view: ClusterView, settings: FetchSettings
) -> Fetch:
    """The fetch of these partitions from the node that leads them."""
    wanted: list[FetchPartition] = []
    places: dict[TopicPartition, AskedPosition] = {}
    for partition in partitions:
        if partition.position is None:
            continue
        (topic, number), position = partition.key, partition.position
        epoch = leadership(partition, view)[1]
        places[partition.key] = AskedPosition(position, partition.moves, epoch)
        limit = settings.partition_max_bytes
        wanted.append(FetchPartition(topic, number, epoch, position, partition.offset_epoch, -1, limit))
    request = FetchRequest(
        CONSUMER,
        settings.max_wait_ms,
        settings.min_bytes,
        settings.max_bytes,
        settings.isolation_level,
        _NO_SESSION,
        _FINAL_EPOCH,
        wanted,
    )
    return Fetch(node_id, request, places)


def is_of_another_topic(partition: AssignedPartition, view: ClusterView) -> bool:
    """Whether its position is in a topic that is no more, though there is one of its name."""
    topic_id = view.topic_id(partition.key[0])
    return None not in (topic_id, partition.topic_id) and partition.topic_id != topic_id


def leadership(partition: AssignedPartition, view: ClusterView) -> tuple[int, int]:
    """The leader of a partition and its epoch, as far as they are known."""
    described = view.partition(*partition.key)
    return (-1, -1) if described is None else (described.leader, described.leader_epoch)
