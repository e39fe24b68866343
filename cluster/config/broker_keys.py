"""The broker keys: Kafka 3.8's spelling, types, limits and defaults (KafkaConfig), and ours.

Owns the table alone; ``cluster.config.broker`` has the rules and the typed access.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, LONG_MAX, Key, KeyTable, flag, integer, number, text, texts
from cluster.config.topic import COMPRESSION_TYPES

_IDENTITY: list[Key] = [
    integer("broker.id", None, "This broker's number in the cluster.", 0, INT_MAX),
    integer("node.id", None, "Another name of broker.id.", 0, INT_MAX),
    text("broker.rack", None, "The rack, for the placement of replicas."),
    text("zookeeper.connect", None, "ZooKeeper's host:port list, with an optional /path."),
    integer("zookeeper.session.timeout.ms", 18_000, "How long a silent broker is taken to be alive.", 1, INT_MAX),
    integer(
        "zookeeper.connection.timeout.ms", None, "Longest wait for ZooKeeper at start; unset: the session timeout.", 1
    ),
    integer("zookeeper.max.in.flight.requests", 10, "Unanswered requests to ZooKeeper.", 1, carried=True),
]

_NETWORK: list[Key] = [
    texts("listeners", ("PLAINTEXT://:9092",), "Where to listen, NAME://host:port; port 0 lets the system choose."),
    texts("advertised.listeners", (), "What clients are told; an absent listener or port 0: what was bound."),
    texts("listener.security.protocol.map", (), "NAME:PROTOCOL of each listener; PLAINTEXT is the one there is."),
    text(
        "inter.broker.listener.name",
        None,
        "The listener that brokers use among themselves, and obey. Unset: see above.",
    ),
    text(
        "security.inter.broker.protocol", "PLAINTEXT", "Used where inter.broker.listener.name is unset.", ("PLAINTEXT",)
    ),
    integer(
        "socket.request.max.bytes", 104_857_600, "Largest request; a larger one closes the connection.", 1, INT_MAX
    ),
    integer("socket.send.buffer.bytes", 102_400, "SO_SNDBUF of accepted connections; -1 leaves it to the system.", -1),
    integer("socket.receive.buffer.bytes", 102_400, "SO_RCVBUF.", -1, carried=True),
    integer("socket.listen.backlog.size", 50, "Connections waiting to be accepted.", 1, carried=True),
    integer("connections.max.idle.ms", 600_000, "Silence after which a connection is closed; negative: never."),
    integer("max.connections", INT_MAX, "Connections in all; others are turned away, but not peers.", 0, INT_MAX),
    integer("max.connections.per.ip", INT_MAX, "Connections of one address; others are turned away.", 0, INT_MAX),
    integer("request.timeout.ms", 30_000, "Longest wait for another broker's answer.", 0, INT_MAX),
    integer("num.network.threads", 3, "One event loop does this work here.", 1, carried=True),
    integer("num.io.threads", 8, "One event loop does this work here.", 1, carried=True),
    integer("background.threads", 10, "One event loop does this work here.", 1, carried=True),
    integer(
        "queued.max.request.bytes",
        536_870_912,
        "What large requests of one listener's connections take together until they are processed; others wait then. "
        "-1 is no limit, which is Kafka's default.",
        -1,
    ),
    integer("queued.max.requests", 500, "Requests waiting for a thread in Kafka.", 1, carried=True),
]

_LOG: list[Key] = [
    texts("log.dirs", (), "Data directories; log.dir if empty. The first one is used."),
    text("log.dir", "/tmp/kafka-logs", "The data directory where log.dirs is empty."),
    integer("log.segment.bytes", 1_073_741_824, "Size at which a new segment is begun.", 14, INT_MAX),
    integer("log.roll.ms", None, "Age at which a new segment is begun; log.roll.hours if unset.", 1),
    integer("log.roll.hours", 168, "The same in hours.", 1),
    integer("log.roll.jitter.ms", None, "Random part by which that age is shortened.", 0),
    integer("log.roll.jitter.hours", 0, "The same in hours.", 0),
    integer("log.retention.ms", None, "Age above which segments are deleted, -1 is no limit; unset: the minutes.", -1),
    integer("log.retention.minutes", None, "The same in minutes; the hours if unset.", -1),
    integer("log.retention.hours", 168, "The same in hours.", -1),
    integer("log.retention.bytes", -1, "Size above which old segments are deleted; -1 is no limit.", -1),
    integer("log.retention.check.interval.ms", 300_000, "Time between two looks for old segments.", 1),
    texts("log.cleanup.policy", ("delete",), "What happens to old segments.", ("delete", "compact")),
    flag("log.cleaner.enable", True, "Compact topics whose cleanup.policy says so."),
    integer("log.cleaner.threads", 1, "Threads that compact.", 0, carried=True),
    integer("log.cleaner.dedupe.buffer.size", 134_217_728, "Memory for the keys of one compaction."),
    integer("log.cleaner.io.buffer.size", 524_288, "Read and write buffer of the cleaner.", 0, carried=True),
    integer("log.cleaner.backoff.ms", 15_000, "Pause of the cleaner when nothing is to be done.", 0),
    integer("log.cleaner.delete.retention.ms", 86_400_000, "How long compacted topics keep tombstones.", 0),
    integer("log.cleaner.min.compaction.lag.ms", 0, "Shortest time a record stays uncompacted.", 0),
    integer("log.cleaner.max.compaction.lag.ms", LONG_MAX, "Longest time a record stays uncompacted.", 1),
    number("log.cleaner.min.cleanable.ratio", 0.5, "Uncompacted share of a log that starts compaction.", 0, 1),
    integer("log.index.interval.bytes", 4096, "Bytes of log between two index entries.", 0),
    integer("log.index.size.max.bytes", 10_485_760, "Largest size of an index file.", 4, INT_MAX),
    integer("log.flush.interval.messages", LONG_MAX, "Records between two fsyncs of a log.", 1),
    integer("log.flush.interval.ms", None, "Time between two fsyncs; the scheduler's interval if unset."),
    integer("log.flush.scheduler.interval.ms", LONG_MAX, "How often logs are examined for a flush."),
    integer("log.flush.offset.checkpoint.interval.ms", 60_000, "Time between two recovery-point checkpoints.", 0),
    integer("log.flush.start.offset.checkpoint.interval.ms", 60_000, "Time between two log-start checkpoints.", 0),
    integer("log.segment.delete.delay.ms", 60_000, "Time between renaming a segment to .deleted and removing it.", 0),
    flag("log.preallocate", False, "Reserve a segment's space when it is created.", carried=True),
    text("log.message.timestamp.type", "CreateTime", "Whose time records carry.", ("CreateTime", "LogAppendTime")),
    integer("log.message.timestamp.before.max.ms", LONG_MAX, "How far a timestamp may lie in the past.", 0),
    integer("log.message.timestamp.after.max.ms", LONG_MAX, "How far a timestamp may lie in the future.", 0),
    integer("num.recovery.threads.per.data.dir", 1, "Threads that recover logs.", 1, carried=True),
]

_TOPICS: list[Key] = [
    flag("auto.create.topics.enable", True, "Create a topic when a client first asks for it."),
    flag("delete.topic.enable", True, "Let clients delete topics."),
    integer("num.partitions", 1, "Partitions of a topic created without a count.", 1),
    integer("default.replication.factor", 1, "Replicas of a topic created without a count.", 1),
    integer("min.insync.replicas", 1, "In-sync replicas without which acks=all is refused.", 1),
    integer("message.max.bytes", 1_048_588, "Largest record batch that is accepted.", 0),
    text(
        "compression.type",
        "producer",
        "The codec batches are stored with; producer keeps theirs.",
        COMPRESSION_TYPES,
    ),
    flag("unclean.leader.election.enable", False, "Let a replica outside the ISR lead, at the price of records."),
]

_REPLICATION: list[Key] = [
    integer("replica.lag.time.max.ms", 30_000, "A follower this long behind leaves the ISR.", 1),
    integer("replica.fetch.wait.max.ms", 500, "Longest wait of a follower's fetch for new records.", 0),
    integer("replica.fetch.min.bytes", 1, "Bytes for which a follower's fetch waits.", 0),
    integer("replica.fetch.max.bytes", 1_048_576, "Bytes a follower asks for, of one partition.", 0),
    integer("replica.fetch.response.max.bytes", 10_485_760, "Bytes a follower asks for, of all partitions.", 0),
    integer(
        "replica.fetch.backoff.ms",
        1000,
        "Longest pause of a follower after an error; the first is 20 ms, the next twice as long.",
        0,
    ),
    integer("replica.socket.timeout.ms", 30_000, "Longest wait of a follower for its leader's answer.", 0),
    integer("replica.socket.receive.buffer.bytes", 65_536, "SO_RCVBUF of a follower.", 0, carried=True),
    integer("num.replica.fetchers", 1, "Connections to each leader.", 1, carried=True),
    integer("replica.high.watermark.checkpoint.interval.ms", 5000, "Time between two high-watermark checkpoints.", 1),
    integer("controller.socket.timeout.ms", 30_000, "Longest wait of the controller for a broker's answer.", 1),
    flag("auto.leader.rebalance.enable", True, "Move leadership back to preferred replicas."),
    integer("leader.imbalance.check.interval.seconds", 300, "Time between two looks at leadership.", 1),
    integer(
        "leader.imbalance.per.broker.percentage",
        10,
        "Share of a broker's partitions led by others that is left alone.",
        0,
    ),
    flag("controlled.shutdown.enable", True, "Move leadership away before stopping."),
    integer("controlled.shutdown.max.retries", 3, "Attempts at that.", 1),
    integer("controlled.shutdown.retry.backoff.ms", 5000, "Pause between them.", 0),
    integer("fetch.max.bytes", 57_671_680, "Largest fetch response.", 1024),
    integer(
        "max.incremental.fetch.session.cache.slots", 1000, "Fetch sessions that are kept for followers; 0: none.", 0
    ),
]

_COORDINATORS: list[Key] = [
    integer("group.min.session.timeout.ms", 6000, "Shortest session of a group's member.", 0, carried=True),
    integer("group.max.session.timeout.ms", 1_800_000, "Longest session of a group's member.", 0, carried=True),
    integer("group.initial.rebalance.delay.ms", 3000, "Wait for further members of a new group.", 0, carried=True),
    integer("group.max.size", INT_MAX, "Members of one group.", 1, carried=True),
    integer("offset.metadata.max.bytes", 4096, "Largest metadata of a committed offset.", 0, carried=True),
    integer("offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", 1, carried=True),
    integer("offsets.topic.replication.factor", 3, "Replicas of __consumer_offsets.", 1, carried=True),
    integer("offsets.topic.segment.bytes", 104_857_600, "Segment size of __consumer_offsets.", 1, carried=True),
    integer(
        "offsets.retention.minutes", 10_080, "Age at which offsets of an empty group are dropped.", 1, carried=True
    ),
    integer(
        "offsets.retention.check.interval.ms", 600_000, "Time between two looks for such offsets.", 1, carried=True
    ),
    integer("offsets.commit.timeout.ms", 5000, "Longest wait of an offset commit for its replicas.", 1, carried=True),
    integer("transaction.max.timeout.ms", 900_000, "Longest transaction a producer may ask for.", 1, carried=True),
    integer("transaction.state.log.num.partitions", 50, "Partitions of __transaction_state.", 1, carried=True),
    integer("transaction.state.log.replication.factor", 3, "Replicas of __transaction_state.", 1, carried=True),
    integer("transaction.state.log.min.isr", 2, "min.insync.replicas of __transaction_state.", 1, carried=True),
    integer(
        "transaction.state.log.segment.bytes", 104_857_600, "Segment size of __transaction_state.", 1, carried=True
    ),
    integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "Time between two such looks.",
        1,
        carried=True,
    ),
    integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "Time between two such looks.",
        1,
        carried=True,
    ),
    flag(
        "transaction.partition.verification.enable",
        True,
        "Refuse transactional writes to partitions not added.",
        carried=True,
    ),
    integer(
        "transactional.id.expiration.ms",
        604_800_000,
        "Age at which an idle transactional id is dropped.",
        1,
        carried=True,
    ),
    integer("producer.id.expiration.ms", 86_400_000, "Age at which an idle producer's state is dropped.", 1),
    integer("producer.id.expiration.check.interval.ms", 600_000, "Time between two looks for such producers.", 1),
]

_OURS: list[Key] = [
    texts("gapless.peer.addresses", (), "id@host:port of each peer as this broker reaches it (its proxied links)."),
    text(
        "gapless.unknown.producer",
        "gapless",
        "The rules for producers without state and for old sequences: ours, Kafka's since KIP-360, or its former ones.",
        ("gapless", "kafka", "seed"),
    ),
    integer(
        "gapless.min.segment.bytes",
        1_048_576,
        "Smallest segment.bytes that a client may set: each segment is an open file (1 MB in Kafka 4, KIP-1030). A "
        "fifth of it is the smallest segment.index.bytes.",
        14,
        INT_MAX,
    ),
    integer(
        "gapless.min.segment.ms",
        10_000,
        "Smallest segment.ms that a client may set. A segment below gapless.min.segment.bytes is not rolled by its "
        "records' timestamps before it is so old by the broker's clock, or as old as its segment.ms if that is less.",
        0,
    ),
    integer(
        "gapless.max.producers",
        10_000,
        "How many idempotent producers one partition remembers. A new one beyond that takes the place of one that has "
        "written nothing for five minutes, or is refused with THROTTLING_QUOTA_EXCEEDED, which it may retry.",
        1,
        INT_MAX,
    ),
    integer("gapless.metrics.port", -1, "Prometheus metrics; 0 chooses a port, -1 is off.", -1, 65_535),
    text("gapless.metrics.host", "127.0.0.1", "Address of the metrics; they have no door, so open it to no one."),
    integer("gapless.metrics.max.partitions", 500, "Replicas above which metrics are not shown for each of them.", 0),
]

#: Sections in the order in which the documentation shows them.
SECTIONS: dict[str, list[Key]] = {
    "Identity and ZooKeeper": _IDENTITY,
    "Network": _NETWORK,
    "Log": _LOG,
    "Topics": _TOPICS,
    "Replication and controller": _REPLICATION,
    "Coordinators": _COORDINATORS,
    "Of our own": _OURS,
}

BROKER_KEYS = KeyTable("broker", [key for section in SECTIONS.values() for key in section])

#: Kafka keys that a user may well bring, and that cannot mean anything here; with the reason.
REFUSED = {
    "process.roles": "gapless runs with ZooKeeper, not KRaft; leave it out",
    "controller.quorum.voters": "gapless runs with ZooKeeper, not KRaft; use zookeeper.connect",
    "controller.quorum.bootstrap.servers": "gapless runs with ZooKeeper, not KRaft; use zookeeper.connect",
    "controller.listener.names": "gapless runs with ZooKeeper, not KRaft; leave it out",
}
