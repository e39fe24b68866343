"""Fetch (1): for consumers on every listener, for followers on the brokers' own. Sessions are declined (KIP-227)."""

from __future__ import annotations

from cluster.broker.replicas.fetcher import broker_epoch_in
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.broker.replicas.values import Reader, fetch_error
from cluster.broker.server import Exchange
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchResult, build_response, parse_request

#: A session id of 0 in the answer declines a session: the client then sends full fetches.
NO_SESSION = 0
READ_COMMITTED = 1
#: Session epochs of a full fetch: without a session, and asking for one.
FULL_FETCH_EPOCHS = frozenset({-1, 0})


def handle(replicas: ReplicaManager, exchange: Exchange, body: memoryview, *, from_brokers: bool) -> None:
    """``from_brokers``: the listener is the brokers' own. Elsewhere nobody may pass for a follower: what a follower
    fetches is taken as proof that it has what stands before."""
    version = exchange.api_version
    request = parse_request(body, version)

    def respond(results: list[FetchResult], error_code: ErrorCode = ErrorCode.NONE) -> None:
        replicas.counters.fetch_answered(error_code, results, to_broker=request.replica_id >= 0)
        if request.isolation_level == READ_COMMITTED:
            # A list says that we know of aborted transactions; null is for those who did not ask.
            results = [result._replace(aborted=[]) for result in results]
        exchange.respond(build_response(version, exchange.correlation_id, error_code, NO_SESSION, results))

    if request.session_id != NO_SESSION and request.session_epoch not in FULL_FETCH_EPOCHS:
        respond([], ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return
    reader = Reader()
    if request.replica_id >= 0:
        if not from_brokers:
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            respond([fetch_error(wanted.topic, wanted.partition, code) for wanted in request.partitions])
            return
        reader = Reader(request.replica_id, broker_epoch_in(exchange.client_id))
    delayed = replicas.fetch(request, reader, respond)
    if delayed is not None:
        exchange.park(delayed)
