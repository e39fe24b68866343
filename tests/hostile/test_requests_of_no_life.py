"""Brokers' own requests with broker epoch -1, "unknown" to Kafka: nobody who knows no life of a broker speaks for it
(H10). What the controller sends is tested with its handlers (``tests/cluster/broker/handlers``)."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import Cluster, serve
from tests.support.virtual_time import run


def producer_ids(_cluster: Cluster, broker_epoch: int) -> tuple[Any, int]:
    return request_class(ApiKey.ALLOCATE_PRODUCER_IDS)(broker_id=2, broker_epoch=broker_epoch), 0


def smaller_isr(cluster: Cluster, broker_epoch: int) -> tuple[Any, int]:
    """The leader of t-0, broker 2, wants an ISR of its own."""
    request = request_class(ApiKey.ALTER_PARTITION)
    topic, state = cluster.controller.cache.topic("t"), cluster.state()
    assert topic is not None and state is not None
    partition = request.TopicData.PartitionData
    change = partition(
        partition_index=0,
        leader_epoch=state["leader_epoch"],
        new_isr_with_epochs=[partition.BrokerState(broker_id=2, broker_epoch=-1, version=3)],
        leader_recovery_state=0,
        partition_epoch=state["version"],
        version=3,
    )
    topics = [request.TopicData(topic_id=topic.topic_id, partitions=[change], version=3)]
    return request(broker_id=2, broker_epoch=broker_epoch, topics=topics, version=3), 3


@pytest.mark.parametrize("ask", [producer_ids, smaller_isr])
def test_the_unknown_life_of_a_broker_is_refused(ask: Any) -> None:
    """STALE_BROKER_EPOCH, and nothing is written; of the life that is registered the same request is obeyed."""

    async def main() -> None:
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 1, 3]}, partitions=-1, factor=-1)

        def written() -> tuple[Any, Any]:
            return cluster.tree.get(PRODUCER_ID_BLOCK), cluster.state()

        await cluster.until(lambda: all(broker.plane._producer_ids._supply._ahead is not None for broker in brokers))
        before = written()
        for epoch in (-1, brokers[1].plane.broker_epoch - 1):
            answer = await serve(brokers[0].plane, *ask(cluster, epoch))
            assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert written() == before
        answer = await serve(brokers[0].plane, *ask(cluster, brokers[1].plane.broker_epoch))
        assert answer.error_code == ErrorCode.NONE
        assert written() != before
        await cluster.stop()

    run(main())
