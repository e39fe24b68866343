"""Asker: one request to one broker, to any or to the controller, again until a deadline.

Owns the connections, the view of who is who, and the repetition. Does not own any call: ``AsyncAdmin``'s parts do.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cluster.client.cluster_view import ClusterView, cluster_view
from cluster.client.connection import BrokerConnection
from cluster.client.errors import UnsupportedVersion
from cluster.client.negotiation import api_versions, choose_version
from cluster.protocol.apis import ApiKey
from cluster.protocol.message_classes import MetadataRequest, Request
from cluster.seams.clock import Clock
from cluster.seams.transport import Transport
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: What Kafka's clients let a host be made of.
_HOST = re.compile(r"[0-9A-Za-z\-%._:]+")
_PORT = re.compile(r"[0-9]{1,9}")


class Retriable(Exception):
    """The cluster said: not now."""


@dataclass(frozen=True, slots=True)
class _TriedNode:
    connection: BrokerConnection
    windows: dict[int, tuple[int, int]]


class Asker:
    """``bootstrap`` is ``host:port`` strings; ``timeout_ms`` is what one call may take in all."""

    def __init__(
        self,
        bootstrap: Sequence[str],
        transport: Transport,
        clock: Clock,
        timeout_ms: int,
        *,
        request_timeout_ms: int = 3_000,
        retry_backoff_ms: int = 100,
        client_id: str = "gapless-admin",
    ) -> None:
        self._bootstrap = [parse_address(address) for address in bootstrap]
        self._transport = transport
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._request_timeout_ms = min(request_timeout_ms, timeout_ms)
        self._retry_backoff_ms = retry_backoff_ms
        self._client_id = client_id
        self._nodes: dict[tuple[str, int], _TriedNode] = {}
        self._view: ClusterView | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bootstrap}, {len(self._nodes)} connections)"

    async def close(self) -> None:
        """Close all connections."""
        for node in self._nodes.values():
            node.connection.close()
        self._nodes.clear()
        # The transport tells the end of a connection in the next turn of the loop.
        await asyncio.sleep(0)

    async def _metadata(self, topics: Sequence[str] | None) -> ClusterView:
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        question = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        self._view = cluster_view(await self._ask_any(question))
        return self._view

    async def _ask_any(self, message: Request[T]) -> T:
        last: OSError | None = None
        for address in self._addresses():
            try:
                return await self._send(address, message)
            except OSError as error:
                last = error
        raise last or ConnectionError("no broker to ask")

    async def _ask_controller(self, message: Request[T]) -> T:
        view = await self._metadata([])
        return await self._ask_broker(view.controller_id, message)

    async def _ask_broker(self, broker_id: int, message: Request[T]) -> T:
        return await self._send(self._address_of(broker_id), message)

    def _address_of(self, broker_id: int) -> tuple[str, int]:
        broker = None if self._view is None else self._view.brokers.get(broker_id)
        if broker is None:
            raise Retriable(f"broker {broker_id} is not alive")
        return broker.host, broker.port

    async def _require_version(self, broker_id: int, api_key: ApiKey, least: int) -> None:
        """That a broker serves this version or a later one. Raises ``UnsupportedVersion``."""
        node = await self._node(self._address_of(broker_id))
        if choose_version(api_key, node.windows) < least:
            raise UnsupportedVersion(f"broker {broker_id} does not serve {api_key.name} {least}")

    async def _send(self, address: tuple[str, int], message: Request[T]) -> T:
        node = await self._node(address)
        version = choose_version(ApiKey(message.API_KEY), node.windows)
        return await node.connection.send(message, version, self._request_timeout_ms)

    def _addresses(self) -> Iterable[tuple[str, int]]:
        known = [] if self._view is None else [(broker.host, broker.port) for broker in self._view.brokers.values()]
        # Open connections first: a dead broker costs a timeout.
        addresses = dict.fromkeys([*self._bootstrap, *known])
        return sorted(addresses, key=lambda address: address not in self._nodes)

    async def _node(self, address: tuple[str, int]) -> _TriedNode:
        node = self._nodes.get(address)
        if node is not None and not node.connection.is_closed:
            return node
        connection = await BrokerConnection.open(self._transport, *address, self._client_id, self._request_timeout_ms)
        try:
            node = _TriedNode(connection, await api_versions(connection))
        except BaseException:
            connection.close()
            raise
        self._nodes[address] = node
        return node

    async def _retrying(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until the deadline, which also ends the last attempt."""
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        last: Exception | None = None
        while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            try:
                async with asyncio.timeout(seconds_of_ms(left_ms)):
                    return await attempt()
            except (OSError, Retriable) as error:
                logger.debug("%s: %r; trying again", what, error)
                # What the deadline cut short says less than what failed before it.
                last = error if str(error) or last is None else last
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            await asyncio.sleep(seconds_of_ms(min(self._retry_backoff_ms, left_ms)))
        raise TimeoutError(f"{what}: {str(last) or 'no answer'} (tried for {self._timeout_ms} ms)") from last


def parse_address(address: str) -> tuple[str, int]:
    """``host:port`` as a pair; an IPv6 host is in brackets. Raises ``ValueError``."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not _HOST.fullmatch(host) or not _PORT.fullmatch(port):
        raise ValueError(f"not a host:port address: {address!r}")
    if not 0 < int(port) < 2**16:
        raise ValueError(f"no port between 1 and 65535: {address!r}")
    return host, int(port)
