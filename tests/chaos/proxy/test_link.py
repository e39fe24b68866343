"""A link under any sequence of events: bytes whole and in order, counters that add up, reading held back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.proxy.connection import Endpoint
from chaos.proxy.link import Link
from chaos.proxy.pipe import Direction
from chaos.proxy.toxic import Toxic
from chaos.proxy.toxics import TOXIC_TYPES
from cluster.seams.randomness import Random, derive
from tests.chaos.proxy.virtual_loop import run_virtual

#: Longer than anything that is sent at once, and never the same at two places near each other.
_PATTERN = b"".join(number.to_bytes(3, "big") for number in range(20_000))


class FakeTransport:
    """What an endpoint needs of a transport; ``stuffed`` means that the peer does not read."""

    def __init__(self, endpoint: Endpoint) -> None:
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
        client, server = Endpoint(), Endpoint()
        self.source, self.sink = FakeTransport(client), FakeTransport(server)
        client.transport = cast(asyncio.Transport, self.source)
        server.transport = cast(asyncio.Transport, self.sink)

        def random_for(name: str) -> Random:
            return derive(seed, name)

        self.link = Link(Direction.UPSTREAM, client, server, (), random_for, self._reset)
        back = Link(Direction.DOWNSTREAM, server, client, (), random_for, self._reset)
        client.wire(self.link, back, server)
        server.wire(back, self.link, client)
        self.client, self.server = client, server

    def _reset(self) -> None:
        self.was_reset = True

    def send(self, size: int) -> None:
        """New bytes arrive, if the link lets the source be read."""
        if self.source.reading:
            start = len(self.sent) % len(_PATTERN)
            data = (_PATTERN * 2)[start : start + size]
            self.sent += data
            self.client.data_received(data)

    def add(self, kind: str, toxicity: float = 1.0, **attributes: int) -> Toxic:
        self._made += 1
        values = dict.fromkeys(TOXIC_TYPES[kind].attributes, 0) | attributes
        toxic = Toxic(f"t{self._made}", TOXIC_TYPES[kind], "upstream", Direction.UPSTREAM, toxicity, values)
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

_LOSSLESS = [
    ("noop", {}),
    ("latency", {"latency": 20, "jitter": 15}),
    ("bandwidth", {"rate": 3}),
    ("bandwidth", {"rate": 0}),
    ("slow_close", {"delay": 30}),
    ("slicer", {"average_size": 400, "size_variation": 100, "delay": 300}),
    ("stall", {"probability_permille": 300, "min_ms": 1, "max_ms": 40}),
]
_DROPPING = [("timeout", {"timeout": 0}), ("timeout", {"timeout": 30}), ("limit_data", {"bytes": 900})]


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


@settings(max_examples=1000 if os.environ.get("GAPLESS_HYPOTHESIS") == "full" else 150)
@given(events(_LOSSLESS), st.integers(0, 99))
def test_lossless_toxics_lose_and_reorder_nothing(happenings: list[Event | float], seed: int) -> None:
    """Through any chain of order-preserving toxics that come and go while data flows, all bytes arrive in order."""

    async def scenario() -> None:
        rig = Rig(seed)
        await play(rig, happenings)
        assert rig.sent.startswith(rig.sink.written)
        while rig.toxics:
            rig.remove(0)
        rig.sink.unstuff()
        await asyncio.sleep(0.001)
        assert rig.sink.written == rig.sent
        assert rig.link.fast
        assert rig.source.reading
        rig.client.eof_received()
        assert rig.sink.closed

    run_virtual(scenario())


@given(events(_LOSSLESS + _DROPPING), st.integers(0, 99))
def test_dropping_toxics_only_leave_bytes_out(happenings: list[Event | float], seed: int) -> None:
    """What arrives is what was sent with parts left out, and every byte is accounted for."""

    async def scenario() -> None:
        rig = Rig(seed)
        await play(rig, happenings)
        sent = iter(rig.sent)
        assert all(byte in sent for byte in rig.sink.written)  # a subsequence: each search goes on where the last ended

    run_virtual(scenario())


@given(events(_LOSSLESS), st.integers(0, 99))
def test_an_end_arrives_behind_all_bytes(happenings: list[Event | float], seed: int) -> None:
    """After the source's end everything still arrives, then the sink closes, once the cuts are healed."""

    async def scenario() -> None:
        rig = Rig(seed)
        await play(rig, happenings)
        rig.client.eof_received()
        rig.source.reading = False
        rig.sink.unstuff()
        for toxic in list(rig.toxics):
            if toxic.toxic_type.name == "bandwidth":
                rig.toxics.remove(toxic)
                rig.link.remove(toxic)
        await asyncio.sleep(3600)
        assert rig.sink.written == rig.sent
        assert rig.sink.closed

    run_virtual(scenario())


def test_reading_stops_when_the_pipes_are_full() -> None:
    """A held link takes a bounded number of bytes, then the source is not read any more."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("bandwidth", rate=0)
        for _ in range(1000):
            rig.send(32 * 1024)
        assert len(rig.sent) <= 16 * 32 * 1024
        assert not rig.source.reading
        rig.remove(0)
        assert rig.source.reading

    run_virtual(scenario())


def test_reading_stops_on_the_fast_path_when_the_sink_is_full() -> None:
    """Backpressure without toxics: one write too many pauses the source, room resumes it."""

    async def scenario() -> None:
        rig = Rig()
        rig.sink.stuffed = True
        rig.send(100)
        assert not rig.source.reading
        rig.sink.unstuff()
        assert rig.source.reading

    run_virtual(scenario())


def test_reading_stops_on_the_slow_path_when_the_sink_is_full() -> None:
    """Backpressure through a toxic that would let everything pass."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("noop")
        rig.sink.stuffed = True
        for _ in range(100):
            rig.send(32 * 1024)
        assert len(rig.sent) < 32 * 32 * 1024
        assert not rig.source.reading
        rig.sink.unstuff()
        assert rig.sink.written == rig.sent

    run_virtual(scenario())


def test_nothing_is_delivered_behind_bytes_that_were_dropped() -> None:
    """A lossy cut that is removed ends the stream: what a toxic before it still holds must not follow the gap."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("latency", latency=50)
        cut = rig.add("timeout")
        rig.add("slow_close", delay=1000)
        rig.send(10)
        await asyncio.sleep(0.06)
        rig.send(20)
        rig.toxics.remove(cut)
        rig.link.remove(cut)
        await asyncio.sleep(0.5)
        rig.check()
        assert rig.sink.written == b""
        await asyncio.sleep(0.6)
        assert rig.sink.closed
        assert (rig.link.counters.bytes_dropped, rig.link.counters.bytes_discarded) == (10, 20)

    run_virtual(scenario())


def test_one_busy_link_leaves_turns_to_others() -> None:
    """Slicing into single bytes without a delay takes many turns of the loop, not one long one."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("slicer", average_size=1)
        rig.send(30_000)
        assert 0 < len(rig.sink.written) < 2000
        turns = 0
        while len(rig.sink.written) < 30_000:
            await asyncio.sleep(0)
            turns += 1
        assert 10 < turns < 1000
        assert rig.sink.written == rig.sent

    run_virtual(scenario())


def test_a_lost_sink_discards_and_notices_the_end() -> None:
    """When the destination is gone, bytes are discarded and counted, and the source is read so that its end shows."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("bandwidth", rate=0)
        for _ in range(100):
            rig.send(32 * 1024)
        rig.server.connection_lost(None)
        assert rig.source.reading
        rig.send(10)
        assert rig.link.counters.bytes_discarded == len(rig.sent)
        assert rig.link.held_bytes == 0

    run_virtual(scenario())


def test_reset_peer_resets_both_sides() -> None:
    """The reset goes to the connection, not only to the sink."""

    async def scenario() -> None:
        rig = Rig()
        rig.add("reset_peer", timeout=50)
        rig.add("latency", latency=10)
        rig.send(5)
        await asyncio.sleep(0.04)
        assert not rig.was_reset
        await asyncio.sleep(0.02)
        assert rig.was_reset
        assert rig.link.counters.bytes_dropped == 5

    run_virtual(scenario())


@pytest.mark.parametrize("toxicity", [0.0, 1.0])
def test_a_link_that_no_toxic_applies_to_is_fast(toxicity: float) -> None:
    """Toxicity 0 costs nothing; an update rolls again."""

    async def scenario() -> None:
        rig = Rig()
        toxic = rig.add("latency", toxicity, latency=10)
        assert rig.link.fast == (toxicity == 0.0)
        toxic.toxicity = 1.0 - toxicity
        rig.link.update(toxic)
        assert rig.link.fast == (toxicity == 1.0)

    run_virtual(scenario())


def test_the_same_seed_gives_the_same_delays() -> None:
    """Draws depend on the seed and the toxic's name alone."""

    async def arrivals(seed: int) -> list[float]:
        rig = Rig(seed)
        rig.add("latency", latency=50, jitter=50)
        loop = asyncio.get_running_loop()
        times = []
        for size in range(1, 8):
            rig.send(size)
            started = loop.time()
            await rig.sink.was_written()
            times.append(round(loop.time() - started, 6))
        return times

    first, second, other = (run_virtual(arrivals(seed)) for seed in (1, 1, 2))
    assert first == second != other
