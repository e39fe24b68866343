"""Counters, and the sight of a retry."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker import metrics
from cluster.broker.metrics import Counters, LoopLag
from cluster.protocol.batch import parse_header
from tests.simulation.client import batch
from tests.support.virtual_time import run


def arrive(counters: Counters, records: bytes, *, appended: bool = True) -> None:
    view = memoryview(bytearray(records))
    counters.batch_arrived(parse_header(view), view, is_appended=appended)


def test_a_retry_is_seen_whatever_became_of_it() -> None:
    """By base timestamp and first record, with or without a sequence; what was refused before is no retry."""
    counters = Counters()
    arrive(counters, batch(b"a"), appended=False)
    arrive(counters, batch(b"a"))
    arrive(counters, batch(b"b"))
    assert counters.produce_retries == 0
    arrive(counters, batch(b"a"), appended=False)
    arrive(counters, batch(b"a", producer_id=4, base_sequence=2))
    assert (counters.produce_retries, counters.produce_batches) == (2, 3)


def test_the_memory_for_retries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old batches are forgotten, but none of the last sixteen (of which there are more in life)."""
    monkeypatch.setattr(metrics, "_RECENT_BATCHES", 16)
    counters = Counters()
    batches = [batch(b"%d" % number) for number in range(48)]
    for newest in range(16, 48):
        for records in batches[newest - 16 : newest]:
            arrive(counters, records, appended=newest == 16)
        arrive(counters, batches[newest])
    assert counters.produce_retries == 31 * 16
    arrive(counters, batches[0], appended=False)
    assert counters.produce_retries == 31 * 16


def test_isr_changes_are_counted_by_their_direction() -> None:
    """A set that loses one and wins one is both."""
    counters = Counters()
    counters.isr_changed(frozenset({1, 2}), frozenset({1}))
    counters.isr_changed(frozenset({1}), frozenset({1, 3}))
    counters.isr_changed(frozenset({1, 2}), frozenset({1, 3}))
    assert (counters.isr_shrinks, counters.isr_expands) == (2, 2)


def test_a_loop_that_is_held_up_is_seen() -> None:
    """The worst of the last 30 to 60 seconds: two who ask see the same, and each sees it who asks every 30 s."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        lag = LoopLag(loop)
        await asyncio.sleep(1)
        assert lag.worst_s() < 0.01
        # held up for a quarter of a second: the timer's moment is past when it is run
        lag._due -= 0.25
        await asyncio.sleep(0.2)
        assert [round(lag.worst_s(), 2) for _ in range(2)] == [0.25, 0.25]
        await asyncio.sleep(30)
        assert round(lag.worst_s(), 2) == 0.25
        await asyncio.sleep(30)
        assert lag.worst_s() < 0.01
        lag.close()

    run(main())
