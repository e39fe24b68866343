"""The calls that faults and the conductor make to the proxy's server. Blocking; thread-safe.

Reads each change back and compares it. A link is a proxy that is named after its two ends, the opener first
(``producers-b1``, ``b1-b2``, ``b2-zk``). *Request* is its upstream stream, *response* its downstream stream. Does not
own acts on single frames (``frames``) or measurements through a link (``ping``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from chaos.faults.damage import Direction
from chaos.links.channel import Channel
from chaos.links.errors import LinkConflict, LinkError, LinkMismatch, LinkNotFound
from chaos.links.library import library
from chaos.links.state import (
    LinkState,
    LinkStats,
    ServerStats,
    ToxicState,
    link_state,
    link_stats,
    server_stats,
    toxic_state,
)

_PERMILLE = 1000

Stream = Literal["upstream", "downstream"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_STREAMS: dict[Direction, tuple[tuple[str, Stream], ...]] = {
    "request": (("request", "upstream"),),
    "response": (("response", "downstream"),),
    "both": (("request", "upstream"), ("response", "downstream")),
}


@dataclass(frozen=True, slots=True)
class StallModel:
    """How packet loss is modeled on a link: by our ``stall`` toxic, or on an external server by ``latency`` jitter."""

    kind: Literal["stall", "latency"]
    toxics: tuple[str, ...]


class Links:
    """The links on one server. ``url`` is ``http://HOST:PORT``; ``timeout_s`` limits each call to the server.

    All methods raise a ``LinkError``: LinkUnreachable, LinkTimeout, LinkMismatch, or the one for the answer's status.
    """

    def __init__(self, url: str, timeout_s: float = 5.0) -> None:
        self._channel = Channel.parse(url, timeout_s)
        self._ours: bool | None = None

    def __repr__(self) -> str:
        return f"Links({self._channel.host}:{self._channel.port})"

    # --- the server

    def version(self) -> str:
        """The version that the server reports."""
        return str(self._channel.request("GET", "/version").json()["version"])

    def is_gapless(self) -> bool:
        """Whether the server is gapless's own, which has more toxics and statistics."""
        if self._ours is None:
            self.server_stats()
        return bool(self._ours)

    def server_stats(self) -> ServerStats | None:
        """The event-loop lag of the proxy process since the last call; None on an external server."""
        try:
            answer = self._channel.request("GET", "/gapless/stats").json()
        except LinkNotFound:
            self._ours = False
            return None
        self._ours = True
        return server_stats(answer)

    def reset(self) -> None:
        """Enable every link and remove every toxic."""
        with library(self._channel) as server:
            server.reset()
        unclear = [state.name for state in self.all().values() if not state.clear]
        if unclear:
            raise LinkMismatch(f"still not clear after a reset: {', '.join(unclear)}")

    # --- links

    def all(self) -> dict[str, LinkState]:
        """All links by name."""
        answer = self._channel.request("GET", "/proxies").json()
        return {name: link_state(state) for name, state in answer.items()}

    def show(self, link: str) -> LinkState:
        return link_state(self._channel.request("GET", f"/proxies/{_checked(link)}").json())

    def create(self, link: str, upstream: str, listen: str = "127.0.0.1:0") -> str:
        """Create a link to ``upstream`` (``host:port``); returns the ``host:port`` on which it listens."""
        with library(self._channel) as server:
            server.create(upstream=upstream, name=_checked(link), listen=listen)
        state = self.show(link)
        _expect(link, "upstream", state.upstream, upstream)
        _expect(link, "enabled", state.enabled, True)
        return state.listen

    def set_upstream(self, link: str, upstream: str) -> None:
        """Change the upstream of a link. This closes its connections, unless nothing changes. Its toxics stay."""
        before = self.show(link)
        self._channel.request("POST", f"/proxies/{link}", {"upstream": upstream})
        state = self.show(link)
        _expect(link, "upstream", state.upstream, upstream)
        _expect(link, "listen", state.listen, before.listen)

    def delete(self, link: str) -> None:
        with self._proxy(link) as proxy:
            proxy.destroy()
        if link in self.all():
            raise LinkMismatch(f"{link} is still there after it was deleted")

    def disable(self, link: str) -> None:
        """Close the link's connections and refuse new ones. Its toxics stay."""
        with self._proxy(link) as proxy:
            proxy.disable()
        _expect(link, "enabled", self.show(link).enabled, False)

    def enable(self, link: str) -> None:
        with self._proxy(link) as proxy:
            proxy.enable()
        _expect(link, "enabled", self.show(link).enabled, True)

    # --- toxics

    def toxics(self, link: str) -> list[ToxicState]:
        """The toxics of a link: those for requests first, in each direction in the order in which bytes pass them."""
        answer = self._channel.request("GET", f"/proxies/{_checked(link)}/toxics").json()
        return [toxic_state(toxic) for toxic in answer]

    def add_toxic(
        self,
        link: str,
        type: str,  # noqa: A002 (Toxiproxy's own word)
        stream: Stream = "downstream",
        attributes: Mapping[str, int] | None = None,
        toxicity: float = 1.0,
        name: str | None = None,
    ) -> ToxicState:
        """Add a toxic to the end of a stream. ``name`` defaults to ``TYPE_STREAM``, as on the server."""
        toxic_name = _checked(name or f"{type}_{stream}")
        wanted = dict(attributes or {})
        with self._proxy(link) as proxy:
            proxy.add_toxic(type=type, stream=stream, attributes=wanted, toxicity=toxicity, name=toxic_name)
        state = self._toxic(link, toxic_name)
        _expect(link, f"type of {toxic_name}", state.type, type)
        _expect(link, f"stream of {toxic_name}", state.stream, stream)
        self._expect_toxic(link, state, wanted, toxicity)
        return state

    def update_toxic(
        self, link: str, name: str, attributes: Mapping[str, int] | None = None, toxicity: float | None = None
    ) -> ToxicState:
        """Change some attributes of a toxic, or its toxicity; the others stay. (The library lacks this call.)"""
        body: dict[str, object] = {"attributes": dict(attributes or {})}
        if toxicity is not None:
            body["toxicity"] = toxicity
        self._channel.request("POST", f"/proxies/{_checked(link)}/toxics/{_checked(name)}", body)
        state = self._toxic(link, name)
        self._expect_toxic(link, state, dict(attributes or {}), toxicity)
        return state

    def remove_toxic(self, link: str, name: str) -> None:
        with self._proxy(link) as proxy:
            proxy.destroy_toxic(_checked(name))
        if any(toxic.name == name for toxic in self.toxics(link)):
            raise LinkMismatch(f"{name} is still on {link} after it was removed")

    # --- what faults do

    def cut(self, link: str, direction: Direction, *, lossless: bool, name: str = "cut") -> tuple[str, ...]:
        """Let no bytes pass; returns the names of the toxics for :meth:`heal`.

        If lossless, bytes are held back and arrive after the heal (``bandwidth`` 0). Otherwise bytes are dropped, and
        existing connections close at the heal (``timeout`` 0). ``name`` tells several faults on one link apart.
        """
        kind, attributes = ("bandwidth", {"rate": 0}) if lossless else ("timeout", {"timeout": 0})
        return self.add_each(link, direction, name, kind, attributes)

    def stall(
        self,
        link: str,
        direction: Direction,
        *,
        probability: float,
        min_ms: int,
        max_ms: int,
        name: str = "stall",
    ) -> StallModel:
        """Model packet loss: with this probability, each chunk waits between ``min_ms`` and ``max_ms``.

        An external Toxiproxy cannot draw per chunk: there, every chunk waits between 0 and ``max_ms``, half of them not
        at all (latency 0, jitter ``max_ms``). The result says which model is used.
        """
        if self.is_gapless():
            attributes = {"probability_permille": round(probability * _PERMILLE), "min_ms": min_ms, "max_ms": max_ms}
            return StallModel("stall", self.add_each(link, direction, name, "stall", attributes))
        foreign = {"latency": 0, "jitter": max_ms}
        return StallModel("latency", self.add_each(link, direction, name, "latency", foreign))

    def reset_connections(self, link: str, direction: Direction, name: str = "reset") -> tuple[str, ...]:
        """While the toxic exists, answer the next bytes in this direction of a connection with a RST to both ends."""
        return self.add_each(link, direction, name, "reset_peer", {"timeout": 0})

    def delay(self, link: str, direction: Direction, *, latency_ms: int, name: str = "delay") -> tuple[str, ...]:
        """Delay every chunk in this direction by ``latency_ms``; their order is kept."""
        return self.add_each(link, direction, name, "latency", {"latency": latency_ms, "jitter": 0})

    def heal(self, link: str, toxics: Collection[str] | None = None) -> None:
        """Remove every toxic of a link and enable it. Raises LinkMismatch if it is not clear afterwards.

        With ``toxics`` (the names that :meth:`cut` or :meth:`stall` returned), remove only these, so that the damage of
        other faults stays.
        """
        state = self.show(link)
        for toxic in state.toxics:
            if toxics is None or toxic.name in toxics:
                with suppress(LinkNotFound):  # another caller removed it; the state is checked below
                    self.remove_toxic(link, toxic.name)
        if toxics is not None:
            return
        if not state.enabled:
            self.enable(link)
        if not self.is_clear(link):
            raise LinkMismatch(f"{link} is not clear after it was healed: {self.show(link)}")

    def is_clear(self, link: str) -> bool:
        """Whether the link is enabled and has no toxic."""
        return self.show(link).clear

    def stats(self, link: str) -> LinkStats | None:
        """Bytes and connections of a link since it was created; None on an external server, which has no counters."""
        if not self.is_gapless():
            return None
        return link_stats(self._channel.request("GET", f"/gapless/stats/{_checked(link)}").json())

    # --- details

    @contextmanager
    def _proxy(self, link: str) -> Iterator[Any]:
        """The library's object for a link. Raises LinkNotFound."""
        with library(self._channel) as server:
            proxy = server.get_proxy(_checked(link))
            if proxy is None:
                raise LinkNotFound(f"no such link: {link}", 404)
            yield proxy

    def _toxic(self, link: str, name: str) -> ToxicState:
        return toxic_state(self._channel.request("GET", f"/proxies/{link}/toxics/{name}").json())

    def _expect_toxic(self, link: str, state: ToxicState, wanted: dict[str, int], toxicity: float | None) -> None:
        for attribute, value in wanted.items():
            _expect(link, f"{attribute} of {state.name}", state.attributes.get(attribute), value)
        if toxicity is not None and abs(state.toxicity - toxicity) > 1e-6:  # the server keeps a float32
            _expect(link, f"toxicity of {state.name}", state.toxicity, toxicity)

    def add_each(
        self, link: str, direction: Direction, name: str, kind: str, attributes: dict[str, int]
    ) -> tuple[str, ...]:
        """Add ``NAME-request``, ``NAME-response``, or both, by direction; after an error, none. Returns the names."""
        added: list[str] = []
        try:
            for side, stream in _STREAMS[direction]:
                added.append(f"{name}-{side}")
                self.add_toxic(link, kind, stream, attributes, name=added[-1])
        except LinkError as error:
            if isinstance(error, LinkConflict):
                added.pop()  # another caller's
            for toxic_name in added:
                with suppress(LinkNotFound):
                    self.remove_toxic(link, toxic_name)
            raise
        return tuple(added)


def _checked(name: str) -> str:
    """The name, if it needs no quoting in a URL, since the library does not quote names. Else raises ``ValueError``."""
    if not _NAME.match(name):
        raise ValueError(f"not a name of a link or toxic: {name!r}")
    return name


def _expect(link: str, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise LinkMismatch(f"{link}: {what} is {found!r} after it was set to {wanted!r}")
