"""Reads a large file of operations with one process per core, and joins the parts into one history.

Owns where the file is cut, and how parts are joined. Does not own the syntax (``verifier.operations.reading``). The
file is cut at the ends of lines. If a form or an array continues across a cut, the reader of the part before it raises
an error, and one process reads the whole file instead. The same happens if the file has an error, so that the message
names the right line.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cluster.process.safe_path import safe_path
from verifier.operations.codes import PLAIN, Names
from verifier.operations.model import IntArray, OperationHistory, OperationsError

#: Smaller files are read by one process, because another one needs half a second before it reads.
SHARED_BYTES = 32 << 20
#: The most processes. If there were more, they would wait for the process that joins the parts.
MOST_PROCESSES = 8


class Part(NamedTuple):
    """The operations of some lines of a file, and the number of lines. Line numbers count from 1 in each part."""

    history: OperationHistory
    lines: int


ReadPart = Callable[[Path, int, int], Part]


def read_in_parts(path: Path, read: ReadPart, processes: int | None = None) -> OperationHistory | None:
    """The whole history; None if one process must read the file. ``read`` takes a path, the first byte and the end.

    ``processes`` is the number of processes; None decides by the file's size.
    """
    size_bytes = path.stat().st_size
    if processes is None:
        processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES) if size_bytes >= SHARED_BYTES else 1
    cuts = _cuts(path, size_bytes, processes)
    if len(cuts) < 2:
        return None
    spawn = multiprocessing.get_context("spawn")
    try:
        with (
            safe_path(),
            ProcessPoolExecutor(len(cuts) - 1, mp_context=spawn, initializer=_ignore_interrupts) as pool,
        ):
            others = [pool.submit(read, path, *cut) for cut in cuts[1:]]
            return together([read(path, *cuts[0]), *(other.result() for other in others)])
    except (OperationsError, UnicodeDecodeError, RecursionError, BrokenExecutor):
        return None


def _cuts(path: Path, size_bytes: int, parts: int) -> list[tuple[int, int]]:
    """The first byte of each part, and the byte after its last one. Cuts are after line breaks."""
    ends = {size_bytes}
    with path.open("rb") as file:
        for number in range(1, parts):
            file.seek(size_bytes * number // parts)
            file.readline()
            ends.add(file.tell())
    begins = [0, *sorted(ends)]
    return [(begin, end) for begin, end in pairwise(begins) if begin < end]


def _ignore_interrupts() -> None:
    """Ignores SIGINT: the process that waits for this one handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def together(parts: list[Part]) -> OperationHistory:
    """Joins successive parts. The result, including its codes, is the one that a single reader would return."""
    names = Names()
    tables: dict[str, list[Any]] = {}
    lines = operations = 0
    for history, count in parts:
        recode = _recoder(names, history.names)
        columns = {name: getattr(history, name) for name in ("index", "time", "type", "f", "seeks", "empty")}
        columns |= {name: recode(getattr(history, name)) for name in ("process", "error")}
        columns["line_number"] = history.line_number + lines
        for name, column in columns.items():
            tables.setdefault(name, []).append(column)
        for name in ("sends", "reads", "listed", "rebalanced"):
            rows = dict(getattr(history, name))
            rows["line"] = rows["line"] + operations
            rows |= {column: recode(rows[column]) for column in ("key", "value") if column in rows}
            tables.setdefault(name, []).append(rows)
        lines, operations = lines + count, operations + len(history)
    whole: dict[str, Any] = {
        name: {column: np.concatenate([each[column] for each in table]) for column in table[0]}
        if isinstance(table[0], dict)
        else np.concatenate(table)
        for name, table in tables.items()
    }
    skipped = sum(part.history.skipped for part in parts)
    return replace(parts[0].history, names=names, skipped=skipped, **whole)


def _recoder(names: Names, others: Names) -> Callable[[IntArray], IntArray]:
    """A function that converts columns from the codes of ``others`` to those of ``names``. Adds the missing names."""
    codes = np.array(names.learn(others), dtype=np.int64)

    def recode(column: IntArray) -> IntArray:
        coded = np.flatnonzero(column < -PLAIN)
        changed = column.copy()
        changed[coded] = codes[-PLAIN - 1 - column[coded]]
        return changed

    return recode


class Window(io.RawIOBase):
    """The bytes from ``begin`` to ``end`` (excluded) of a file, as a file of their own."""

    def __init__(self, path: Path, begin: int, end: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._file.seek(begin)
        self._left = end - begin

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._file.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= read
        return read

    def close(self) -> None:
        self._file.close()
        super().close()
