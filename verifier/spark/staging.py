"""Evidence as Parquet files for a Spark on this machine, written while Spark starts. Owns no rows.

Starting Spark's own Python workers costs six seconds of CPU, and the JVM would keep all columns of what they read; from
Parquet, each query reads only the columns that it needs. Little evidence is read in this process. Much is divided by
size among processes, one per core, which write a file each (``verifier.spark.staging_part``). Files are read in parts,
so that a run of any length needs little memory. Every listed file is read, or staging fails: a process that dies is an
error.
"""

from __future__ import annotations

import heapq
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, cast

from cluster.process.safe_path import package_environment
from verifier.files.replica import ReplicaDirectory
from verifier.segments import rows
from verifier.spark.history_rows import HistoryFilePath
from verifier.spark.staging_part import FILES, HISTORIES, SEGMENTS, PartOrder, write_part

#: A line of progress is printed after this many files.
TOLD_FILES = 500
#: Below this size, more processes cost more than they save: each takes half a second of CPU before it reads anything.
SHARED_BYTES = 256 << 20
#: How many bytes of a segment cost as much as one byte of a history, which is compressed.
HISTORY_WEIGHT = 16
#: A follower's segment, whose records are not decoded, costs this part of a leader's.
FOLLOWER_WEIGHT = 0.3
#: A replica's other files are compared only with the headers of its batches. CPU per byte relative to a leader's
#: segment, measured in five runs: 0.04 to 0.07 with a few records per batch, 0.11 with batches of 16 KB. The median.
REPLICA_WEIGHT = 0.06
#: The longest time until it is noticed that no one waits for the files anymore.
POLL_S = 0.2

TellProgress = Callable[[str], None]
_File = rows.SegmentFile | HistoryFilePath | ReplicaDirectory


class Abandoned(Exception):
    """No one waits for the files anymore."""


class StagingFailed(OSError):
    """A process that read evidence died, or did not read all that it was given; the message is one line."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The directories of the three kinds of rows, and where Spark puts what it makes of them (``tables``)."""

    segments: Path
    histories: Path
    files: Path
    tables: Path


def stage(
    directory: Path,
    segments: Sequence[rows.SegmentFile],
    histories: Sequence[HistoryFilePath],
    replicas: Sequence[ReplicaDirectory] = (),
    progress: TellProgress = lambda _: None,
    abandoned: Event | None = None,
    processes: int | None = None,
) -> Staged:
    """Write all rows below ``directory``, which is made. ``processes``: 0 reads here; None decides by the size.

    Raises ``OSError``, and ``Abandoned`` once that is set; no process is left then.
    """
    staged = Staged(directory / SEGMENTS, directory / HISTORIES, directory / FILES, directory / "tables")
    for each in (staged.segments, staged.histories, staged.files):
        each.mkdir(parents=True)
    if processes is None:
        size_bytes = sum(os.path.getsize(file.path) for files in (segments, histories) for file in files)
        processes = len(os.sched_getaffinity(0)) if size_bytes >= SHARED_BYTES else 0
    orders = _deal(directory, segments, histories, replicas, max(1, processes))
    watch = _PartWatch(len(segments) + len(histories) + len(replicas), progress, abandoned)
    if not processes:
        write_part(orders[0], lambda count: watch.read(0, count))
        watch.read(0, watch.total)
    else:
        _share(orders, watch)
    return staged


def _deal(
    directory: Path,
    segments: Sequence[rows.SegmentFile],
    histories: Sequence[HistoryFilePath],
    replicas: Sequence[ReplicaDirectory],
    parts: int,
) -> list[PartOrder]:
    """Divides the files: the heaviest first, each to the part with the least weight so far; parts keep the order."""

    def weight(file: _File) -> float:
        if isinstance(file, ReplicaDirectory):
            return sum(each.stat().st_size for each in os.scandir(file.path)) * REPLICA_WEIGHT
        size_bytes = os.path.getsize(file.path)
        if isinstance(file, HistoryFilePath):
            return size_bytes * HISTORY_WEIGHT
        return size_bytes if file.values else size_bytes * FOLLOWER_WEIGHT

    files: list[_File] = [*histories, *segments, *replicas]
    load = [(0.0, part) for part in range(parts)]
    given: list[list[int]] = [[] for _ in range(parts)]
    for heaviness, index in sorted(((weight(file), index) for index, file in enumerate(files)), reverse=True):
        so_far, part = load[0]
        heapq.heapreplace(load, (so_far + heaviness, part))
        given[part].append(index)
    orders = []
    for number, indices in enumerate(given):
        own = [files[index] for index in sorted(indices)]
        orders.append(
            PartOrder(
                str(directory),
                number,
                [file for file in own if isinstance(file, rows.SegmentFile)],
                [file for file in own if isinstance(file, HistoryFilePath)],
                [file for file in own if isinstance(file, ReplicaDirectory)],
            )
        )
    return orders


class _PartWatch:
    """Counts and reports the files that all parts have read; ends the work if no one waits for it anymore."""

    def __init__(self, total: int, progress: TellProgress, abandoned: Event | None) -> None:
        self.total = total
        self._progress = progress
        self._abandoned = abandoned
        self._counts: dict[int, int] = {}
        self._told = 0

    def read(self, part: int, count: int) -> None:
        """A part has read this many files so far. Raises ``Abandoned``."""
        self.check()
        self._counts[part] = count
        done = sum(self._counts.values())
        if done // TOLD_FILES > self._told:
            self._told = done // TOLD_FILES
            self._progress(f"{done:,} of {self.total:,} files are read")

    def check(self) -> None:
        """Raises ``Abandoned``."""
        if self._abandoned is not None and self._abandoned.is_set():
            raise Abandoned


def _share(orders: Sequence[PartOrder], watch: _PartWatch) -> None:
    """Have each order written by its own process. No process is left, however this ends."""
    said: queue.SimpleQueue[tuple[int, str | None]] = queue.SimpleQueue()
    workers: list[subprocess.Popen[str]] = []
    try:
        workers.extend(_start(order, said) for order in orders)
        waiting = set(range(len(orders)))
        done: dict[int, int] = {}
        while waiting:
            try:
                number, line = said.get(timeout=POLL_S)
            except queue.Empty:
                watch.check()
                continue
            if line is None:
                _check(orders[number], workers[number].wait(), done.get(number))
                waiting.remove(number)
                continue
            message = json.loads(line)
            if "error" in message:
                raise StagingFailed(f"evidence could not be read: {message['error']}")
            if "done" in message:
                done[number] = int(message["done"])
            watch.read(number, int(message.get("read", message.get("done", 0))))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()


def _start(order: PartOrder, said: queue.SimpleQueue[tuple[int, str | None]]) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-m", "verifier.spark.staging_part"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **package_environment(Path(__file__).resolve().parent.parent)},
    )
    given, output = cast("IO[str]", worker.stdin), cast("IO[str]", worker.stdout)

    def talk() -> None:
        with suppress(ValueError, OSError):  # it is dead, or no one waits anymore
            given.write(order.to_json() + "\n")
            given.flush()
            for line in output:
                said.put((order.number, line))
        said.put((order.number, None))

    threading.Thread(target=talk, daemon=True, name=f"staging-{order.number}").start()
    return worker


def _check(order: PartOrder, status: int, done: int | None) -> None:
    """Raise ``StagingFailed`` unless the process has read all files of its order."""
    wanted = len(order.segments) + len(order.histories) + len(order.replicas)
    if status == 0 and done == wanted:
        return
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    read = "without saying that it was done" if done is None else f"with {done:,} files read"
    raise StagingFailed(f"a process that read {wanted:,} files of evidence {how} {read}")
