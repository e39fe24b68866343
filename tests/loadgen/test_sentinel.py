"""Sentinels: one acknowledged offset per partition, every attempt recorded, a deadline that holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import SentinelSender, SentResult
from loadgen.recorder import Recorder
from loadgen.sentinel import Sentinels
from tests.loadgen.fakes import FakeSender
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import SENTINEL_STREAM, decode


class Bench:
    """Sentinels for partitions 0 and 1 through prepared answers."""

    def __init__(self, directory: Path, *answers: dict[int, SentResult]) -> None:
        self.path = directory / "sentinel.arrow"
        self.clock = ManualClock()
        self.recorder = Recorder("sentinel", self.path, self.clock)
        self.sender = FakeSender(list(answers))
        self.made = 0
        self.sentinels = Sentinels("t", (0, 1), 8, self.make, self.recorder, self.clock)

    def make(self) -> SentinelSender:
        self.made += 1
        return self.sender

    def place(self, deadline_s: float = 60.0) -> bool:
        return self.sentinels.place(deadline_s, lambda seconds: self.clock.advance_ms(seconds * 1000))

    def rows(self) -> list[dict[str, Any]]:
        self.recorder.close()
        return read_history(self.path).to_pylist()


def test_one_attempt_is_enough_when_all_goes_well(tmp_path: Path) -> None:
    """Both partitions answered: their offsets, rows of phase final, values with the sentinel's flag and stream."""
    bench = Bench(tmp_path, {0: SentResult.of_offset(10), 1: SentResult.of_offset(20)})
    assert bench.place()
    assert bench.sentinels.offsets == {0: 10, 1: 20}
    for partition, value in bench.sender.sent[0].items():
        decoded = decode(value)
        assert decoded is not None and decoded.is_sentinel
        assert (decoded.run_id, decoded.stream_id, decoded.sequence) == (8, SENTINEL_STREAM + partition, 0)
    rows = bench.rows()
    assert [(row["f"], row["type"], row["partition"], row["first_offset"]) for row in rows] == [
        ("reserve", "invoke", 0, -1),
        ("reserve", "invoke", 1, -1),
        ("sentinel", "ok", 0, 10),
        ("sentinel", "ok", 1, 20),
        ("unsent", "fail", 0, -1),
        ("unsent", "fail", 1, -1),
    ]
    assert {row["phase"] for row in rows if row["f"] == "sentinel"} == {"final"}


def test_only_what_is_missing_is_tried_again(tmp_path: Path) -> None:
    """Each attempt is a fresh producer and the next sequence; an acknowledgement without offset does not end it."""
    bench = Bench(
        tmp_path,
        {0: SentResult.of_offset(3)},
        {1: SentResult.of_offset(-1)},
        {1: SentResult.of_offset(6)},
    )
    assert bench.place()
    assert bench.made == 3
    assert [sorted(sent) for sent in bench.sender.sent] == [[0, 1], [1], [1]]
    found = [(row["partition"], row["type"], row["first_sequence"], row["attempt"], row["first_offset"])
             for row in bench.rows() if row["f"] == "sentinel"]  # fmt: skip
    assert found == [(0, "ok", 0, 0, 3), (1, "info", 0, 0, -1), (1, "ok", 1, 1, -1), (1, "ok", 2, 2, 6)]


def test_the_deadline_holds(tmp_path: Path) -> None:
    """A partition that never comes back is None, and says so by the return value."""
    bench = Bench(tmp_path, {0: SentResult.of_offset(3)})
    assert not bench.place(deadline_s=1.0)
    assert bench.sentinels.offsets == {0: 3, 1: None}
    assert bench.clock.monotonic_ns() == 1_000_000_000
    assert all(row["error"] for row in bench.rows() if row["type"] == "info")


@pytest.mark.parametrize("offset", [None, -1])
def test_an_unknown_offset_is_an_acknowledgement_all_the_same(offset: int | None) -> None:
    """The client may know that, not where."""
    assert SentResult.of_offset(offset) == SentResult(True, None, "acknowledged without an offset")
