"""Which version of an API to speak with a broker: asking it, and choosing. Owns ApiVersions from the client's side
(docs/reference/kafka.md "Version negotiation").
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

from cluster.client.connection import BrokerConnection
from cluster.client.errors import UnsupportedVersion
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ApiVersionsRequest, ApiVersionsResponse

Windows = Mapping[int, tuple[int, int]]

#: Those that we speak. What brokers ask each other is also asked by an administrator, of brokers that serve it.
OURS: Mapping[ApiKey, tuple[int, int]] = ChainMap(SUPPORTED, INTER_BROKER)

#: The version in which a broker is asked first.
API_VERSIONS_VERSION = SUPPORTED[ApiKey.API_VERSIONS][1]
SOFTWARE_NAME = "gapless"
SOFTWARE_VERSION = "0.1.0"


async def api_versions(connection: BrokerConnection, timeout_ms: int | None = None) -> dict[int, tuple[int, int]]:
    """The broker's version windows by API key.

    A broker that does not know our version answers in version 0 with its own window (KIP-511); it is asked again in the
    best version of that. Raises like ``BrokerConnection.send``, and ``UnsupportedVersion``.
    """
    version = API_VERSIONS_VERSION
    while True:
        answer = read_api_versions(await connection.send(api_versions_request(), version, timeout_ms), version)
        if not isinstance(answer, int):
            return answer
        version = answer


def api_versions_request() -> ApiVersionsRequest:
    """The question. It is asked in ``API_VERSIONS_VERSION`` first."""
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)


def read_api_versions(response: ApiVersionsResponse, version: int) -> dict[int, tuple[int, int]] | int:
    """The windows in the response to a question of that version, or the version in which to ask again.

    Raises ``UnsupportedVersion``.
    """
    windows = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    if response.error_code == ErrorCode.NONE:
        return windows
    greatest = windows.get(ApiKey.API_VERSIONS, (0, 0))[1]
    if response.error_code != ErrorCode.UNSUPPORTED_VERSION or not 0 <= greatest < version:
        raise UnsupportedVersion(f"ApiVersions {version}: {ErrorCode.of(response.error_code).name}")
    return greatest


def choose_version(api_key: ApiKey, windows: Windows) -> int:
    """The greatest version that both sides know. Raises ``UnsupportedVersion``."""
    ours = OURS[api_key]
    theirs = windows.get(api_key)
    if theirs is None:
        raise UnsupportedVersion(f"the broker does not serve {api_key.name}")
    version = min(ours[1], theirs[1])
    if version < max(ours[0], theirs[0]):
        raise UnsupportedVersion(f"{api_key.name}: we speak {ours[0]}-{ours[1]}, the broker {theirs[0]}-{theirs[1]}")
    return version
