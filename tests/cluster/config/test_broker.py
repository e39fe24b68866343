"""Broker configuration: the rules between keys, and what has a structure."""

from __future__ import annotations

import pytest

from cluster.config import broker, topic
from cluster.config.broker import ListenerAddress, validate
from cluster.config.errors import ConfigError

LISTENERS = "PRODUCERS://127.0.0.1:0,READERS://127.0.0.1:0,PEERS://[::1]:0,CONTROL://127.0.0.1:0"
MAP = "PRODUCERS:PLAINTEXT,READERS:PLAINTEXT,PEERS:PLAINTEXT,CONTROL:PLAINTEXT"


def test_the_configuration_of_a_run() -> None:
    """What the conductor gives a broker is understood: listeners, peers, directory, id."""
    config = validate(
        {
            "broker.id": "2",
            "listeners": LISTENERS,
            "advertised.listeners": "PRODUCERS://127.0.0.1:41001,READERS://127.0.0.1:41002",
            "listener.security.protocol.map": MAP,
            "inter.broker.listener.name": "PEERS",
            "gapless.peer.addresses": "1@127.0.0.1:42001,3@[::1]:42003",
            "log.dirs": "nodes/2/data",
            "zookeeper.connect": "127.0.0.1:43001",
        }
    )
    assert config.broker_id == 2
    assert config.zookeeper_connect == "127.0.0.1:43001"
    assert config.listeners[2] == ListenerAddress("PEERS", "::1", 0)
    assert str(config.listeners[2]) == "PEERS://[::1]:0"
    assert [listener.port for listener in config.advertised_listeners] == [41001, 41002]
    assert config.inter_broker_listener_name == "PEERS"
    assert config.peer_addresses == {1: ("127.0.0.1", 42001), 3: ("::1", 42003)}
    assert config.data_directory == "nodes/2/data"
    assert config.warnings == ()


def test_kafkas_defaults() -> None:
    """Without settings a broker is Kafka's: one listener for clients, log.dir, no id. Brokers have one of their own."""
    config = validate({})
    assert config.listeners == (ListenerAddress("PLAINTEXT", "", 9092), ListenerAddress("BROKERS", "127.0.0.1", 0))
    assert config.inter_broker_listener_name == "BROKERS"
    assert config.data_directory == "/tmp/kafka-logs"
    assert config["replica.lag.time.max.ms"] == 30_000
    with pytest.raises(ConfigError, match=r"'broker\.id' is missing"):
        _ = config.broker_id
    assert validate({"node.id": 4}).broker_id == 4
    for unset in ({}, {"zookeeper.connect": ""}):
        with pytest.raises(ConfigError, match=r"'zookeeper\.connect' is missing"):
            _ = validate(unset).zookeeper_connect


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"process.roles": "broker"}, "'process.roles' cannot be used: gapless runs with ZooKeeper"),
        ({"broker.id": 1, "node.id": 2}, "'broker.id' and 'node.id' differ: 1 and 2"),
        ({"listeners": ""}, "'listeners' is empty"),
        ({"listeners": "127.0.0.1:9092"}, "expected NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:70000"}, "expected NAME://host:port, with a port from 0 to 65535"),
        ({"listeners": "A://:1,A://:2"}, "contains a listener twice: A, A"),
        ({"listeners": "A://:1,B://:1"}, "contains a port twice: 1, 1"),
        ({"advertised.listeners": "OTHER://h:1"}, "names 'OTHER', which is not in 'listeners'"),
        ({"inter.broker.listener.name": "PEERS"}, "is 'PEERS', which is not in 'listeners'"),
        (
            {"listeners": "A://:1,B://:2", "listener.security.protocol.map": "A:PLAINTEXT"},
            "has no entry for listener 'B'",
        ),
        ({"listeners": "A://:1", "listener.security.protocol.map": "A:SSL"}, "only PLAINTEXT is supported"),
        ({"listeners": "SSL://127.0.0.1:1"}, "'SSL' uses the protocol SSL; only PLAINTEXT is supported"),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,SASL_SSL://127.0.0.1:2"}, "'SASL_SSL' uses the protocol SASL_SSL"),
        ({"listener.security.protocol.map": "A"}, "expected NAME:PROTOCOL"),
        ({"gapless.peer.addresses": "127.0.0.1:9092"}, "expected id@host:port"),
        ({"gapless.peer.addresses": "1@h:0"}, "expected id@host:port"),
        (
            {"replica.fetch.wait.max.ms": 4000, "replica.lag.time.max.ms": 4000},
            "must be below 'replica.lag.time.max.ms'",
        ),
        (
            {"replica.fetch.wait.max.ms": 500, "replica.socket.timeout.ms": 500},
            "must be below 'replica.socket.timeout.ms'",
        ),
        ({"group.min.session.timeout.ms": 2, "group.max.session.timeout.ms": 1}, "is above"),
        ({"gapless.unknown.producer": "maybe"}, "expected one of gapless, kafka, seed"),
        ({"min.insync.replicas": 0}, "expected at least 1"),
    ],
)
def test_contradictions_are_refused(settings: dict[str, object], error: str) -> None:
    """Settings that cannot work together are refused when they are read, not when they hurt."""
    with pytest.raises(ConfigError) as caught:
        validate(settings)
    assert error in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_legal_and_probably_not_meant_is_warned_of() -> None:
    """Kafka accepts these too: a minimum ISR above the replicas, keys without effect, a second directory."""
    config = validate({"min.insync.replicas": 2, "num.io.threads": 16, "log.dirs": "a,b"})
    assert len(config.warnings) == 3
    assert "num.io.threads" in config.warnings[0]
    assert "every acks=all produce request to such topics is refused" in config.warnings[1]
    assert "only the first of log.dirs is used: a" in config.warnings[2]


def test_topics_take_their_defaults_from_the_broker() -> None:
    """The strongest of Kafka's synonyms counts, in the topic's unit; what the topic sets wins."""
    settings = validate({"log.retention.hours": 2, "log.roll.ms": 5000, "log.roll.hours": 1, "log.segment.bytes": 4096})
    made = topic.validate({"segment.bytes": "8192"}, settings)
    assert made["retention.ms"] == 7_200_000
    assert made["segment.ms"] == 5000
    assert made["segment.bytes"] == 8192
    assert topic.validate({}, validate({"log.retention.minutes": -1}))["retention.ms"] == -1
    assert topic.validate({}, validate({"log.cleanup.policy": "compact"}))["cleanup.policy"] == ("compact",)
    assert dict(topic.validate({}, validate({}))) == dict(topic.validate({}))


def test_every_topic_key_has_its_broker_key() -> None:
    """The synonyms name keys that exist, on both sides, with the same type of value."""
    for name, synonyms in topic.BROKER_SYNONYMS.items():
        for broker_key, _factor in synonyms:
            assert broker.BROKER_KEYS.key(broker_key).kind is topic.TOPIC_KEYS.key(name).kind
    assert set(topic.BROKER_SYNONYMS) == set(topic.TOPIC_KEYS.keys)


def test_topic_rules() -> None:
    """A topic's own contradictions are refused."""
    with pytest.raises(ConfigError, match=r"'max\.compaction\.lag\.ms' must not be below"):
        topic.validate({"max.compaction.lag.ms": 1, "min.compaction.lag.ms": 2})
