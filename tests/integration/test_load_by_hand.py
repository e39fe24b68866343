"""What a load by hand asks of a real cluster before it starts, and after it wrote nothing."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from loadgen import topics
from loadgen.settings import LoadSettings, SettingsError
from loadgen.topics import Log, ensure_topic, positions, too_large_for_topic, topic_config, why_not_written
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def a_topic(cluster: UpCluster, **config: str) -> str:
    name = f"by-hand-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(name, num_partitions=2, config={key.replace("_", "."): value for key, value in config.items()})
    admin.create_topics([new])[name].result(30)
    return name


def test_a_topic_that_another_worker_creates_first_is_used(
    shared_cluster: UpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was absent when it was looked for, and there when it was to be made: with as many partitions as it has."""
    topic = a_topic(shared_cluster)
    real, seen = topics._partitions, [None]
    monkeypatch.setattr(topics, "_partitions", lambda *asked: seen.pop() if seen else real(*asked))
    settings = LoadSettings(run_id=1, topic=topic, partitions=4, replication_factor=1, create_topic=True)
    assert ensure_topic(shared_cluster.bootstrap, settings).partitions == 2
    assert not seen


def test_settings_that_create_no_topic_need_one(shared_cluster: UpCluster) -> None:
    """As those of a run do: one line names the topic and what to do, instead of a load that writes nothing."""
    settings = LoadSettings(run_id=1, topic=f"absent-{uuid.uuid4().hex[:8]}")
    with pytest.raises(SettingsError, match=rf'^topic {settings.topic} is absent, .*"create_topic": true$'):
        ensure_topic(shared_cluster.bootstrap, settings)


def test_records_that_a_topic_refuses_are_warned_of(shared_cluster: UpCluster) -> None:
    """Whoever says how large they are, the topic's limit, and both fixes; of what fits nothing is said."""
    topic = a_topic(shared_cluster, max_message_bytes="300")
    settings = ensure_topic(shared_cluster.bootstrap, LoadSettings(run_id=1, topic=topic, value_bytes=500))
    assert settings.partitions == 2
    assert too_large_for_topic(shared_cluster.bootstrap, settings, "--kafka-value-bytes 500") == (
        "--kafka-value-bytes 500: a value of 500 bytes is too large for the topic's max.message.bytes 300; write "
        "values of at most 230 bytes, or give the topic max.message.bytes=570"
    )
    packed = settings.with_changes({"producer_config": {"compression.type": "lz4"}})
    line = too_large_for_topic(shared_cluster.bootstrap, packed, "x")
    assert line is not None and line.endswith("(unless it is compressed to less)")
    fits = settings.with_changes({"value_bytes": 230})
    assert too_large_for_topic(shared_cluster.bootstrap, fits, "x") is None


def test_a_topic_that_cannot_be_asked_has_its_brokers_limit(shared_cluster: UpCluster) -> None:
    """One that is not there yet, say; and where nobody answers there is nothing to say."""
    large = LoadSettings(run_id=1, topic=f"absent-{uuid.uuid4().hex[:8]}", value_bytes=2_000_000)
    line = too_large_for_topic(shared_cluster.bootstrap, large, "x")
    assert line is not None and "the topic's max.message.bytes 1048588" in line
    assert why_not_written(shared_cluster.bootstrap, large.topic) == f"topic {large.topic} is missing"
    assert why_not_written(shared_cluster.bootstrap, a_topic(shared_cluster)) is None


def test_what_a_load_is_judged_by_is_asked_at_its_beginning(shared_cluster: UpCluster) -> None:
    """Where each log begins and ends, right after the topic was made and after writing; and what may excuse a loss."""
    topic = a_topic(shared_cluster, unclean_leader_election_enable="true")
    assert positions(shared_cluster.bootstrap, topic, 2) == {0: Log(0, 0), 1: Log(0, 0)}
    producer = Producer({"bootstrap.servers": shared_cluster.bootstrap})
    producer.produce(topic, b"x", partition=1)
    producer.flush(30)
    assert positions(shared_cluster.bootstrap, topic, 2) == {0: Log(0, 0), 1: Log(0, 1)}
    told = topic_config(shared_cluster.bootstrap, topic)
    assert (told["unclean.leader.election.enable"], told["cleanup.policy"]) == ("true", "delete")
