"""Evidence read by several processes: the same rows, nothing missing in silence, nothing left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.support.long_run import write_long_run
from verifier.evidence.run_directory import RunDirectory
from verifier.segments.rows import SegmentFile, find_segments
from verifier.spark import staging
from verifier.spark.history_rows import HistoryFilePath

pytestmark = pytest.mark.timeout(300)

Files = tuple[list[SegmentFile], list[HistoryFilePath]]


OTHERS: set[int] = set()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """The files of a small run of many segments."""
    directory = write_long_run(tmp_path / "run", partitions=2, batches=60, size=3, segment_bytes=4_000)
    return files_of(directory)


def files_of(directory: RunDirectory) -> Files:
    segments = [each for broker in (1, 2, 3) for each in find_segments("run", 77, broker, directory.node(broker))]
    return segments, [HistoryFilePath("run", str(path)) for path in sorted(directory.history_dir.glob("*.arrow"))]


def rows(path: Path) -> list[str]:
    return sorted(map(str, pq.read_table(path).to_pylist()))


@pytest.fixture(autouse=True)
def others() -> set[int]:
    """Children of this process that other tests left to live: a JVM, its workers."""
    OTHERS.clear()
    OTHERS.update(child.pid for child in psutil.Process().children())
    return OTHERS


def mine() -> list[psutil.Process]:
    """What the test started."""
    return [child for child in psutil.Process().children() if child.pid not in OTHERS]


def test_several_processes_give_the_rows_of_one(tmp_path: Path, files: Files) -> None:
    """However the files are dealt out, every row is there once; a file is written by each process."""
    alone = staging.stage(tmp_path / "alone", *files, processes=0)
    told: list[str] = []
    shared = staging.stage(tmp_path / "shared", *files, progress=told.append, processes=3)
    assert len(list(shared.segments.iterdir())) == len(list(shared.histories.iterdir())) == 3
    assert rows(shared.segments) == rows(alone.segments)
    assert rows(shared.histories) == rows(alone.histories)
    assert not mine()


def test_files_are_dealt_out_by_size(tmp_path: Path, files: Files) -> None:
    """No part has more than its share and one file; each file is in one part."""
    orders = staging._deal(tmp_path, *files, [], 3)
    assert sorted(path for order in orders for path in map(_path, order.segments)) == sorted(map(_path, files[0]))
    assert sorted(path for order in orders for path in map(_path, order.histories)) == sorted(map(_path, files[1]))
    sizes = [
        sum(os.path.getsize(each.path) * (1 if each.values else staging.FOLLOWER_WEIGHT) for each in order.segments)
        + sum(os.path.getsize(each.path) * staging.HISTORY_WEIGHT for each in order.histories)
        for order in orders
    ]
    largest = max(os.path.getsize(each.path) * staging.HISTORY_WEIGHT for each in files[1])
    assert max(sizes) - min(sizes) <= largest


def _path(file: SegmentFile | HistoryFilePath) -> str:
    return file.path


def test_a_process_that_dies_is_an_error(tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says which signal; no other process goes on."""
    started = staging._start

    def start_and_kill(order: Any, said: Any) -> Any:
        worker = started(order, said)
        if order.number == 1:
            worker.send_signal(signal.SIGKILL)
        return worker

    monkeypatch.setattr(staging, "_start", start_and_kill)
    with pytest.raises(staging.StagingFailed, match="was killed by signal 9 without saying") as raised:
        staging.stage(tmp_path / "rows", *files, processes=2)
    assert "\n" not in str(raised.value)
    assert not mine()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, files: Files) -> None:
    """A segment that vanishes after it was listed is named, in one process and in several."""
    segments, histories = files
    segments.append(segments[0]._replace(path=str(tmp_path / "gone.log")))
    (tmp_path / "gone.log").mkdir()
    for processes in (0, 2):
        with pytest.raises(OSError, match=r"gone\.log"):
            staging.stage(tmp_path / str(processes), segments, histories, processes=processes)
    assert not mine()


@pytest.mark.parametrize(("status", "done"), [(0, None), (0, 3), (1, 4), (-9, 4)])
def test_what_was_listed_must_have_been_read(status: int, done: int | None) -> None:
    """An end in order with all files read is the only good one."""
    order = staging.PartOrder("", 0, [], [HistoryFilePath("run", "a")] * 4, [])
    staging._check(order, 0, 4)
    with pytest.raises(staging.StagingFailed):
        staging._check(order, status, done)


def test_abandoned_processes_are_ended(tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once nobody waits, no process is left, also one that does not move."""
    abandoned, stopped = Event(), Event()
    started = staging._start

    def start_and_stop(order: Any, said: Any) -> Any:
        worker = started(order, said)
        worker.send_signal(signal.SIGSTOP)
        stopped.set()
        return worker

    monkeypatch.setattr(staging, "_start", start_and_stop)
    Thread(target=lambda: stopped.wait() and abandoned.set()).start()
    with pytest.raises(staging.Abandoned):
        staging.stage(tmp_path / "rows", *files, abandoned=abandoned, processes=2)
    assert not mine()


def test_a_process_ends_with_its_owner() -> None:
    """A reader whose standard input closes (its owner was killed) ends at once."""
    said: Any = staging.queue.SimpleQueue()
    order = staging.PartOrder("/nowhere", 0, [], [], [])
    worker = staging.subprocess.Popen(
        [staging.sys.executable, "-m", "verifier.spark.staging_part"], stdin=staging.subprocess.PIPE, text=True
    )
    assert worker.stdin is not None and said.empty() and order.number == 0
    worker.stdin.close()
    assert worker.wait(60) != 0
