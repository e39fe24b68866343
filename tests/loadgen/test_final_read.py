"""The final read: from offset 0 through the given offsets, complete or plainly incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.seams.clock import ManualClock
from loadgen.clients.base import PolledRecords
from loadgen.final_read import PartitionRead, parse_through, read_through
from loadgen.recorder import Recorder
from loadgen.settings import SettingsError
from loadgen.spans import ReadRecord
from tests.loadgen.fakes import FakeReader
from verifier.evidence.history import read_history
from verifier.evidence.sequenced_value import encode


def record(partition: int, offset: int) -> ReadRecord:
    return ReadRecord(partition, offset, encode(1, partition, offset, 0))


def test_reads_until_every_partition_is_reached(tmp_path: Path) -> None:
    """Ends with the poll that reaches the last offset; what came along beyond it is recorded as well."""
    clock = ManualClock()
    recorder = Recorder("final", tmp_path / "final.arrow", clock)
    reader = FakeReader(
        [
            PolledRecords([record(0, 0), record(0, 1)], [], broken=False),
            PolledRecords([], ["_TRANSPORT: lost"], broken=False),
            PolledRecords([record(1, 0), record(0, 2)], [], broken=False),
            PolledRecords([record(0, 3)], [], broken=False),
        ]
    )
    seen = read_through("t", {0: 1, 1: 0}, 1, reader, recorder, clock, 30.0)
    recorder.close()
    assert seen == {0: PartitionRead(1, 3, 0, 2), 1: PartitionRead(0, 1, 0, 0)}
    assert all(each.reached for each in seen.values())
    assert reader.assignments == [{0: 0, 1: 0}] and len(reader.answers) == 1
    rows = read_history(tmp_path / "final.arrow").to_pylist()
    assert [(row["f"], row["partition"], row["last_offset"]) for row in rows] == [
        ("assign", 0, 0),
        ("assign", 1, 0),
        ("poll", 0, 1),
        ("note", -1, -1),
        ("idle", -1, -1),
        ("poll", 1, 0),
        ("poll", 0, 2),
    ]
    assert {row["phase"] for row in rows if row["f"] != "note"} == {"final"}


@pytest.mark.parametrize(
    ("deadline_s", "first_after_polls", "ends_after_s"),
    [(2.0, 0, 2.0), (120.0, 0, 30.1), (120.0, 250, 55.1), (120.0, 400, 30.0)],
    ids=["deadline", "a sentinel that never comes", "something came meanwhile", "nothing came at all"],
)
def test_it_does_not_wait_for_ever(
    tmp_path: Path, deadline_s: float, first_after_polls: int, ends_after_s: float
) -> None:
    """Not reached: at the deadline, or half a minute after the last record, though a dead sentinel has an offset."""
    clock = ManualClock()
    recorder = Recorder("final", tmp_path / "final.arrow", clock)

    class Slow(FakeReader):
        def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
            clock.advance_ms(timeout_s * 1000)
            return super().poll(max_records, timeout_s)

    nothing = PolledRecords([], [], broken=False)
    reader = Slow([nothing] * first_after_polls + [PolledRecords([record(0, 0)], [], broken=False)])
    seen = read_through("t", {0: 5}, 1, reader, recorder, clock, deadline_s)
    assert not seen[0].reached and seen[0].last_offset == (0 if ends_after_s != 30.0 else -1)
    assert clock.monotonic_ns() / 1e9 == pytest.approx(ends_after_s, abs=0.25)
    recorder.close()


def test_its_patience_may_be_shorter(tmp_path: Path) -> None:
    """It gives up after that long without a record."""
    clock = ManualClock()
    recorder = Recorder("final", tmp_path / "final.arrow", clock)

    class Silent(FakeReader):
        def poll(self, max_records: int, timeout_s: float) -> PolledRecords:
            clock.advance_ms(timeout_s * 1000)
            return PolledRecords([], [], broken=False)

    read_through("t", {0: 5}, 1, Silent(), recorder, clock, 120.0, stall_s=4.0)
    assert clock.monotonic_ns() / 1e9 == pytest.approx(4.0, abs=0.25)
    recorder.close()


def test_through_is_checked() -> None:
    """Every partition needs an offset of 0 or more."""
    assert parse_through('{"0": 17, "1": 0}') == {0: 17, 1: 0}
    for bad in ("{", "[]", "{}", '{"x": 1}', '{"0": null}', '{"0": -1}', '{"0": 1.5}', '{"0": true}'):
        with pytest.raises(SettingsError, match="--through"):
            parse_through(bad)
