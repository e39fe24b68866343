"""Producer and consumer configuration, for both clients."""

from __future__ import annotations

import confluent_kafka
import pytest

from cluster.config import consumer, librdkafka, producer
from cluster.config.errors import ConfigError
from cluster.config.keys import KeyTable
from cluster.config.profiles import CHAOS, PROFILES, find


def test_kafkas_producer_defaults() -> None:
    """Without settings a producer is idempotent, acks=all, with Kafka's times."""
    config = producer.validate({})
    assert (config["acks"], config["enable.idempotence"], config["delivery.timeout.ms"]) == ("all", True, 120_000)
    assert config.warnings == ()


@pytest.mark.parametrize("client", ["native", "confluent"])
@pytest.mark.parametrize(
    ("settings", "weakness"),
    [
        ({"acks": "1"}, "acks 1"),
        ({"acks": 0}, "acks 0"),
        ({"retries": 0}, "retries 0"),
        ({"max.in.flight.requests.per.connection": 6}, "max.in.flight.requests.per.connection 6 (at most 5)"),
    ],
)
def test_idempotence_gives_way_unless_it_was_asked_for(client: str, settings: dict[str, object], weakness: str) -> None:
    """What an idempotent producer cannot keep turns idempotence off; together with an explicit true it is refused."""
    base = CHAOS.producer_base(client)
    config = producer.validate(settings, client, base)
    assert config["enable.idempotence"] is False
    assert config.warnings[0] == f"{weakness} turns 'enable.idempotence' off"
    assert config.as_text()["enable.idempotence"] == "false"
    for wish in ("enable.idempotence", "transactional.id"):
        value = "true" if wish == "enable.idempotence" else "t"
        with pytest.raises(ConfigError) as caught:
            producer.validate({**settings, wish: value}, client, base)
        assert weakness in str(caught.value)
    assert producer.validate({**settings, "enable.idempotence": "false"}, client, base)["enable.idempotence"] is False


def test_transactions_need_idempotence() -> None:
    """A transactional id with idempotence switched off is a contradiction."""
    with pytest.raises(ConfigError, match=r"'transactional\.id' needs 'enable\.idempotence' true"):
        producer.validate({"transactional.id": "t", "enable.idempotence": False})


def test_a_delivery_timeout_leaves_room_for_a_request() -> None:
    """One that was given and is too short is refused; one that was not given is raised."""
    with pytest.raises(ConfigError, match=r"at least 'linger\.ms' \+ 'request\.timeout\.ms': 3000 < 1 \+ 3000"):
        producer.validate({"delivery.timeout.ms": 3000, "linger.ms": 1, "request.timeout.ms": 3000})
    assert producer.validate({"linger.ms": 100_000})["delivery.timeout.ms"] == 130_000
    assert producer.validate({"linger.ms": 1}, base={"delivery.timeout.ms": "30000"})["delivery.timeout.ms"] == 30_001
    assert producer.validate({"delivery.timeout.ms": 0}, "confluent")["delivery.timeout.ms"] == 0


def test_librdkafkas_names_are_known_to_confluent_alone() -> None:
    """Each client has its own spelling; an alias is the same key, and Java's names are translated in the error."""
    config = producer.validate({"message.timeout.ms": 60_000, "queue.buffering.max.kbytes": 1024}, "confluent")
    assert config["delivery.timeout.ms"] == 60_000
    with pytest.raises(ConfigError, match=r"unknown producer config key 'queue\.buffering\.max\.kbytes'"):
        producer.validate({"queue.buffering.max.kbytes": 1024})
    with pytest.raises(ConfigError, match=r"which calls it 'message\.max\.bytes'"):
        producer.validate({"max.request.size": 1}, "confluent")
    with pytest.raises(ConfigError, match="given twice"):
        producer.validate({"linger.ms": 1, "queue.buffering.max.ms": 1}, "confluent")
    with pytest.raises(ConfigError, match=r"which calls it 'fetch\.wait\.max\.ms'"):
        consumer.validate({"fetch.max.wait.ms": 1}, "confluent")


def test_consumer_rules() -> None:
    """A heartbeat is shorter than the session, and a static member belongs to a group."""
    assert consumer.validate({})["auto.offset.reset"] == "latest"
    with pytest.raises(ConfigError, match=r"'heartbeat\.interval\.ms' must be below"):
        consumer.validate({"session.timeout.ms": 3000})
    with pytest.raises(ConfigError, match=r"needs 'group\.id'"):
        consumer.validate({"group.instance.id": "a"})
    with pytest.raises(ConfigError, match="expected one of earliest, latest, none"):
        consumer.validate({"auto.offset.reset": "error"})
    assert consumer.validate({"auto.offset.reset": "error"}, "confluent")["auto.offset.reset"] == "error"


def _accepted(kind: type, table: KeyTable, extra: dict[str, object]) -> None:
    config = {key.name: key.text(key.default) for key in table.keys.values() if key.default not in (None, (), "")}
    client = kind({**config, **extra, "bootstrap.servers": "127.0.0.1:1"})
    if hasattr(client, "close"):
        client.close()


def test_the_librdkafka_tables_are_librdkafkas() -> None:
    """The installed library accepts every key of the tables with its tabled default, and every alias."""
    quiet = {"log_level": 0}
    _accepted(confluent_kafka.Producer, librdkafka.PRODUCER_KEYS, quiet)
    _accepted(confluent_kafka.Consumer, librdkafka.CONSUMER_KEYS, {**quiet, "group.id": "g"})
    for alias, name in librdkafka.ALIASES.items():
        tables = [table for table in (librdkafka.PRODUCER_KEYS, librdkafka.CONSUMER_KEYS) if name in table.keys]
        assert tables
        assert alias not in tables[0].keys
    for java, name in librdkafka.JAVA_ONLY.items():
        with pytest.raises(confluent_kafka.KafkaException, match="No such configuration property"):
            confluent_kafka.Producer({java: "1"})
        assert name in librdkafka.PRODUCER_KEYS.keys or name in librdkafka.CONSUMER_KEYS.keys


@pytest.mark.parametrize("name", sorted(PROFILES))
@pytest.mark.parametrize("client", ["native", "confluent"])
def test_profiles_are_valid(name: str, client: str) -> None:
    """Every profile passes all tables for both clients, and its producers are idempotent with acks=all."""
    from cluster.config import broker, topic

    profile = find(name)
    assert broker.validate(profile.broker).warnings == ()
    topic.validate(profile.topic)
    made = producer.validate({}, client, profile.producer_base(client))
    assert made["enable.idempotence"] is True
    assert made["acks"] in ("all", "-1")
    assert made["delivery.timeout.ms"] >= 120_000
    assert consumer.validate({}, client, profile.consumer_base(client))["isolation.level"] == "read_uncommitted"


def test_the_chaos_profile_is_the_designs() -> None:
    """The numbers of docs/configuration.md; what is not there is Kafka's default."""
    from cluster.config import broker, topic

    config = broker.validate(find("chaos").broker)
    assert config["zookeeper.session.timeout.ms"] == 2000
    assert config["replica.lag.time.max.ms"] == 4000
    assert {config[f"{name}.timeout.ms"] for name in ("replica.socket", "controller.socket", "request")} == {3000}
    assert config["replica.fetch.backoff.ms"] == 100
    assert topic.validate(find("chaos").topic)["retention.ms"] == -1
    assert dict(broker.validate(find("kafka").broker)) == dict(broker.validate({}))


def test_an_unknown_profile_names_the_nearest() -> None:
    """A misspelt profile is refused like a misspelt key."""
    with pytest.raises(ConfigError, match="unknown profile 'chaso'; did you mean 'chaos'"):
        find("chaso")
    with pytest.raises(ConfigError, match="unknown profile 'x'; known profiles: chaos, kafka"):
        find("x")
