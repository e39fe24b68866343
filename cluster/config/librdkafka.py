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
    text("bootstrap.servers", "", "Brokers to contact first, as host:port."),
    text("client.id", "rdkafka", "Name of the client, shown in the broker's log."),
    text("client.rack", "", "Rack of the client."),
    text(
        "client.dns.lookup",
        "use_all_dns_ips",
        "How host names are resolved.",
        ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    texts("debug", (), "Debug contexts to log, such as broker,topic,msg."),
    integer("log_level", 6, "Log level, as in syslog(3).", 0, 7),
    flag("log.connection.close", True, "Log disconnects."),
    flag("log.thread.name", True, "Include the thread name in log lines."),
    integer("message.max.bytes", 1_000_000, "Maximum size of a request.", 1000, 1_000_000_000),
    integer("message.copy.max.bytes", 65_535, "Messages larger than this are not copied.", 0, 1_000_000_000),
    integer("receive.message.max.bytes", 100_000_000, "Maximum size of a response.", 1000, INT_MAX),
    integer("max.in.flight.requests.per.connection", 1_000_000, "Maximum unanswered requests.", 1, 1_000_000),
    integer("metadata.max.age.ms", 900_000, "How long metadata is cached.", 1, 86_400_000),
    integer(
        "topic.metadata.refresh.interval.ms", 300_000, "Maximum age of metadata before it is refreshed.", -1, 3_600_000
    ),
    integer("topic.metadata.refresh.fast.interval.ms", 100, "The same after a leader is lost.", 1, 60_000),
    flag("topic.metadata.refresh.sparse", True, "Request metadata for known topics only."),
    integer("topic.metadata.propagation.max.ms", 30_000, "How long a new topic may take to appear.", 0, 3_600_000),
    integer("socket.timeout.ms", 60_000, "Maximum wait for a response.", 10, 300_000),
    integer("socket.send.buffer.bytes", 0, "SO_SNDBUF; 0 uses the OS default.", 0, 100_000_000),
    integer("socket.receive.buffer.bytes", 0, "SO_RCVBUF; 0 uses the OS default.", 0, 100_000_000),
    flag("socket.keepalive.enable", False, "SO_KEEPALIVE."),
    flag("socket.nagle.disable", True, "TCP_NODELAY."),
    integer("socket.max.fails", 1, "Failed requests after which a connection is closed.", 0, 1_000_000),
    integer("socket.connection.setup.timeout.ms", 30_000, "Maximum wait for a connection.", 1000, INT_MAX),
    integer("broker.address.ttl", 1000, "How long a resolved address is cached, in ms.", 0, 86_400_000),
    text("broker.address.family", "any", "IP versions to use.", ("any", "v4", "v6")),
    integer("connections.max.idle.ms", 0, "Idle connections are closed after this time; 0: never.", 0, INT_MAX),
    integer("reconnect.backoff.ms", 100, "Backoff before the first reconnect.", 0, 3_600_000),
    integer("reconnect.backoff.max.ms", 10_000, "Maximum backoff before a reconnect.", 0, 3_600_000),
    integer("retry.backoff.ms", 100, "First pause before a retry.", 1, 300_000),
    integer("retry.backoff.max.ms", 1000, "Maximum backoff before a retry.", 1, 300_000),
    integer("statistics.interval.ms", 0, "How often statistics are emitted.", 0, 86_400_000),
    flag("allow.auto.create.topics", False, "Allow the broker to create requested topics that do not exist."),
    flag("enable.metrics.push", True, "Push client metrics if the cluster requests them."),
    integer("api.version.request.timeout.ms", 10_000, "Maximum wait for an ApiVersions response.", 1, 300_000),
    text("security.protocol", "plaintext", "Protocol for communication with brokers.", ("plaintext",)),
]

PRODUCER_KEYS = KeyTable(
    "producer",
    [
        *_COMMON,
        text("acks", "-1", "Which replicas must have a record before it is acknowledged.", ("all", "-1", "0", "1")),
        flag("enable.idempotence", False, "Number batches so that a retry is never stored twice."),
        flag("enable.gapless.guarantee", False, "Make an error that could leave a gap fatal."),
        text("transactional.id", None, "ID that identifies the producer's transactions across restarts."),
        integer("transaction.timeout.ms", 60_000, "Time after which an open transaction is aborted.", 1000, INT_MAX),
        integer("retries", INT_MAX, "Maximum retries.", 0, INT_MAX),
        integer("request.timeout.ms", 30_000, "Maximum time the broker waits for its replicas.", 1, 900_000),
        integer("delivery.timeout.ms", 300_000, "Maximum time until the outcome is reported; 0: none.", 0, INT_MAX),
        integer("linger.ms", 5, "How long a batch waits for more records.", 0, 900_000),
        integer("batch.size", 1_000_000, "Maximum bytes of a batch.", 1, INT_MAX),
        integer("batch.num.messages", 10_000, "Maximum messages in a batch.", 1, 1_000_000),
        integer("queue.buffering.max.messages", 100_000, "Maximum messages in the producer's queue.", 0, INT_MAX),
        integer("queue.buffering.max.kbytes", 1_048_576, "Maximum kilobytes in the producer's queue.", 1, INT_MAX),
        integer(
            "queue.buffering.backpressure.threshold",
            1,
            "Untransmitted requests above which batches grow.",
            1,
            1_000_000,
        ),
        integer("sticky.partitioning.linger.ms", 10, "How long a sticky partition is used.", 0, 900_000),
        text(
            "compression.type",
            "none",
            "Codec that batches are compressed with.",
            ("none", "gzip", "snappy", "lz4", "zstd"),
        ),
        integer("compression.level", -1, "Compression level; -1: the codec's default.", -1, 12),
        text("partitioner", "consistent_random", "How the partition of a record is chosen."),
    ],
)

CONSUMER_KEYS = KeyTable(
    "consumer",
    [
        *_COMMON,
        text("group.id", None, "Consumer group. librdkafka requires one even with assign()."),
        text("group.instance.id", None, "ID of a static group member."),
        text("group.protocol", "classic", "Group protocol to use.", ("classic", "consumer")),
        text("group.remote.assignor", None, "Server-side assignor, if group.protocol is consumer."),
        texts(
            "partition.assignment.strategy",
            ("range", "roundrobin"),
            "How partitions are assigned to the members of a group.",
        ),
        text(
            "auto.offset.reset",
            "largest",
            "Where to start without a valid offset.",
            ("smallest", "earliest", "beginning", "largest", "latest", "end", "error"),
        ),
        flag("enable.auto.commit", True, "Commit offsets periodically."),
        integer("auto.commit.interval.ms", 5000, "How often offsets are committed automatically.", 0, 86_400_000),
        flag("enable.auto.offset.store", True, "Store the offset of each message handed to the application."),
        text(
            "isolation.level",
            "read_committed",
            "Whether to read records of open and aborted transactions.",
            ("read_uncommitted", "read_committed"),
        ),
        integer("session.timeout.ms", 45_000, "A member silent this long is removed.", 1, 3_600_000),
        integer("heartbeat.interval.ms", 3000, "How often heartbeats are sent.", 1, 3_600_000),
        integer("max.poll.interval.ms", 300_000, "Maximum time between two polls.", 1, 86_400_000),
        integer("coordinator.query.interval.ms", 600_000, "How often the coordinator is looked up.", 1, 3_600_000),
        integer("queued.min.messages", 100_000, "Messages to prefetch.", 1, 10_000_000),
        integer("queued.max.messages.kbytes", 65_536, "Maximum kilobytes to prefetch.", 1, 2_097_151),
        integer("fetch.wait.max.ms", 500, "Maximum time a fetch waits for fetch.min.bytes.", 0, 300_000),
        integer("fetch.min.bytes", 1, "Minimum bytes a fetch waits for.", 0, INT_MAX),
        integer("fetch.max.bytes", 52_428_800, "Maximum bytes of a fetch.", 0, 2_147_483_135),
        integer("max.partition.fetch.bytes", 1_048_576, "Maximum bytes of a fetch per partition.", 1, 1_000_000_000),
        integer("fetch.queue.backoff.ms", 1000, "Backoff of fetching when the queue is full.", 0, 300_000),
        integer("fetch.error.backoff.ms", 500, "Backoff of fetching after an error.", 0, 300_000),
        flag("enable.partition.eof", False, "Report when the end of a partition is reached."),
        flag("check.crcs", False, "Verify the CRC of fetched batches."),
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
            raise ConfigError(f"unknown {table.what} config key '{name}' for confluent-kafka, which calls it '{other}'")
        renamed[preferred] = raw
    return table.parse(renamed)
