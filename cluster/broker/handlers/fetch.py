"""Fetch (1): for consumers on every listener, for followers on the brokers' own, who alone get sessions (KIP-227)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import each_once
from cluster.broker.pauses import Shares
from cluster.broker.portions import BYTES_AT_ONCE, Beside, Portions, Steps, begin_in_turn, chunks, may_begin
from cluster.broker.replicas.fetch_checks import READ_COMMITTED, FetchedBy, fetch_error
from cluster.broker.replicas.fetch_session import FULL_FETCH_EPOCHS, FetchSession
from cluster.broker.replicas.fetch_sessions import NO_SESSION
from cluster.broker.replicas.fetcher import broker_epoch_in
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.replicas.purgatory import DelayedFetch
from cluster.broker.replicas.reads import PARTITIONS_A_STEP
from cluster.broker.replicas.replica_manager import ReplicaManager
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchRequest, FetchResult, build_response, parse_request

_Result = TypeVar("_Result")

#: Up to this version a client does not know KAFKA_STORAGE_ERROR.
NO_STORAGE_ERROR_VERSION = 5
#: From this version on a client can unpack zstd (KIP-110).
ZSTD_VERSION = 10


def handle(
    replicas: ReplicaManager,
    beside: Beside,
    shares: Shares,
    exchange: Exchange,
    body: memoryview,
    *,
    from_brokers: bool,
) -> None:
    """``from_brokers``: the listener is the brokers' own. Elsewhere no one may pass for a follower: what a follower
    fetches is taken as proof that it has what stands before."""
    if len(body) > BYTES_AT_ONCE:
        exchange.later(_Large(replicas, beside, shares, exchange).answer(bytes(body), from_brokers))
    elif not may_begin(len(body), shares):
        exchange.later(_in_turn(replicas, shares, exchange, bytes(body), from_brokers))
    else:
        _answer(replicas, exchange, body, from_brokers)


async def _in_turn(
    replicas: ReplicaManager, shares: Shares, exchange: Exchange, body: bytes, from_brokers: bool
) -> None:
    await begin_in_turn(len(body), shares)
    _answer(replicas, exchange, body, from_brokers)
    connection = exchange.connection
    if connection.parked is not None and connection.is_gone():
        # As elsewhere, it is answered without a wait: the client may have closed its end alone, and read on.
        parked, connection.parked = connection.parked, None
        parked.finish_now()


def _answer(replicas: ReplicaManager, exchange: Exchange, body: memoryview | bytes, from_brokers: bool) -> None:
    request = _parse(body, exchange.api_version)
    if _is_impostor(request, from_brokers):
        _respond(replicas, exchange, request, _refused(request))
        return
    try:
        reader, session = _admit(replicas, exchange, request)
    except RequestRefused as error:
        _respond(replicas, exchange, request, [], error.error_code)
        return
    respond = partial(_respond, replicas, exchange, request, session_id=_id_of(session))
    delayed = replicas.fetch(request, reader, respond, session)
    if delayed is not None:
        exchange.park(delayed, len(request.partitions))


def _parse(body: memoryview | bytes, version: int) -> FetchRequest:
    request = parse_request(memoryview(body), version)
    # Of a partition that is named several times the last word counts, as in Kafka's map.
    return request._replace(partitions=each_once(request.partitions)) if len(request.partitions) > 1 else request


def _is_impostor(request: FetchRequest, from_brokers: bool) -> bool:
    return request.replica_id >= 0 and not from_brokers


def _refused(request: FetchRequest) -> list[FetchResult]:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return [fetch_error(wanted.topic, wanted.partition, code) for wanted in request.partitions]


def _admit(
    replicas: ReplicaManager, exchange: Exchange, request: FetchRequest
) -> tuple[FetchedBy, FetchSession | None]:
    """Who fetches, and the session that the fetch belongs to. Raises ``RequestRefused``."""
    if request.replica_id >= 0:
        reader = FetchedBy(request.replica_id, broker_epoch_in(exchange.client_id))
        return reader, replicas.admit(request, reader)
    if request.session_id != NO_SESSION and request.session_epoch not in FULL_FETCH_EPOCHS:
        raise RequestRefused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "consumers have no sessions")
    return FetchedBy(isolation_level=request.isolation_level), None


def _id_of(session: FetchSession | None) -> int:
    return NO_SESSION if session is None else session.session_id


class _FetchAnswer(NamedTuple):
    """What is left to encode."""

    results: list[FetchResult]
    error_code: ErrorCode = ErrorCode.NONE
    session_id: int = NO_SESSION


class _Large:
    """A fetch that may name tens of thousands: parsed and encoded off the event loop, read in steps."""

    __slots__ = ("_beside", "_exchange", "_replicas", "_shares")

    def __init__(self, replicas: ReplicaManager, beside: Beside, shares: Shares, exchange: Exchange) -> None:
        self._replicas = replicas
        self._beside = beside
        self._shares = shares
        self._exchange = exchange

    def __repr__(self) -> str:
        return f"<_Large {self._exchange!r}>"

    async def answer(self, body: bytes, from_brokers: bool) -> None:
        exchange = self._exchange
        is_gone = exchange.connection.is_gone
        request = await self._beside.run(partial(_parse, body, exchange.api_version), is_gone, weight=len(body))
        found = await self._in_portions(self._steps(request, from_brokers))
        if not isinstance(found, DelayedFetch):
            await self._respond(found)
        elif is_gone():
            # It may have closed its end alone, and read on: as elsewhere, it is answered without a wait.
            found.finish_now()
        elif not found.is_done:
            exchange.park(found, len(request.partitions))

    async def _finish(self, steps: Steps[_FetchAnswer]) -> None:
        """The wait is over: what is left to do takes as long as for a fetch that does not wait."""
        await self._respond(await self._in_portions(steps))

    async def _in_portions(self, steps: Steps[_Result]) -> _Result:
        portions = Portions(steps, self._shares)
        portions.begin()
        return await portions.finish(self._beside)

    async def _respond(self, found: _FetchAnswer) -> None:
        exchange = self._exchange
        head = exchange.api_version, exchange.correlation_id, found.error_code, found.session_id
        exchange.respond(await self._beside.run(partial(build_response, *head, found.results)))

    def _steps(self, request: FetchRequest, from_brokers: bool) -> Steps[_FetchAnswer | DelayedFetch]:
        session = None
        if _is_impostor(request, from_brokers):
            found = yield partial(_refused, request)
        else:
            try:
                reader, session = _admit(self._replicas, self._exchange, request)
            except RequestRefused as error:
                self._replicas.counters.fetch_answered(error.error_code, [], to_broker=request.replica_id >= 0)
                return _FetchAnswer([], error.error_code)

            def ended(steps: Steps[list[FetchResult]]) -> None:
                self._exchange.finish(self._finish(self._last_steps(request, steps)))

            found = yield from self._replicas.fetch_in_steps(request, reader, ended, session)
        if isinstance(found, DelayedFetch):
            return found
        return (yield from self._answer_in_steps(request, found, session))

    def _last_steps(self, request: FetchRequest, steps: Steps[list[FetchResult]]) -> Steps[_FetchAnswer]:
        return (yield from self._answer_in_steps(request, (yield from steps), None))

    def _answer_in_steps(
        self, request: FetchRequest, found: list[FetchResult], session: FetchSession | None
    ) -> Steps[_FetchAnswer]:
        told: list[FetchResult] = []
        for some in chunks(found, PARTITIONS_A_STEP):
            self._replicas.counters.fetch_answered(ErrorCode.NONE, some, to_broker=request.replica_id >= 0)
            told += _told(self._replicas, request, some, self._exchange.api_version)
            yield None
        return _FetchAnswer(told, session_id=_id_of(session))


def _respond(
    replicas: ReplicaManager,
    exchange: Exchange,
    request: FetchRequest,
    results: list[FetchResult],
    error_code: ErrorCode = ErrorCode.NONE,
    session_id: int = NO_SESSION,
) -> None:
    version = exchange.api_version
    replicas.counters.fetch_answered(error_code, results, to_broker=request.replica_id >= 0)
    told = _told(replicas, request, results, version)
    exchange.respond(build_response(version, exchange.correlation_id, error_code, session_id, told))


def _told(
    replicas: ReplicaManager, request: FetchRequest, results: list[FetchResult], version: int
) -> list[FetchResult]:
    """The results as this client is to see them."""
    if request.isolation_level == READ_COMMITTED:
        # A list, if an empty one, is for those who asked; null for the others.
        results = [result if result.aborted is not None else result._replace(aborted=[]) for result in results]
    if version < ZSTD_VERSION:
        results = [_as_known(replicas, result, version) for result in results]
    return results


def _as_known(replicas: ReplicaManager, result: FetchResult, version: int) -> FetchResult:
    """Kafka's answer to old clients: what a topic stores in zstd is not for them, after a failed disk they look for
    another leader."""
    partition = replicas.partitions.get((result.topic, result.partition))
    if partition is not None and partition.settings.log.codec == CODEC_ZSTD:
        return fetch_error(result.topic, result.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version <= NO_STORAGE_ERROR_VERSION and result.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        return result._replace(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return result
