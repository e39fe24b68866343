"""A link in single scenes: reading held back, turns left to others, ends, resets."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.proxy.rig import Rig
from tests.chaos.proxy.virtual_loop import run_virtual


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
