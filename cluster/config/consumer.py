"""Consumer configuration: Kafka's keys, and librdkafka's where the client is confluent-kafka.

Owns the consumer table and the rules between its keys. Defaults: Kafka 3.8's ``ConsumerConfig``. The keys of groups are
carried: our consumer reads by assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cluster.config.client_keys import COMMON
from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, KeyTable, TypedConfig, flag, integer, text, texts
from cluster.config.librdkafka import CONSUMER_KEYS as CONFLUENT_KEYS
from cluster.config.librdkafka import parse as parse_confluent

CONSUMER_KEYS = KeyTable(
    "consumer",
    [
        *COMMON,
        text("group.id", None, "The group; needed to subscribe and to commit.", carried=True),
        text("group.instance.id", None, "A static member's name.", carried=True),
        text("group.protocol", "classic", "The group protocol.", ("classic",), carried=True),
        text("auto.offset.reset", "latest", "Where to begin without an offset.", ("earliest", "latest", "none")),
        flag("enable.auto.commit", True, "Commit offsets now and then.", carried=True),
        integer("auto.commit.interval.ms", 5000, "How often.", 0, carried=True),
        text("isolation.level", "read_uncommitted", "What is seen.", ("read_uncommitted", "read_committed")),
        integer(
            "session.timeout.ms",
            45_000,
            "Silence after which the group continues without this member.",
            1,
            carried=True,
        ),
        integer("heartbeat.interval.ms", 3000, "Time between two signs of life.", 1, carried=True),
        integer("max.poll.interval.ms", 300_000, "Longest time between two polls.", 1, carried=True),
        integer("max.poll.records", 500, "Records of one poll.", 1),
        integer("fetch.min.bytes", 1, "Bytes for which a fetch waits.", 0, INT_MAX),
        integer("fetch.max.bytes", 52_428_800, "Largest fetch.", 0, INT_MAX),
        integer("fetch.max.wait.ms", 500, "Longest wait of a fetch.", 0, INT_MAX),
        integer("max.partition.fetch.bytes", 1_048_576, "Largest part of a fetch for one partition.", 0, INT_MAX),
        flag("check.crcs", True, "Check the CRC of what is read."),
        texts(
            "partition.assignment.strategy",
            ("range", "cooperative-sticky"),
            "How a group shares partitions.",
            carried=True,
        ),
        flag("allow.auto.create.topics", True, "Let the broker create what is subscribed to."),
        flag("exclude.internal.topics", True, "Hide internal topics from patterns.", carried=True),
        integer("default.api.timeout.ms", 60_000, "Longest wait of calls without a timeout.", 0),
        integer("receive.buffer.bytes", 65_536, "SO_RCVBUF.", -1, carried=True),
    ],
)


class ConsumerConfig(TypedConfig):
    """The typed configuration of one consumer. ``as_text()`` is what a confluent consumer is given."""


def validate(
    mapping: Mapping[str, object], client: str = "native", base: Mapping[str, object] | None = None
) -> ConsumerConfig:
    """The typed configuration of a consumer; ``client`` is ``native`` (Kafka's keys) or ``confluent`` (librdkafka's).

    ``base`` holds values of a profile, used where ``mapping`` says nothing. Raises ConfigError for an unknown
    key, a value that does not fit, or settings that contradict each other.
    """
    confluent = client == "confluent"
    table = CONFLUENT_KEYS if confluent else CONSUMER_KEYS
    read = partial(parse_confluent, table) if confluent else table.parse
    config = ConsumerConfig(table, {**read(base or {}), **read(mapping)})
    if config["heartbeat.interval.ms"] >= config["session.timeout.ms"]:
        raise ConfigError(
            "consumer config 'heartbeat.interval.ms' must be below 'session.timeout.ms': "
            f"{config['heartbeat.interval.ms']} >= {config['session.timeout.ms']}"
        )
    if config["group.instance.id"] is not None and not config["group.id"]:
        raise ConfigError("consumer config 'group.instance.id' needs 'group.id'")
    warnings = [table.carried_warning(name) for name in config.given if table.keys[name].carried]
    return ConsumerConfig(table, config.given, warnings)
