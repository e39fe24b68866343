"""Producer ids that are made up: each would be remembered for a day (M6)."""

from __future__ import annotations

from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

MOST = 5


def test_a_partition_remembers_a_bounded_number_of_producers() -> None:
    """One more is refused with an error that may be tried again, and nothing of it is stored; the others go on, also
    on a new leader's copy of the log, and a batch without a producer id is none of them."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        log = cluster.nodes[cluster.leader(TOPIC)].replicas.partitions[TOPIC, 0].log

        async def code(producer_id: int, base_sequence: int) -> int:
            records = batch(b"a", producer_id=producer_id, base_sequence=base_sequence)
            return (await client.produce(TOPIC, records)).error

        for producer_id in range(MOST):
            assert await code(producer_id, 0) == ErrorCode.NONE
        for producer_id in range(MOST, 10 * MOST):
            assert await code(producer_id, 0) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert ErrorCode.THROTTLING_QUOTA_EXCEEDED.retriable
        assert (log.log_end_offset, len(log.producers)) == (MOST, MOST)
        for producer_id in range(MOST):
            assert await code(producer_id, 1) == ErrorCode.NONE
        assert await code(-1, -1) == ErrorCode.NONE

    with_topic(check, gapless_max_producers=str(MOST))
