"""NetworkClient: requests to nodes and what became of them, for the one thread that polls.

Owns the steps of a connection (connect, ask for versions, ready), the matching of responses and the end of connections
that fail, answer nonsense or do not answer in time (Kafka's class of the same name). A thin shell: states and deadlines
are ``cluster.client.nodes``', sockets the selector's. Does not own what is sent, nor retries: a request whose
connection is lost comes back as a failure, whether the node has carried it out or not.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from cluster.client.cluster_view import BrokerAddress
from cluster.client.errors import UnsupportedVersion
from cluster.client.exchange import ClientResponse, Decode, InFlightRequest, LostConnection, Polled
from cluster.client.negotiation import API_VERSIONS_VERSION, api_versions_request, read_api_versions
from cluster.client.nodes import Nodes, NodeState
from cluster.protocol import messages
from cluster.protocol.apis import ApiKey
from cluster.protocol.connection import InFlight
from cluster.protocol.errors import ProtocolError
from cluster.protocol.kafka_schemas import encode_body
from cluster.protocol.message_classes import ApiVersionsResponse, Message
from cluster.protocol.primitives import INT32, READ_ERRORS
from cluster.seams.clock import Clock
from cluster.seams.selector import Selector
from cluster.seams.storage import Bytes

logger = logging.getLogger(__name__)


class NetworkClient:
    """One thread calls everything; only ``wakeup`` may be called from others. Close it after use."""

    def __init__(
        self,
        selector: Selector,
        nodes: Nodes[InFlightRequest],
        clock: Clock,
        *,
        client_id: str,
        request_timeout_ms: int,
    ) -> None:
        self.nodes = nodes
        self._selector = selector
        self._clock = clock
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        # Requests without response that the kernel has not taken yet: one of a node at most.
        self._unsent: dict[int, InFlight[InFlightRequest]] = {}
        self._polled = Polled([], [], [])

    def __repr__(self) -> str:
        return f"NetworkClient({self.nodes!r})"

    def wakeup(self) -> None:
        """Let ``poll`` return. From any thread."""
        self._selector.wakeup()

    def close(self) -> None:
        """Close all connections. What is in flight is not reported anymore."""
        self._selector.shutdown()

    def abandon(self) -> None:
        """Give up all connections, after a call that an exception has cut short. Nothing of it will be reported."""
        now_ms = self._clock.monotonic_ms()
        for node_id in self.nodes.known:
            self._selector.close(node_id)
            self.nodes.disconnected(node_id, now_ms)
        self._unsent.clear()
        self._polled = Polled([], [], [])

    def disconnect(self, node_id: int, reason: str) -> None:
        """Give up a connection, if there is one: the next poll tells about the loss, and of what was in flight."""
        if self.nodes.state(node_id) is not NodeState.DISCONNECTED:
            self._lose(node_id, reason)

    # Requests

    def can_send(self, node_id: int, now_ms: int | None = None) -> bool:
        """Whether the node takes a request now: ready, not throttled, with room in flight and in its socket.

        ``now_ms`` is the time, as the caller just read it.
        """
        now_ms = self._clock.monotonic_ms() if now_ms is None else now_ms
        return self.nodes.can_send(node_id, now_ms) and not self._selector.is_sending(node_id)

    def ready(self, broker: BrokerAddress) -> bool:
        """The same; a node that is disconnected, and whose pause is over, is connected to."""
        if self.can_send(broker.broker_id):
            return True
        now_ms = self._clock.monotonic_ms()
        if self.nodes.can_connect(broker.broker_id, now_ms):
            address_index = self.nodes.connecting(broker.broker_id, now_ms)
            try:
                self._selector.connect(broker.broker_id, broker.host, broker.port, address_index)
            except OSError as error:
                self.on_closed(broker.broker_id, f"{broker.host}:{broker.port}: {error.strerror or error}")
        return False

    def least_loaded(self, node_ids: Iterable[int]) -> int | None:
        """The node to ask what any can answer. None whose socket is full: what it was sent without wanting a response
        is in flight nowhere, and may wait for as long as it likes.
        """
        taking = [node_id for node_id in node_ids if not self._selector.is_sending(node_id)]
        return self.nodes.least_loaded(taking, self._clock.monotonic_ms())

    def delay_ms(self, node_id: int) -> int | None:
        """After how many milliseconds ``ready`` may say something else; None if ``poll`` will return for it."""
        if self._selector.is_sending(node_id):
            return None
        return self.nodes.delay_ms(node_id, self._clock.monotonic_ms())

    def send(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int,
        body: Sequence[Bytes],
        decode: Decode,
        context: Any,
        *,
        expects_response: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Send a request whose body is encoded already. The buffers must not be changed until it is answered.

        ``decode`` makes the answer of the response frame, which is valid only then, and raises ``ProtocolError`` for
        one that cannot be; if the answer has a ``throttle_time_ms``, that is obeyed. ``context`` is not None. Raises
        ``ConnectionError`` if the node takes no request now.
        """
        now_ms = self._clock.monotonic_ms()
        if not self.can_send(node_id, now_ms):
            raise ConnectionError(f"node {node_id} takes no request now: it is {self.nodes.state(node_id).value}")
        request = InFlightRequest(api_key, version, decode, context)
        self.send_now(node_id, request, body, now_ms, expects_response=expects_response, timeout_ms=timeout_ms)

    def send_now(
        self,
        node_id: int,
        request: InFlightRequest,
        body: Sequence[Bytes],
        now_ms: int,
        *,
        expects_response: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """The same, for a caller that has just learned from ``can_send`` that the node takes a request, at
        ``now_ms``."""
        correlation_id = self.nodes.next_correlation_id(node_id)
        header = messages.encode_request_header(request.api_key, request.version, correlation_id, self._client_id)
        self._send(node_id, correlation_id, request, [header, *body], expects_response, timeout_ms, now_ms)

    def send_message(self, node_id: int, message: Message, context: Any, *, timeout_ms: int | None = None) -> None:
        """Send a request message, in the greatest version that the node and we know.

        The answer is the response message. Raises like ``send``, and ``UnsupportedVersion``.
        """
        api_key = ApiKey(message.API_KEY)
        version = self.nodes.version(node_id, api_key)
        body = encode_body(message, version)
        self.send(node_id, api_key, version, [body], _decoding(api_key, version), context, timeout_ms=timeout_ms)

    def _send(
        self,
        node_id: int,
        correlation_id: int,
        request: InFlightRequest,
        parts: Sequence[Bytes],
        expects_response: bool,
        timeout_ms: int | None,
        now_ms: int,
    ) -> None:
        deadline_ms = now_ms + (self._request_timeout_ms if timeout_ms is None else timeout_ms)
        if expects_response:
            self.nodes.sent(node_id, correlation_id, deadline_ms, request, now_ms)
            self._selector.send(node_id, parts)
            return
        self.nodes.active(node_id, now_ms)
        self._unsent[node_id] = InFlight(correlation_id, deadline_ms, request)
        if self._selector.send(node_id, parts):
            self.on_flushed(node_id)

    # Events

    def poll(self, timeout_ms: float | None) -> Polled:
        """Wait until something happens, for ``timeout_ms`` at most (None: forever), and tell what.

        Returns early, and possibly with nothing, after ``wakeup`` and when a deadline of a connection has come.
        """
        early = self._polled
        if early.responses or early.ready or early.lost:
            timeout_ms = 0
        event_ms = self._next_event_ms()
        if event_ms is not None:
            left_ms = max(0, event_ms - self._clock.monotonic_ms())
            timeout_ms = left_ms if timeout_ms is None else min(timeout_ms, left_ms)
        self._selector.poll(timeout_ms, self)
        if event_ms is not None and event_ms <= (now_ms := self._clock.monotonic_ms()):
            self._lose_expired(now_ms)
        polled, self._polled = self._polled, Polled([], [], [])
        return polled

    def _next_event_ms(self) -> float | None:
        event_ms = self.nodes.next_event_ms()
        if not self._unsent:
            return event_ms
        unsent_ms = min(in_flight.deadline_ms for in_flight in self._unsent.values())
        return unsent_ms if event_ms is None else min(unsent_ms, event_ms)

    def _lose_expired(self, now_ms: int) -> None:
        for expired in list(self.nodes.expired(now_ms)):
            self._lose(expired.node_id, expired.reason)
        for node_id, in_flight in list(self._unsent.items()):
            if in_flight.deadline_ms <= now_ms:
                self._lose(node_id, "not sent in time")

    # What the selector calls, and what follows

    def on_connected(self, node_id: int) -> None:
        self.nodes.connected(node_id, self._clock.monotonic_ms())
        self._ask_versions(node_id, API_VERSIONS_VERSION)

    def on_frame(self, node_id: int, frame: memoryview) -> None:
        now_ms = self._clock.monotonic_ms()
        try:
            (correlation_id,) = INT32.unpack_from(frame, 0)
            in_flight = self.nodes.received(node_id, correlation_id, now_ms)
        except (ProtocolError, *READ_ERRORS) as error:
            self._lose(node_id, f"unreadable response: {error}")
            return
        request = in_flight.context
        try:
            answer = request.decode(frame)
        except ProtocolError as error:
            reason = f"unreadable response: {error}"
            self._fail(node_id, in_flight, reason)
            self._lose(node_id, reason)
            return
        if throttle_ms := request.throttle_ms(answer):
            self.nodes.throttled(node_id, now_ms + throttle_ms)
        if request.context is None:
            self._versions_told(node_id, answer, request.version, now_ms)
        else:
            self._polled.responses.append(ClientResponse(node_id, request.context, answer))

    def on_flushed(self, node_id: int) -> None:
        unsent = self._unsent.pop(node_id, None)
        if unsent is not None:
            self._polled.responses.append(ClientResponse(node_id, unsent.context.context, None))

    def on_closed(self, node_id: int, reason: str) -> None:
        was_ready = self.nodes.state(node_id) is NodeState.READY
        in_flight_then = self.nodes.disconnected(node_id, self._clock.monotonic_ms())
        waiting = [in_flight.context for in_flight in in_flight_then]
        logger.debug("node %d: connection lost: %s; no response to %s", node_id, reason, waiting)
        for in_flight in in_flight_then:
            self._fail(node_id, in_flight, reason)
        unsent = self._unsent.pop(node_id, None)
        if unsent is not None:
            self._fail(node_id, unsent, reason)
        self._polled.lost.append(LostConnection(node_id, reason, was_ready))

    def _lose(self, node_id: int, reason: str) -> None:
        self._selector.close(node_id)
        self.on_closed(node_id, reason)

    def _fail(self, node_id: int, in_flight: InFlight[InFlightRequest], reason: str) -> None:
        context = in_flight.context.context
        if context is not None:
            late = in_flight.deadline_ms <= self._clock.monotonic_ms()
            self._polled.responses.append(ClientResponse(node_id, context, None, reason, late))

    def _ask_versions(self, node_id: int, version: int) -> None:
        request = InFlightRequest(ApiKey.API_VERSIONS, version, _decoding(ApiKey.API_VERSIONS, version), None)
        correlation_id = self.nodes.next_correlation_id(node_id)
        frame = messages.encode_request(api_versions_request(), version, correlation_id, self._client_id)
        self._send(node_id, correlation_id, request, [frame], True, None, self._clock.monotonic_ms())

    def _versions_told(self, node_id: int, answer: ApiVersionsResponse, version: int, now_ms: int) -> None:
        try:
            told = read_api_versions(answer, version)
        except UnsupportedVersion as error:
            self._lose(node_id, str(error))
            return
        if isinstance(told, int):
            self._ask_versions(node_id, told)
        else:
            self.nodes.ready(node_id, told, now_ms)
            self._polled.ready.append(node_id)


def _decoding(api_key: ApiKey, version: int) -> Decode:
    return lambda frame: messages.decode_response(api_key, version, frame)[1]
