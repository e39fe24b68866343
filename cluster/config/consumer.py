"""Consumer configuration: Kafka's keys, and librdkafka's where the client is confluent-kafka.

Owns the consumer table and the rules between its keys. Defaults: Kafka 3.8's ``ConsumerConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cluster.config.client_keys import COMMON
from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, KeyTable, flag, integer, text, texts
from cluster.config.librdkafka import CONSUMER_KEYS as CONFLUENT_KEYS
from cluster.config.librdkafka import parse as parse_confluent
from cluster.config.values import ConsumerValues

CONSUMER_KEYS = KeyTable(
    "consumer",
    [
        *COMMON,
        text("group.id", None, "Consumer group, required to subscribe and to commit."),
        text("group.instance.id", None, "ID of a static group member."),
        text("group.protocol", "classic", "Group protocol to use.", ("classic",), carried=True),
        text("auto.offset.reset", "latest", "Where to start without a valid offset.", ("earliest", "latest", "none")),
        flag("enable.auto.commit", True, "Commit offsets periodically."),
        integer("auto.commit.interval.ms", 5000, "How often offsets are committed automatically.", 0),
        text(
            "isolation.level",
            "read_uncommitted",
            "Whether to read records of open and aborted transactions.",
            ("read_uncommitted", "read_committed"),
        ),
        integer("session.timeout.ms", 45_000, "A member silent this long is removed.", 1),
        integer("heartbeat.interval.ms", 3000, "How often heartbeats are sent.", 1),
        integer("max.poll.interval.ms", 300_000, "Maximum time between two polls.", 1),
        integer("max.poll.records", 500, "Maximum records returned by one poll.", 1),
        integer("fetch.min.bytes", 1, "Minimum bytes a fetch waits for.", 0, INT_MAX),
        integer("fetch.max.bytes", 52_428_800, "Maximum bytes of a fetch.", 0, INT_MAX),
        integer("fetch.max.wait.ms", 500, "Maximum time a fetch waits for fetch.min.bytes.", 0, INT_MAX),
        integer("max.partition.fetch.bytes", 1_048_576, "Maximum bytes of a fetch per partition.", 0, INT_MAX),
        flag("check.crcs", True, "Verify the CRC of fetched batches."),
        texts(
            "partition.assignment.strategy",
            ("range", "cooperative-sticky"),
            "How partitions are assigned to the members of a group, most preferred first.",
            ("range", "roundrobin", "sticky", "cooperative-sticky"),
        ),
        flag("allow.auto.create.topics", True, "Allow the broker to create subscribed topics that do not exist."),
        flag("exclude.internal.topics", True, "Exclude internal topics from pattern subscriptions.", carried=True),
        integer("default.api.timeout.ms", 60_000, "Timeout of calls that do not specify one.", 0),
        integer("receive.buffer.bytes", 65_536, "SO_RCVBUF.", -1, carried=True),
    ],
)


class ConsumerConfig(ConsumerValues):
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
    if not confluent:
        _check_group(config)
    warnings = [table.carried_warning(name) for name in config.given if table.keys[name].carried]
    return ConsumerConfig(table, config.given, warnings)


def _check_group(config: ConsumerConfig) -> None:
    """Raises ConfigError for what our consumer could not do in a group."""
    if not config["group.id"] and config.given.get("enable.auto.commit"):
        raise ConfigError("consumer config 'enable.auto.commit' needs 'group.id': without a group nothing is committed")
    if not config["partition.assignment.strategy"]:
        raise ConfigError("consumer config 'partition.assignment.strategy' is empty: name one, such as 'range'")
