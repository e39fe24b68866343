"""What a topic's configuration means for its partitions on this broker. Pure.

Owns the choice where a configuration cannot be meant: the topic is served anyway, by the broker's defaults. Where it
would make lookups long, the bound counts instead. Does not own the reading of configurations (``dynamic_configs``) nor
the settings' layers (``cluster.config``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from cluster.broker.replicas.host import TopicSettings
from cluster.config import topic as topic_config
from cluster.config.broker import BrokerConfig
from cluster.config.errors import ConfigError
from cluster.log.config import LogConfig, UnknownProducer

#: How many times the bound of one partition is the bound of all, unless it is set.
TOTAL_FACTOR = 5

logger = logging.getLogger(__name__)


def log_defaults(broker: BrokerConfig) -> LogConfig:
    """What no topic can set: the broker's own settings of a log."""
    return LogConfig(
        # The table has no other choices.
        unknown_producer=cast(UnknownProducer, broker["gapless.unknown.producer"]),
        max_producers=broker["gapless.max.producers"],
        min_segment_bytes=broker["gapless.min.segment.bytes"],
        min_segment_ms=broker["gapless.min.segment.ms"],
    )


def max_producers(broker: BrokerConfig) -> int:
    """How many producers all partitions of this broker together remember."""
    return broker["gapless.max.producers.total"] or TOTAL_FACTOR * broker["gapless.max.producers"]


def topic_settings(topic: str, given: Mapping[str, str], broker: BrokerConfig, defaults: LogConfig) -> TopicSettings:
    """``given`` is what is set on the topic, ``broker`` this broker's configuration as it holds now."""
    try:
        config = topic_config.validate(given, broker)
    except ConfigError as error:
        logger.error("topic %s goes by the broker's defaults: %s", topic, error)
        config = topic_config.validate({}, broker)
    return TopicSettings(log_config(config, broker, defaults), config["min.insync.replicas"])


def log_config(topic: Mapping[str, object], broker: BrokerConfig, defaults: LogConfig) -> LogConfig:
    """Of the values of one topic, with indexes that are dense enough, no matter who set how dense they are."""
    config = LogConfig.from_mapping(topic, defaults)
    most = broker["gapless.max.index.interval.bytes"]
    return replace(config, index_interval_bytes=min(config.index_interval_bytes, most))
