"""A producer's settings, from one mapping of Kafka's keys: what is checked, and what each part is given of it.

Owns the keys whose values are Python objects (serializers, interceptors, the partitioner), the refusal of what is not
offered, and which key means which setting. The table and the rules between its keys are ``cluster.config.producer``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cluster.client.argument_checks import MOST_STRING_BYTES, fits_string
from cluster.client.producer.interceptors import Interceptors
from cluster.client.producer.sender_settings import SenderSettings
from cluster.config.errors import ConfigError
from cluster.config.producer import ProducerConfig, validate
from cluster.protocol.compression import CODEC_NAMES

#: Makes bytes (or None) of a key or a value.
Serializer = Callable[[Any], bytes | None]

#: Given topic, key and value as bytes, how many partitions there are and which have a leader: the partition.
Partitioner = Callable[[str, bytes | None, bytes | None, int, Sequence[int]], int]

_CODECS = {name: codec for codec, name in CODEC_NAMES.items()}
_KEY_SERIALIZER = "key.serializer"
_VALUE_SERIALIZER = "value.serializer"
_INTERCEPTORS = "interceptor.classes"
_PARTITIONER = "partitioner.class"
#: Where the level of a codec is set (KIP-390).
_LEVELS = {name: f"compression.{name}.level" for name in ("gzip", "lz4", "zstd")}
_OBJECTS = (_KEY_SERIALIZER, _VALUE_SERIALIZER, _INTERCEPTORS, _PARTITIONER)


class ProducerSettings(NamedTuple):
    """``config`` has the rest: addresses, back-offs and ages. ``limit_bytes`` is what one batch is filled to."""

    config: ProducerConfig
    sender: SenderSettings
    is_idempotent: bool
    limit_bytes: int
    linger_ms: int
    buffer_bytes: int
    max_block_ms: int
    codec: int
    level: int | None
    ignores_keys: bool
    is_adaptive: bool
    availability_timeout_ms: int
    key_serializer: Serializer | None
    value_serializer: Serializer | None
    interceptors: Interceptors
    partitioner: Partitioner | None


def producer_settings(mapping: Mapping[str, object]) -> ProducerSettings:
    """The settings of one producer. Raises ``ConfigError`` with the key and what is wrong with it."""
    config = validate({key: value for key, value in mapping.items() if key not in _OBJECTS})
    transactional_id = config["transactional.id"]
    if transactional_id is not None and not (transactional_id and fits_string(transactional_id)):
        raise ConfigError(
            f"producer config 'transactional.id' must be valid text of 1 to {MOST_STRING_BYTES} bytes; "
            f"this one has {len(transactional_id)} characters"
        )
    limit_bytes = min(config["batch.size"], config["max.request.size"])
    return ProducerSettings(
        config=config,
        sender=SenderSettings(
            acks=-1 if config["acks"] == "all" else int(config["acks"]),
            max_in_flight=config["max.in.flight.requests.per.connection"],
            max_request_size=config["max.request.size"],
            request_timeout_ms=config["request.timeout.ms"],
            delivery_timeout_ms=config["delivery.timeout.ms"],
            retries=config["retries"],
        ),
        is_idempotent=config["enable.idempotence"],
        limit_bytes=limit_bytes,
        linger_ms=config["linger.ms"],
        buffer_bytes=config["buffer.memory"],
        max_block_ms=config["max.block.ms"],
        codec=_CODECS[config["compression.type"]],
        level=config[_LEVELS[config["compression.type"]]] if config["compression.type"] in _LEVELS else None,
        ignores_keys=config["partitioner.ignore.keys"],
        is_adaptive=config["partitioner.adaptive.partitioning.enable"],
        availability_timeout_ms=config["partitioner.availability.timeout.ms"],
        key_serializer=_callable(mapping, _KEY_SERIALIZER),
        value_serializer=_callable(mapping, _VALUE_SERIALIZER),
        interceptors=_interceptors(mapping.get(_INTERCEPTORS)),
        partitioner=_callable(mapping, _PARTITIONER),
    )


def _callable(mapping: Mapping[str, object], key: str) -> Any:
    value = mapping.get(key)
    if value is not None and not callable(value):
        raise ConfigError(f"invalid value {value!r} for producer config key '{key}': expected a function")
    return value


def _interceptors(value: object) -> Interceptors:
    if value is None:
        return Interceptors(())
    if not isinstance(value, list | tuple) or any(isinstance(each, str | type) for each in value):
        raise ConfigError(
            f"invalid value {value!r} for producer config key '{_INTERCEPTORS}': expected a list of objects with "
            "on_send or on_acknowledgement"
        )
    return Interceptors(value)
