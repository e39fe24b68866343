"""A selector without sockets: a test decides what happens, and a poll in which nothing does moves the clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.messages import RequestHeader
from cluster.seams.clock import ManualClock
from cluster.seams.selector import SelectorHandler
from tests.cluster.client.fake_broker import Answer, api_versions_response

#: One thing that a poll tells.
Event = Callable[[SelectorHandler], None]


class ScriptedSelector:
    """Nodes answer ApiVersions by themselves and other requests by ``answers``; without an entry they are silent.

    ``refused`` nodes refuse, ``silent`` ones never come up, ``full`` ones keep one frame until ``drain``.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.windows: dict[ApiKey, tuple[int, int]] = dict(SUPPORTED)
        self.answers: dict[ApiKey, Answer] = {}
        self.events: deque[Event] = deque()
        self.connects: list[tuple[int, str, int, int]] = []
        self.open: set[int] = set()
        self.requests: list[tuple[int, RequestHeader, Any]] = []
        self.timeouts: list[float | None] = []
        self.refused: set[int] = set()
        self.silent: set[int] = set()
        self.full: set[int] = set()
        self.kept: set[int] = set()
        self.unknown_hosts: set[str] = set()
        self.wakeups = 0
        self.is_shut_down = False

    # What a test lets happen

    def close_by_peer(self, node_id: int, reason: str = "reset") -> None:
        self.close(node_id)
        self.events.append(lambda handler: handler.on_closed(node_id, reason))

    def frame(self, node_id: int, payload: bytes) -> None:
        self.events.append(lambda handler: handler.on_frame(node_id, memoryview(bytearray(payload))))

    def drain(self, node_id: int) -> None:
        """The socket of a full node has room again: the next poll sends what was kept, and tells."""
        self.full.discard(node_id)
        if node_id in self.kept:
            self.events.append(lambda handler: self._flush(node_id, handler))

    def respond(self, number: int, response: Any) -> None:
        """Answer the request of that number."""
        node_id, header, _ = self.requests[number]
        self.frame(
            node_id, messages.encode_response(header.api_key, header.api_version, header.correlation_id, response)
        )

    def _flush(self, node_id: int, handler: SelectorHandler) -> None:
        # As on sockets: it is sending until the handler is told, and a connection that was closed has nothing to tell.
        if node_id in self.kept:
            self.kept.discard(node_id)
            handler.on_flushed(node_id)

    # The seam

    def connect(self, node_id: int, host: str, port: int, address_index: int) -> None:
        self.connects.append((node_id, host, port, address_index))
        if host in self.unknown_hosts:
            raise OSError(f"{host} is unknown")
        if node_id in self.refused:
            self.events.append(lambda handler: handler.on_closed(node_id, "Connection refused"))
        elif node_id not in self.silent:
            self.open.add(node_id)
            self.events.append(lambda handler: handler.on_connected(node_id))

    def send(self, node_id: int, parts: Sequence[bytes]) -> bool:
        if node_id not in self.open:
            raise KeyError(node_id)
        frame = b"".join(parts)
        header = messages.parse_request_header(frame)
        api_key = ApiKey(header.api_key)
        if not messages.is_supported(api_key, header.api_version, self.windows):
            self.requests.append((node_id, header, None))
            self.frame(node_id, messages.encode_unsupported_api_versions(header.correlation_id, self.windows[api_key]))
            return True
        body = frame[header.body_offset :]
        message_class = messages.request_class(api_key)
        is_plain = api_key is ApiKey.PRODUCE
        request = body if is_plain else messages.decode_request(message_class, header.api_version, body)
        self.requests.append((node_id, header, request))
        if api_key in self.answers:
            self.respond(len(self.requests) - 1, self.answers[api_key](request, header))
        elif api_key is ApiKey.API_VERSIONS:
            self.respond(len(self.requests) - 1, api_versions_response(self.windows))
        if node_id in self.full:
            self.kept.add(node_id)
        return node_id not in self.full

    def is_sending(self, node_id: int) -> bool:
        return node_id in self.kept

    def close(self, node_id: int) -> None:
        self.open.discard(node_id)
        self.kept.discard(node_id)

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        self.timeouts.append(timeout_ms)
        if not self.events:
            assert timeout_ms is not None, "waits forever"
            self.clock.advance_ms(timeout_ms)
        for _ in range(len(self.events)):
            self.events.popleft()(handler)

    def wakeup(self) -> None:
        self.wakeups += 1

    def shutdown(self) -> None:
        self.is_shut_down = True
