"""Ways to tamper with batches of a segment, and with entries of indexes and snapshots, all of one size.

A checksum that covers what was changed is taken again: it shows an accident, and stops nobody. The layout is written
down once more here, beside the verifier's reader and the broker's, so that it does not fail with them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import crc32c

#: Of a batch: everything before and with its length, and where what its CRC covers begins.
_BEFORE_LENGTH, _COVERED = 12, 21
#: The fields of a batch's header: where each stands, and its format.
HEADER = {
    "base offset": (0, ">q"), "leader epoch": (12, ">i"), "attributes": (21, ">h"), "last offset delta": (23, ">i"),
    "base timestamp": (27, ">q"), "max timestamp": (35, ">q"), "producer id": (43, ">q"), "producer epoch": (51, ">h"),
    "base sequence": (53, ">i"), "count": (57, ">i"),
}  # fmt: skip
_RECORDS = 61


class Parts(NamedTuple):
    """A file as its beginning, its rows, and its end."""

    head: bytes
    rows: list[bytes]
    tail: bytes = b""


class Layout(NamedTuple):
    """How a file is split, put together again (checksums and counts too), and where its rows have which fields."""

    split: Callable[[Path], Parts]
    join: Callable[[Parts], bytes]
    fields: dict[str, tuple[int, str]]


def _batches(path: Path) -> Parts:
    data, rows, at = path.read_bytes(), [], 0
    while at + _RECORDS <= len(data):
        size: int = _BEFORE_LENGTH + struct.unpack_from(">i", data, at + 8)[0]
        if size < _RECORDS or at + size > len(data):
            break
        rows.append(data[at : at + size])
        at += size
    return Parts(b"", rows, data[at:])


def _with_crc(batch: bytes) -> bytes:
    return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[_COVERED:])) + batch[_COVERED:]


def _entries(size: int) -> Callable[[Path], Parts]:
    def split(path: Path) -> Parts:
        data = path.read_bytes()
        whole = len(data) // size * size
        return Parts(b"", [data[at : at + size] for at in range(0, whole, size)], data[whole:])

    return split


def _producers(path: Path) -> Parts:
    data = path.read_bytes()
    return Parts(data[:10], [data[at : at + 46] for at in range(10, len(data) - 45, 46)])


def _snapshot(parts: Parts) -> bytes:
    body = struct.pack(">i", len(parts.rows)) + b"".join(parts.rows)
    return parts.head[:2] + struct.pack(">I", crc32c.crc32c(body)) + body


def _plain(parts: Parts) -> bytes:
    return parts.head + b"".join(parts.rows) + parts.tail


BATCHES = Layout(_batches, lambda parts: b"".join(map(_with_crc, parts.rows)) + parts.tail, HEADER)
OFFSETS = Layout(_entries(8), _plain, {"offset": (0, ">i"), "position": (4, ">i")})
TIMES = Layout(_entries(12), _plain, {"timestamp": (0, ">q"), "offset": (8, ">i")})
PRODUCERS = Layout(_producers, _snapshot, {
    "producer id": (0, ">q"), "producer epoch": (8, ">h"), "last sequence": (10, ">i"), "last offset": (14, ">q"),
    "offset delta": (22, ">i"), "timestamp": (26, ">q"), "coordinator epoch": (34, ">i"), "first offset": (38, ">q"),
})  # fmt: skip


class Rows:
    """The ways to tamper with the rows of files of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def _written(self, path: Path, parts: Parts, rows: list[bytes]) -> None:
        path.write_bytes(self._layout.join(parts._replace(rows=rows)))

    def remove_row(self, path: Path, random: Random) -> str | None:
        parts = self._layout.split(path)
        if not parts.rows:
            return None
        at = random.randrange(len(parts.rows))
        self._written(path, parts, parts.rows[:at] + parts.rows[at + 1 :])
        return f"row {at} of {len(parts.rows)} removed"

    def repeat_row(self, path: Path, random: Random) -> str | None:
        parts = self._layout.split(path)
        if not parts.rows:
            return None
        at = random.randrange(len(parts.rows))
        to = random.choice([at, len(parts.rows)])
        self._written(path, parts, [*parts.rows[:to], parts.rows[at], *parts.rows[to:]])
        return f"row {at} of {len(parts.rows)} repeated at {to}"

    def swap_rows(self, path: Path, random: Random) -> str | None:
        parts = self._layout.split(path)
        if len(set(parts.rows)) < 2:
            return None
        rows = list(parts.rows)
        one = random.randrange(len(rows))
        other = random.choice([at for at, row in enumerate(rows) if row != rows[one]])
        rows[one], rows[other] = rows[other], rows[one]
        self._written(path, parts, rows)
        return f"rows {one} and {other} of {len(rows)} swapped"

    def alter_row(self, path: Path, random: Random) -> str | None:
        """A byte behind the header of a batch, or any byte of an entry."""
        parts = self._layout.split(path)
        first = _RECORDS if self._layout is BATCHES else 0
        long = [at for at, row in enumerate(parts.rows) if len(row) > first]
        if not long:
            return None
        rows, at = list(parts.rows), random.choice(long)
        row = bytearray(rows[at])
        position = random.randrange(first, len(row))
        row[position] ^= 1 << random.randrange(8)
        rows[at] = bytes(row)
        self._written(path, parts, rows)
        return f"row {at} of {len(rows)}: a bit of byte {position} flipped"

    def alter_field(self, path: Path, random: Random) -> str | None:
        parts = self._layout.split(path)
        if not parts.rows:
            return None
        rows, at, name = list(parts.rows), random.randrange(len(parts.rows)), random.choice(list(self._layout.fields))
        position, form = self._layout.fields[name]
        bits = 8 * struct.calcsize(form)
        before: int = struct.unpack_from(form, rows[at], position)[0]
        wanted = random.choice([before + 1, before - 1, before + 1000, -1 if before != -1 else 0])
        # within what the field can hold
        after = (wanted + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        rows[at] = _with(rows[at], position, form, after)
        self._written(path, parts, rows)
        return f"row {at} of {len(rows)}: {name} {before} became {after}"

    def repeat_field(self, path: Path, random: Random) -> str | None:
        """The value that one row has, in another row as well."""
        return self._both(path, random, swap=False)

    def swap_fields(self, path: Path, random: Random) -> str | None:
        return self._both(path, random, swap=True)

    def _both(self, path: Path, random: Random, *, swap: bool) -> str | None:
        parts = self._layout.split(path)
        rows = list(parts.rows)
        values = {
            name: [struct.unpack_from(form, row, position)[0] for row in rows]
            for name, (position, form) in self._layout.fields.items()
        }
        names = [name for name, found in values.items() if len(set(found)) > 1]
        if not names:
            return None
        name = random.choice(names)
        position, form = self._layout.fields[name]
        one = random.randrange(len(rows))
        other = random.choice([at for at, value in enumerate(values[name]) if value != values[name][one]])
        rows[other] = _with(rows[other], position, form, values[name][one])
        if swap:
            rows[one] = _with(rows[one], position, form, values[name][other])
        self._written(path, parts, rows)
        return f"{name} of row {one} {'swapped with' if swap else 'repeated in'} row {other}, of {len(rows)}"


def _with(row: bytes, position: int, form: str, value: int) -> bytes:
    changed = bytearray(row)
    struct.pack_into(form, changed, position, value)
    return bytes(changed)
