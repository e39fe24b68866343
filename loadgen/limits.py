"""Checks whether producers and a topic accept every record that a load may draw. Pure.

Owns how each client and a broker compute the size of a record, and which settings limit it. Does not own what happens
if a limit is too low: callers decide, and ``advice`` has the message.

If a client never accepts a record, the load offers it forever and its stream makes no progress. This may show only
after a while, because large values may be rare. A load's records have no headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cluster.client.producer.encoding import record_parts, size_upper_bound, time_part
from cluster.config import producer
from cluster.config.errors import ConfigError
from cluster.config.librdkafka import PRODUCER_KEYS
from cluster.config.values import ProducerValues
from cluster.protocol.batch import HEADER_BYTES
from loadgen.choices import LEAST_BYTES, Keys, Sizes
from loadgen.clients.librdkafka import producer_config
from loadgen.settings import NATIVE, ConfigValue, SettingsError

#: What librdkafka counts for any record in addition to its key, its value and its headers
#: (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD: the longest varints of length, timestamp, offset, key, value and headers).
LIBRDKAFKA_OVERHEAD_BYTES = 36


class LargestRecord(NamedTuple):
    """The largest record of a load: its key (empty for none) and its value, in bytes."""

    key_bytes: int
    value_bytes: int

    @classmethod
    def of(cls, sizes: Sizes, keys: Keys) -> LargestRecord:
        return cls(keys.most_bytes, sizes.most)

    @property
    def key(self) -> bytes | None:
        """A key with this size; None if records have no keys."""
        return bytes(self.key_bytes) if self.key_bytes else None

    @property
    def batch_bytes(self) -> int:
        """The size of an uncompressed batch with only this record, as a broker gets and stores it."""
        return HEADER_BYTES + record_parts(time_part(0), 0, self.key, bytes(self.value_bytes), ())[1]


class Limit(NamedTuple):
    """A setting that limits the size of a record. ``option`` is where it is set: ``producer``, ``topic`` or ``broker``.

    ``needed_bytes`` is the size of the largest record as this setting counts it; ``unit_bytes`` is the setting's unit.
    """

    option: str
    key: str
    value: int
    needed_bytes: int
    unit_bytes: int = 1

    @property
    def is_exceeded(self) -> bool:
        return self.needed_bytes > self.value * self.unit_bytes

    @property
    def excess_bytes(self) -> int:
        return self.needed_bytes - self.value * self.unit_bytes

    @property
    def enough(self) -> str:
        """The setting with a sufficient value: ``KEY=VALUE``."""
        return f"{self.key}={-(-self.needed_bytes // self.unit_bytes)}"


def producer_limits(client: str, given: Mapping[str, ConfigValue], largest: LargestRecord) -> list[Limit]:
    """The limits of a producer of ``client`` with this configuration: on a request, and on its buffer.

    ``given`` as in ``LoadSettings``. Raises ``SettingsError`` for a value that is no number.
    """
    try:
        return (_of_native if client == NATIVE else _of_librdkafka)(given, largest)
    except ConfigError as error:
        raise SettingsError(str(error)) from error


def _of_native(given: Mapping[str, ConfigValue], largest: LargestRecord) -> list[Limit]:
    config = producer.validate(given)
    needed = size_upper_bound(largest.key, bytes(largest.value_bytes), ())
    return [Limit("producer", key, config[key], needed) for key in ("max.request.size", "buffer.memory")]


def _of_librdkafka(given: Mapping[str, ConfigValue], largest: LargestRecord) -> list[Limit]:
    request, queue = "message.max.bytes", "queue.buffering.max.kbytes"
    texts = {key: text for key, text in producer_config("", "", given).items() if key in (request, queue)}
    config = ProducerValues(PRODUCER_KEYS, PRODUCER_KEYS.parse(texts))
    needed = largest.key_bytes + largest.value_bytes + LIBRDKAFKA_OVERHEAD_BYTES
    return [
        Limit("producer", request, config[request], needed),
        # the queue counts only values
        Limit("producer", queue, config[queue], largest.value_bytes, 1024),
    ]


def topic_limits(topic: Mapping[str, int], broker: Mapping[str, int], largest: LargestRecord) -> list[Limit]:
    """The limits of a topic and its brokers: on a batch with one record, a segment for it, and a request with it.

    Of compressed batches nothing is known beforehand; these are the sizes of records that do not compress. A request
    is some hundred bytes more than its batch: what is too large is certain, what is not may still be. What is not
    known of a cluster that was asked bounds nothing; a topic that does not say what it takes has its broker's limit.
    """
    needed = largest.batch_bytes
    bounds = [
        ("topic", "max.message.bytes", topic.get("max.message.bytes", broker.get("message.max.bytes"))),
        ("topic", "segment.bytes", topic.get("segment.bytes")),
        ("broker", "socket.request.max.bytes", broker.get("socket.request.max.bytes")),
    ]
    return [Limit(option, key, value, needed) for option, key, value in bounds if value is not None]


def known_sizes(described: Mapping[str, str | None]) -> dict[str, int]:
    """The settings that limit a record, among those that a cluster reports about a topic or a broker."""
    known = ("max.message.bytes", "segment.bytes", "message.max.bytes", "socket.request.max.bytes")
    texts = {key: described.get(key) or "" for key in known}
    return {key: int(text) for key, text in texts.items() if text.isascii() and text.isdigit()}


def compresses(producer_config: Mapping[str, object]) -> bool:
    """Whether a producer compresses, according to Kafka's key or librdkafka's alias of it."""
    return producer_config.get("compression.type", producer_config.get("compression.codec", "none")) != "none"


def unless_compressed(warning: str, producer_config: Mapping[str, object]) -> str:
    """An ``advice`` about a topic, with a remark that compression may help if the producer compresses."""
    return f"{warning} (unless it is compressed to less)" if compresses(producer_config) else warning


def advice(source: str, limits: Sequence[Limit], largest: LargestRecord, option: str = "--{}-config") -> str | None:
    """One line: the setting that makes records too large, the limits that forbid them, and both fixes; None if none.

    ``source`` is the option or the workload that says how large values are; ``option`` how a setting is given.
    """
    low = [limit for limit in limits if limit.is_exceeded]
    if not low:
        return None
    key = f" and a key of {largest.key_bytes}" if largest.key_bytes else ""
    them = " and ".join(f"the {each.option}'s {each.key} {each.value}" for each in low)
    fits = largest.value_bytes - max(each.excess_bytes for each in low)
    smaller = f"write values of at most {fits} bytes, or " if fits >= LEAST_BYTES else ""
    raised = " ".join(f"{option.format(each.option)} {each.enough}" for each in low)
    return f"{source}: a value of {largest.value_bytes} bytes{key} is too large for {them}; {smaller}give {raised}"
