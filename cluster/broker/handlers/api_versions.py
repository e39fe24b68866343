"""ApiVersions (18): what this listener serves. The bytes are made once per version and sent again and again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cluster.broker.exchange import Exchange
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ApiVersionsRequest, ApiVersionsResponse
from cluster.protocol.messages import decode_request, encode_response

#: A client's name and version have some tens of bytes. What is longer is not decoded: each connection may ask this, and
#: all of them at once.
MOST_BYTES = 1024
#: KIP-511: a name or version that is not like this is an INVALID_REQUEST, after which clients ask with version 0.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handler(windows: Iterable[tuple[ApiKey, int, int]]) -> Callable[[Exchange, memoryview], None]:
    """The handler for a listener that advertises ``windows`` (API, least and greatest version)."""
    advertised = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=least, max_version=greatest)
        for key, least, greatest in windows
    ]
    cached: dict[int, bytes] = {}

    def handle(exchange: Exchange, body: memoryview) -> None:
        version = exchange.api_version
        if version >= 3 and not _tells_its_software(version, body):
            refusal = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
            exchange.respond([encode_response(ApiKey.API_VERSIONS, version, exchange.correlation_id, refusal)])
            return
        tail = cached.get(version)
        if tail is None:
            message = ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=advertised)
            tail = cached[version] = encode_response(ApiKey.API_VERSIONS, version, 0, message)[4:]
        exchange.respond([exchange.correlation_id.to_bytes(4, "big", signed=True), tail])

    return handle


def _tells_its_software(version: int, body: memoryview) -> bool:
    """Whether a client names itself as KIP-511 wants it. Raises ``MalformedRequest``."""
    if len(body) > MOST_BYTES:
        return False
    request = decode_request(ApiVersionsRequest, version, body)
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name or "") for name in names)
