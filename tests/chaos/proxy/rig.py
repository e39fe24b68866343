"""A link between two fake transports, and what may happen to it, to be drawn at random."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from hypothesis import strategies as st

from chaos.proxy.connection import ProxyEndpoint
from chaos.proxy.frames import Dialogue
from chaos.proxy.link import Link
from chaos.proxy.pipe import PipeDirection
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics import TOXIC_TYPES
from cluster.seams.randomness import Random, derive

#: Longer than anything that is sent at once, and never the same at two places near each other.
PATTERN = b"".join(number.to_bytes(3, "big") for number in range(20_000))


class FakeTransport:
    """What an endpoint needs of a transport; ``stuffed`` means that the peer does not read."""

    def __init__(self, endpoint: ProxyEndpoint) -> None:
        self._endpoint = endpoint
        self.written = bytearray()
        self.reading = True
        self.closed = False
        self.stuffed = False
        self._told = False
        self._writing = asyncio.Event()

    async def was_written(self) -> None:
        """Wait for the next write."""
        self._writing.clear()
        await self._writing.wait()

    def write(self, data: bytes) -> None:
        assert not self.closed
        assert not self._told, "written although the buffer is full"
        self.written += data
        self._writing.set()
        if self.stuffed and not self._told:
            self._told = True
            self._endpoint.pause_writing()

    def unstuff(self) -> None:
        self.stuffed = False
        if self._told:
            self._told = False
            self._endpoint.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Rig:
    """A link between two endpoints on fake transports; the other direction is idle."""

    def __init__(self, seed: int = 0) -> None:
        self.toxics: list[Toxic] = []
        self.sent = bytearray()
        self.was_reset = False
        self._made = 0
        client, server = ProxyEndpoint(), ProxyEndpoint()
        self.source, self.sink = FakeTransport(client), FakeTransport(server)
        client.transport = cast(asyncio.Transport, self.source)
        server.transport = cast(asyncio.Transport, self.sink)

        def random_for(name: str) -> Random:
            return derive(seed, name)

        self.dialogue = Dialogue()
        self.link = Link(PipeDirection.UPSTREAM, client, server, (), random_for, self._reset, self.dialogue)
        back = Link(PipeDirection.DOWNSTREAM, server, client, (), random_for, self._reset, self.dialogue)
        client.wire(self.link, back, server)
        server.wire(back, self.link, client)
        self.client, self.server, self.back = client, server, back

    def _reset(self) -> None:
        self.was_reset = True

    def send(self, size: int) -> None:
        """New bytes arrive, if the link lets the source be read."""
        if self.source.reading:
            start = len(self.sent) % len(PATTERN)
            data = (PATTERN * 2)[start : start + size]
            self.sent += data
            self.client.data_received(data)

    def add(self, kind: str, toxicity: float = 1.0, **attributes: int) -> Toxic:
        self._made += 1
        values = dict.fromkeys(TOXIC_TYPES[kind].attributes, 0) | attributes
        toxic = Toxic(f"t{self._made}", TOXIC_TYPES[kind], "upstream", PipeDirection.UPSTREAM, toxicity, values)
        self.toxics.append(toxic)
        self.link.add(toxic)
        return toxic

    def remove(self, index: int) -> None:
        if self.toxics:
            self.link.remove(self.toxics.pop(index % len(self.toxics)))

    def update(self, index: int, value: int) -> None:
        if self.toxics:
            toxic = self.toxics[index % len(self.toxics)]
            toxic.attributes = {name: max(1, value) for name in toxic.attributes}
            self.link.update(toxic)

    def check(self) -> None:
        """What must hold at any moment."""
        counters = self.link.counters
        accounted = counters.bytes_out + counters.bytes_dropped + counters.bytes_discarded + self.link.held_bytes
        assert counters.bytes_in == len(self.sent) == accounted
        assert counters.bytes_out == len(self.sink.written)


Event = Callable[[Rig], Any]

LOSSLESS = [
    ("noop", {}),
    ("latency", {"latency": 20, "jitter": 15}),
    ("bandwidth", {"rate": 3}),
    ("bandwidth", {"rate": 0}),
    ("slow_close", {"delay": 30}),
    ("slicer", {"average_size": 400, "size_variation": 100, "delay": 300}),
    ("stall", {"probability_permille": 300, "min_ms": 1, "max_ms": 40}),
]
DROPPING = [("timeout", {"timeout": 0}), ("timeout", {"timeout": 30}), ("limit_data", {"bytes": 900})]


def _add(kind: tuple[str, dict[str, int]], toxicity: float) -> Event:
    return lambda rig: rig.add(kind[0], toxicity, **kind[1])


def events(kinds: list[tuple[str, dict[str, int]]]) -> st.SearchStrategy[list[Event | float]]:
    """A chain to begin with; then bytes, time that passes (a number, in s), toxics that come, change and go, and a
    peer that stops reading."""
    add: st.SearchStrategy[Event] = st.builds(_add, st.sampled_from(kinds), st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0]))
    send: st.SearchStrategy[Event] = st.sampled_from([3, 60, 500, 40_000]).map(lambda size: lambda rig: rig.send(size))
    change: st.SearchStrategy[Event] = st.one_of(
        add,
        st.integers(0, 9).map(lambda index: lambda rig: rig.remove(index)),
        st.integers(0, 9).map(lambda index: lambda rig: rig.remove(index)),
        st.tuples(st.integers(0, 9), st.integers(0, 50)).map(lambda pair: lambda rig: rig.update(*pair)),
        st.just(lambda rig: setattr(rig.sink, "stuffed", True)),
        st.just(lambda rig: rig.sink.unstuff()),
    )
    pause: st.SearchStrategy[float] = st.sampled_from([0.0, 0.004, 0.021, 0.15])
    turns = st.lists(st.tuples(send, pause, send, change), max_size=12)
    return st.tuples(st.lists(add, min_size=1, max_size=4), turns).map(
        lambda drawn: [*drawn[0], *(happening for turn in drawn[1] for happening in turn)]
    )


async def play(rig: Rig, happenings: list[Event | float]) -> None:
    for happening in happenings:
        if isinstance(happening, float):
            await asyncio.sleep(happening)
        else:
            happening(rig)
        rig.check()
