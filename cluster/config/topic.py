"""Topic configuration: Kafka 3.8's topic keys, and which broker keys give a topic its defaults.

Owns the topic table, the rules between topic keys and the synonyms. What the values do is known to ``cluster.log``
and ``cluster.replication``. Defaults: Kafka's ``LogConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, LONG_MAX, KeyTable, Value, flag, integer, number, text, texts
from cluster.config.values import TopicValues

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TOPIC_KEYS = KeyTable(
    "topic",
    [
        texts("cleanup.policy", ("delete",), "Delete old segments, compact them, or both.", ("delete", "compact")),
        text("compression.type", "producer", "Codec of stored batches; producer: as they are sent.", COMPRESSION_TYPES),
        integer("delete.retention.ms", 86_400_000, "How long a compacted topic keeps tombstones.", 0),
        integer("file.delete.delay.ms", 60_000, "How long a segment renamed to .deleted stays on disk.", 0),
        integer("flush.messages", LONG_MAX, "Records written before the log is flushed (fsync).", 1),
        integer("flush.ms", LONG_MAX, "Maximum time between flushes of the log.", 0),
        integer("index.interval.bytes", 4096, "Bytes of log between index entries.", 0, INT_MAX),
        integer("max.compaction.lag.ms", LONG_MAX, "Maximum time a record stays uncompacted.", 1),
        integer("max.message.bytes", 1_048_588, "Maximum size of a record batch.", 0, INT_MAX),
        integer("message.timestamp.after.max.ms", LONG_MAX, "How far in the future a timestamp may be.", 0),
        integer("message.timestamp.before.max.ms", LONG_MAX, "How far in the past a timestamp may be.", 0),
        text(
            "message.timestamp.type",
            "CreateTime",
            "Whether records carry the producer's time or the broker's.",
            ("CreateTime", "LogAppendTime"),
        ),
        number("min.cleanable.dirty.ratio", 0.5, "Ratio of uncompacted bytes at which a log is compacted.", 0, 1),
        integer("min.compaction.lag.ms", 0, "Minimum time a record stays uncompacted.", 0),
        integer("min.insync.replicas", 1, "Minimum in-sync replicas; with fewer, acks=all is refused.", 1, INT_MAX),
        flag("preallocate", False, "Preallocate the file of a new segment.", carried=True),
        integer("retention.bytes", -1, "Maximum size of a log before old segments are deleted; -1: no limit.", -1),
        integer("retention.ms", 604_800_000, "Age at which segments are deleted; -1: never.", -1),
        integer("segment.bytes", 1_073_741_824, "Size at which a new segment is rolled.", 14, INT_MAX),
        integer("segment.index.bytes", 10_485_760, "Maximum size of an index file.", 4, INT_MAX),
        integer("segment.jitter.ms", 0, "Maximum random reduction of segment.ms.", 0),
        integer("segment.ms", 604_800_000, "Age at which a new segment is rolled.", 1),
        flag("unclean.leader.election.enable", False, "Allow a leader outside the ISR; may lose records."),
    ],
)

#: Which broker key comes after a topic key when the topic does not set it, the strongest first, with the factor
#: that turns its unit into the topic's (hours and minutes into ms).
BROKER_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.type": (("compression.type", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}


class TopicConfig(TopicValues):
    """The typed configuration of one topic."""


def validate(mapping: Mapping[str, object], broker: Mapping[str, Value] | None = None) -> TopicConfig:
    """The typed configuration of a topic that sets ``mapping`` on a broker configured as ``broker``.

    Raises ConfigError for an unknown key, a value that does not fit, or settings that contradict each other.
    """
    given = TOPIC_KEYS.parse(mapping)
    defaults = broker_defaults(broker) if broker is not None else {}
    warnings = [TOPIC_KEYS.carried_warning(name) for name in given if TOPIC_KEYS.keys[name].carried]
    config = TopicConfig(TOPIC_KEYS, {**defaults, **given}, warnings)
    if config["max.compaction.lag.ms"] < config["min.compaction.lag.ms"]:
        raise ConfigError(
            "topic config 'max.compaction.lag.ms' must not be below 'min.compaction.lag.ms': "
            f"{config['max.compaction.lag.ms']} < {config['min.compaction.lag.ms']}"
        )
    return config


def broker_defaults(broker: Mapping[str, Value]) -> dict[str, Value]:
    """The topic values that a broker's configuration gives to topics that do not set them."""
    found: dict[str, Value] = {}
    for name, synonyms in BROKER_SYNONYMS.items():
        for broker_key, factor in synonyms:
            value = broker.get(broker_key)
            if value is not None:
                # A negative time means "no limit" in any unit.
                scaled = isinstance(value, int) and not isinstance(value, bool) and factor > 1 and value > 0
                found[name] = value * factor if scaled else value
                break
    return found
