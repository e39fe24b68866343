"""Translates one consumer configuration for readers with different clients. Owns the names of keys. Pure.

The configuration is written in the keys of the run's ``client``. A reader with another client gets the keys for which
it has a counterpart; the others are left out (``left_out``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.config.consumer import CONSUMER_KEYS
from loadgen.settings import CONFLUENT, ConfigValue

#: librdkafka's key -> Kafka's key.
_KAFKA_WORDS = {
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
}
#: The same for the values of ``auto.offset.reset``.
_RESETS = {
    "error": "none",
    "smallest": "earliest",
    "beginning": "earliest",
    "largest": "latest",
    "end": "latest",
}


def in_words_of(client: str, written_for: str, given: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """The configuration for a reader of ``client``. The adapters of librdkafka and kafka-python accept Kafka's keys."""
    if client == written_for or written_for != CONFLUENT:
        return dict(given)
    known: dict[str, ConfigValue] = {}
    for key, value in given.items():
        name = _KAFKA_WORDS.get(key, key)
        if name in CONSUMER_KEYS.keys:
            known[name] = _RESETS.get(str(value), value) if name == "auto.offset.reset" else value
    return known


def left_out(client: str, written_for: str, given: Mapping[str, ConfigValue]) -> list[str]:
    """The keys that a reader of ``client`` is not given, sorted."""
    taken = in_words_of(client, written_for, given)
    return sorted(key for key in given if _KAFKA_WORDS.get(key, key) not in taken and key not in taken)
