"""The routes of the API and their answers (docs/reference/toxiproxy.md "Routes", "Errors").

Owns statuses, headers and bodies. Does not own decisions about proxies and toxics (``registry``).
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import quote

from chaos.proxy import errors, go_json, stats
from chaos.proxy.http_server import HttpRequest, Response, plain, refusal
from chaos.proxy.proxy import Proxy
from chaos.proxy.registry import PopulateError, Registry

#: The version of Toxiproxy whose API this is.
VERSION = "2.12.0"

_JSON = "application/json"

#: The limit for the values in a body; Go has none (docs/proxy.md). Each value takes microseconds of the event loop that
#: serves the links.
MAX_VALUES = 20_000
#: One of these characters is next to every value, so their number is an upper bound. They may also be in strings.
_MARKS = b",:[{"

#: The number of proxies that are encoded in one turn of the event loop.
_AT_ONCE = 100

#: Gets the body, and the path parts that match ``{}``, in order.
_ApiHandler: TypeAlias = Callable[[bytes, list[str]], Awaitable[Response]]


class ProxyApi:
    """Answers the requests of one server."""

    def __init__(self, registry: Registry, lag: stats.LagMonitor) -> None:
        self._registry = registry
        self._lag = lag
        self._requests = 0
        self._routes: list[tuple[tuple[str, ...], dict[str, _ApiHandler]]] = [
            (("version",), {"GET": self._version}),
            (("reset",), {"POST": self._reset}),
            (("populate",), {"POST": self._populate}),
            (("proxies",), {"GET": self._proxies, "POST": self._create}),
            (
                ("proxies", "{}"),
                {"GET": self._show, "POST": self._update, "PATCH": self._update, "DELETE": self._delete},
            ),
            (("proxies", "{}", "toxics"), {"GET": self._toxics, "POST": self._add_toxic}),
            (
                ("proxies", "{}", "toxics", "{}"),
                {
                    "GET": self._show_toxic,
                    "POST": self._update_toxic,
                    "PATCH": self._update_toxic,
                    "DELETE": self._delete_toxic,
                },
            ),
            (("proxies", "{}", "connections"), {"GET": self._connections}),
            (("gapless", "stats"), {"GET": self._stats}),
            (("gapless", "stats", "{}"), {"GET": self._proxy_stats}),
        ]

    def __repr__(self) -> str:
        return f"ProxyApi({self._registry!r}, {self._requests} requests)"

    async def handle(self, request: HttpRequest) -> Response:
        """The answer to one request. Raises nothing but unexpected errors."""
        cleaned = _clean(request.path)
        if cleaned != request.path:
            query = request.target.partition("?")[2]
            return Response(301, headers={"Location": quote(cleaned) + (f"?{query}" if query else "")})
        parts = request.path[1:].split("/")
        for pattern, handlers in self._routes:
            arguments = _match(pattern, parts)
            if arguments is None:
                continue
            handler = handlers.get(request.method)
            if handler is None:
                return Response(405)
            return await self._answer(handler, request, arguments)
        return plain(404, "404 page not found\n")

    async def _answer(self, handler: _ApiHandler, request: HttpRequest, arguments: list[str]) -> Response:
        self._requests += 1
        if request.headers.get("user-agent", "").startswith("Mozilla/"):
            response = plain(403, "User agent not allowed\n")
        else:
            try:
                if sum(map(request.body.count, _MARKS)) > MAX_VALUES:
                    raise errors.too_many_values(MAX_VALUES)
                response = await handler(request.body, arguments)
            except errors.ApiError as error:
                response = refusal(error)
        response.headers["X-Toxiproxy-Request-Id"] = f"{self._requests:020x}"
        return response

    # --- the server

    async def _version(self, _body: bytes, _arguments: list[str]) -> Response:
        body = f'{{"version": "{VERSION}"}}\n'.encode()
        return Response(200, body, {"Content-Type": "application/json;charset=utf-8"})

    async def _reset(self, _body: bytes, _arguments: list[str]) -> Response:
        await self._registry.reset()
        return Response(204)

    async def _populate(self, body: bytes, _arguments: list[str]) -> Response:
        try:
            proxies = await self._registry.populate(body)
        except PopulateError as error:
            cause = error.cause
            answer = {"error": cause.message, "status": cause.status, "proxies": _proxy_list(error.done)}
            return _json(cause.status, answer)
        return _json(201, {"proxies": _proxy_list(proxies)})

    # --- proxies

    async def _proxies(self, _body: bytes, _arguments: list[str]) -> Response:
        return Response(200, await self._of_all(Proxy.to_json), {"Content-Type": _JSON})

    async def _create(self, body: bytes, _arguments: list[str]) -> Response:
        return _json(201, (await self._registry.create(body)).to_json())

    async def _show(self, _body: bytes, arguments: list[str]) -> Response:
        return _json(200, self._registry.get(arguments[0]).to_json())

    async def _update(self, body: bytes, arguments: list[str]) -> Response:
        return _json(200, (await self._registry.update(arguments[0], body)).to_json())

    async def _delete(self, _body: bytes, arguments: list[str]) -> Response:
        await self._registry.delete(arguments[0])
        return Response(204)

    # --- toxics

    async def _toxics(self, _body: bytes, arguments: list[str]) -> Response:
        return _json(200, [toxic.to_json() for toxic in self._registry.get(arguments[0]).all_toxics()])

    async def _add_toxic(self, body: bytes, arguments: list[str]) -> Response:
        return _json(200, (await self._registry.add_toxic(arguments[0], body)).to_json())

    async def _show_toxic(self, _body: bytes, arguments: list[str]) -> Response:
        return _json(200, self._registry.get(arguments[0]).toxic(arguments[1]).to_json())

    async def _update_toxic(self, body: bytes, arguments: list[str]) -> Response:
        return _json(200, (await self._registry.update_toxic(arguments[0], arguments[1], body)).to_json())

    async def _delete_toxic(self, _body: bytes, arguments: list[str]) -> Response:
        await self._registry.remove_toxic(arguments[0], arguments[1])
        return Response(204)

    # --- extensions that Toxiproxy does not have

    async def _connections(self, _body: bytes, arguments: list[str]) -> Response:
        now = asyncio.get_running_loop().time()
        proxy = self._registry.get(arguments[0])
        return _json(200, [stats.connection_stats(connection, now) for connection in proxy.connections()])

    async def _stats(self, _body: bytes, _arguments: list[str]) -> Response:
        head = go_json.encode({"seed": self._registry.seed, "event_loop_lag": self._lag.read()})
        body = b'%b,"proxies":%b}' % (head.removesuffix(b"}"), await self._of_all(stats.proxy_stats))
        return Response(200, body, {"Content-Type": _JSON})

    async def _of_all(self, told: Callable[[Proxy], object]) -> bytes:
        """A JSON object with ``told(proxy)`` for each proxy name. Lets links run after each hundred proxies."""
        parts = []
        for number, proxy in enumerate(self._registry.all(), 1):
            parts.append(go_json.encode(proxy.name) + b":" + go_json.encode(told(proxy)))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return b"{" + b",".join(parts) + b"}"

    async def _proxy_stats(self, _body: bytes, arguments: list[str]) -> Response:
        return _json(200, stats.proxy_stats(self._registry.get(arguments[0])))


def _clean(path: str) -> str:
    """The path without empty, ``.`` and ``..`` parts, to which Go redirects. Keeps a slash at the end."""
    if not path.startswith("/"):
        return "/"
    cleaned = "/" + posixpath.normpath(path).lstrip("/")
    return cleaned + "/" if path.endswith("/") and cleaned != "/" else cleaned


def _match(pattern: tuple[str, ...], parts: list[str]) -> list[str] | None:
    if len(pattern) != len(parts):
        return None
    arguments = []
    for expected, part in zip(pattern, parts, strict=True):
        if expected == "{}" and part:
            arguments.append(part)
        elif expected != part:
            return None
    return arguments


def _json(status: int, value: object) -> Response:
    return Response(status, go_json.encode(value), {"Content-Type": _JSON})


def _proxy_list(proxies: list[Proxy]) -> list[dict[str, object]] | None:
    """The proxies as JSON. An empty list is ``null``, like Go's nil slice."""
    return [proxy.to_json() for proxy in proxies] or None
