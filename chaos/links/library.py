"""Patches toxiproxy-python so that each use can have its own server, with the timeouts and errors of ``Channel``.

The library reaches its server through one class, ``APIConsumer``, whose host and port are class attributes, so that a
process can use only one server. It sets no timeouts, obeys HTTP_PROXY and ignores 5xx answers
(docs/reference/toxiproxy.md "Python library"). Importing this module replaces that class with a subclass in the
library's two modules. Within :func:`library`, it sends through the channel of the current context, so that a process
can use any number of servers, also from threads. Elsewhere it behaves as before. Does not send requests itself
(``channel``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import toxiproxy.proxy
import toxiproxy.server
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import ProxyExists

from chaos.links.channel import Channel
from chaos.links.errors import LinkConflict

_channel: ContextVar[Channel | None] = ContextVar("toxiproxy_channel", default=None)


class _RoutedConsumer(APIConsumer):  # type: ignore[misc]
    """Sends through the channel of the current context; without one, as the library does."""

    @classmethod
    def get(cls, url: str, params: Any = None, **kwargs: Any) -> Any:
        channel = _channel.get()
        return channel.request("GET", url) if channel else super().get(url, params=params, **kwargs)

    @classmethod
    def delete(cls, url: str, **kwargs: Any) -> Any:
        channel = _channel.get()
        return channel.request("DELETE", url) if channel else super().delete(url, **kwargs)

    @classmethod
    def post(cls, url: str, data: Any = None, json: Any = None, **kwargs: Any) -> Any:
        channel = _channel.get()
        return channel.request("POST", url, json) if channel else super().post(url, data=data, json=json, **kwargs)


toxiproxy.proxy.APIConsumer = _RoutedConsumer
toxiproxy.server.APIConsumer = _RoutedConsumer


@contextmanager
def library(channel: Channel) -> Iterator[toxiproxy.Toxiproxy]:
    """The library's server object, which uses this channel inside the ``with`` block.

    Raises LinkConflict if the library itself finds that a proxy exists already.
    """
    token = _channel.set(channel)
    try:
        yield toxiproxy.Toxiproxy()
    except ProxyExists as error:
        raise LinkConflict(str(error), 409) from error
    finally:
        _channel.reset(token)
