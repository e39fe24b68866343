"""Files of any size in pieces: where they were written, whole entries, checksums of mapped bytes.

A file of some bytes on disk may say that it has terabytes. Owns how little of a file is in memory at a time, and that
what was never written is not read. Knows no format.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from crc32c import crc32c

from chaos.commands.dump.entries import DamagedPart
from verifier.evidence.bounded import size_of

PIECE_BYTES = 1 << 20


def is_zero_from(path: Path, position: int) -> bool:
    """Whether a file has only zeros from ``position`` to its end."""
    with path.open("rb", buffering=0) as file:
        while True:
            try:
                position = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError:
                return True
            piece = _read(file, position, PIECE_BYTES)
            if piece.count(0) < len(piece):
                return False
            position += len(piece)


def entries(path: Path, entry_bytes: int) -> Iterator[bytes | DamagedPart]:
    """The entries of an index file, piece by piece, each of whole ones. Raises ``OSError``.

    Zeros at its end are room that Kafka keeps in the file of a live segment; the first entry may be all zeros.
    """
    size = size_of(path)
    whole_bytes = size - size % entry_bytes
    with path.open("rb", buffering=0) as file:
        used = max(_used(file, whole_bytes), min(whole_bytes, entry_bytes))
        used += -used % entry_bytes
        at = 0
        while at < used:
            piece = _read(file, at, min(used - at, PIECE_BYTES // entry_bytes * entry_bytes))
            if len(piece) % entry_bytes or not piece:
                return  # the file has become shorter
            at += len(piece)
            yield piece
    if whole_bytes < size:
        rest = f"{size - whole_bytes} bytes at byte {whole_bytes}"
        yield DamagedPart(f"{rest} do not make a whole entry of {entry_bytes} bytes")


def _used(file: FileIO, end: int) -> int:
    """Where the zeros before ``end`` begin."""
    written = []
    position = 0
    while position < end:
        try:
            position = os.lseek(file.fileno(), position, os.SEEK_DATA)
            hole = os.lseek(file.fileno(), position, os.SEEK_HOLE)
        except OSError:
            break
        written.append((position, min(hole, end)))
        position = hole
    for begin, hole in reversed(written):
        at = hole
        while at > begin:
            size = min(PIECE_BYTES, at - begin)
            used = len(_read(file, at - size, size).rstrip(b"\x00"))
            if used:
                return at - size + used
            at -= size
    return 0


def _read(file: FileIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)


def crc_of(mapped: mmap.mmap, data: memoryview, begin: int, end: int) -> int:
    """The CRC-32C of mapped bytes."""
    crc, at = 0, begin
    while at < end:
        next_at = min(end, at + PIECE_BYTES)
        crc = crc32c(data[at:next_at], crc)
        if end - begin > PIECE_BYTES:
            forget(mapped, at, next_at)
        at = next_at
    return crc


def forget(mapped: mmap.mmap, begin: int, end: int) -> int:
    """Release the pages of this range from memory; returns where the range ends. A later access reads them again."""
    begin -= begin % mmap.PAGESIZE
    end -= end % mmap.PAGESIZE
    if end > begin:
        mapped.madvise(mmap.MADV_DONTNEED, begin, end - begin)
    return end
