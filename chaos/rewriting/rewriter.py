"""Replaces the addresses of brokers in Kafka's responses by those that clients are to use. Pure; one per connection.

Owns which responses name addresses (Metadata, FindCoordinator, DescribeCluster), which versions of an API clients may
use (only those whose addresses it can rewrite), and how a response is matched to its request (correlation id). Moves no
bytes: ``chaos.rewriting.relay`` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode, ProtocolError
from cluster.protocol.primitives import INT32, Buffer

logger = logging.getLogger(__name__)

#: Requests of one connection whose answers are awaited; a client has far fewer in flight.
MOST_AWAITED = 1024
#: API keys of answers that name addresses and that no client of ours needs: ShareFetch and ShareAcknowledge (KIP-932).
_NEVER_OFFERED = frozenset((78, 79))
#: A coordinator that is not known: node id, host and port.
_NOWHERE = (-1, "", -1)


class ToldAddress(NamedTuple):
    """The address at which clients are told to reach a broker."""

    host: str
    port: int


class CannotRewrite(ProtocolError):
    """A request whose answer may name addresses that could not be rewritten; the message says which."""


class AddressRewriter:
    """The rewriting of one connection. ``book`` has the address of each broker by its id.

    ``on_stranger`` is called with each broker that is not in the book. Clients never learn of such a broker, since they
    would bypass their links.
    """

    def __init__(self, book: Mapping[int, ToldAddress], on_stranger: Callable[[int], None]) -> None:
        self._book = book
        self._on_stranger = on_stranger
        #: correlation id -> API key and version of what was asked
        self._awaited: dict[int, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"AddressRewriter({len(self._book)} brokers, {len(self._awaited)} answers awaited)"

    def request(self, frame: Buffer) -> bytes | None:
        """Note a request. Returns None if it is to be passed on unchanged, otherwise the response to it.

        Raises CannotRewrite for a version that no client can have been offered.
        """
        if len(frame) < 8:
            raise CannotRewrite(f"a request of {len(frame)} bytes has no header")
        api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big", signed=True)
        (correlation_id,) = INT32.unpack_from(frame, 4)
        if api_key == ApiKey.API_VERSIONS and not messages.is_supported(api_key, version):
            # the client then asks again in a version that can be read (KIP-511)
            return messages.encode_unsupported_api_versions(correlation_id, SUPPORTED[ApiKey.API_VERSIONS])
        if api_key in _REWRITTEN or api_key == ApiKey.API_VERSIONS:
            if not messages.is_supported(api_key, version):
                raise CannotRewrite(f"{ApiKey(api_key).name} {version} was not offered: addresses in it are not known")
            while len(self._awaited) >= MOST_AWAITED:
                del self._awaited[next(iter(self._awaited))]
            self._awaited[correlation_id] = (api_key, version)
        return None

    def response(self, frame: Buffer) -> bytes | None:
        """The answer that takes the place of this one; None if it is to be passed on as it is.

        Raises ``ProtocolError`` if an answer with addresses cannot be read.
        """
        if len(frame) < 4 or not self._awaited:
            return None
        (correlation_id,) = INT32.unpack_from(frame, 0)
        asked = self._awaited.pop(correlation_id, None)
        if asked is None:
            return None
        api_key, version = asked
        _, message = messages.decode_response(api_key, version, frame)
        if api_key == ApiKey.API_VERSIONS:
            if message.error_code == ErrorCode.UNSUPPORTED_VERSION:
                return None
            message.api_keys = offered(message.api_keys)
        else:
            _REWRITTEN[api_key](self, message)
        return messages.encode_response(api_key, version, correlation_id, message)

    # --- the answers

    def _metadata(self, message: Any) -> None:
        message.brokers = [each for each in message.brokers if self._told(each, each.node_id)]

    def _cluster(self, message: Any) -> None:
        message.brokers = [each for each in message.brokers if self._told(each, each.broker_id)]

    def _coordinators(self, message: Any) -> None:
        for each in (message, *(message.coordinators or ())):
            if each.node_id >= 0 and each.error_code == ErrorCode.NONE and not self._told(each, each.node_id):
                each.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                each.node_id, each.host, each.port = _NOWHERE

    def _told(self, named: Any, broker_id: int) -> bool:
        """Give a broker the address that clients are told; False if it has none."""
        address = self._book.get(broker_id)
        if address is None:
            self._on_stranger(broker_id)
            return False
        named.host, named.port = address
        return True


#: How to rewrite the responses of each API that name addresses.
_REWRITTEN: Mapping[int, Callable[[AddressRewriter, Any], None]] = {
    ApiKey.METADATA: AddressRewriter._metadata,
    ApiKey.FIND_COORDINATOR: AddressRewriter._coordinators,
    ApiKey.DESCRIBE_CLUSTER: AddressRewriter._cluster,
}
#: APIs whose answers name addresses only in versions newer than ours (KIP-951).
_NAMES_NEWER = frozenset((ApiKey.PRODUCE, ApiKey.FETCH))


def offered(api_keys: Sequence[Any]) -> list[Any]:
    """The APIs of a broker, without the versions whose addresses cannot be rewritten."""
    kept = []
    for each in api_keys:
        if each.api_key in _NEVER_OFFERED:
            continue
        if each.api_key in _REWRITTEN or each.api_key in _NAMES_NEWER:
            least, most = SUPPORTED[ApiKey(each.api_key)]
            each.min_version, each.max_version = max(each.min_version, least), min(each.max_version, most)
            if each.min_version > each.max_version:
                continue
        elif each.api_key == ApiKey.API_VERSIONS:
            each.max_version = min(each.max_version, SUPPORTED[ApiKey.API_VERSIONS][1])
        kept.append(each)
    return kept
