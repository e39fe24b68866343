"""The rules against files that the broker's own code wrote: whatever a log goes through, what it leaves is well."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from cluster.log.checkpoints import HIGH_WATERMARK_FILE
from cluster.log.config import LogConfig
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.protocol.control_records import ControlRecordType
from cluster.protocol.records import NewRecord, build_batch
from cluster.seams.clock import ManualClock
from cluster.seams.os_storage import OsStorage
from tests.cluster.log.builders import make_marker
from tests.support import side_files
from verifier.files.formats import FormatError, histories, snapshot
from verifier.files.replica import ReplicaDirectory, check, is_clean

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=150)


class Broker:
    """The logs of one data directory, and producers that write to one of them."""

    def __init__(self, data: Path, seed: int) -> None:
        self.data = data
        self.random = Random(seed)
        self.epoch = 0
        self.high_watermark = 0
        self.sequences: dict[int, int] = {}
        self.start()

    def start(self) -> None:
        clock = ManualClock(NOW_MS)
        self.logs = LogManager(str(self.data), OsStorage(), clock, CONFIG)
        self.logs.load()
        self.log: PartitionLog = self.logs.get_or_create("t", 0, None, CONFIG)
        # what a producer goes on with is what the log has of it
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.log.producers}

    def write(self, batches: int) -> None:
        for _ in range(batches):
            producer, count = self.random.randrange(4), self.random.randrange(1, 4)
            records = [NewRecord(NOW_MS + self.random.randrange(1000), b"k", b"v" * 20) for _ in range(count)]
            base_sequence = self.sequences.get(producer, 0)
            batch = bytearray(build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=base_sequence))
            self.log.append_as_leader(memoryview(batch), parse_header(batch), self.epoch, NOW_MS)
            self.sequences[producer] = base_sequence + count

    def transact(self, steps: int) -> None:
        """Two producers write in transactions, and a coordinator ends them, or what it does not know to be empty."""
        for _ in range(steps):
            producer = self.random.choice((10, 11))
            if self.random.random() < 0.4:
                kind = self.random.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
                self.log.append_as_coordinator(make_marker(producer, kind), self.epoch)
                continue
            batch = bytearray(
                build_batch(
                    [NewRecord(NOW_MS, b"k", b"v" * 20)],
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=self.sequences.get(producer, 0),
                    transactional=True,
                )
            )
            self.log.append_as_leader(memoryview(batch), parse_header(batch), self.epoch, NOW_MS)
            self.sequences[producer] = self.sequences.get(producer, 0) + 1

    def truncate(self) -> None:
        """A follower goes back; what follows is of another epoch."""
        end, start = self.log.log_end_offset, self.log.log_start_offset
        self.log.truncate_to(self.random.randrange(max(start, end - 60), end + 1))
        self.epoch += 1
        self.sequences = {entry.producer_id: entry.last_sequence + 1 for entry in self.log.producers}

    def delete(self) -> None:
        start, end = self.log.log_start_offset, self.log.log_end_offset
        self.log.advance_log_start_offset(self.random.randrange(start, (start + end) // 2 + 1))

    def stop(self) -> None:
        self.logs.checkpoint_high_watermarks({("t", 0): self.log.log_end_offset})
        self.log_start_offset, self.high_watermark = self.log.log_start_offset, self.log.log_end_offset
        self.logs.close(clean=True)

    def replica(self, home: Path | None = None) -> ReplicaDirectory:
        leader = (self.high_watermark, self.log_start_offset) if home is None else (-1, -1)
        return ReplicaDirectory("r", 1, "t", 0, str((home or self.data) / "t-0"), home is None, *leader)


@pytest.mark.parametrize("seed", range(12))
def test_what_a_broker_leaves_is_well(tmp_path: Path, seed: int) -> None:
    """Rolls, truncations, deletions, restarts, and copies of the directory as a kill would leave it at any moment."""
    broker = Broker(tmp_path / "data", seed)
    for step in range(12):
        broker.write(broker.random.randrange(5, 30))
        broker.transact(broker.random.randrange(10))
        match broker.random.randrange(5):
            case 0:
                broker.truncate()
            case 1:
                broker.delete()
            case 2:
                broker.stop()
                assert list(check(broker.replica())) == []
                assert is_clean(broker.replica())
                broker.start()
            case 3:
                killed = tmp_path / f"killed-{step}"
                shutil.copytree(broker.data, killed)
                assert not is_clean(broker.replica(killed))
                assert list(check(broker.replica(killed))) == []
                (killed / ".lock").unlink(missing_ok=True)
                again = Broker(killed, seed)
                assert again.log.log_end_offset == broker.log.log_end_offset
                again.stop()
                assert list(check(again.replica())) == []
            case _:
                broker.epoch += 1
    broker.stop()
    assert list(check(broker.replica())) == []
    assert (broker.data / HIGH_WATERMARK_FILE).exists()
    assert seed or list(broker.data.glob("t-0/*.txnindex")), "nothing was aborted"


def test_snapshots_are_read_as_they_were_written(tmp_path: Path) -> None:
    """The newest batch of every producer, from Kafka's file and from the one beside it."""
    broker = Broker(tmp_path / "data", 1)
    broker.write(40)
    broker.stop()
    home = broker.data / "t-0"
    (newest, *_) = sorted(home.glob("*.snapshot"), reverse=True)
    found = snapshot(newest.read_bytes())
    assert sorted(found) == sorted(histories(newest.with_suffix(".producers").read_bytes()))
    assert {producer.producer_id: producer.last_sequence + 1 for producer in found} == broker.sequences


def test_a_producer_stands_in_a_snapshot_once() -> None:
    """The second entry would hide the first, whatever it says."""
    one, other = (1000, 0, 2, 2, 2, 5), (1001, 0, 2, 5, 2, 5)
    assert len(snapshot(side_files.snapshot_of([one, other]))) == 2
    with pytest.raises(FormatError, match="producer 1000 is there twice"):
        snapshot(side_files.snapshot_of([one, other, one]))
