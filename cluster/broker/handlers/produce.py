"""Produce (0): the request goes to the replica manager whole; the answer follows when its acks say so. Before records
that may begin a transaction, its coordinator is asked.

One that names hundreds of partitions is parsed and answered off the event loop, and written in shares of its turns.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import each_once
from cluster.broker.pauses import Pauses
from cluster.broker.portions import Beside, IsGone, chunks, never_gone
from cluster.broker.replicas.host import WrittenBy
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.replicas.verified import NOT_ASKED
from cluster.broker.transactions.transaction_verifier import ToVerify, TransactionVerifier
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode, ManyPartitions
from cluster.protocol.produce import (
    ProduceRequest,
    ProduceResult,
    build_response,
    parse_request,
)

logger = logging.getLogger(__name__)

#: zstd may be used from this version on.
ZSTD_VERSION = 7
#: Topics and partitions that are parsed on the event loop.
PARTITIONS_AT_ONCE = 200


def handle(
    replicas: ReplicaManager, verifier: TransactionVerifier, beside: Beside, exchange: Exchange, body: memoryview
) -> None:
    version = exchange.api_version
    try:
        request = parse_request(body, version, PARTITIONS_AT_ONCE)
    except ManyPartitions:
        # The frame is used again, and batches are completed in place.
        exchange.later(_handle_many(replicas, verifier, beside, exchange, memoryview(bytearray(body))))
        return
    transactional_id, acks, _, partitions = request
    if transactional_id is not None and (asked := verifier.unverified(partitions)):
        exchange.later(_handle_verified(replicas, verifier, exchange, memoryview(bytearray(body)), asked))
        return
    if len(partitions) > 1:
        request = _distinct(request)
    connection = exchange.connection
    rest = replicas.writes.produce(
        request,
        WrittenBy(exchange.client_id, connection.ip),
        version >= ZSTD_VERSION,
        exchange.started_ns // 1_000_000,
        partial(_answer, exchange, acks),
        exchange.wait,
        NOT_ASKED,
        connection.is_gone if acks else never_gone,
    )
    if rest is not None:
        exchange.later(rest)


async def _handle_verified(
    replicas: ReplicaManager, verifier: TransactionVerifier, exchange: Exchange, body: memoryview, asked: list[ToVerify]
) -> None:
    """The coordinator is asked first, whether the transaction has these partitions."""
    version = exchange.api_version
    request = _distinct(parse_request(body, version))
    verified = await verifier.verify(request.transactional_id or "", asked)
    answer, zstd_allowed = partial(_answer, exchange, request.acks), version >= ZSTD_VERSION
    now_ms = exchange.connection.counters.now_ns() // 1_000_000
    client, told = _written_by(exchange), (answer, exchange.wait, verified, _is_gone(exchange, request.acks))
    rest = replicas.writes.produce(request, client, zstd_allowed, now_ms, *told)
    if rest is not None:
        await rest


async def _handle_many(
    replicas: ReplicaManager, verifier: TransactionVerifier, beside: Beside, exchange: Exchange, body: memoryview
) -> None:
    version = exchange.api_version
    async with beside.large.of(len(body)):
        request = await beside.run(lambda: _distinct(parse_request(body, version)), weight=len(body))
        # Without the request: it has the records, and the answer may wait for followers long after they are stored.
        answer = partial(_finish_many, beside, exchange, request.acks)
        verified, is_gone = NOT_ASKED, _is_gone(exchange, request.acks)
        if request.transactional_id is not None:
            asked, pause = [], Pauses(verifier.shares)
            for some in chunks(request.partitions, PARTITIONS_AT_ONCE):
                asked += verifier.unverified(some)
                await pause()
            verified = await verifier.verify(request.transactional_id, asked)
        client = _written_by(exchange)
        await replicas.writes.produce_in_shares(
            request, client, version >= ZSTD_VERSION, answer, exchange.wait, verified, is_gone
        )


def _is_gone(exchange: Exchange, acks: int) -> IsGone:
    """Who wants no acknowledgement may leave at once, and what was sent is stored."""
    return exchange.connection.is_gone if acks else never_gone


def _written_by(exchange: Exchange) -> WrittenBy:
    return WrittenBy(exchange.client_id, exchange.connection.ip)


def _finish_many(beside: Beside, exchange: Exchange, acks: int, results: list[ProduceResult]) -> None:
    exchange.finish(_answer_many(beside, exchange, acks, results))


async def _answer_many(beside: Beside, exchange: Exchange, acks: int, results: list[ProduceResult]) -> None:
    if acks == 0:
        _answer(exchange, acks, results)
        return
    codes = await beside.run(lambda: Counter(result.error_code for result in results if result.error_code))
    for code, count in codes.items():
        exchange.connection.counters.api.failed(ApiKey.PRODUCE, code, count)
    head = exchange.api_version, exchange.correlation_id
    exchange.respond([await beside.run(partial(build_response, *head, results))])


def _distinct(request: ProduceRequest) -> ProduceRequest:
    """Of a partition that is named several times the last batch counts, as in Kafka's map."""
    return request._replace(partitions=each_once(request.partitions))


def _answer(exchange: Exchange, acks: int, results: list[ProduceResult]) -> None:
    for result in results:
        if result.error_code:
            exchange.connection.counters.api.failed(ApiKey.PRODUCE, result.error_code)
    if acks != 0:
        exchange.respond([build_response(exchange.api_version, exchange.correlation_id, results)])
        return
    errors = sorted({ErrorCode(result.error_code).name for result in results if result.error_code})
    if errors:
        # No one reads an answer: a closed connection is the only way to make the client look again.
        logger.info("acks=0 from %r failed: %s", exchange.client_id, ", ".join(errors))
        exchange.refuse("a produce without acks failed")
    else:
        exchange.skip()
