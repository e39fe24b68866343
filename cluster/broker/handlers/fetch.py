"""Fetch (1): for consumers on every listener, for followers on the brokers' own, who alone get sessions (KIP-227)."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import each_once
from cluster.broker.replicas.fetch_checks import FetchedBy, fetch_error
from cluster.broker.replicas.fetch_sessions import FULL_FETCH_EPOCHS, NO_SESSION, FetchSession
from cluster.broker.replicas.fetcher import broker_epoch_in
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResult, build_response, parse_request

READ_COMMITTED = 1
#: Up to this version a client does not know KAFKA_STORAGE_ERROR.
NO_STORAGE_ERROR_VERSION = 5
#: From this version on a client can unpack zstd (KIP-110).
ZSTD_VERSION = 10


def handle(replicas: ReplicaManager, exchange: Exchange, body: memoryview, *, from_brokers: bool) -> None:
    """``from_brokers``: the listener is the brokers' own. Elsewhere no one may pass for a follower: what a follower
    fetches is taken as proof that it has what stands before."""
    version = exchange.api_version
    request = parse_request(body, version)
    if len(request.partitions) > 1:
        # Of a partition that is named several times the last word counts, as in Kafka's map.
        request = request._replace(partitions=each_once(request.partitions))
    session: FetchSession | None = None

    def respond(results: list[FetchResult], error_code: ErrorCode = ErrorCode.NONE) -> None:
        replicas.counters.fetch_answered(error_code, results, to_broker=request.replica_id >= 0)
        if request.isolation_level == READ_COMMITTED:
            # A list says that we know of aborted transactions; null is for those who did not ask.
            results = [result._replace(aborted=[]) for result in results]
        if version < ZSTD_VERSION:
            results = [_as_known(replicas, result, version) for result in results]
        session_id = NO_SESSION if session is None else session.session_id
        exchange.respond(build_response(version, exchange.correlation_id, error_code, session_id, results))

    reader = FetchedBy()
    if request.replica_id < 0:
        if request.session_id != NO_SESSION and request.session_epoch not in FULL_FETCH_EPOCHS:
            respond([], ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            return
    else:
        if not from_brokers:
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            respond([fetch_error(wanted.topic, wanted.partition, code) for wanted in request.partitions])
            return
        reader = FetchedBy(request.replica_id, broker_epoch_in(exchange.client_id))
        try:
            session = replicas.admit(request, reader)
        except RequestRefused as error:
            respond([], error.error_code)
            return
    delayed = replicas.fetch(request, reader, respond, session)
    if delayed is not None:
        exchange.park(delayed, len(request.partitions))


def _as_known(replicas: ReplicaManager, result: FetchResult, version: int) -> FetchResult:
    """Kafka's answer to old clients: what a topic stores in zstd is not for them, after a failed disk they look for
    another leader."""
    partition = replicas.partitions.get((result.topic, result.partition))
    if partition is not None and partition.settings.log.codec == CODEC_ZSTD:
        return fetch_error(result.topic, result.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version <= NO_STORAGE_ERROR_VERSION and result.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        return result._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return result
