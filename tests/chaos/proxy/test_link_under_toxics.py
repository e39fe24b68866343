"""A link under any sequence of events: bytes whole and in order, counters that add up."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.proxy.rig import DROPPING, LOSSLESS, Event, Rig, events, play
from tests.chaos.proxy.virtual_loop import run_virtual


@given(events(LOSSLESS), st.integers(0, 99))
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


@given(events(LOSSLESS + DROPPING), st.integers(0, 99))
def test_dropping_toxics_only_leave_bytes_out(happenings: list[Event | float], seed: int) -> None:
    """What arrives is what was sent with parts left out, and every byte is accounted for."""

    async def scenario() -> None:
        rig = Rig(seed)
        await play(rig, happenings)
        sent = iter(rig.sent)
        assert all(byte in sent for byte in rig.sink.written)  # a subsequence: each search goes on where the last ended

    run_virtual(scenario())


@given(events(LOSSLESS), st.integers(0, 99))
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
