"""DeleteRecords (21): forget what lies below an offset, on every replica (Kafka's KafkaApis, KIP-107)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import named
from cluster.broker.portions import BYTES_AT_ONCE, Beside, Portions
from cluster.broker.replicas.record_deletion import DelayedDeletion, DeletionResult, WantedDeletion
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.message_classes import DeleteRecordsRequest, DeleteRecordsResponse
from cluster.protocol.messages import decode_request, encode_response
from cluster.seams.storage import Payload


class _AwaitedDeletion:
    """A deletion whose results a task awaits: it gets some, also when no one wants the answer."""

    __slots__ = ("_delayed",)

    def __init__(self, delayed: DelayedDeletion) -> None:
        self._delayed = delayed

    def __repr__(self) -> str:
        return f"_AwaitedDeletion({self._delayed!r})"

    @property
    def size_bytes(self) -> int:
        return self._delayed.size_bytes

    def finish_now(self) -> None:
        self._delayed.finish_now()

    abandon = finish_now


def handle(services: Services, beside: Beside, exchange: Exchange, body: memoryview) -> None:
    if len(body) > BYTES_AT_ONCE:
        exchange.later(_of_large(services, beside, exchange, bytes(body)))
        return
    wanted, timeout_ms = _wanted(exchange.api_version, body)

    def respond(results: list[DeletionResult]) -> None:
        exchange.respond([_encoding(exchange, results)()])

    rest = _delete(services, beside, wanted, timeout_ms, respond, exchange.wait)
    if rest is not None:
        exchange.later(rest)


async def _of_large(services: Services, beside: Beside, exchange: Exchange, body: bytes) -> Sequence[Payload]:
    """Nothing else of the connection is taken until it is answered, which is at most the time that the client gives."""
    wanted, timeout_ms = await beside.run(partial(_wanted, exchange.api_version, body), weight=len(body))
    answered: asyncio.Future[list[DeletionResult]] = asyncio.get_running_loop().create_future()

    def waits(delayed: DelayedDeletion) -> None:
        exchange.wait(_AwaitedDeletion(delayed))

    rest = _delete(services, beside, wanted, timeout_ms, answered.set_result, waits)
    if rest is not None:
        await rest
    # What waits for followers, for as long as the client likes, is not the request.
    del body, wanted, rest
    exchange.let_go()
    return [await beside.run(_encoding(exchange, await answered))]


def _wanted(api_version: int, body: bytes | memoryview) -> tuple[list[WantedDeletion], int]:
    """What is asked for, each partition once, and the time that the client gives. The request itself, which may be a
    million objects, ends here, on the thread that made it."""
    request = decode_request(DeleteRecordsRequest, api_version, body)
    topics = named(
        (topic.name, ((asked.partition_index, asked.offset) for asked in topic.partitions)) for topic in request.topics
    )
    wanted = [
        WantedDeletion(topic, partition, offset)
        for topic, offsets in topics.items()
        for partition, offset in offsets.items()
    ]
    return wanted, request.timeout_ms


def _delete(
    services: Services,
    beside: Beside,
    wanted: list[WantedDeletion],
    timeout_ms: int,
    respond: Callable[[list[DeletionResult]], None],
    waits: Callable[[DelayedDeletion], None],
) -> Awaitable[None] | None:
    """Delete, and respond when it is done; what is returned, if anything, is the rest of the work on this broker."""
    steps = services.replicas.deletion.delete(wanted, timeout_ms, respond, waits)
    portions = Portions(steps, services.shares)
    return None if portions.begin() else portions.finish(beside)


def _encoding(exchange: Exchange, results: list[DeletionResult]) -> Callable[[], bytes]:
    """Makes the answer, on any thread. Its errors are counted now."""
    for result in results:
        if result.error_code:
            exchange.connection.counters.api.failed(ApiKey.DELETE_RECORDS, result.error_code)
    return partial(_encoded, exchange.api_version, exchange.correlation_id, results)


def _encoded(version: int, correlation_id: int, results: list[DeletionResult]) -> bytes:
    topic_class = DeleteRecordsResponse.DeleteRecordsTopicResult
    topics: dict[str, list[DeleteRecordsResponse.DeleteRecordsTopicResult.DeleteRecordsPartitionResult]] = {}
    for result in results:
        topics.setdefault(result.topic, []).append(
            topic_class.DeleteRecordsPartitionResult(
                partition_index=result.partition, low_watermark=result.low_watermark, error_code=result.error_code
            )
        )
    message = DeleteRecordsResponse(
        topics=[topic_class(name=name, partitions=partitions) for name, partitions in topics.items()]
    )
    return encode_response(ApiKey.DELETE_RECORDS, version, correlation_id, message)
