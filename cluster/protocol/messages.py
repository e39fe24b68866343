"""All messages but Produce and Fetch: the thin module over ``kafka.protocol`` and our broker-to-broker schemas.

Owns headers (docs/reference/kafka.md "Headers"), the choice of class by API key, and the entry and exit of bytes.
Encoding is kafka-python's, decoding is ``schema_decoder``'s. Messages are instances of kafka-python's generated
classes: attributes in snake_case, nested structs as attributes of their class
(``MetadataResponse.MetadataResponseBroker``), absent fields at their defaults, a zero uuid as None. Default lists are
shared by all instances: assign a new list, never append to a default one. Who knows which message it is takes its class
from ``message_classes``, where mypy knows the fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from cluster.protocol import interbroker, schema_decoder
from cluster.protocol.apis import SUPPORTED, ApiKey, request_header_version, response_header_version
from cluster.protocol.errors import ErrorCode, MalformedRequest
from cluster.protocol.kafka_schemas import ApiMessage, admin, consumer, encode_body, metadata, producer
from cluster.protocol.primitives import (
    INT16,
    INT32,
    MAX_TAGS,
    READ_ERRORS,
    Buffer,
    cut_short,
    read_nullable_string,
    refusing_malformed,
    skip_tags,
    write_nullable_string,
)

_Message = TypeVar("_Message", bound="ApiMessage")

_REQUEST_HEADER = struct.Struct(">hhi")
#: The same and the size of the client id.
_HEADER_TO_CLIENT_ID = struct.Struct(">hhih")
_CLIENT_ID_AT = _HEADER_TO_CLIENT_ID.size
_API_WINDOW = struct.Struct(">hhh")

_CLASSES: dict[int, tuple[Any, Any]] = {
    getattr(room, name).API_KEY: (getattr(room, name), getattr(room, name.removesuffix("Request") + "Response"))
    for room in (metadata, producer, consumer, admin, interbroker)
    for name in dir(room)
    if name.endswith("Request")
}


#: The supported (key, version) whose requests have a client id, and how many bytes follow it if no field is tagged.
_TAG_BYTES = {
    (int(key), version): request_header_version(key, version) - 1
    for key, (least, greatest) in SUPPORTED.items()
    for version in range(least, greatest + 1)
    if request_header_version(key, version) > 0
}


class RequestHeader(NamedTuple):
    """The header of a request. ``body_offset`` is where its body begins in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int


#: The same as calling the class, which costs a call more for every request.
_new_header: Callable[[tuple[Any, ...]], RequestHeader] = partial(tuple.__new__, RequestHeader)


def request_class(api_key: int) -> Any:
    """The class of an API's requests. Raises ``MalformedRequest`` for an API without one."""
    return _classes(api_key)[0]


def response_class(api_key: int) -> Any:
    """The class of an API's responses. Raises ``MalformedRequest`` for an API without one."""
    return _classes(api_key)[1]


def _classes(api_key: int) -> tuple[Any, Any]:
    try:
        return _CLASSES[api_key]
    except KeyError as error:
        raise MalformedRequest(f"no message for API key {api_key}") from error


def parse_request_header(frame: Buffer) -> RequestHeader:
    """Read the header of a request frame. Raises ``MalformedRequest``.

    Keys and versions are returned as sent, whether known or not: an ApiVersions request of a version from the future
    must be answered (KIP-511), so what follows its first eight bytes may be anything.
    """
    try:
        if len(frame) >= _CLIENT_ID_AT:
            api_key, api_version, correlation_id, size = _HEADER_TO_CLIENT_ID.unpack_from(frame)
            end = _CLIENT_ID_AT + size
            tag_bytes = _TAG_BYTES.get((api_key, api_version))
            if size >= 0 and tag_bytes is not None and end + tag_bytes <= len(frame) and not (tag_bytes and frame[end]):
                text = str(frame[_CLIENT_ID_AT:end], "utf-8")
                return _new_header((api_key, api_version, correlation_id, text, end + tag_bytes))
        api_key, api_version, correlation_id = _REQUEST_HEADER.unpack_from(frame, 0)
        if api_key == ApiKey.API_VERSIONS and not is_supported(api_key, api_version):
            return RequestHeader(api_key, api_version, correlation_id, None, len(frame))
        version = request_header_version(api_key, api_version)
        if version == 0:
            return RequestHeader(api_key, api_version, correlation_id, None, _REQUEST_HEADER.size)
        client_id, position = read_nullable_string(frame, _REQUEST_HEADER.size)
        if version == 2:
            position = skip_tags(frame, position, MAX_TAGS)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise MalformedRequest(f"request header: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def is_supported(api_key: int, version: int, windows: Mapping[ApiKey, tuple[int, int]] = SUPPORTED) -> bool:
    """Whether a version is inside its window."""
    if api_key not in windows:
        return False
    least, greatest = windows[ApiKey(api_key)]
    return least <= version <= greatest


def decode_request(message_class: type[_Message], version: int, body: Buffer) -> _Message:
    """Decode the body of a request (the frame from ``body_offset``). Raises ``MalformedRequest``.

    Bytes after it are ignored, as Kafka does: librdkafka's Metadata request for all topics has three too many. A
    text is no longer than an int16 can count, as Kafka's generated readers demand: names are hashed, compared, quoted
    in answers, kept and stored.
    """
    most = schema_decoder.MOST_TEXT_BYTES
    return schema_decoder.decode(message_class, version, body, rest_allowed=True, most_text_bytes=most)


def encode_request(message: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request with its header, without the size prefix."""
    header = encode_request_header(message.API_KEY, version, correlation_id, client_id)
    return header + encode_body(message, version)


def encode_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request whose body is encoded elsewhere (Produce, Fetch)."""
    return _REQUEST_HEADER.pack(api_key, version, correlation_id) + _header_tail(api_key, version, client_id)


@lru_cache(maxsize=1024)
def _header_tail(api_key: int, version: int, client_id: str | None) -> bytes:
    header_version = request_header_version(api_key, version)
    tail = write_nullable_string(client_id) if header_version > 0 else b""
    return tail + b"\x00" if header_version > 1 else tail


def encode_response(api_key: int, version: int, correlation_id: int, message: Any) -> bytes:
    """A response with its header, without the size prefix. Texts that its layout has no room for are cut short."""
    header = INT32.pack(correlation_id)
    if response_header_version(api_key, version) > 0:
        header += b"\x00"
    try:
        return header + encode_body(message, version)
    except struct.error:
        # An error's text quotes what was asked for, which may have the length of the longest text itself.
        _shorten_texts(message._struct, message, version)
        return header + encode_body(message, version)


def _shorten_texts(schema: Any, item: Any, version: int) -> None:
    """Leave as much of each text as an int16 can count. The message is the caller's own, not shared."""
    for field in schema.fields.values():
        value = getattr(item, field.name, None) if field.for_version_q(version) else None
        if field.is_struct_array():
            for each in value or ():
                _shorten_texts(field.array_of, each, version)
        elif isinstance(value, str):
            setattr(item, field.name, cut_short(value))


def decode_response(api_key: int, version: int, frame: Buffer) -> tuple[int, Any]:
    """Decode a response frame into (correlation id, message). Raises ``MalformedRequest``.

    Bytes after it are ignored, as Kafka does: Metadata of librdkafka's mock cluster has one too many.
    """
    with refusing_malformed("response header"):
        (correlation_id,) = INT32.unpack_from(frame, 0)
        position = skip_tags(frame, 4) if response_header_version(api_key, version) > 0 else 4
        body = memoryview(frame)[position:]
        if api_key == ApiKey.API_VERSIONS and INT16.unpack_from(body, 0)[0] == ErrorCode.UNSUPPORTED_VERSION:
            return correlation_id, _unsupported_api_versions(body)
    return correlation_id, schema_decoder.decode(response_class(api_key), version, body, rest_allowed=True)


def _unsupported_api_versions(body: memoryview) -> Any:
    """What a broker says that does not know the version: version 0. librdkafka's mock cluster says it in a layout of no
    version; then the error alone is taken, and the caller falls back to 0, as all clients do (KIP-511).
    """
    message_class = response_class(ApiKey.API_VERSIONS)
    try:
        return schema_decoder.decode(message_class, 0, body)
    except MalformedRequest:
        return message_class(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[])


def encode_unsupported_api_versions(correlation_id: int, window: tuple[int, int]) -> bytes:
    """The answer to an ApiVersions request of an unknown version: version 0, error 35, and ApiVersions' own window."""
    return b"".join(
        (
            INT32.pack(correlation_id),
            INT16.pack(ErrorCode.UNSUPPORTED_VERSION),
            INT32.pack(1),
            _API_WINDOW.pack(ApiKey.API_VERSIONS, *window),
        )
    )
