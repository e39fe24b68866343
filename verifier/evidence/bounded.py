"""Files that others may have made, read within bounds: regular files alone, and no more than memory is sure to hold.

A file of some bytes on disk may say that it has terabytes, and a pipe never ends. Owns the refusal of both, and how
large files of JSON may be. What a file that is not read means for a verdict is not decided here.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

_MB = 1 << 20
#: One object of JSON. A seal names every file of a run, all others have a few megabytes at most.
MOST_JSON_BYTES = 64 * _MB
#: ``run.json``: megabytes are many thousands of partitions.
MOST_RUN_BYTES = 16 * _MB
#: What is read line by line: a process adds some hundred bytes a second at most.
MOST_LINES_BYTES = 1024 * _MB
MOST_LINE_BYTES = 4 * _MB


class NotRead(OSError, ValueError):
    """The file is not read; the message is one line and says why, but not which file it is."""


def size_of(path: Path) -> int:
    """The size of a regular file in bytes. Raises ``NotRead`` for anything else, and ``OSError``."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotRead(f"it is a {_kind(status.st_mode)}, not a file")
    return status.st_size


def whole(path: Path, most_bytes: int) -> bytes:
    """All bytes of a regular file that has no more than ``most_bytes``. Raises ``NotRead`` and ``OSError``."""
    _check(size_of(path), most_bytes)
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    _check(len(data), most_bytes)
    return data


def lines(path: Path, most_bytes: int = MOST_LINES_BYTES, most_line_bytes: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """The lines of such a file with their ends, one at a time. Raises ``NotRead`` and ``OSError``."""
    _check(size_of(path), most_bytes)
    with path.open("rb") as file:
        number = 0
        while line := file.readline(most_line_bytes + 1):
            number += 1
            if len(line) > most_line_bytes:
                raise NotRead(f"line {number} has more than {most_line_bytes:,} bytes")
            yield line


def _check(size_bytes: int, most_bytes: int) -> None:
    if size_bytes > most_bytes:
        raise NotRead(f"it has {size_bytes:,} bytes; at most {most_bytes:,} are read")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
