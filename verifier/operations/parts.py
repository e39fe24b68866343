"""A large file of operations, read by one process per core: where it is cut, and how the parts become one history
again.

A part ends where a line does. Whether a form or an array continues across the cut is not looked for: the part before it
then does not end between two operations, which its reader refuses, and the file is read by one process instead. So is
one with an error in it: the reader of the whole file says where. Owns no syntax.
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

#: Below this size another process costs more than it saves: half a second before it reads.
SHARED_BYTES = 32 << 20
#: More processes than these wait for the one that puts their parts together.
MOST_PROCESSES = 8


class Part(NamedTuple):
    """The operations of some lines, which are numbered from 1, and how many lines they are."""

    history: OperationHistory
    lines: int


ReadPart = Callable[[Path, int, int], Part]


def read_in_parts(path: Path, read: ReadPart, processes: int | None = None) -> OperationHistory | None:
    """The whole history; None if one process is to read it. ``read`` takes path, first byte and the byte behind."""
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
            ProcessPoolExecutor(len(cuts) - 1, mp_context=spawn, initializer=_leave_interrupts) as pool,
        ):
            others = [pool.submit(read, path, *cut) for cut in cuts[1:]]
            return together([read(path, *cuts[0]), *(other.result() for other in others)])
    except (OperationsError, UnicodeDecodeError, RecursionError, BrokenExecutor):
        return None


def _cuts(path: Path, size_bytes: int, parts: int) -> list[tuple[int, int]]:
    """The first byte of each part and the one after it. Cuts are behind the end of a line."""
    ends = {size_bytes}
    with path.open("rb") as file:
        for number in range(1, parts):
            file.seek(size_bytes * number // parts)
            file.readline()
            ends.add(file.tell())
    begins = [0, *sorted(ends)]
    return [(begin, end) for begin, end in pairwise(begins) if begin < end]


def _leave_interrupts() -> None:
    """An interrupt is for the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def together(parts: list[Part]) -> OperationHistory:
    """One history of parts that follow each other: as one reader would have made it, down to its codes."""
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
    """What gives columns with the codes of ``others`` those of ``names``, which learns what it does not know."""
    codes = np.array(names.learn(others), dtype=np.int64)

    def recode(column: IntArray) -> IntArray:
        coded = np.flatnonzero(column < -PLAIN)
        changed = column.copy()
        changed[coded] = codes[-PLAIN - 1 - column[coded]]
        return changed

    return recode


class Window(io.RawIOBase):
    """Some bytes of a file, as a file."""

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
