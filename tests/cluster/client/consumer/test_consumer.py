"""The consumer's own thread over a scripted selector: which topics it asks about."""

from __future__ import annotations

from cluster.client import Consumer
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class
from cluster.seams.clock import ManualClock
from cluster.seams.randomness import Random
from tests.cluster.client.scripted_selector import ScriptedSelector

MAX_AGE_MS = 300_000
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


def test_only_topics_that_are_read_are_asked_for():
    """Not those that were read before, nor those that a program asked about once: asking could create them again."""
    clock = ManualClock()
    selector = ScriptedSelector(clock)
    selector.answers[ApiKey.METADATA] = describe
    with Consumer(
        {"bootstrap.servers": "b1:9092", "metadata.max.age.ms": MAX_AGE_MS, "auto.offset.reset": "none"},
        selector=selector, clock=clock, random=Random(1),
    ) as consumer:  # fmt: skip
        consumer.assign([("before", 0)])
        consumer.seek(("before", 0), 5)
        consumer.poll(0.1)
        # Nobody leads before metadata tell who does.
        assert [node_id for node_id, header, _ in selector.requests if header.api_key == ApiKey.FETCH] == [1]
        assert [each.partition for each in consumer.partitions_for("once")] == [0]
        consumer.assign([("now", 0)])
        consumer.seek(("now", 0), 5)
        consumer.poll(MAX_AGE_MS / 1000 + 1)
        asked = [
            [topic.name for topic in request.topics]
            for _node, header, request in selector.requests
            if header.api_key == ApiKey.METADATA
        ]
        assert {name for names in asked for name in names} == {"before", "once", "now"}
        assert asked[-1] == ["now"]
