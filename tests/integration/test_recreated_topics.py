"""Topics that are deleted and created again under clients of ours that stay open, against brokers of ours."""

from __future__ import annotations

import pytest

from cluster.client import Admin, Consumer, NewTopic, Producer
from cluster.client.consumer.results import TopicRecreated
from cluster.client.producer.futures import RecordFuture
from cluster.client.producer.outcomes import recorded_outcome
from tests.support.kafka_clients import TIMEOUT_S, wait_for
from tests.support.native_clients import read
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def create(admin: Admin, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 3, {})])


def fill(cluster: UpCluster, topic: str, values: list[bytes]) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap}) as producer:
        futures = [producer.send(topic, value, partition=0) for value in values]
        producer.flush(TIMEOUT_S)
    assert [each.result(0).offset for each in futures] == list(range(len(values)))


@pytest.mark.parametrize("policy", ["earliest", "none"])
@pytest.mark.parametrize("count", [20, 60])
def test_a_consumer_starts_over(shared_cluster: UpCluster, admin: Admin, topic: str, policy: str, count: int) -> None:
    """By auto.offset.reset, or with none by an error until it seeks: whether the new log is shorter or longer than the
    position in the one before, no record of it is passed over.
    """
    fill(shared_cluster, topic, [b"before"] * 40)
    place = (topic, 0)
    config = {"bootstrap.servers": shared_cluster.bootstrap, "allow.auto.create.topics": False}
    with Consumer({**config, "auto.offset.reset": policy, "max.poll.records": 7}) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)
        assert {each.value for each in read(consumer, 40)} == {b"before"}
        admin.delete_topics([topic])
        assert consumer.poll(0.3) == []
        create(admin, topic)
        values = [b"%d" % number for number in range(count)]
        fill(shared_cluster, topic, values)
        if policy == "none":
            for _ in range(2):
                with pytest.raises(TopicRecreated, match="position 40 of partition 0"):
                    wait_for(lambda: consumer.poll(1), "an error")
            consumer.seek(place, 0)
        assert [(each.offset, each.value) for each in read(consumer, count)] == list(enumerate(values))


def test_a_producer_goes_on(shared_cluster: UpCluster, admin: Admin, topic: str) -> None:
    """With new sequences, and at once. What was under way is told truthfully: acknowledged, it is stored; refused, it
    is not; and no record is in the new log twice, nor out of order.
    """
    config = {"bootstrap.servers": shared_cluster.bootstrap, "linger.ms": 1}
    sent: list[RecordFuture] = []
    with Producer({**config, "batch.size": 200}) as producer:

        def send(count: int) -> None:
            numbers = range(len(sent), len(sent) + count)
            sent.extend(producer.send(topic, b"%d" % number, partition=0) for number in numbers)

        send(200)
        producer.flush(TIMEOUT_S)
        send(200)
        admin.delete_topics([topic])
        create(admin, topic)
        begun = len(sent)
        wait_for(lambda: send(20) or sent[-1].exception(TIMEOUT_S) is None, "a record of the new topic")
        send(100)
        producer.flush(TIMEOUT_S)
    with Consumer({"bootstrap.servers": shared_cluster.bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        place = (topic, 0)
        consumer.assign([place])
        found = [int(each.value or b"") for each in read(consumer, consumer.end_offsets([place])[place])]
    assert found == sorted(set(found))
    for number, future in enumerate(sent):
        error = future.exception(0)
        if error is None and number >= begun:
            assert found[future.result(0).offset] == number
        elif error is not None and recorded_outcome(error.error_code) == "fail":
            assert number not in found
    assert set(range(len(sent) - 100, len(sent))) <= set(found)
