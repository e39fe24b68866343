"""Producer configuration: Kafka's keys, and librdkafka's where the client is confluent-kafka.

Owns the producer table and the rules between its keys (Kafka's ProducerConfig). The same rules hold for both clients;
only the spelling of the keys differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cluster.config.client_keys import COMMON
from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, KeyTable, Value, flag, integer, text
from cluster.config.librdkafka import PRODUCER_KEYS as CONFLUENT_KEYS
from cluster.config.librdkafka import parse as parse_confluent
from cluster.config.values import ProducerValues

#: A key of ours: brokers remember a producer's last five batches, so that more than five requests in flight can store
#: a record twice. To show that, someone has to be able to ask for it.
UNSAFE_IN_FLIGHT = "gapless.allow.unsafe.in.flight"
_SAFE_IN_FLIGHT = 5

PRODUCER_KEYS = KeyTable(
    "producer",
    [
        *COMMON,
        text("acks", "all", "Which replicas must have a record before it is acknowledged.", ("all", "-1", "0", "1")),
        flag("enable.idempotence", True, "Number batches so that a retry is never stored twice."),
        text("transactional.id", None, "ID that identifies the producer's transactions across restarts."),
        integer("transaction.timeout.ms", 60_000, "Time after which an open transaction is aborted.", 1, INT_MAX),
        integer("max.in.flight.requests.per.connection", 5, "Maximum unanswered requests.", 1),
        integer("retries", INT_MAX, "Maximum retries. Prefer to limit them with delivery.timeout.ms.", 0, INT_MAX),
        integer("delivery.timeout.ms", 120_000, "Maximum time from send() until the outcome is reported.", 0, INT_MAX),
        integer("linger.ms", 0, "How long a batch waits for more records.", 0),
        integer("batch.size", 16_384, "Maximum bytes of a batch.", 0),
        integer("buffer.memory", 33_554_432, "Memory for records waiting to be sent, in bytes.", 0),
        integer("max.block.ms", 60_000, "Maximum time send() blocks for memory or metadata.", 0),
        integer("max.request.size", 1_048_576, "Maximum size of a request, and so of a record.", 0),
        text(
            "compression.type",
            "none",
            "Codec that batches are compressed with.",
            ("none", "gzip", "snappy", "lz4", "zstd"),
        ),
        integer("compression.gzip.level", -1, "Level of gzip; -1: its default.", -1, 9),
        integer("compression.lz4.level", 9, "Level of lz4; 9: fast compressor, any other: slow one.", 1, 17),
        integer("compression.zstd.level", 3, "Level of zstd.", -131_072, 22),
        text(
            "partitioner.class", None, "Function that chooses the partition. If unset, by key; without a key, sticky."
        ),
        flag("partitioner.ignore.keys", False, "Ignore the key when choosing the partition."),
        flag("partitioner.adaptive.partitioning.enable", True, "Send fewer records to slow brokers."),
        integer("partitioner.availability.timeout.ms", 0, "A broker that accepts nothing for this long is avoided.", 0),
        integer("metadata.max.idle.ms", 300_000, "How long the metadata of an unused topic is cached.", 5000),
        integer("receive.buffer.bytes", 32_768, "SO_RCVBUF.", -1, carried=True),
        flag(UNSAFE_IN_FLIGHT, False, "Allow more than 5 requests in flight with idempotence. For experiments."),
    ],
)


class ProducerConfig(ProducerValues):
    """The typed configuration of one producer. ``as_text()`` is what a confluent producer is given."""


def validate(
    mapping: Mapping[str, object], client: str = "native", base: Mapping[str, object] | None = None
) -> ProducerConfig:
    """The typed configuration of a producer; ``client`` is ``native`` (Kafka's keys) or ``confluent`` (librdkafka's).

    ``base`` holds values of a profile: they are used where ``mapping`` says nothing, and give way where the two do
    not go together. acks 0 or 1 without enable.idempotence turns idempotence off, as in Kafka; together with ``true``
    it is refused. A delivery timeout that was not given is raised to linger plus request timeout; one that was given
    is refused. Raises ConfigError.
    """
    confluent = client == "confluent"
    table = CONFLUENT_KEYS if confluent else PRODUCER_KEYS
    read = partial(parse_confluent, table) if confluent else table.parse
    asked = read(mapping)
    config = ProducerConfig(table, {**read(base or {}), **asked})
    changes, notes = _settle_idempotence(config, asked)
    # librdkafka reads 0 as "forever".
    endless = confluent and config["delivery.timeout.ms"] == 0
    least = config["linger.ms"] + config["request.timeout.ms"]
    if config["delivery.timeout.ms"] < least and not endless:
        if "delivery.timeout.ms" in asked:
            raise ConfigError(
                "producer config 'delivery.timeout.ms' must be at least 'linger.ms' + 'request.timeout.ms': "
                f"{config['delivery.timeout.ms']} < {config['linger.ms']} + {config['request.timeout.ms']}"
            )
        changes["delivery.timeout.ms"] = least
    if not confluent:
        _check_buffer(config)
    config = ProducerConfig(table, {**config.given, **changes})
    return ProducerConfig(table, config.given, [*notes, *_warnings(config)])


def _check_buffer(config: ProducerConfig) -> None:
    """Kafka takes a buffer without room for a batch, and then refuses every record. Raises ConfigError."""
    least_name = min("batch.size", "max.request.size", key=lambda name: int(config[name]))
    if config["buffer.memory"] < config[least_name]:
        raise ConfigError(
            f"producer config 'buffer.memory' must be at least '{least_name}', or no record could be sent: "
            f"{config['buffer.memory']} < {config[least_name]}"
        )


def _settle_idempotence(config: ProducerConfig, asked: Mapping[str, Value]) -> tuple[dict[str, Value], list[str]]:
    """What of ``config`` changes so that it fits what was asked for, and the lines that say so. Raises ConfigError."""
    weak = _against_idempotence(asked)
    if asked.get("enable.idempotence"):
        if weak:
            lifted = f" ('{UNSAFE_IN_FLIGHT}' lifts that limit)" if UNSAFE_IN_FLIGHT in config.table.keys else ""
            raise ConfigError(
                f"producer config 'enable.idempotence' true contradicts {weak[0]}; leave one of them out: "
                f"idempotence needs acks=all, retries > 0 and at most {_SAFE_IN_FLIGHT} requests in flight{lifted}"
            )
    elif weak and "enable.idempotence" not in asked:
        if config["transactional.id"] is not None:
            raise ConfigError(f"producer config 'transactional.id' needs idempotence, which contradicts {weak[0]}")
        if config["enable.idempotence"]:
            return {"enable.idempotence": False}, [f"{weak[0]} turns 'enable.idempotence' off"]
    elif config["transactional.id"] is not None and not config["enable.idempotence"]:
        raise ConfigError("producer config 'transactional.id' needs 'enable.idempotence' true")
    return {}, []


def _against_idempotence(asked: Mapping[str, Value]) -> list[str]:
    """What in ``asked`` an idempotent producer cannot keep."""
    found = []
    if asked.get("acks", "all") not in ("all", "-1"):
        found.append(f"acks {asked['acks']}")
    if asked.get("retries") == 0:
        found.append("retries 0")
    in_flight = asked.get("max.in.flight.requests.per.connection")
    if isinstance(in_flight, int) and in_flight > _SAFE_IN_FLIGHT and not asked.get(UNSAFE_IN_FLIGHT):
        found.append(f"max.in.flight.requests.per.connection {in_flight} (at most {_SAFE_IN_FLIGHT})")
    return found


def _warnings(config: ProducerConfig) -> list[str]:
    lines = [config.table.carried_warning(name) for name in config.given if config.table.keys[name].carried]
    if not config["enable.idempotence"] and config["max.in.flight.requests.per.connection"] > 1 and config["retries"]:
        lines.append("without idempotence a retry may store a record twice or out of order")
    return lines
