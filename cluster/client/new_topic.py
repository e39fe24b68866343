"""A topic to be created, and its form in CreateTopics. Owns that mapping, and that nothing in it cannot be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.client.argument_checks import (
    checked_brokers,
    checked_configs,
    checked_integer,
    checked_mapping,
    checked_partition,
    checked_topic,
)
from cluster.protocol.message_classes import CreateTopicsRequest


@dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 is the broker's default. ``assignment`` (partition -> replicas) stands instead of both numbers."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)


def creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    """The topic as a struct of a CreateTopics request. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(topic, NewTopic):
        raise TypeError(f"a topic to be created is a NewTopic, not {type(topic).__name__}: NewTopic('name')")
    name = checked_topic(topic.name)
    partitions = checked_integer(topic.partitions, f"the number of partitions of {name}", 32)
    replication_factor = checked_integer(topic.replication_factor, f"the replication factor of {name}", 16)
    assignment = checked_mapping(topic.assignment, f"the replicas of {name}")
    topic_class = CreateTopicsRequest.CreatableTopic
    return topic_class(
        name=name,
        num_partitions=-1 if assignment else partitions,
        replication_factor=-1 if assignment else replication_factor,
        assignments=[
            topic_class.CreatableReplicaAssignment(
                partition_index=checked_partition(partition), broker_ids=checked_brokers(replicas)
            )
            for partition, replicas in assignment.items()
        ],
        configs=[
            topic_class.CreatableTopicConfig(name=key, value=value)
            for key, value in checked_configs(topic.configs).items()
        ],
    )
