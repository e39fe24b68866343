"""What the group coordinator's decisions depend on, from the configuration of a broker. Owns the names of the keys."""

from __future__ import annotations

from cluster.config.broker import BrokerConfig
from cluster.coordinator.group.decisions import GroupSettings

_MS_PER_MINUTE = 60_000


def group_settings(config: BrokerConfig, stored_partitions: int | None) -> GroupSettings:
    """``stored_partitions``: how many ``__consumer_offsets`` has, None before it is made. They decide where a group
    belongs; the configuration is for a topic that does not exist yet (Kafka's GroupCoordinator)."""
    return GroupSettings(
        offsets_topic_num_partitions=stored_partitions or config["offsets.topic.num.partitions"],
        group_min_session_timeout_ms=config["group.min.session.timeout.ms"],
        group_max_session_timeout_ms=config["group.max.session.timeout.ms"],
        group_max_size=config["group.max.size"],
        group_max_bytes=config["gapless.group.max.bytes"],
        groups_max_bytes=config["gapless.groups.max.bytes"],
        message_max_bytes=config["message.max.bytes"],
        group_initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * _MS_PER_MINUTE,
    )
