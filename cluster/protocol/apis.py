"""API keys, version windows and header versions: the table by which requests and responses are told apart.

Owns the numbers (Kafka's ApiKeys, KIP-482, KIP-511). Does not own any layout, nor which of the APIs a broker serves:
it composes what it advertises from its handlers, taking the windows from ``SUPPORTED``.
"""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    """The APIs of Kafka up to ListTransactions and AllocateProducerIds, with their numbers."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    ALTER_PARTITION = 56
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67


#: The least Produce version that is served.
PRODUCE_MIN_VERSION = 3

#: The least Produce version that is advertised. Kafka 4 advertises 0 although it serves 3 and newer (KAFKA-18659), and
#: so do we: librdkafka asks whether Produce 0 is inside the window before it compresses with gzip, snappy or lz4, and
#: silently sends uncompressed batches when it is not. Found on disk, every codec, on every replica: with 3 advertised,
#: Debian's kcat 1.7.1 (librdkafka 2.0.2) and confluent-kafka 2.0.2 to 2.10.1 compress with nothing but zstd, while
#: confluent-kafka from 2.12.2 on, kafka-python 3.0.12, aiokafka 0.12 and kafkajs 2.2.4 (gzip alone) do not mind. With 0
#: all of them compress, and none is misled, for they take the greatest common version. A request below
#: ``PRODUCE_MIN_VERSION`` closes the connection.
PRODUCE_MIN_ADVERTISED = 0

#: Version windows, inclusive, as advertised to clients.
SUPPORTED: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (PRODUCE_MIN_ADVERTISED, 9),
    ApiKey.FETCH: (4, 12),
    ApiKey.LIST_OFFSETS: (1, 7),
    ApiKey.METADATA: (0, 12),
    # Kafka 3.8 has OffsetCommit 9 and OffsetFetch 9 too, for groups of a newer kind, and OffsetCommit 0 and 1 and
    # OffsetFetch 0, which no client sends that these brokers can serve.
    ApiKey.OFFSET_COMMIT: (2, 8),
    ApiKey.OFFSET_FETCH: (1, 8),
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    # From 4 on AddPartitionsToTxn is for brokers; what follows is KIP-890's second part, as is TxnOffsetCommit 4.
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 3),
    ApiKey.END_TXN: (0, 3),
    ApiKey.TXN_OFFSET_COMMIT: (0, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    # Kafka 3.8 has 0 too, which is laid out like 1 and which kafka-python's schemas no longer have.
    ApiKey.DESCRIBE_LOG_DIRS: (1, 4),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 1),
}

#: Between brokers of one cluster there is one version each; never advertised on a client listener.
INTER_BROKER: dict[ApiKey, tuple[int, int]] = {
    ApiKey.LEADER_AND_ISR: (7, 7),
    ApiKey.STOP_REPLICA: (4, 4),
    ApiKey.UPDATE_METADATA: (8, 8),
    ApiKey.CONTROLLED_SHUTDOWN: (3, 3),
    ApiKey.ALTER_PARTITION: (3, 3),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0),
    ApiKey.WRITE_TXN_MARKERS: (1, 1),
}

#: What clients are served too, with the versions that brokers ask each other.
WIDER_FOR_BROKERS: dict[ApiKey, tuple[int, int]] = {ApiKey.ADD_PARTITIONS_TO_TXN: (0, 4)}

_NEVER = 1 << 15

#: First flexible version of each API: compact lengths and tagged fields (KIP-482).
_FLEXIBLE_FROM: dict[int, int] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.LEADER_AND_ISR: 4,
    ApiKey.STOP_REPLICA: 2,
    ApiKey.UPDATE_METADATA: 6,
    ApiKey.CONTROLLED_SHUTDOWN: 3,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 6,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.API_VERSIONS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 3,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_ACLS: 2,
    ApiKey.CREATE_ACLS: 2,
    ApiKey.DELETE_ACLS: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 2,
    ApiKey.SASL_AUTHENTICATE: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.ALTER_PARTITION: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.ALLOCATE_PRODUCER_IDS: 0,
}


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version of the API uses compact lengths and tagged fields. Unknown APIs do not."""
    return version >= _FLEXIBLE_FROM.get(api_key, _NEVER)


def request_header_version(api_key: int, version: int) -> int:
    """1, or 2 (with tagged fields) for flexible versions; ControlledShutdown 0 alone has 0 (no client id)."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return 0
    return 2 if is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """0, or 1 (with tagged fields) for flexible versions; ApiVersions always has 0, so that anyone can read it."""
    return 1 if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS else 0
