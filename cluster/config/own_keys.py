"""Broker keys that Kafka does not have: bounds on what clients can make a broker keep or do, and its metrics.

Owns their names, types, limits and defaults. All begin with ``gapless.``.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, Key, integer, text, texts

OWN_KEYS: list[Key] = [
    texts("gapless.peer.addresses", (), "Peers as id@host:port, as this broker reaches them (through proxies)."),
    text(
        "gapless.unknown.producer",
        "gapless",
        "Rules for unknown producers and old sequences: gapless, kafka (since KIP-360), seed (before it).",
        ("gapless", "kafka", "seed"),
    ),
    integer(
        "gapless.min.segment.bytes",
        1_048_576,
        "Minimum segment.bytes that a client may set, because each segment is an open file (1 MB in Kafka 4, "
        "KIP-1030). The minimum segment.index.bytes is a fifth of it.",
        14,
        INT_MAX,
    ),
    integer(
        "gapless.min.segment.ms",
        10_000,
        "Minimum segment.ms that a client may set. A segment below gapless.min.segment.bytes is rolled by its records' "
        "timestamps only once it is this old by the broker's clock, or as old as its segment.ms if that is less.",
        0,
    ),
    integer(
        "gapless.max.file.delete.delay.ms",
        3_600_000,
        "Maximum file.delete.delay.ms that a client may set: retention and the deletion of a topic free the disk only "
        "after it.",
        0,
    ),
    integer(
        "gapless.max.index.interval.bytes",
        65_536,
        "Maximum index.interval.bytes that a client may set, because a lookup reads each batch between two index "
        "entries. Larger values that are set already count as this one.",
        0,
        INT_MAX,
    ),
    integer(
        "gapless.max.producers",
        10_000,
        "Maximum idempotent producers that a partition remembers. A new one beyond that replaces one that has written "
        "nothing for five minutes; if no producer qualifies, it is refused with THROTTLING_QUOTA_EXCEEDED. It may "
        "retry. One client host cannot take the last eighth.",
        1,
        INT_MAX,
    ),
    integer(
        "gapless.max.producers.total",
        0,
        "The same for all partitions of a broker together; a producer counts once for each partition that it writes "
        "to. 0: five times gapless.max.producers.",
        0,
        INT_MAX,
    ),
    integer(
        "gapless.group.max.bytes",
        10_485_760,
        "Maximum bytes that a broker keeps of a group's members. A member beyond that gets GROUP_MAX_SIZE_REACHED.",
        1,
        INT_MAX,
    ),
    integer(
        "gapless.groups.max.bytes",
        134_217_728,
        "Maximum bytes that a broker keeps of all groups that it coordinates, with their committed offsets. Beyond "
        "that, a new member gets GROUP_MAX_SIZE_REACHED and a commit for a new partition INVALID_COMMIT_OFFSET_SIZE. "
        "A host whose groups take more than a sixteenth gets no new group in the last quarter, and nothing in the last "
        "eighth.",
        1,
        INT_MAX,
    ),
    integer(
        "gapless.max.transactional.ids",
        10_000,
        "Maximum transactional IDs that a broker keeps of those that it coordinates. A new one beyond that replaces "
        "those without a transaction that have not changed for five minutes; if there are none, it is refused with "
        "THROTTLING_QUOTA_EXCEEDED and may retry.",
        1,
        INT_MAX,
    ),
    integer(
        "gapless.transactions.max.bytes",
        67_108_864,
        "Maximum bytes that a broker keeps of transactional IDs and the partitions of their transactions. Beyond that, "
        "a new ID or partition is refused with THROTTLING_QUOTA_EXCEEDED.",
        1,
        INT_MAX,
    ),
    integer("gapless.metrics.port", -1, "Port of Prometheus metrics; 0: any free port, -1: off.", -1, 65_535),
    text("gapless.metrics.host", "127.0.0.1", "Address of the metrics. No authentication: do not expose it."),
    integer(
        "gapless.fault.port",
        -1,
        "Port on 127.0.0.1 by which experiments break this broker's disk and clock; 0: any free port, -1: off. "
        "Anyone who reaches it can destroy data.",
        -1,
        65_535,
    ),
    integer("gapless.metrics.max.partitions", 500, "With more replicas, no partition metrics are exported.", 0),
]
