"""A loop that is busy for long is counted, and what kept it is named."""

from __future__ import annotations

import logging
import time

import pytest

from cluster.broker.long_turns import LongTurns
from cluster.broker.metrics import Counters
from cluster.protocol.apis import ApiKey
from cluster.seams.turns import LONG_TURN_NS, Turns

S = 1_000_000_000


def test_a_long_turn_is_logged_with_its_api(caplog: pytest.LogCaptureFixture) -> None:
    """Of handlers that took long; once in ten seconds, with how many were passed over."""
    now_ns = 0
    counters = Counters(lambda: now_ns)
    turns = LongTurns()
    turns.note(9 * S)
    turns.counters = counters
    counters.api.of(ApiKey.METADATA).at_once.note(S // 1000)
    counters.api.of(ApiKey.PRODUCE).at_once.note(2 * S)
    turns.note(2 * S)
    counters.api.of(ApiKey.FETCH).local.note(S // 5)
    turns.note(S // 5)
    now_ns = 11 * S
    turns.note(3 * S)
    first, second = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert first == "a turn of the event loop took 2000 ms: PRODUCE"
    assert "3000 ms: no single request" in second and "(1 more long turns before)" in second
    assert (counters.event_loop_long_turns, turns.longest_ns) == (3, 3 * S)


def test_turns_are_measured_between_two_looks_of_the_selector() -> None:
    """Whatever runs on the loop; waiting is no part of a turn."""
    told: list[int] = []
    turns = Turns(told.append)
    loop = turns.loop()
    try:
        loop.call_soon(time.sleep, LONG_TURN_NS / 1e9)
        loop.call_later(2.5 * LONG_TURN_NS / 1e9, loop.stop)
        loop.run_forever()
    finally:
        loop.close()
    assert len(told) >= 1
    assert told[0] >= LONG_TURN_NS
