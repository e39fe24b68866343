"""A producer's settings: Kafka's keys and their refusals, and values that are objects."""

from __future__ import annotations

import pytest

from cluster.client.producer.sender_settings import SenderSettings
from cluster.client.producer.settings import producer_settings
from cluster.config.errors import ConfigError
from cluster.config.producer import UNSAFE_IN_FLIGHT

IN_FLIGHT = "max.in.flight.requests.per.connection"


def test_the_defaults_are_kafkas() -> None:
    """The defaults are those of Kafka's ProducerConfig."""
    settings = producer_settings({"bootstrap.servers": "a:1"})
    assert settings.sender == SenderSettings(-1, 5, 1_048_576, 30_000, 120_000, 2_147_483_647)
    assert settings.is_idempotent and settings.is_adaptive and not settings.ignores_keys
    assert (settings.limit_bytes, settings.linger_ms, settings.buffer_bytes) == (16_384, 0, 33_554_432)
    assert (settings.max_block_ms, settings.codec, settings.availability_timeout_ms) == (60_000, 0, 0)


@pytest.mark.parametrize(("codec", "level"), [("none", None), ("snappy", None), ("gzip", 7), ("lz4", 9), ("zstd", 3)])
def test_a_codec_has_its_own_level(codec: str, level: int | None) -> None:
    """KIP-390: the level of the codec in use, or its default; those of other codecs say nothing."""
    settings = producer_settings({"compression.type": codec, "compression.gzip.level": 7})
    assert settings.level == level


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("acks", "1", "contradicts acks 1; .* idempotence needs acks=all"),
        ("acks", 0, "contradicts acks 0"),
        ("retries", 0, "contradicts retries 0; .* retries > 0"),
        (IN_FLIGHT, 6, rf"contradicts max\.in\.flight.* 6 \(at most 5\).*'{UNSAFE_IN_FLIGHT}' lifts that limit"),
    ],
)
def test_an_idempotent_producer_refuses_what_it_cannot_keep(key: str, value: object, text: str) -> None:
    """If idempotence was asked for; otherwise it gives way, as in Kafka."""
    with pytest.raises(ConfigError, match=text):
        producer_settings({"enable.idempotence": True, key: value})
    assert not producer_settings({key: value}).is_idempotent


def test_more_in_flight_than_brokers_remember_is_for_experiments() -> None:
    """A key of ours lifts the limit, and that limit alone."""
    settings = producer_settings({"enable.idempotence": True, IN_FLIGHT: 6, UNSAFE_IN_FLIGHT: True})
    assert settings.is_idempotent
    assert settings.sender.max_in_flight == 6
    with pytest.raises(ConfigError, match="contradicts acks 1"):
        producer_settings({"enable.idempotence": True, "acks": 1, UNSAFE_IN_FLIGHT: True})


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"linger.mss": 1}, "did you mean 'linger.ms'"),
        ({"transactional.id": ""}, "'transactional.id' must be valid text of 1 to 32767 bytes; this one has 0"),
        ({"transactional.id": "t\ud800"}, "'transactional.id' must be valid text"),
        ({"transactional.id": "t", "acks": 1}, "'transactional.id' needs idempotence, which contradicts acks 1"),
        ({"transactional.id": "t", "retries": 0}, "needs idempotence, which contradicts retries 0"),
        ({"transactional.id": "t", IN_FLIGHT: 6}, "needs idempotence, which contradicts max.in.flight"),
        ({"transactional.id": "t", "enable.idempotence": False}, "needs 'enable.idempotence' true"),
        ({"transaction.timeout.ms": 0}, "'transaction.timeout.ms'"),
        ({"compression.type": "brotli"}, "expected one of none, gzip"),
        (
            {"delivery.timeout.ms": 10, "request.timeout.ms": 20},
            "must be at least 'linger.ms' \\+ 'request.timeout.ms'",
        ),
        ({"key.serializer": "StringSerializer"}, "'key.serializer': expected a function"),
        ({"partitioner.class": "RoundRobinPartitioner"}, "'partitioner.class': expected a function"),
        ({"interceptor.classes": "com.example.Mine"}, "'interceptor.classes': expected a list of objects"),
        ({"buffer.memory": 10_000}, "'buffer.memory' must be at least 'batch.size', .*: 10000 < 16384"),
        (
            {"buffer.memory": 10_000, "batch.size": 30_000, "max.request.size": 20_000},
            "'buffer.memory' must be at least 'max.request.size', .*: 10000 < 20000",
        ),
        ({5: 1}, "unknown producer config key '5'"),
        ({"interceptor.classes": [dict]}, "'interceptor.classes': expected a list of objects"),
    ],
)
def test_what_is_wrong_is_refused_by_name(config: dict[str, object], text: str) -> None:
    """Wrong settings are refused in one line that names the key."""
    with pytest.raises(ConfigError, match=text):
        producer_settings(config)


def test_a_batch_is_never_larger_than_a_request() -> None:
    """What is too large for a request is then too large for every batch that has a record."""
    assert producer_settings({"batch.size": 2_000_000, "max.request.size": 1_000}).limit_bytes == 1_000


def test_every_key_of_kafkas_producer_is_known() -> None:
    """Kafka 3.8's ProducerConfig but for security: what changes nothing here is taken and told, not unknown."""
    keys = {
        "enable.metrics.push": True,
        "metric.reporters": "com.example.Mine",
        "auto.include.jmx.reporter": False,
        "metrics.num.samples": 2,
        "metrics.recording.level": "DEBUG",
        "metrics.sample.window.ms": 30_000,
        "receive.buffer.bytes": 32_768,
        "send.buffer.bytes": 131_072,
        "client.dns.lookup": "use_all_dns_ips",
        "client.rack": "r",
    }
    config = producer_settings(keys).config
    assert config.warnings == tuple(f"producer config key '{key}' is accepted but has no effect" for key in keys)
