"""Compares batch headers field by field, with their bytes, and finds where the bytes of two copies differ. Pure.

Owns both comparisons and their bounds. Does not own the layout of segments (``verifier.segments``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from verifier.evidence.units import seconds_of_ms
from verifier.segments import walk
from verifier.surroundings.model import SpotView, StoredBatch

#: The most batches in a comparison, and the most lines of differing bytes.
MOST_BATCHES = 8
MOST_STRETCHES = 3
#: The bytes in a line of hexadecimal digits.
LINE = 16

#: (name, position, struct format) of each field of a batch header.
_BATCH = (
    ("base offset", 0, ">q"), ("batch length", 8, ">i"), ("leader epoch", 12, ">i"), ("magic", 16, ">b"),
    ("CRC-32C", 17, ">I"), ("attributes", 21, ">h"), ("last offset delta", 23, ">i"), ("base timestamp", 27, ">q"),
    ("max timestamp", 35, ">q"), ("producer id", 43, ">q"), ("producer epoch", 51, ">h"), ("base sequence", 53, ">i"),
    ("record count", 57, ">i"),
)  # fmt: skip
_VALUE = (
    ("magic", 0, "4s"), ("version", 4, ">B"), ("flags", 5, ">B"), ("run id", 8, ">Q"), ("stream", 16, ">I"),
    ("sequence", 24, ">Q"), ("send time (ns)", 32, ">Q"), ("payload CRC-32", 40, ">I"), ("header CRC-32", 44, ">I"),
)  # fmt: skip
_CODECS = ("plain", "gzip", "snappy", "lz4", "zstd")


def header_table(place: SpotView) -> dict[str, Any] | None:
    """The headers of the batches at a place, replicas side by side; None if there are no batches.

    If no batch is at the place, the batches before and after it are shown. A row is (field, cells, whether they
    differ), and a cell is (hexadecimal digits, value).
    """
    alike: dict[tuple[bytes, bytes, bool, str | None], list[StoredBatch]] = {}
    for batch in _chosen(place):
        own = batch.raw[: walk.HEADER_BYTES], batch.value_header, batch.crc_ok, batch.problem
        alike.setdefault(own, []).append(batch)
    if not alike:
        return None
    # replicas that agree share a column
    chosen = [batches[0] for batches in alike.values()]
    columns = [
        {
            "title": _brokers(batches),
            "batch": f"{batches[0].base_offset}..{batches[0].last_offset}",
            "files": [f"{each.file} @ {each.position}" for each in batches],
            "crc": "matches" if batches[0].crc_ok else "does not match",
            "problem": batches[0].problem or "",
        }
        for batches in alike.values()
    ]
    rows = _rows(_BATCH, [batch.raw for batch in chosen], _batch_value)
    values = _rows(_VALUE, [batch.value_header for batch in chosen], _value_value)
    return {
        "columns": columns,
        "rows": rows,
        "values": values if any(batch.value_header for batch in chosen) else [],
        "same": len(chosen) == 1 and len(next(iter(alike.values()))) > 1,
    }


def _brokers(batches: Sequence[StoredBatch]) -> str:
    numbers = list(dict.fromkeys(str(batch.broker) for batch in batches))
    return f"broker{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _chosen(place: SpotView) -> list[StoredBatch]:
    """The batches of all replicas at a place, or else the leader's batches before and after it."""
    at_place = [
        batch
        for at in place.spot.places
        for stored in place.stored
        for batch in stored.batches
        if batch.base_offset <= at <= max(batch.last_offset, batch.base_offset)
    ]
    if not at_place:
        first = place.spot.places[0]
        for stored in place.stored[:1]:
            before = [batch for batch in stored.batches if batch.last_offset < first]
            after = [batch for batch in stored.batches if batch.base_offset > first]
            at_place = before[-1:] + after[:1]
    unique = {(batch.file, batch.position): batch for batch in at_place}
    return list(unique.values())[:MOST_BATCHES]


def _rows(
    layout: Sequence[tuple[str, int, str]], raws: Sequence[bytes], words: Any
) -> list[tuple[str, list[tuple[str, str]], bool]]:
    rows = []
    for name, position, form in layout:
        size = struct.calcsize(form)
        parts = [raw[position : position + size] for raw in raws]
        cells = [
            (part.hex(" "), str(words(name, struct.unpack(form, part)[0]))) if len(part) == size else ("", "absent")
            for part in parts
        ]
        rows.append((name, cells, len(set(parts)) > 1))
    return rows


def _batch_value(name: str, value: int) -> str:
    if name.endswith("timestamp"):
        return _moment(value)
    if name == "CRC-32C":
        return f"{value:#010x}"
    if name == "attributes":
        codec = value & walk.CODEC_MASK
        parts = [_CODECS[codec] if codec < len(_CODECS) else f"codec {codec}"]
        parts += [
            word for bit, word in ((0x08, "log append time"), (0x10, "transactional"), (0x20, "control")) if value & bit
        ]
        return ", ".join(parts)
    return str(value)


def _value_value(name: str, value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii", "replace")
    if "CRC" in name:
        return f"{value:#010x}"
    return "sentinel" if name == "flags" and value & 1 else str(value)


def _moment(milliseconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds_of_ms(milliseconds), UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)


def differences(place: SpotView) -> list[dict[str, Any]]:
    """Where the bytes of a replica's batch differ from those of the first replica, in lines of ``LINE`` bytes.

    Only batches with the same base offset are compared, and only bytes that were kept of both.
    """
    found = []
    for at in place.spot.places:
        here = [
            batch for stored in place.stored for batch in stored.batches if batch.base_offset <= at <= batch.last_offset
        ]
        others: dict[bytes, list[StoredBatch]] = {}
        for other in here[1:]:
            if other.base_offset == here[0].base_offset and other.raw != here[0].raw:
                others.setdefault(other.raw, []).append(other)
        found += [_difference(here[0], alike) for alike in others.values()]
    return found[:MOST_BATCHES]


def _difference(first: StoredBatch, alike: Sequence[StoredBatch]) -> dict[str, Any]:
    """The first batch compared with other batches, which are all alike."""
    other = alike[0]
    length = min(len(first.raw), len(other.raw))
    unequal = [index for index in range(length) if first.raw[index] != other.raw[index]]
    lines = list(dict.fromkeys(index // LINE for index in unequal))
    shown = [
        {
            "position": line * LINE,
            "left": _hex(first.raw, other.raw, line * LINE, length),
            "right": _hex(other.raw, first.raw, line * LINE, length),
        }
        for line in lines[:MOST_STRETCHES]
    ]
    return {
        "left": f"broker {first.broker}", "right": _brokers(alike), "offset": first.base_offset,
        "bytes": len(unequal), "lines": shown, "more": len(lines) - len(shown),
        "sizes": "" if first.size_bytes == other.size_bytes else f"{first.size_bytes} and {other.size_bytes} bytes",
    }  # fmt: skip


def _hex(own: bytes, other: bytes, start: int, length: int) -> list[tuple[str, bool]]:
    """Each byte as hexadecimal digits, and whether the other side has a different byte."""
    return [(f"{own[at]:02x}", own[at] != other[at]) for at in range(start, min(start + LINE, length))]
