"""Whether every record that a load may draw can be taken: by its producers, and by a topic. Pure.

Owns how large a record is in the counting of each client and of a broker, and which settings bound it. What follows
from a limit that is too low is for anyone who starts the load to say, with ``advice``.

A record that its own client never takes is offered again forever, and its stream stands still: nothing of that shows
before the load has run for a while, for a large value may be a rare one. A load's records have no headers.
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

#: What librdkafka reckons for a record beside its key, its value and its headers, whatever they are
#: (RD_KAFKAP_MESSAGE_V2_MAX_OVERHEAD: varints of length, timestamp, offset, key, value and headers at their longest).
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
        """A key of that size."""
        return bytes(self.key_bytes) if self.key_bytes else None

    @property
    def batch_bytes(self) -> int:
        """What a broker is sent and stores: the record as a batch of its own, uncompressed."""
        return HEADER_BYTES + record_parts(time_part(0), 0, self.key, bytes(self.value_bytes), ())[1]


class Limit(NamedTuple):
    """A setting that bounds a record. ``option`` is of those that set it: ``producer``, ``topic`` or ``broker``.

    ``needed_bytes`` is what the largest record comes to in that setting's counting; ``unit_bytes`` what it counts in.
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
        """The setting as it would do: ``KEY=VALUE``."""
        return f"{self.key}={-(-self.needed_bytes // self.unit_bytes)}"


def producer_limits(client: str, given: Mapping[str, ConfigValue], largest: LargestRecord) -> list[Limit]:
    """What a producer of ``client`` with this configuration takes of one record: in a request, and in its buffer.

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
        # the queue counts values alone
        Limit("producer", queue, config[queue], largest.value_bytes, 1024),
    ]


def topic_limits(topic: Mapping[str, int], broker: Mapping[str, int], largest: LargestRecord) -> list[Limit]:
    """What a topic and its brokers take of one record: a batch of it, a segment for that, and a request around it.

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
    """What bounds a record among the settings that a cluster tells about a topic or of a broker."""
    known = ("max.message.bytes", "segment.bytes", "message.max.bytes", "socket.request.max.bytes")
    texts = {key: described.get(key) or "" for key in known}
    return {key: int(text) for key, text in texts.items() if text.isascii() and text.isdigit()}


def compresses(producer_config: Mapping[str, object]) -> bool:
    """Whether a producer does, by Kafka's key or librdkafka's other name of it."""
    return producer_config.get("compression.type", producer_config.get("compression.codec", "none")) != "none"


def unless_compressed(warning: str, producer_config: Mapping[str, object]) -> str:
    """What an ``advice`` that is about a topic says where the producer compresses."""
    return f"{warning} (unless it is compressed to less)" if compresses(producer_config) else warning


def advice(source: str, limits: Sequence[Limit], largest: LargestRecord, option: str = "--{}-config") -> str | None:
    """One line: which setting makes records too large, which limit forbids them, and both fixes. None if nothing is.

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
