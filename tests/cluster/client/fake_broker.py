"""A scripted broker on the in-memory network: it decodes requests and answers with what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import RequestHeader
from cluster.seams.transport import Connection

#: Given a request and its header, the response message; None answers nothing; an exception closes the connection.
Answer = Callable[[Any, RequestHeader], Any]


class FakeBroker:
    """Answers ApiVersions by itself (from ``windows``) and everything else by ``answers``, in order of arrival."""

    def __init__(self, windows: dict[ApiKey, tuple[int, int]] | None = None) -> None:
        self.windows = SUPPORTED if windows is None else windows
        self.answers: dict[ApiKey, Answer] = {}
        self.requests: list[tuple[ApiKey, int, Any]] = []
        self.connections: list[Connection] = []
        self._requested = asyncio.Event()

    def accept(self, connection: Connection) -> _Handler:
        self.connections.append(connection)
        return _Handler(self, connection)

    def record(self, api_key: ApiKey, version: int, request: Any) -> None:
        """A request arrived."""
        self.requests.append((api_key, version, request))
        self._requested.set()

    async def until_requests(self, count: int) -> None:
        """Wait until so many requests arrived in all."""
        while len(self.requests) < count:
            self._requested.clear()
            await self._requested.wait()

    def seen(self, api_key: ApiKey) -> list[Any]:
        """The requests of one API, in order."""
        return [request for key, _, request in self.requests if key == api_key]


class _Handler:
    def __init__(self, broker: FakeBroker, connection: Connection) -> None:
        self._broker = broker
        self._connection = connection

    def on_frame(self, frame: memoryview) -> None:
        header = messages.parse_request_header(frame)
        api_key = ApiKey(header.api_key)
        if not messages.is_supported(api_key, header.api_version, self._broker.windows):
            unknown = messages.encode_unsupported_api_versions(header.correlation_id, self._broker.windows[api_key])
            self._connection.send_frame((unknown,))
            return
        body = bytes(frame[header.body_offset :])
        request = messages.decode_request(messages.request_class(api_key), header.api_version, body)
        self._broker.record(api_key, header.api_version, request)
        if api_key is ApiKey.API_VERSIONS and api_key not in self._broker.answers:
            response: Any = api_versions_response(self._broker.windows)
        else:
            response = self._broker.answers[api_key](request, header)
        if response is not None:
            parts = messages.encode_response(api_key, header.api_version, header.correlation_id, response)
            self._connection.send_frame((parts,))

    def on_eof(self) -> None:
        self._connection.close()

    def on_closed(self, reason: str) -> None:
        pass


def api_versions_response(windows: dict[ApiKey, tuple[int, int]], error: ErrorCode = ErrorCode.NONE) -> Any:
    """What a broker says about itself."""
    response = messages.response_class(ApiKey.API_VERSIONS)
    entries = [
        response.ApiVersion(api_key=key, min_version=least, max_version=most) for key, (least, most) in windows.items()
    ]
    return response(error_code=error, api_keys=entries, throttle_time_ms=0)


def metadata_response(
    brokers: dict[int, tuple[str, int]], topics: dict[str, list[tuple[int, list[int]]] | ErrorCode], controller_id: int
) -> Any:
    """Brokers by id, topics as (leader, replicas) of each partition, or an error code."""
    response = messages.response_class(ApiKey.METADATA)
    topic_class = response.MetadataResponseTopic
    broker_class = response.MetadataResponseBroker
    entries = []
    for name, partitions in topics.items():
        failed = isinstance(partitions, ErrorCode)
        described = [
            topic_class.MetadataResponsePartition(
                error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=leader,
                leader_epoch=3,
                replica_nodes=replicas,
                isr_nodes=replicas,
                offline_replicas=[],
            )
            for index, (leader, replicas) in enumerate([] if failed else partitions)
        ]
        error = partitions if failed else ErrorCode.NONE
        entries.append(topic_class(error_code=error, name=name, is_internal=False, partitions=described))
    return response(
        brokers=[broker_class(node_id=key, host=host, port=port) for key, (host, port) in brokers.items()],
        cluster_id="c",
        controller_id=controller_id,
        topics=entries,
    )
