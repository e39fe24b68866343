"""The body of a request as the API's JSON, or a bad request. Does not own what it means."""

from __future__ import annotations

from chaos.proxy import errors, go_json


def decoded(body: bytes) -> go_json.Json:
    """Raises ``ApiError``."""
    try:
        return go_json.decode(body)
    except go_json.GoJsonError as error:
        raise errors.bad_request_body(str(error)) from None


def read_struct(
    value: go_json.Json, name: str, fields: dict[str, go_json.GoKind], *, package: str
) -> dict[str, go_json.Json]:
    """The fields of this struct that are there. Raises ``ApiError`` if one has the wrong type."""
    try:
        return go_json.read_struct(value, name, fields, package=package)
    except go_json.GoJsonError as error:
        raise errors.bad_request_body(str(error)) from None
