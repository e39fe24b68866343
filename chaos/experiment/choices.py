"""What options choose among, and what holds where nothing is said and the workload says nothing. Declares no option."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loadgen.settings import CONFLUENT, NATIVE

#: A client that only reads (``loadgen.tool`` has the name too; importing that takes a fifth of a second).
KAFKA_PYTHON = "kafka-python"
#: Who may read everything at the end.
FINAL_READERS = (CONFLUENT, KAFKA_PYTHON, NATIVE)

DEFAULT_FAULTS = "basic"
#: The groups of clients with links of their own.
LOAD_GROUPS = ("producers", "readers")
DEFAULT_WORKLOAD = "steady"
#: What every broker of a cluster is given its own value of, with the option that decides it, if one does.
OWN_BROKER_KEYS: Mapping[str, str] = {
    "broker.id": "",
    "node.id": "",
    "listeners": "",
    "advertised.listeners": "",
    "listener.security.protocol.map": "",
    "inter.broker.listener.name": "",
    "gapless.peer.addresses": "",
    "gapless.metrics.port": "",
    "gapless.fault.port": "",
    "zookeeper.connect": ", or name a ZooKeeper with --zookeeper",
    "log.dirs": "",
    "log.dir": "",
}
DEFAULT_RATE = 1500
DEFAULT_PARTITIONS = 6


class Acks(StrEnum):
    """What a producer waits for."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Keep(StrEnum):
    """What is kept of the brokers' data."""

    ALL = "all"
    FAILED = "failed"
    NONE = "none"
