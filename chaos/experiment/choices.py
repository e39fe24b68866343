"""The choices of options, and the defaults that apply if neither an option nor the workload sets a value.

Declares no option (``chaos.experiment.asked`` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from loadgen.settings import CONFLUENT, NATIVE

#: A client that only reads. (``loadgen.tool`` has the name, too, but takes 0.2 s to import.)
KAFKA_PYTHON = "kafka-python"
#: The clients that may read everything at the end.
FINAL_READERS = (CONFLUENT, KAFKA_PYTHON, NATIVE)

DEFAULT_FAULTS = "basic"
#: The groups of clients that have their own links.
LOAD_GROUPS = ("producers", "readers")
DEFAULT_WORKLOAD = "steady"
#: The keys of which each broker gets its own value -> the rest of the refusal, if an option sets it.
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
    """The acknowledgements that a producer waits for."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Keep(StrEnum):
    """Which runs keep the brokers' data."""

    ALL = "all"
    FAILED = "failed"
    NONE = "none"
