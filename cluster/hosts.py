"""Who an HTTP request says it is for: a guard of what listens on this machine against pages of the web.

A page of anyone's may have its name point at 127.0.0.1 once it is loaded (DNS rebinding): to the browser it then talks
to its own server, and reads what we answer. Its requests give it away by their Host. Owns which hosts are ours, and
the guard in front of a WSGI application. Pure but for the machine's own name.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable
from typing import Any

#: (status line, headers, error) in WSGI's form.
StartResponse = Callable[..., Any]

REFUSAL = "this is not the host that was asked for: use its IP address, localhost, or a name without a dot\n"
#: By these a server lets pages of other origins read its answers.
_CROSS_ORIGIN = "access-control-"


def is_ours(host: str | None, *names: str) -> bool:
    """Whether a request with this Host may be answered. ``names`` are what the server is bound to.

    An IP address is no name that could be pointed elsewhere; ``localhost`` and this machine's own name are no one
    else's; a name without a dot (of a container, of ``/etc/hosts``) is no domain that anyone could own. Without a
    Host it was no browser.
    """
    if not host:
        return True
    name = _name_of(host.strip().lower())
    if name is None:
        return False
    if "." not in name or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {each.lower() for each in (*names, os.uname().nodename)}
    return True


def _name_of(host: str) -> str | None:
    """Without port and brackets; None if that is not how it is written."""
    if host.startswith("["):
        address, closed, rest = host[1:].partition("]")
        try:
            is_address = ipaddress.ip_address(address).version == 6
        except ValueError:
            return None
        # what follows is no part of it: a dot is for the next check
        return "localhost" if is_address and closed and (not rest or _is_port(rest)) else None
    name, colon, port = host.partition(":")
    return name.removesuffix(".") if name and (not colon or _is_port(colon + port)) else None


def _is_port(text: str) -> bool:
    return text[:1] == ":" and text.isascii() and text[1:].isdigit()


class GuardedWsgi:
    """A WSGI application that answers for its own hosts alone, and lets no page of another origin read its answers."""

    def __init__(self, application: Callable[..., Iterable[bytes]], *names: str) -> None:
        self._application = application
        self._names = names

    def __repr__(self) -> str:
        return f"GuardedWsgi({self._application!r})"

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if not is_ours(environ.get("HTTP_HOST"), *self._names):
            body = REFUSAL.encode()
            headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
            start_response("403 Forbidden", headers)
            return [body]

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            kept = [each for each in headers if not each[0].lower().startswith(_CROSS_ORIGIN)]
            return start_response(status, kept, *error)

        return self._application(environ, start)
