"""Topics that brokers keep for themselves: their names, and with what they are made (Kafka's AutoTopicCreationManager).

Owns the table. Does not own what is in them (``cluster.coordinator``), nor the asking for them (``topic_creation``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cluster.config.broker import BrokerConfig

#: Groups and committed offsets.
OFFSETS_TOPIC = "__consumer_offsets"
#: Transactional ids and their transactions.
TRANSACTIONS_TOPIC = "__transaction_state"
#: Topics that only brokers write to.
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})

#: A count or a replication factor of -1 stands for the broker's default.
BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What the controller is asked to make."""

    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    config: dict[str, str] = field(default_factory=dict)


def plan(config: BrokerConfig, name: str) -> TopicPlan:
    """How a topic is made that no one gave any settings."""
    if name == OFFSETS_TOPIC:
        return TopicPlan(
            config["offsets.topic.num.partitions"],
            config["offsets.topic.replication.factor"],
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config["offsets.topic.segment.bytes"]),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return TopicPlan(
            config["transaction.state.log.num.partitions"],
            config["transaction.state.log.replication.factor"],
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
                "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
                "unclean.leader.election.enable": "false",
            },
        )
    return TopicPlan()
