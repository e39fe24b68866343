"""Errors that become answers of the API (docs/reference/toxiproxy.md "Errors").

Owns their texts and statuses. Does not own how they are sent (``http_server``).
"""

from __future__ import annotations


class ApiError(Exception):
    """An error with the status and the text that the client sees."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def __repr__(self) -> str:
        return f"ApiError({self.status}, {self.message!r})"


def bad_request_body(text: str) -> ApiError:
    """The body is not JSON, or a value in it has the wrong type."""
    return ApiError(400, f"bad request body: {text}")


def missing_field(name: str) -> ApiError:
    return ApiError(400, f"missing required field: {name}")


def invalid(what: str) -> ApiError:
    """A value that Toxiproxy accepts and this server refuses (docs/proxy.md)."""
    return ApiError(400, what)


def too_large(most_bytes: int) -> ApiError:
    """The body is too large. (Toxiproxy accepts any size.)"""
    return ApiError(413, f"request body was too large, at most {most_bytes} bytes")


def too_many_chunks(most: int) -> ApiError:
    return ApiError(413, f"request body was in too many chunks, at most {most}")


def too_many_values(most: int) -> ApiError:
    return ApiError(413, f"request body had too many values, at most {most}")


def too_many(what: str, most: int) -> ApiError:
    """The server already keeps as many of these as it may."""
    return ApiError(413, f"too many {what}, at most {most}")


def invalid_stream() -> ApiError:
    return ApiError(400, "stream was invalid, can be either upstream or downstream")


def invalid_toxic_type() -> ApiError:
    return ApiError(400, "invalid toxic type")


def proxy_not_found() -> ApiError:
    return ApiError(404, "proxy not found")


def toxic_not_found() -> ApiError:
    return ApiError(404, "toxic not found")


def proxy_exists() -> ApiError:
    return ApiError(409, "proxy already exists")


def toxic_exists() -> ApiError:
    return ApiError(409, "toxic already exists")


def system_error(text: str) -> ApiError:
    """An error of the operating system or the resolver, with its text."""
    return ApiError(500, text)
