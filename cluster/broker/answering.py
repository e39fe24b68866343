"""From a decoded message to an encoded answer: what most handlers share. Owns no request and no connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cluster.broker.server import Exchange
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import decode_request, encode_response
from cluster.seams.storage import Payload


def answering(key: ApiKey, handler: Callable[[Any, Exchange], Any]) -> Callable[[Exchange, memoryview], None]:
    """A handler of decoded messages that has its answer at once."""

    def handle(exchange: Exchange, body: memoryview) -> None:
        response = handler(decode_request(key, exchange.api_version, body), exchange)
        exchange.connection.counters.api.failed(key, getattr(response, "error_code", 0))
        exchange.respond([encode_response(key, exchange.api_version, exchange.correlation_id, response)])

    return handle


def answering_later(
    key: ApiKey, handler: Callable[[Any, Exchange], Awaitable[Any]]
) -> Callable[[Exchange, memoryview], None]:
    """A handler of decoded messages that must ask others first."""

    def handle(exchange: Exchange, body: memoryview) -> None:
        request = decode_request(key, exchange.api_version, body)

        async def work() -> Sequence[Payload]:
            response = await handler(request, exchange)
            exchange.connection.counters.api.failed(key, getattr(response, "error_code", 0))
            return [encode_response(key, exchange.api_version, exchange.correlation_id, response)]

        exchange.later(work())

    return handle
