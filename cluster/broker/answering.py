"""From a decoded message to an encoded answer: what most handlers share. Owns no request and no connection.

What is large is decoded and encoded off the event loop, and answered in portions (``portions``). If its client has gone
while it waited for others that are large, a request that only reads is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Shares
from cluster.broker.portions import (
    BYTES_AT_ONCE,
    Beside,
    IsGone,
    Portions,
    RequestQuota,
    Steps,
    begin_in_turn,
    is_large,
    may_begin,
    never_gone,
    weight_of,
)
from cluster.protocol.apis import ApiKey
from cluster.protocol.message_classes import Message
from cluster.protocol.messages import decode_request, encode_response
from cluster.seams.storage import Payload

# By its name: the class itself has no truth value, which TypeVar asks for.
_Request = TypeVar("_Request", bound="Message")

Handle = Callable[[Exchange, memoryview], None]

#: What changes nothing, so that nothing is lost if it is not carried out (that Metadata creates topics is for its
#: client alone). Fetch is not answered here.
READS = frozenset(
    {
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
    }
)


def answering_in_steps(
    request_class: type[_Request],
    handler: Callable[[_Request, Exchange], Steps[Message]],
    beside: Beside,
    shares: Shares,
) -> Handle:
    """For a handler of decoded messages that makes its answer of what is known here, usually at once."""
    key = ApiKey(request_class.API_KEY)

    def begin(request: _Request, exchange: Exchange) -> Portions[Message]:
        return Portions(handler(request, exchange), shares)

    def handle(exchange: Exchange, body: memoryview) -> None:
        if len(body) > BYTES_AT_ONCE:
            exchange.later(of_large(exchange, bytes(body)))
            return
        if not may_begin(len(body), shares):
            exchange.later(in_turn(exchange, bytes(body)))
            return
        portions = begin(decode_request(request_class, exchange.api_version, body), exchange)
        if portions.begin() and not is_large(portions.result):
            exchange.respond([encoding(key, exchange, portions.result)()])
        else:
            exchange.later(rest(exchange, portions))

    async def in_turn(exchange: Exchange, body: bytes) -> Sequence[Payload]:
        end_ns = await begin_in_turn(len(body), shares)
        portions = begin(decode_request(request_class, exchange.api_version, body), exchange)
        portions.begin(end_ns)
        return await rest(exchange, portions)

    async def of_large(exchange: Exchange, body: bytes) -> Sequence[Payload]:
        is_gone = _is_gone(key, exchange)
        async with beside.large.of(len(body), is_gone):
            decode = partial(decode_request, request_class, exchange.api_version, body)
            request = await beside.run(decode, is_gone, weight=len(body))
            return await rest(exchange, begin(request, exchange))

    async def rest(exchange: Exchange, portions: Portions[Message]) -> Sequence[Payload]:
        response = await portions.finish(beside, _is_gone(key, exchange))
        return [await _encoded(key, exchange, response, beside)]

    return handle


def answering_awaited(
    request_class: type[_Request],
    handler: Callable[[_Request, Exchange], Awaitable[Message]],
    beside: Beside,
    shares: Shares,
    room: RequestQuota | None = None,
) -> Handle:
    """For a handler of decoded messages that must ask others first. In ``room`` large requests wait for each other,
    until their handler lets go of them (``Exchange.let_go``), so it does that before it waits for other clients."""
    key = ApiKey(request_class.API_KEY)
    room = room or beside.large

    def handle(exchange: Exchange, body: memoryview) -> None:
        if len(body) > BYTES_AT_ONCE:
            exchange.later(of_large(exchange, bytes(body)))
        elif not may_begin(len(body), shares):
            exchange.later(in_turn(exchange, bytes(body)))
        else:
            exchange.later(work(exchange, [decode_request(request_class, exchange.api_version, body)]))

    async def in_turn(exchange: Exchange, body: bytes) -> Sequence[Payload]:
        await begin_in_turn(len(body), shares)
        return await work(exchange, [decode_request(request_class, exchange.api_version, body)])

    async def of_large(exchange: Exchange, body: bytes) -> Sequence[Payload]:
        is_gone = _is_gone(key, exchange)
        async with room.of(len(body), is_gone) as exchange.slot:
            decode = partial(decode_request, request_class, exchange.api_version, body)
            request = [await beside.run(decode, is_gone, weight=len(body))]
            del decode, body
            return await work(exchange, request)

    async def work(exchange: Exchange, request: list[_Request]) -> Sequence[Payload]:
        """Nothing but the handler holds the request while it waits, and it may let go of it."""
        while shares.is_full():
            await shares.next()
        response = await handler(request.pop(), exchange)
        return [await _encoded(key, exchange, response, beside)]

    return handle


async def _encoded(key: ApiKey, exchange: Exchange, response: Message, beside: Beside) -> bytes:
    encode = encoding(key, exchange, response)
    if not is_large(response):
        return encode()
    return await beside.run(encode, _is_gone(key, exchange), weight=weight_of(response))


def _is_gone(key: ApiKey, exchange: Exchange) -> IsGone:
    return exchange.connection.is_gone if key in READS else never_gone


def encoding(key: ApiKey, exchange: Exchange, response: Message) -> Callable[[], bytes]:
    """Encodes the answer to ``exchange``, on any thread. An error of the whole is counted now."""
    exchange.connection.counters.api.failed(key, getattr(response, "error_code", 0))
    return partial(encode_response, key, exchange.api_version, exchange.correlation_id, response)
