"""Produce (0): the request goes to the replica manager whole; the answer follows when its acks say so."""

from __future__ import annotations

import logging
from functools import partial

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import each_once
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.produce import ProduceResult, build_response, parse_request

logger = logging.getLogger(__name__)

#: zstd may be used from this version on.
ZSTD_VERSION = 7


def handle(replicas: ReplicaManager, exchange: Exchange, body: memoryview) -> None:
    version = exchange.api_version
    request = parse_request(body, version)
    transactional_id, acks, _, partitions = request
    if transactional_id is not None:
        _answer(exchange, acks, [
            ProduceResult(wanted.topic, wanted.partition, ErrorCode.INVALID_TXN_STATE, error_message="no transactions")
            for wanted in partitions
        ])  # fmt: skip
        return
    if len(partitions) > 1:
        # Of a partition that is named several times the last batch counts, as in Kafka's map.
        request = request._replace(partitions=each_once(partitions))
    answer = partial(_answer, exchange, acks)
    now_ms = exchange.started_ns // 1_000_000
    zstd_allowed = version >= ZSTD_VERSION
    rest = replicas.writes.produce(request, exchange.client_id, zstd_allowed, now_ms, answer, exchange.wait)
    if rest is not None:
        exchange.hold(rest)


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
