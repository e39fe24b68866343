"""A topic to be created, and its form in CreateTopics. Owns that mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import request_class


@dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 is the broker's default. ``assignment`` (partition -> replicas) stands instead of both numbers."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)


def creatable(topic: NewTopic) -> Any:
    """The topic as a struct of a CreateTopics request."""
    topic_class = request_class(ApiKey.CREATE_TOPICS).CreatableTopic
    return topic_class(
        name=topic.name,
        num_partitions=-1 if topic.assignment else topic.partitions,
        replication_factor=-1 if topic.assignment else topic.replication_factor,
        assignments=[
            topic_class.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.assignment.items()
        ],
        configs=[topic_class.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
