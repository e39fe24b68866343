"""Last stable offsets as the conductor watches them: what a standstill is, whom it believes, and what it writes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from chaos.conductor import stable_survey
from chaos.conductor.stable_offsets import StableWatch, Standstills
from chaos.conductor.stable_survey import StableOffsets, stable_offsets
from cluster.client.offset_listing import ListedOffset
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage

S = 1_000_000_000
PLACE = ("t", 0)


def at(stable: int, high: int) -> dict[tuple[str, int], StableOffsets]:
    return {PLACE: StableOffsets(3, stable, high)}


def spans(found: list[dict[str, object]]) -> list[tuple[object, object, object]]:
    return [(each["offset"], each["since_ns"], each["until_ns"]) for each in found]


def test_a_standstill_lasts_from_the_first_look_to_the_one_that_sees_it_over() -> None:
    """A look without an answer neither ends nor shortens it; nothing beyond the offset is no standstill."""
    standstills = Standstills()
    assert standstills.look(at(10, 10), 1 * S) == []
    assert standstills.look(at(10, 12), 2 * S) == []
    assert standstills.look({}, 3 * S) == []
    assert standstills.look(at(10, 40), 9 * S) == []
    assert spans(standstills.look(at(25, 40), 10 * S)) == [(10, 2 * S, 10 * S)]
    assert spans(standstills.look(at(40, 40), 12 * S)) == [(25, 10 * S, 12 * S)]
    assert standstills.end() == []


def test_all_is_readable_ends_it_also_at_the_same_offset() -> None:
    """What was beyond it was cut off by an election; and what never ends is told at the end."""
    standstills = Standstills()
    standstills.look(at(10, 12), 2 * S)
    assert spans(standstills.look(at(10, 10), 5 * S)) == [(10, 2 * S, 5 * S)]
    standstills.look(at(11, 12), 6 * S)
    standstills.look(at(11, 12), 8 * S)
    assert spans(standstills.end()) == [(11, 6 * S, 8 * S)]


def test_what_a_transaction_takes_is_not_told() -> None:
    """A last stable offset that stands still for less than a second is not recorded."""
    standstills = Standstills()
    standstills.look(at(10, 12), 2 * S)
    assert standstills.look(at(12, 14), 2 * S + S // 2) == []


def test_the_watch_writes_what_ended_and_how_often_it_looked() -> None:
    """At the end what is still open, too. A look that no one answered does not count."""
    clock, storage = ManualClock(), MemoryStorage()
    storage.makedirs("/run")
    answers = [at(10, 12), {}, at(10, 12), at(12, 14), at(12, 20)]

    class Observed:
        async def stable_offsets(self, places: Any) -> Any:
            assert places == [("t", 0), ("t", 1)]
            clock.advance_ms(1000)
            if not answers:
                raise asyncio.CancelledError
            return answers.pop(0)

    watch = StableWatch(Observed(), clock, storage, "/run/stable.jsonl", {"t": 2})  # type: ignore[arg-type]

    async def run() -> None:
        for _ in range(4):
            await watch.look()
        watch_all = asyncio.create_task(watch.run())
        await asyncio.gather(watch_all, return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chaos.conductor.stable_offsets.LOOK_EVERY_S", 0.0)
        asyncio.run(run())
    lines = [json.loads(line) for line in storage.read("/run/stable.jsonl").decode().splitlines()]
    assert [line.get("offset") for line in lines] == [10, 12, None]
    assert lines[0]["until_ns"] - lines[0]["since_ns"] == 3 * S
    assert lines[-1] == {"looks": 4}


def test_the_highest_leader_epoch_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that was cut off still tells what it knows. Who is no leader, or silent, tells nothing."""
    told = {
        "old": {0: ListedOffset(50, -1, 4), 1: ListedOffset(7, -1, 4)},
        "new": {0: ListedOffset(90, -1, 5), 1: ListedOffset(80, -1, 5)},
        "other": {0: ErrorCode.NOT_LEADER_OR_FOLLOWER, 1: ErrorCode.NOT_LEADER_OR_FOLLOWER},
    }

    async def ask(address: str, _transport: Any, _timeout_ms: int, question: Any) -> Any:
        return None if address == "silent" else {PLACE: told[address][question.isolation_level]}

    monkeypatch.setattr(stable_survey, "ask", ask)
    monkeypatch.setattr(stable_survey, "listed_offsets", lambda answer: answer)
    for order in (("old", "new"), ("new", "old")):
        found = asyncio.run(stable_offsets((*order, "other", "silent"), [PLACE], None, 10))  # type: ignore[arg-type]
        assert found == {PLACE: StableOffsets(5, 80, 90)}
