"""Writes the evidence as Parquet files for a Spark on this machine, while Spark starts.

Owns how the files are divided among processes and how these are watched. Does not own the rows, or how one process
writes its part (``verifier.spark.staging_part``). Starting Spark's own Python workers would cost six seconds of CPU,
and the JVM would keep all columns in memory. From Parquet, each query reads only the columns that it needs. Little
evidence is read in this process. Much evidence is divided by size among processes, one per core. Files are read in
pieces, so that a run of any length needs little memory. Either every listed file is read, or staging fails: a process
that dies is an error.
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

#: Progress is reported after this many files.
TOLD_FILES = 500
#: Below this size, more processes cost more than they save: each takes half a second of CPU before it reads anything.
SHARED_BYTES = 256 << 20
#: The cost of one byte of a history, in bytes of a leader's segment. Histories are compressed.
HISTORY_WEIGHT = 16
#: The same for a follower's segment, whose records are not decoded.
FOLLOWER_WEIGHT = 0.3
#: The same for a replica's other files, which are compared only with the headers of its batches. Measured in five runs:
#: 0.04 to 0.07 with a few records per batch, 0.11 with batches of 16 KB. This is the median.
REPLICA_WEIGHT = 0.06
#: How often ``abandoned`` is checked while the processes are silent, in s.
POLL_S = 0.2

TellProgress = Callable[[str], None]
_File = rows.SegmentFile | HistoryFilePath | ReplicaDirectory


class Abandoned(Exception):
    """The caller no longer needs the files."""


class StagingFailed(OSError):
    """A process that read evidence died, or did not read all of its files. The message is one line."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The directories of the three kinds of rows, and the one for the tables that Spark derives from them."""

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
    """Writes all rows below ``directory``, which is created.

    ``processes`` is the number of processes: 0 reads the files in this one, and None decides by their size. Raises
    ``OSError``, and ``Abandoned`` once ``abandoned`` is set. No process is left running in either case.
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
    """Divides the files among the parts. The heaviest file goes first, each to the part with the least weight so far.

    Within a part, the files keep their order.
    """

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
    """Counts and reports the files that all parts have read, and stops the work if it is abandoned."""

    def __init__(self, total: int, progress: TellProgress, abandoned: Event | None) -> None:
        self.total = total
        self._progress = progress
        self._abandoned = abandoned
        self._counts: dict[int, int] = {}
        self._told = 0

    def read(self, part: int, count: int) -> None:
        """Notes that a part has read this many files so far. Raises ``Abandoned``."""
        self.check()
        self._counts[part] = count
        done = sum(self._counts.values())
        if done // TOLD_FILES > self._told:
            self._told = done // TOLD_FILES
            self._progress(f"{done:,} of {self.total:,} files are read")

    def check(self) -> None:
        """Raises ``Abandoned`` if the work is abandoned."""
        if self._abandoned is not None and self._abandoned.is_set():
            raise Abandoned


def _share(orders: Sequence[PartOrder], watch: _PartWatch) -> None:
    """Has each part written by its own process. Leaves no process running, even if it raises."""
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
    """Starts the process of a part. Its lines go into ``said`` with the part's number; None follows the last one."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "verifier.spark.staging_part"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **package_environment(Path(__file__).resolve().parent.parent)},
    )
    given, output = cast("IO[str]", worker.stdin), cast("IO[str]", worker.stdout)

    def talk() -> None:
        with suppress(ValueError, OSError):  # the process has died, or its pipes were closed
            given.write(order.to_json() + "\n")
            given.flush()
            for line in output:
                said.put((order.number, line))
        said.put((order.number, None))

    threading.Thread(target=talk, daemon=True, name=f"staging-{order.number}").start()
    return worker


def _check(order: PartOrder, status: int, done: int | None) -> None:
    """Raises ``StagingFailed`` unless the process has read all files of its order."""
    wanted = len(order.segments) + len(order.histories) + len(order.replicas)
    if status == 0 and done == wanted:
        return
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    read = "without saying that it was done" if done is None else f"with {done:,} files read"
    raise StagingFailed(f"a process that read {wanted:,} files of evidence {how} {read}")
