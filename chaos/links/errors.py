"""What can go wrong with a call to the proxy's server, as types. Every non-2xx answer is one of these."""

from __future__ import annotations


class LinkError(Exception):
    """A call failed. ``status`` is the HTTP status, or None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LinkUnreachable(LinkError):
    """The server cannot be reached, or broke off."""


class LinkTimeout(LinkError):
    """No whole answer within the hard timeout. Whether the change was made is unknown."""


class LinkRefused(LinkError):
    """The server refuses what was asked (400 and others of that kind)."""


class LinkNotFound(LinkError):
    """No such link or toxic (404)."""


class LinkConflict(LinkError):
    """There is one of that name already (409)."""


class LinkServerError(LinkError):
    """The server failed (5xx), for example because a port is in use."""


class LinkMismatch(LinkError):
    """The server said yes, but its state, read back, is not what was asked for."""


def error_for(status: int, message: str) -> LinkError:
    """The typed error of a status that is not 2xx."""
    if status == 404:
        return LinkNotFound(message, status)
    if status == 409:
        return LinkConflict(message, status)
    if status >= 500:
        return LinkServerError(message, status)
    return LinkRefused(message, status)
