"""The errors of calls to the proxy's server. Owns the types, and which one a non-2xx answer gets; makes no call."""

from __future__ import annotations


class LinkError(Exception):
    """A call failed. ``status`` is the HTTP status, or None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LinkUnreachable(LinkError):
    """The server cannot be reached, or the connection broke."""


class LinkTimeout(LinkError):
    """No complete answer arrived within the hard timeout. It is unknown whether the change was made."""


class LinkRefused(LinkError):
    """The server refused the request (400 and other 4xx)."""


class LinkNotFound(LinkError):
    """There is no such link or toxic (404)."""


class LinkConflict(LinkError):
    """A link or toxic with that name exists already (409)."""


class LinkServerError(LinkError):
    """The server failed (5xx), for example because a port is in use."""


class LinkMismatch(LinkError):
    """The server answered with success, but its state, read back, is not what was requested."""


def error_for(status: int, message: str) -> LinkError:
    """The error for a non-2xx status."""
    if status == 404:
        return LinkNotFound(message, status)
    if status == 409:
        return LinkConflict(message, status)
    if status >= 500:
        return LinkServerError(message, status)
    return LinkRefused(message, status)
