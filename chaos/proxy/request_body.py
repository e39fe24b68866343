"""Parses the body of a request as JSON, and turns parse errors into ``ApiError`` 400. Does not own the fields."""

from __future__ import annotations

from chaos.proxy import errors, go_json


def decoded(body: bytes) -> go_json.Json:
    """The JSON value of a body. Raises ``ApiError``."""
    try:
        return go_json.decode(body)
    except go_json.GoJsonError as error:
        raise errors.bad_request_body(str(error)) from None


def read_struct(
    value: go_json.Json, name: str, fields: dict[str, go_json.GoKind], *, package: str
) -> dict[str, go_json.Json]:
    """The fields of this struct that the body has. Raises ``ApiError`` if one has the wrong type."""
    try:
        return go_json.read_struct(value, name, fields, package=package)
    except go_json.GoJsonError as error:
        raise errors.bad_request_body(str(error)) from None
