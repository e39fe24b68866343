"""librdkafka's configuration: Kafka's keys arrive in its spelling, and librdkafka takes the result."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, libversion

from cluster.seams.clock import SystemClock
from loadgen.clients.confluent import TellingProducer, check_client_config, dispose_producer
from loadgen.clients.librdkafka import SENTINEL_NEEDS, consumer_config, left_out, producer_config, producer_identity
from loadgen.settings import ConfigValue, LoadSettings, SettingsError

JAVA_KEYS: dict[str, ConfigValue] = {
    "acks": "all",
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 5,
    "retries": 2147483647,
    "batch.size": 16384,
    "linger.ms": 5,
    "buffer.memory": 33554432,
    "max.block.ms": 60000,
    "max.request.size": 1048576,
    "request.timeout.ms": 3000,
    "delivery.timeout.ms": 60000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "compression.type": "none",
    "metadata.max.age.ms": 300000,
    "connections.max.idle.ms": 540000,
    "send.buffer.bytes": 131072,
    "receive.buffer.bytes": 32768,
    "transaction.timeout.ms": 60000,
}


def test_librdkafka_takes_a_java_producers_configuration() -> None:
    """All of the Java producer's usual keys give a producer; what has no counterpart is left out and told."""
    config = producer_config("127.0.0.1:1", "c", JAVA_KEYS)
    Producer(config).purge()
    assert config["queue.buffering.max.kbytes"] == "32768"
    assert config["message.max.bytes"] == "1048576"
    assert config["socket.timeout.ms"] == "3000"
    assert config["enable.idempotence"] == "true"
    assert left_out(JAVA_KEYS) == ["max.block.ms"]


def test_librdkafka_takes_a_java_consumers_configuration() -> None:
    """auto.offset.reset none is error; request.timeout.ms is a producer's key there."""
    given: dict[str, ConfigValue] = {
        "auto.offset.reset": "none",
        "isolation.level": "read_uncommitted",
        "fetch.max.wait.ms": 50,
        "fetch.min.bytes": 1,
        "max.partition.fetch.bytes": 1048576,
        "max.poll.records": 500,
        "request.timeout.ms": 3000,
        "enable.auto.commit": False,
    }
    config = consumer_config("127.0.0.1:1", "c", given)
    Consumer(config).close()
    assert config["auto.offset.reset"] == "error"
    assert config["fetch.wait.max.ms"] == "50"
    assert config["socket.timeout.ms"] == "3000" and "request.timeout.ms" not in config
    assert config["group.id"] == "c"


def test_the_defaults_alone_are_taken() -> None:
    """Without any setting: idempotent, acks=all; a reader that never resets an offset and checks CRCs."""
    producer = producer_config("127.0.0.1:1", "c", {})
    consumer = consumer_config("127.0.0.1:1", "c", {})
    Producer(producer).purge()
    Consumer(consumer).close()
    assert (producer["acks"], producer["enable.idempotence"]) == ("all", "true")
    assert (consumer["auto.offset.reset"], consumer["check.crcs"]) == ("error", "true")
    assert consumer["isolation.level"] == "read_uncommitted"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"producer_config": {"linger.mss": 5}}, 'producer configuration: .*"linger.mss"'),
        ({"producer_config": {"acks": "1", "enable.idempotence": True}}, "producer configuration: .*acks"),
        ({"consumer_config": {"fetch.min.bytes": -3}}, "consumer configuration: .*fetch.min.bytes"),
    ],
)
def test_a_bad_configuration_is_refused_before_anything_starts(changes: dict[str, Any], message: str) -> None:
    """librdkafka's own words, with the group that is meant."""
    check_client_config(LoadSettings(run_id=1))
    with pytest.raises(SettingsError, match=message):
        check_client_config(LoadSettings(run_id=1).with_changes(changes))


@pytest.mark.parametrize("acks", ["0", 1])
def test_fewer_acks_turn_idempotence_off_unless_asked_for(acks: ConfigValue) -> None:
    """A contradiction that was asked for is left for librdkafka to refuse."""
    assert producer_config("b", "c", {"acks": acks})["enable.idempotence"] == "false"
    assert producer_config("b", "c", {"acks": acks, "enable.idempotence": True})["enable.idempotence"] == "true"


def test_producer_id_and_epoch_come_from_the_statistics() -> None:
    """None while the producer has no id, or where there is no eos block."""
    text = '{"a": 1, "eos": { "idemp_state": "Assigned", "producer_id": %d, "producer_epoch": %d, "epoch_cnt": 0 }}'
    assert producer_identity(text % (4000, 2)) == (4000, 2)
    assert producer_identity(text % (-1, -1)) is None
    assert producer_identity('{"producer_id": 5}') is None


@pytest.mark.parametrize(
    "given",
    [
        {"enable.idempotence": False, "max.in.flight.requests.per.connection": 6},
        {"enable.idempotence": False, "retries": 0},
        {"acks": "0"},
        {"gapless.allow.unsafe.in.flight": True, "max.in.flight.requests.per.connection": 6},
    ],
)
def test_a_sentinel_can_be_sent_whatever_the_producers_were_given(given: dict[str, ConfigValue]) -> None:
    """It is idempotent always, and keys of ours are the native client's: librdkafka takes the configuration."""
    config = producer_config("", "sentinel", {**given, **SENTINEL_NEEDS})
    assert (config["acks"], config["enable.idempotence"]) == ("all", "true")
    own = {key: value for key, value in config.items() if key != "bootstrap.servers"}
    assert dispose_producer(TellingProducer(own, lambda _: None), timeout_s=5.0, clock=SystemClock())


def test_this_librdkafka_does_not_forget_brokers() -> None:
    """From 2.10 on it forgets those that left the metadata, and may deadlock (its issue 5476): readers hang."""
    assert tuple(int(number) for number in libversion()[0].split(".")[:2]) < (2, 10)
