"""Translates configuration to librdkafka: the load's defaults, and Kafka's keys in its spelling. Pure.

A run is configured with Kafka's keys. librdkafka accepts most of them, spells some differently, and has no counterpart
for a few, which are left out (and reported). Its own keys pass unchanged. Owns names and defaults; the source is
librdkafka's CONFIGURATION.md. Creates no client (``confluent``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from loadgen.settings import ConfigValue

#: Kafka's spelling -> librdkafka's, for both kinds of client.
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}

#: Keys of the Java client that have no counterpart.
_ABSENT = frozenset(
    {
        "max.block.ms",
        "max.poll.records",
        "default.api.timeout.ms",
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "interceptor.classes",
        "exclude.internal.topics",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "partition.assignment.strategy",
        "auto.include.jmx.reporter",
        # It has one for all codecs, compression.level.
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
    }
)

#: Shared defaults: back-offs of 20-200 ms and short timeouts, so that clients do not just wait during a fault.
_COMMON: dict[str, ConfigValue] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "socket.timeout.ms": 3000,
    "socket.connection.setup.timeout.ms": 3000,
    "socket.nagle.disable": True,
    "topic.metadata.refresh.interval.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "allow.auto.create.topics": False,
}

PRODUCER_DEFAULTS: dict[str, ConfigValue] = {
    **_COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "request.timeout.ms": 3000,
    "delivery.timeout.ms": 60_000,
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 131_072,
    "statistics.interval.ms": 500,
}

CONSUMER_DEFAULTS: dict[str, ConfigValue] = {
    **_COMMON,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "fetch.min.bytes": 1,
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 50,
}

#: What the sentinels' idempotent producer needs, regardless of the configuration of the load's producers.
SENTINEL_NEEDS: dict[str, ConfigValue] = {
    "acks": "all",
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 1,
    "retries": 2_147_483_647,
}

_IDENTITY = re.compile(r'"eos":\s*\{.*?"producer_id":\s*(-?\d+).*?"producer_epoch":\s*(-?\d+)', re.DOTALL)


def producer_config(bootstrap: str, client_id: str, given: Mapping[str, ConfigValue]) -> dict[str, str]:
    """A producer's whole configuration. ``acks`` other than all turns idempotence off unless it was asked for."""
    own = _translate(given)
    own.pop("auto.offset.reset", None)
    config = {**PRODUCER_DEFAULTS, **own}
    if "request.timeout.ms" in own:
        config["socket.timeout.ms"] = own.get("socket.timeout.ms", own["request.timeout.ms"])
    if str(config["acks"]) not in ("all", "-1") and "enable.idempotence" not in own:
        config["enable.idempotence"] = False
    return _texts({**config, "bootstrap.servers": bootstrap, "client.id": client_id})


def consumer_config(bootstrap: str, client_id: str, given: Mapping[str, ConfigValue]) -> dict[str, str]:
    """A consumer's whole configuration.

    ``request.timeout.ms`` is a producer's key in librdkafka: here it becomes ``socket.timeout.ms``.
    ``auto.offset.reset`` ``none`` is spelled ``error``.
    """
    own = _translate(given)
    timeout = own.pop("request.timeout.ms", None)
    if timeout is not None:
        own.setdefault("socket.timeout.ms", timeout)
    if own.get("auto.offset.reset") == "none":
        own["auto.offset.reset"] = "error"
    return _texts(
        {"group.id": client_id, **CONSUMER_DEFAULTS, **own, "bootstrap.servers": bootstrap, "client.id": client_id}
    )


def left_out(given: Mapping[str, ConfigValue]) -> list[str]:
    """The keys of ``given`` that librdkafka has no counterpart for, sorted."""
    return sorted(key for key in given if key in _ABSENT)


def producer_identity(statistics: str) -> tuple[int, int] | None:
    """Producer id and epoch from librdkafka's statistics (its ``eos`` block), or None while there is none."""
    match = _IDENTITY.search(statistics)
    if match is None or int(match[1]) < 0:
        return None
    return int(match[1]), int(match[2])


def _translate(given: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    own: dict[str, ConfigValue] = {}
    for key, value in given.items():
        # gapless's own keys are for the native client
        if key in _ABSENT or key.startswith("gapless."):
            continue
        if key == "buffer.memory":
            own["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        else:
            own[_RENAMED.get(key, key)] = value
    return own


def _texts(config: Mapping[str, ConfigValue]) -> dict[str, str]:
    """The configuration as texts, since librdkafka would read a Python bool as ``True``."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in config.items()}
