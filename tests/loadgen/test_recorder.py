"""The recorder: a point each second, exact quantiles, files that survive their process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.seams.clock import ManualClock
from loadgen.recorder import Recorder, StreamIdentity
from loadgen.spans import SentSpan
from loadgen.tally import Tally, histogram
from verifier.evidence.history import read_history
from verifier.evidence.run_directory import read_json
from verifier.evidence.series import SeriesPoint, read_series

WHO = StreamIdentity("t", 0, 1, 0)


def test_a_point_holds_one_interval_and_the_totals() -> None:
    """Counts and latencies start over with each point; totals do not; no latency is no number."""
    tally = Tally("p", 0)
    tally.count("acked", 3)
    tally.latencies([3_000_000, 2_000_000, 1_000_000])
    tally.loop_lag(4.0)
    tally.loop_lag(1.0)
    first = tally.point(1_000_000_000, backlog=7)
    tally.count("fatal")
    second = tally.point(2_500_000_000, backlog=0)
    assert (first.latency_p50_ms, first.latency_max_ms, first.loop_lag_ms) == (2.0, 3.0, 4.0)
    assert (first.acked, first.total_acked, first.backlog, first.interval_ns) == (3, 3, 7, 10**9)
    assert (second.acked, second.total_acked, second.fatal, second.interval_ns) == (0, 3, 1, 1_500_000_000)
    assert (second.latency_p50_ms, second.latency_p99_ms, second.latency_max_ms) == (None, None, None)


def test_a_histogram_rounds_as_locust_does() -> None:
    """Whole milliseconds, then tens, hundreds and thousands; so that a report of an hour stays small."""
    latencies = np.array([0.2, 0.2, 99.4, 104.0, 147.0, 3432.0, 58_760.0])
    assert histogram(latencies) == {0: 2, 99: 1, 100: 1, 150: 1, 3400: 1, 59_000: 1}


def test_status_and_series_are_written_every_second(tmp_path: Path) -> None:
    """The status is the newest point, the series all of them, and closing writes the last."""
    clock = ManualClock()
    status, series = tmp_path / "p.status.json", tmp_path / "p.series.jsonl"
    recorder = Recorder("p", tmp_path / "p.arrow", clock, status=status, series=series, backlog=lambda: 5)
    for _ in range(25):
        clock.advance_ms(100)
        recorder.tick()
    recorder.tally.count("acked")
    recorder.close()
    recorder.close()
    points = list(read_series(series))
    assert [point.time_ns for point in points] == [1_000_000_000, 2_000_000_000, 2_500_000_000]
    assert SeriesPoint.from_json(read_json(status)) == points[-1]
    assert points[-1].total_acked == 1 and points[-1].backlog == 5


def test_rows_reach_the_file_within_half_a_second(tmp_path: Path) -> None:
    """A killed process loses less than a second of its history."""
    clock = ManualClock()
    recorder = Recorder("p", tmp_path / "p.arrow", clock)
    recorder.sent(WHO, [SentSpan(0, 5, None, [0])], lambda first, last: 48, "all")
    clock.advance_ms(500)
    recorder.tick()
    assert read_history(tmp_path / "p.arrow").num_rows == 1
    recorder.close()


def test_a_history_that_cannot_be_written_shows_it(tmp_path: Path) -> None:
    """After a failed write the file is not closed in order, so nobody takes it for complete."""
    recorder = Recorder("p", tmp_path / "p.arrow", ManualClock())
    recorder.note("before")
    recorder.history.flush()

    class FullOnce:
        """Half a message gets in, then there is room again."""

        def __init__(self, sink: Any) -> None:
            self.sink = sink
            self.full = True

        def write(self, data: Any) -> None:
            if self.full:
                self.full = False
                self.sink.write(memoryview(data)[:50])
                raise OSError(28, "No space left on device")
            self.sink.write(data)

        def close(self) -> None:
            self.sink.close()

    recorder.history._sink = FullOnce(recorder.history._sink)  # type: ignore[assignment]
    recorder.note("lost")
    with pytest.raises(OSError, match="No space"):
        recorder.history.flush()
    recorder.note("after")
    with pytest.raises(OSError, match="takes no more"):
        recorder.reserve(WHO, 0, 9)
    recorder.close()
    table = read_history(tmp_path / "p.arrow")
    assert table.num_rows == 1
    assert table.schema.metadata[b"gapless.closed"] == b"0"
    assert table.schema.metadata[b"gapless.torn_bytes"] == b"50"
