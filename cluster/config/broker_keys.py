"""The broker keys: Kafka 3.8's spelling, types, limits and defaults (KafkaConfig), in one table with ours.

Owns the table alone; ``own_keys`` has those that Kafka does not have, ``cluster.config.broker`` the rules and the typed
access.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, LONG_MAX, Key, KeyTable, flag, integer, number, text, texts
from cluster.config.own_keys import OWN_KEYS
from cluster.config.topic import COMPRESSION_TYPES

_IDENTITY: list[Key] = [
    integer("broker.id", None, "The ID of this broker.", 0, INT_MAX),
    integer("node.id", None, "An alias for broker.id.", 0, INT_MAX),
    text("broker.rack", None, "Rack of the broker, used to place replicas."),
    text("zookeeper.connect", None, "ZooKeeper servers as host:port, comma-separated, perhaps with a /chroot."),
    integer(
        "zookeeper.session.timeout.ms", 18_000, "A broker that is silent this long is considered dead.", 1, INT_MAX
    ),
    integer(
        "zookeeper.connection.timeout.ms",
        None,
        "Maximum wait for ZooKeeper at startup. If unset, the session timeout.",
        1,
    ),
    integer("zookeeper.max.in.flight.requests", 10, "Maximum unanswered requests to ZooKeeper.", 1, carried=True),
]

_NETWORK: list[Key] = [
    texts("listeners", ("PLAINTEXT://:9092",), "Addresses to listen on, NAME://host:port. Port 0 picks a free port."),
    texts("advertised.listeners", (), "Addresses given to clients. A missing listener or port 0: the bound address."),
    texts("listener.security.protocol.map", (), "NAME:PROTOCOL for each listener. Only PLAINTEXT is supported."),
    text(
        "inter.broker.listener.name", None, "Listener for brokers, whose requests are obeyed (docs/configuration.md)."
    ),
    text("security.inter.broker.protocol", "PLAINTEXT", "Used if inter.broker.listener.name is unset.", ("PLAINTEXT",)),
    integer(
        "socket.request.max.bytes", 104_857_600, "Maximum request size. A larger one closes the connection.", 1, INT_MAX
    ),
    integer("socket.send.buffer.bytes", 102_400, "SO_SNDBUF of accepted connections. -1 uses the OS default.", -1),
    integer("socket.receive.buffer.bytes", 102_400, "SO_RCVBUF.", -1, carried=True),
    integer("socket.listen.backlog.size", 50, "Maximum connections waiting to be accepted.", 1, carried=True),
    integer("connections.max.idle.ms", 600_000, "Idle connections are closed after this time. Negative: never."),
    integer("max.connections", INT_MAX, "Maximum connections; brokers may exceed it.", 0, INT_MAX),
    integer("max.connections.per.ip", INT_MAX, "Maximum connections from one IP address.", 0, INT_MAX),
    integer("request.timeout.ms", 30_000, "Maximum wait for a response from another broker.", 0, INT_MAX),
    integer("num.network.threads", 3, "gapless does this work on one event loop.", 1, carried=True),
    integer("num.io.threads", 8, "gapless does this work on one event loop.", 1, carried=True),
    integer("background.threads", 10, "gapless does this work on one event loop.", 1, carried=True),
    integer(
        "queued.max.request.bytes",
        536_870_912,
        "Maximum size of the unprocessed large requests of one listener; others wait. -1, Kafka's default: no limit.",
        -1,
    ),
    integer(
        "gapless.queued.max.response.bytes",
        134_217_728,
        "Maximum size of the responses of one listener that clients do not read. Beyond that, the clients that have "
        "not read for the longest time are disconnected. Records in files do not count. -1: no limit.",
        -1,
    ),
    integer("queued.max.requests", 500, "Maximum requests waiting for a thread (in Kafka).", 1, carried=True),
]

_LOG: list[Key] = [
    texts("log.dirs", (), "Data directories; only the first one is used. If empty, log.dir."),
    text("log.dir", "/tmp/kafka-logs", "Data directory, used if log.dirs is empty."),
    integer("log.segment.bytes", 1_073_741_824, "Size at which a new segment is rolled.", 14, INT_MAX),
    integer("log.roll.ms", None, "Age at which a new segment is rolled. If unset, log.roll.hours.", 1),
    integer("log.roll.hours", 168, "The same in hours.", 1),
    integer("log.roll.jitter.ms", None, "Maximum random reduction of log.roll.ms.", 0),
    integer("log.roll.jitter.hours", 0, "The same in hours.", 0),
    integer(
        "log.retention.ms", None, "Age at which segments are deleted; -1: never. If unset, log.retention.minutes.", -1
    ),
    integer("log.retention.minutes", None, "The same in minutes. If unset, log.retention.hours.", -1),
    integer("log.retention.hours", 168, "The same in hours.", -1),
    integer("log.retention.bytes", -1, "Maximum size of a log before old segments are deleted; -1: no limit.", -1),
    integer("log.retention.check.interval.ms", 300_000, "How often to look for segments to delete.", 1),
    texts("log.cleanup.policy", ("delete",), "Delete old segments, compact them, or both.", ("delete", "compact")),
    flag("log.cleaner.enable", True, "Compact the topics whose cleanup.policy includes compact."),
    integer("log.cleaner.threads", 1, "Number of cleaner threads.", 0, carried=True),
    integer("log.cleaner.dedupe.buffer.size", 134_217_728, "Memory for the keys of one compaction, in bytes."),
    integer("log.cleaner.io.buffer.size", 524_288, "Read and write buffer of the cleaner.", 0, carried=True),
    integer("log.cleaner.backoff.ms", 15_000, "How long the cleaner sleeps when there is nothing to clean.", 0),
    integer("log.cleaner.delete.retention.ms", 86_400_000, "How long compacted topics keep tombstones.", 0),
    integer("log.cleaner.min.compaction.lag.ms", 0, "Minimum time a record stays uncompacted.", 0),
    integer("log.cleaner.max.compaction.lag.ms", LONG_MAX, "Maximum time a record stays uncompacted.", 1),
    number("log.cleaner.min.cleanable.ratio", 0.5, "Ratio of uncompacted bytes at which a log is compacted.", 0, 1),
    integer("log.index.interval.bytes", 4096, "Bytes of log between index entries.", 0),
    integer("log.index.size.max.bytes", 10_485_760, "Maximum size of an index file.", 4, INT_MAX),
    integer("log.flush.interval.messages", LONG_MAX, "Records written before a log is flushed (fsync).", 1),
    integer("log.flush.interval.ms", None, "Maximum time between flushes. If unset, log.flush.scheduler.interval.ms."),
    integer("log.flush.scheduler.interval.ms", LONG_MAX, "How often logs are checked for whether a flush is due."),
    integer("log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are checkpointed.", 0),
    integer("log.flush.start.offset.checkpoint.interval.ms", 60_000, "How often log starts are checkpointed.", 0),
    integer("log.segment.delete.delay.ms", 60_000, "How long a segment renamed to .deleted stays on disk.", 0),
    flag("log.preallocate", False, "Preallocate the file of a new segment.", carried=True),
    text(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether records carry the producer's time or the broker's.",
        ("CreateTime", "LogAppendTime"),
    ),
    integer("log.message.timestamp.before.max.ms", LONG_MAX, "How far in the past a timestamp may be.", 0),
    integer("log.message.timestamp.after.max.ms", LONG_MAX, "How far in the future a timestamp may be.", 0),
    integer("num.recovery.threads.per.data.dir", 1, "Number of log recovery threads.", 1, carried=True),
]

_TOPICS: list[Key] = [
    flag("auto.create.topics.enable", True, "Create a topic when a client first asks for it."),
    flag("delete.topic.enable", True, "Let clients delete topics."),
    integer("num.partitions", 1, "Partitions of a topic that is created without a number of partitions.", 1),
    integer("default.replication.factor", 1, "Replication factor of a topic that is created without one.", 1),
    integer("min.insync.replicas", 1, "Minimum in-sync replicas; with fewer, acks=all is refused.", 1),
    integer("message.max.bytes", 1_048_588, "Maximum size of a record batch.", 0),
    text("compression.type", "producer", "Codec of stored batches; producer: as they are sent.", COMPRESSION_TYPES),
    flag("unclean.leader.election.enable", False, "Allow a leader outside the ISR; may lose records."),
]

_REPLICATION: list[Key] = [
    integer("replica.lag.time.max.ms", 30_000, "A follower that lags for this long is removed from the ISR.", 1),
    integer("replica.fetch.wait.max.ms", 500, "Maximum time a follower's fetch waits for new records.", 0),
    integer("replica.fetch.min.bytes", 1, "Minimum bytes a follower's fetch waits for.", 0),
    integer("replica.fetch.max.bytes", 1_048_576, "Bytes a follower requests per partition.", 0),
    integer("replica.fetch.response.max.bytes", 10_485_760, "Bytes a follower requests per fetch.", 0),
    integer("replica.fetch.backoff.ms", 1000, "Maximum backoff after a failed fetch; it doubles from 20 ms.", 0),
    integer("replica.socket.timeout.ms", 30_000, "Maximum time a follower waits for a response from its leader.", 0),
    integer("replica.socket.receive.buffer.bytes", 65_536, "SO_RCVBUF of a follower.", 0, carried=True),
    integer("num.replica.fetchers", 1, "Fetcher connections to each leader.", 1, carried=True),
    integer("replica.high.watermark.checkpoint.interval.ms", 5000, "How often high watermarks are checkpointed.", 1),
    integer("controller.socket.timeout.ms", 30_000, "How long the controller waits for a broker's response.", 1),
    flag("auto.leader.rebalance.enable", True, "Periodically move leadership back to preferred replicas."),
    integer("leader.imbalance.check.interval.seconds", 300, "How often the leader imbalance is checked.", 1),
    integer(
        "leader.imbalance.per.broker.percentage",
        10,
        "Percentage of preferred partitions that may be led elsewhere.",
        0,
    ),
    flag("controlled.shutdown.enable", True, "Move leadership to other brokers before shutting down."),
    integer("controlled.shutdown.max.retries", 3, "Maximum attempts at a controlled shutdown.", 1),
    integer("controlled.shutdown.retry.backoff.ms", 5000, "Pause between attempts at a controlled shutdown.", 0),
    integer("fetch.max.bytes", 57_671_680, "Maximum size of a fetch response.", 1024),
    integer("max.incremental.fetch.session.cache.slots", 1000, "Maximum fetch sessions of followers.", 0),
]

_COORDINATORS: list[Key] = [
    integer("group.min.session.timeout.ms", 6000, "Minimum session timeout of a group member.", 0),
    integer("group.max.session.timeout.ms", 1_800_000, "Maximum session timeout of a group member.", 0),
    integer("group.initial.rebalance.delay.ms", 3000, "How long a new group waits for more members.", 0),
    integer("group.max.size", INT_MAX, "Maximum members of a group.", 1),
    integer("offset.metadata.max.bytes", 4096, "Maximum size of the metadata of a committed offset.", 0),
    integer("offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", 1),
    integer("offsets.topic.replication.factor", 3, "Replication factor of __consumer_offsets.", 1),
    integer("offsets.topic.segment.bytes", 104_857_600, "Segment size of __consumer_offsets.", 1),
    integer("offsets.retention.minutes", 10_080, "Age at which the offsets of an empty group expire.", 1, INT_MAX),
    integer("offsets.retention.check.interval.ms", 600_000, "How often to look for expired offsets.", 1),
    integer(
        "offsets.load.buffer.size", 5_242_880, "Bytes of __consumer_offsets that a new coordinator reads at once.", 1
    ),
    integer("offsets.commit.timeout.ms", 5000, "Maximum time a commit waits for its replicas.", 1),
    integer("transaction.max.timeout.ms", 900_000, "Maximum timeout of a transaction.", 1, INT_MAX),
    integer("transaction.state.log.num.partitions", 50, "Partitions of __transaction_state.", 1),
    integer("transaction.state.log.replication.factor", 3, "Replication factor of __transaction_state.", 1),
    integer("transaction.state.log.min.isr", 2, "min.insync.replicas of __transaction_state.", 1),
    integer("transaction.state.log.segment.bytes", 104_857_600, "Segment size of __transaction_state.", 1),
    integer(
        "transaction.state.log.load.buffer.size",
        5_242_880,
        "Bytes of __transaction_state that a new coordinator reads at once.",
        1,
    ),
    integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often to look for transactions to abort.",
        1,
    ),
    integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often to look for expired IDs.",
        1,
    ),
    flag(
        "transaction.partition.verification.enable",
        True,
        "Refuse writes to partitions not added to the transaction.",
    ),
    integer("transactional.id.expiration.ms", 604_800_000, "When an idle transactional ID expires.", 1),
    integer("producer.id.expiration.ms", 86_400_000, "Age at which the state of an idle producer expires.", 1),
    integer("producer.id.expiration.check.interval.ms", 600_000, "How often to look for expired producer state.", 1),
]

#: Sections in the order in which the documentation shows them.
SECTIONS: dict[str, list[Key]] = {
    "Identity and ZooKeeper": _IDENTITY,
    "Network": _NETWORK,
    "Log": _LOG,
    "Topics": _TOPICS,
    "Replication and controller": _REPLICATION,
    "Coordinators": _COORDINATORS,
    "Specific to gapless": OWN_KEYS,
}

BROKER_KEYS = KeyTable("broker", [key for section in SECTIONS.values() for key in section])

#: Kafka keys that a user may well have set but that mean nothing here -> the reason.
REFUSED = {
    "process.roles": "gapless runs with ZooKeeper, not KRaft; leave it out",
    "controller.quorum.voters": "gapless runs with ZooKeeper, not KRaft; use zookeeper.connect",
    "controller.quorum.bootstrap.servers": "gapless runs with ZooKeeper, not KRaft; use zookeeper.connect",
    "controller.listener.names": "gapless runs with ZooKeeper, not KRaft; leave it out",
}
