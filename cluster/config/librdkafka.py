"""librdkafka's own keys, for workloads that use confluent-kafka (librdkafka 2.8, of confluent-kafka 2.9).

Owns the tables of what a confluent producer and consumer may be given, with the library's limits and defaults, its
aliases, and the names of Java keys that it does not know. Deprecated keys, keys that take a callback, and those that
would hide outcomes from the history are left out. A test compares the tables with the library that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.config.errors import ConfigError
from cluster.config.keys import INT_MAX, Key, KeyTable, Value, flag, integer, text, texts

_COMMON: list[Key] = [
    text("bootstrap.servers", "", "host:port of some brokers."),
    text("client.id", "rdkafka", "A name for the broker's log."),
    text("client.rack", "", "The rack of this client."),
    text(
        "client.dns.lookup",
        "use_all_dns_ips",
        "How a host name is resolved.",
        ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    texts("debug", (), "Debug contexts to log, as in broker,topic,msg."),
    integer("log_level", 6, "syslog(3) level.", 0, 7),
    flag("log.connection.close", True, "Log disconnects."),
    flag("log.thread.name", True, "Name the thread in log lines."),
    integer("message.max.bytes", 1_000_000, "Largest request.", 1000, 1_000_000_000),
    integer("message.copy.max.bytes", 65_535, "Larger messages are not copied.", 0, 1_000_000_000),
    integer("receive.message.max.bytes", 100_000_000, "Largest response.", 1000, INT_MAX),
    integer("max.in.flight.requests.per.connection", 1_000_000, "Unanswered requests to one broker.", 1, 1_000_000),
    integer("metadata.max.age.ms", 900_000, "Age at which metadata is forgotten.", 1, 86_400_000),
    integer("topic.metadata.refresh.interval.ms", 300_000, "Age at which metadata is fetched again.", -1, 3_600_000),
    integer("topic.metadata.refresh.fast.interval.ms", 100, "The same after a lost leader.", 1, 60_000),
    flag("topic.metadata.refresh.sparse", True, "Ask for known topics alone."),
    integer("topic.metadata.propagation.max.ms", 30_000, "Time a new topic is given to appear.", 0, 3_600_000),
    integer("socket.timeout.ms", 60_000, "Longest wait for an answer.", 10, 300_000),
    integer("socket.send.buffer.bytes", 0, "SO_SNDBUF; 0 leaves it to the system.", 0, 100_000_000),
    integer("socket.receive.buffer.bytes", 0, "SO_RCVBUF; 0 leaves it to the system.", 0, 100_000_000),
    flag("socket.keepalive.enable", False, "SO_KEEPALIVE."),
    flag("socket.nagle.disable", True, "TCP_NODELAY."),
    integer("socket.max.fails", 1, "Failed requests after which a connection is closed.", 0, 1_000_000),
    integer("socket.connection.setup.timeout.ms", 30_000, "Longest wait for a connection.", 1000, INT_MAX),
    integer("broker.address.ttl", 1000, "How long a resolved address is kept, in ms.", 0, 86_400_000),
    text("broker.address.family", "any", "IP versions.", ("any", "v4", "v6")),
    integer("connections.max.idle.ms", 0, "Age at which an idle connection is closed; 0 is never.", 0, INT_MAX),
    integer("reconnect.backoff.ms", 100, "First pause before connecting again.", 0, 3_600_000),
    integer("reconnect.backoff.max.ms", 10_000, "Longest pause before connecting again.", 0, 3_600_000),
    integer("retry.backoff.ms", 100, "First pause before a retry.", 1, 300_000),
    integer("retry.backoff.max.ms", 1000, "Longest pause before a retry.", 1, 300_000),
    integer("statistics.interval.ms", 0, "How often statistics are reported.", 0, 86_400_000),
    flag("allow.auto.create.topics", False, "Let the broker create what is asked for."),
    flag("enable.metrics.push", True, "Push client metrics where the cluster asks for them."),
    integer("api.version.request.timeout.ms", 10_000, "Longest wait for ApiVersions.", 1, 300_000),
    text("security.protocol", "plaintext", "How brokers are talked to.", ("plaintext",)),
]

PRODUCER_KEYS = KeyTable(
    "producer",
    [
        *_COMMON,
        text("acks", "-1", "Who must have a record before it is acknowledged.", ("all", "-1", "0", "1")),
        flag("enable.idempotence", False, "Number the batches, so that a retry is never stored twice."),
        flag("enable.gapless.guarantee", False, "Make an error that could leave a gap fatal."),
        text("transactional.id", None, "The name under which transactions continue."),
        integer("transaction.timeout.ms", 60_000, "Age at which an open transaction is aborted.", 1000, INT_MAX),
        integer("retries", INT_MAX, "Attempts after the first.", 0, INT_MAX),
        integer("request.timeout.ms", 30_000, "Longest wait of the broker for its replicas.", 1, 900_000),
        integer("delivery.timeout.ms", 300_000, "Longest time from send to its outcome; 0: no limit.", 0, INT_MAX),
        integer("linger.ms", 5, "How long a batch waits to be filled.", 0, 900_000),
        integer("batch.size", 1_000_000, "Bytes at which a batch is sent.", 1, INT_MAX),
        integer("batch.num.messages", 10_000, "Messages at which a batch is sent.", 1, 1_000_000),
        integer("queue.buffering.max.messages", 100_000, "Messages that wait in all.", 0, INT_MAX),
        integer("queue.buffering.max.kbytes", 1_048_576, "Kilobytes that wait in all.", 1, INT_MAX),
        integer("queue.buffering.backpressure.threshold", 1, "Requests above which batches grow.", 1, 1_000_000),
        integer("sticky.partitioning.linger.ms", 10, "How long a sticky partition is kept.", 0, 900_000),
        text("compression.type", "none", "The codec of batches.", ("none", "gzip", "snappy", "lz4", "zstd")),
        integer("compression.level", -1, "The codec's level; -1 is its own default.", -1, 12),
        text("partitioner", "consistent_random", "Which partition a record goes to."),
    ],
)

CONSUMER_KEYS = KeyTable(
    "consumer",
    [
        *_COMMON,
        text("group.id", None, "The group; librdkafka wants one even to assign."),
        text("group.instance.id", None, "A static member's name."),
        text("group.protocol", "classic", "The group protocol.", ("classic", "consumer")),
        text("group.remote.assignor", None, "The broker's assignor, with the protocol consumer."),
        texts("partition.assignment.strategy", ("range", "roundrobin"), "How a group shares partitions."),
        text(
            "auto.offset.reset",
            "largest",
            "Where to begin without an offset.",
            ("smallest", "earliest", "beginning", "largest", "latest", "end", "error"),
        ),
        flag("enable.auto.commit", True, "Commit offsets now and then."),
        integer("auto.commit.interval.ms", 5000, "How often.", 0, 86_400_000),
        flag("enable.auto.offset.store", True, "Take what was handed out as read."),
        text("isolation.level", "read_committed", "What is seen.", ("read_uncommitted", "read_committed")),
        integer("session.timeout.ms", 45_000, "Silence after which the group continues without.", 1, 3_600_000),
        integer("heartbeat.interval.ms", 3000, "Time between two signs of life.", 1, 3_600_000),
        integer("max.poll.interval.ms", 300_000, "Longest time between two polls.", 1, 86_400_000),
        integer("coordinator.query.interval.ms", 600_000, "How often the coordinator is asked for.", 1, 3_600_000),
        integer("queued.min.messages", 100_000, "Messages fetched ahead.", 1, 10_000_000),
        integer("queued.max.messages.kbytes", 65_536, "Kilobytes fetched ahead.", 1, 2_097_151),
        integer("fetch.wait.max.ms", 500, "Longest wait of a fetch.", 0, 300_000),
        integer("fetch.min.bytes", 1, "Bytes for which a fetch waits.", 0, INT_MAX),
        integer("fetch.max.bytes", 52_428_800, "Largest fetch.", 0, 2_147_483_135),
        integer("max.partition.fetch.bytes", 1_048_576, "Largest part of one partition.", 1, 1_000_000_000),
        integer("fetch.queue.backoff.ms", 1000, "Pause of fetching when enough is queued.", 0, 300_000),
        integer("fetch.error.backoff.ms", 500, "Pause of fetching after an error.", 0, 300_000),
        flag("enable.partition.eof", False, "Tell when the end of a partition is reached."),
        flag("check.crcs", False, "Check the CRC of what is read."),
    ],
)

#: librdkafka's second names, and the name that its own documentation prefers for a Java user.
ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "request.required.acks": "acks",
    "queue.buffering.max.ms": "linger.ms",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}

#: Java keys that librdkafka does not know, and what it has instead.
JAVA_ONLY = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "max.request.size": "message.max.bytes",
    "partitioner.class": "partitioner",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}


def parse(table: KeyTable, mapping: Mapping[str, object]) -> dict[str, Value]:
    """The typed values of ``mapping`` under their preferred names.

    Raises ConfigError: unknown key, Java's name of a key that librdkafka calls otherwise, a key given under both of
    its names, or a value that does not fit.
    """
    renamed: dict[str, object] = {}
    for name, raw in mapping.items():
        preferred = ALIASES.get(name, name)
        if preferred in renamed:
            raise ConfigError(f"{table.what} config key '{preferred}' is given twice, once as an alias")
        other = JAVA_ONLY.get(name)
        if other in table.keys and name not in table.keys:
            raise ConfigError(
                f"unknown {table.what} config key '{name}' for confluent-kafka; its name there is '{other}'"
            )
        renamed[preferred] = raw
    return table.parse(renamed)
