"""The files beside a log as a right broker leaves them after a clean stop: obvious, slow, sharing no line with a
reader.

Made from what each replica holds, so that whatever a test does to a log, its files fit it; a test that wants them
otherwise changes them afterwards (``Story.side_files``). The rules are those of docs/log.md. The CRC is taken with the
``crc32c`` package; the verifier's reader uses another one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

import crc32c


class Written(Protocol):
    """What of a batch its side files depend on."""

    @property
    def base_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def marker(self) -> int | None: ...


def indexes(base_offset: int, batches: Sequence[tuple[Written, int]], interval: int) -> tuple[bytes, bytes]:
    """``.index`` and ``.timeindex`` of a closed segment of (batch, its bytes)."""
    offsets, times = b"", b""
    position, last_indexed, newest, newest_offset, last_time = 0, 0, -1, base_offset, -1
    for batch, size in batches:
        if batch.timestamp_ms > newest:
            newest, newest_offset = batch.timestamp_ms, batch.next_offset - 1
        if position - last_indexed > interval:
            offsets += struct.pack(">ii", batch.next_offset - 1 - base_offset, position)
            last_indexed = position
            if newest > last_time:
                times += struct.pack(">qi", newest, newest_offset - base_offset)
                last_time = newest
        position += size
    if newest > last_time:
        times += struct.pack(">qi", newest, newest_offset - base_offset)
    return offsets, times


def aborted(batches: Sequence[Written], part: Sequence[Written]) -> bytes:
    """``.txnindex`` of the segment that is ``part`` of a log."""
    begun: dict[int, int] = {}
    entries = b""
    for batch in batches:
        if batch.marker is None:
            if batch.attributes & 0x10:
                begun.setdefault(batch.producer_id, batch.base_offset)
            continue
        first = begun.pop(batch.producer_id, None)
        if first is not None and batch.marker == 0 and any(batch is each for each in part):
            stable = min(begun.values(), default=batch.next_offset)
            entries += struct.pack(">hqqqq", 0, batch.producer_id, first, batch.base_offset, stable)
    return entries


def leader_epochs(batches: Sequence[Written], start: int, final_epoch: int) -> bytes:
    """``leader-epoch-checkpoint``; an epoch without any batch begins at the end of the log."""
    entries: list[tuple[int, int]] = []
    for batch in batches:
        if batch.next_offset > start and (not entries or batch.leader_epoch > entries[-1][0]):
            entries.append((batch.leader_epoch, max(batch.base_offset, start)))
    if not entries:
        entries.append((final_epoch, start))
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in entries)
    return f"0\n{len(entries)}\n{lines}".encode()


def offsets(rows: dict[tuple[str, int], int]) -> bytes:
    """An offset checkpoint."""
    lines = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in sorted(rows.items()))
    return f"0\n{len(rows)}\n{lines}".encode()


def snapshot(offset: int, batches: Sequence[Written]) -> bytes:
    """``.snapshot`` of the producers of the batches before ``offset``, in the order of the file."""
    newest: dict[int, tuple[int, int, int, int, int, int]] = {}
    for batch in batches:
        if batch.base_offset >= offset:
            break
        if batch.producer_id < 0:
            continue
        numbers = -1, -1, 0  # a marker may begin an epoch, in which there is no batch yet
        if batch.base_sequence >= 0:
            delta = batch.next_offset - 1 - batch.base_offset
            numbers = (batch.base_sequence + delta) % 2**31, batch.next_offset - 1, delta
        elif batch.marker is None:
            continue
        elif batch.producer_id in newest and newest[batch.producer_id][1] == batch.producer_epoch:
            numbers = newest[batch.producer_id][2:5]
        newest[batch.producer_id] = (batch.producer_id, batch.producer_epoch, *numbers, batch.timestamp_ms)
    return snapshot_of([*newest.values()])


def snapshot_of(producers: Sequence[tuple[int, int, int, int, int, int]]) -> bytes:
    """``.snapshot`` of (id, epoch, last sequence, last offset, offset delta, timestamp)."""
    body = struct.pack(">i", len(producers))
    body += b"".join(struct.pack(">qhiqiqiq", *producer, -1, -1) for producer in producers)
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body
