"""The consumer's own thread over a scripted selector: whom it asks about what, and its end."""

from __future__ import annotations

import threading

import pytest

from cluster.client import Consumer
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.cluster.client.fake_broker import metadata_response
from tests.cluster.client.scripted_selector import ScriptedSelector

MAX_AGE_MS = 300_000
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
Metadata = response_class(ApiKey.METADATA)


def describe(request, header):
    """One broker that leads partition 0 of whatever is asked for."""
    of_topic = Metadata.MetadataResponseTopic
    partition = of_topic.MetadataResponsePartition(
        partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
    )
    return Metadata(
        brokers=[Metadata.MetadataResponseBroker(node_id=1, host="b1", port=9092)],
        controller_id=1,
        topics=[of_topic(name=each.name, partitions=[partition]) for each in request.topics],
    )


class Setting:
    """A consumer with its clock and its selector, on a cluster that does not answer fetches."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.selector = ScriptedSelector(self.clock)
        self.selector.answers[ApiKey.METADATA] = describe
        self.consumer = Consumer(
            {"bootstrap.servers": "b1:9092", "metadata.max.age.ms": MAX_AGE_MS, "auto.offset.reset": "none"},
            selector=self.selector,
            clock=self.clock,
            random=Random(1),
        )

    def read(self, topic: str) -> None:
        """Go on with one partition of a topic alone."""
        self.consumer.assign([(topic, 0)])
        self.consumer.seek((topic, 0), 5)


def test_only_topics_that_are_read_are_asked_for():
    """Not those that were read before, nor those that a program asked about once: asking could create them again."""
    setting = Setting()
    with setting.consumer as consumer:
        setting.read("before")
        consumer.poll(0.1)
        assert [each.partition for each in consumer.partitions_for("once")] == [0]
        setting.read("now")
        consumer.poll(MAX_AGE_MS / 1000 + 1)
        asked = [
            [topic.name for topic in request.topics]
            for _node, header, request in setting.selector.requests
            if header.api_key == ApiKey.METADATA
        ]
        assert {name for names in asked for name in names} == {"before", "once", "now"}
        assert asked[-1] == ["now"]


def test_nothing_is_fetched_before_somebody_leads():
    """A bootstrap address leads nothing: a fetch from it would only hold up the answer that tells who does."""
    setting = Setting()
    with setting.consumer as consumer:
        setting.read("t")
        consumer.poll(0.1)
        sent = [(node_id, header.api_key) for node_id, header, _ in setting.selector.requests]
        assert [node_id for node_id, api_key in sent if api_key == ApiKey.FETCH] == [1]


def test_it_is_not_closed_while_it_is_used():
    """By another thread: that would take the connections from under the call that waits for them."""
    setting = Setting()
    setting.read("t")
    refused: list[str] = []

    def close() -> None:
        with pytest.raises(RuntimeError, match="multi-threaded"):
            setting.consumer.close()
        refused.append("close")

    def in_another_thread(_handler: object) -> None:
        other = threading.Thread(target=close)
        other.start()
        other.join()

    setting.selector.events.append(in_another_thread)
    setting.consumer.poll(0.1)
    assert refused and not setting.selector.is_shut_down
    for _ in range(2):
        setting.consumer.close()
    assert setting.selector.is_shut_down


def test_what_cannot_be_read_is_refused_before_it_is_asked_for():
    """A name or a number that no request can carry is the call's mistake, and what was assigned stays."""
    setting = Setting()
    setting.read("t")
    consumer = setting.consumer
    for wrong in [(b"t", 0), (None, 0), ("t", "0"), ("t", 1.0)]:
        with pytest.raises(TypeError):
            consumer.assign([wrong])
        with pytest.raises(TypeError):
            consumer.end_offsets([wrong])
    for wrong in [("", 0), ("t", -1), ("t", 2**31), ("t\ud800", 0)]:
        with pytest.raises(ValueError, match=r"opic|artition"):
            consumer.assign([wrong])
    with pytest.raises(TypeError, match="a text, not int"):
        consumer.partitions_for(5)
    for wrong in (1.5, "1", 2**63):
        with pytest.raises((TypeError, ValueError), match=r"an offset (is|has)"):
            consumer.seek(("t", 0), wrong)
        with pytest.raises((TypeError, ValueError), match=r"a time (is|has)"):
            consumer.offsets_for_times({("t", 0): wrong})
    assert consumer.assignment() == [("t", 0)]
    assert consumer.poll(0.01) == []


def test_a_wait_says_that_nobody_has_answered():
    """Not only that it was too short, as long as no broker of bootstrap.servers has told of the cluster."""
    setting = Setting()
    setting.selector.answers.clear()
    with pytest.raises(TimeoutError, match=r"offsets of t-0\. No broker of bootstrap.servers has .*: b1:9092"):
        setting.consumer.end_offsets([("t", 0)], timeout_s=1)
    setting.selector.answers[ApiKey.METADATA] = describe
    with pytest.raises(TimeoutError, match=r"offsets of t-0$"):
        setting.consumer.end_offsets([("t", 0)], timeout_s=60)


def test_what_does_not_exist_is_warned_of_once(caplog):
    """A poll that stays empty says why: the topic or the partition that is not there. When it is, it is read."""
    setting = Setting()
    topics: dict = {"few": [(1, [1])]}
    setting.selector.answers[ApiKey.METADATA] = lambda request, header: metadata_response(
        {1: ("b1", 9092)}, {each.name: topics.get(each.name, UNKNOWN) for each in request.topics}, 1
    )
    consumer = setting.consumer
    places = [("few", 1), ("typo", 0), ("typo", 1)]
    consumer.assign([("few", 0), *places])
    consumer.seek_to_beginning(places[:2])
    for place in (("few", 0), ("typo", 1)):
        consumer.seek(place, 5)
    for _ in range(10):
        assert consumer.poll(1) == []
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "partition few-1 does not exist: the topic has 1 partition(s), counted from 0; asking again until it does",
        "topic typo does not exist (UNKNOWN_TOPIC_OR_PARTITION); asking again until it does: create it, or check its "
        "name",
    ]
    caplog.clear()
    topics.update(few=[(1, [1])] * 2, typo=[(1, [1])] * 2)
    consumer.poll(60)
    sent = [request for _, header, request in setting.selector.requests if header.api_key == ApiKey.LIST_OFFSETS]
    asked = {
        (topic.name, each.partition_index) for request in sent for topic in request.topics for each in topic.partitions
    }
    assert asked == {("few", 1), ("typo", 0)}
    consumer.assign([("few", 0)])
    with pytest.raises(TimeoutError, match="offsets of gone-0"):
        consumer.end_offsets([("gone", 0)], timeout_s=1)
    assert [each.getMessage().split(" does")[0] for each in caplog.records if each.levelname == "WARNING"] == [
        "topic gone"
    ]
