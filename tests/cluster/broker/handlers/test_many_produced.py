"""A produce request that names hundreds of partitions keeps no records while it waits for followers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from cluster.broker.handlers.produce import PARTITIONS_AT_ONCE, handle
from cluster.broker.portions import Beside
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, parse_request_header, request_class
from tests.simulation.client import batch


def body() -> memoryview:
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData
    data = [part(index=number, records=batch(b"a")) for number in range(PARTITIONS_AT_ONCE + 1)]
    topics = [request.TopicProduceData(name="t", partition_data=data)]
    frame = encode_request(request(transactional_id=None, acks=-1, timeout_ms=1, topic_data=topics), 9, 7, "c")
    return memoryview(bytearray(frame))[parse_request_header(memoryview(frame))[4] :]


def test_the_answer_does_not_hold_the_request() -> None:
    """What is called when the followers have the records refers to acks alone."""
    asked: list[Any] = []

    async def produce_in_shares(
        request: Any, _client: Any, _zstd: bool, respond: Any, _waits: Any, _verified: Any, _is_gone: Any
    ) -> None:
        assert len(request.partitions) == PARTITIONS_AT_ONCE + 1
        asked.extend([request, respond])

    async def beside(work: Any) -> None:
        work()

    async def main() -> None:
        works: list[Any] = []
        connection = SimpleNamespace(is_gone=lambda: False, ip="10.0.0.9")
        exchange: Any = SimpleNamespace(
            api_version=9, client_id="c", later=works.append, wait=None, connection=connection
        )
        replicas: Any = SimpleNamespace(writes=SimpleNamespace(produce_in_shares=produce_in_shares))
        verifier: Any = None
        handle(replicas, verifier, Beside(beside), exchange, body())
        await works[0]

    asyncio.run(main())
    request, respond = asked
    assert respond.args[-1] == request.acks
    assert request not in respond.args
