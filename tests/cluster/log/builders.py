"""Batches and logs for the tests of this room, built by hand: a codec bug must not agree with itself."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import pytest
from crc32c import crc32c

from cluster.log.config import LogConfig
from cluster.log.errors import LogError
from cluster.log.owner import LogOwner
from cluster.log.partition_log import PartitionLog
from cluster.log.removal import Doomed
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker, build_marker_batch
from cluster.protocol.errors import CorruptBatch, ErrorCode
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import FileRange

NOW_MS = 1_700_000_000_000
DIRECTORY = "data/t-0"


def make_batch(
    count: int = 1,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = NOW_MS,
    attributes: int = 0,
    payload: bytes = b"payload",
) -> bytearray:
    """A batch whose records are ``payload``: they are never looked at."""
    checked = struct.pack(
        ">hiqqqhii",
        attributes,
        count - 1,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    checked += payload
    head = struct.pack(">qiibI", base_offset, 9 + len(checked), leader_epoch, 2, crc32c(checked))
    return bytearray(head + checked)


def make_marker(
    producer_id: int, control_type: ControlRecordType, *, producer_epoch: int = 0, coordinator_epoch: int = 0
) -> bytearray:
    """The batch with which a coordinator ends a transaction."""
    marker = EndTransactionMarker(control_type, coordinator_epoch)
    return bytearray(
        build_marker_batch(marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=NOW_MS)
    )


def make_header(
    *,
    producer_id: int = 7,
    producer_epoch: int = 0,
    base_sequence: int = 0,
    count: int = 1,
    base_offset: int = 0,
    attributes: int = 0,
    timestamp: int = NOW_MS,
) -> BatchHeader:
    """A header alone, for pure decisions; ``count`` may be larger than any batch could hold."""
    return BatchHeader(
        base_offset=base_offset,
        batch_length=49,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )


class Bench(NamedTuple):
    """A log with what it stands on."""

    storage: MemoryStorage
    clock: ManualClock


def bench() -> Bench:
    storage = MemoryStorage()
    storage.makedirs("data")
    storage.sync_directory(".")
    return Bench(storage, ManualClock(NOW_MS))


def open_log(
    on: Bench,
    config: LogConfig | None = None,
    *,
    directory: str = DIRECTORY,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    doomed: Doomed | None = None,
    owner: LogOwner | None = None,
) -> PartitionLog:
    return PartitionLog.open(
        directory,
        "t",
        0,
        config or LogConfig(),
        on.storage,
        on.clock,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        doomed=doomed,
        owner=owner,
    )


def putting_off() -> LogOwner:
    """An owner who has snapshots written later."""
    owner = LogOwner()
    owner.writes_snapshots = True
    return owner


def append(log: PartitionLog, batch: bytearray | None = None, *, leader_epoch: int = 0, **fields: int):
    """Append as leader; ``fields`` are those of ``make_batch``."""
    if batch is None:
        batch = make_batch(**fields)
    return log.append_as_leader(memoryview(batch), parse_header(batch), leader_epoch, NOW_MS)


def produce(log: PartitionLog, sequence: int, count: int = 1, **fields):
    """Append the next batch of producer 7."""
    return append(log, count=count, producer_id=7, producer_epoch=0, base_sequence=sequence, **fields)


def replicated(*batches: bytearray) -> memoryview:
    """Batches as a fetch response has them."""
    return memoryview(bytearray(b"".join(batches)))


def code_of(call: Callable[[], object]) -> ErrorCode:
    """The error code with which ``call`` is refused."""
    with pytest.raises(LogError) as caught:
        call()
    return caught.value.error_code


def content(records: FileRange | None) -> bytes:
    """The bytes that a FileRange stands for."""
    if records is None:
        return b""
    data = records.file.pread(records.size, records.position)
    assert len(data) == records.size
    return data


def read_all(log: PartitionLog) -> bytes:
    """All bytes of a log, read as a follower would."""
    parts = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = content(log.read(offset, 1 << 30, log.log_end_offset).records)
        assert data, f"nothing to read at {offset} of {log}"
        parts.append(data)
        position = 0
        while position < len(data):
            header = parse_header(data, position)
            offset = header.next_offset
            position += header.size_bytes
    return b"".join(parts)


def offset_for_timestamp(log: PartitionLog, timestamp: int, upper_bound_offset: int) -> tuple[int, int] | None:
    """What a search for a timestamp finds below the bound, with every look taken at once."""
    search = log.search_timestamp(timestamp)
    try:
        look = next(search)
        while True:
            try:
                found = None if look is None else look()
            except CorruptBatch as error:
                look = search.throw(error)
            else:
                look = search.send(found)
    except StopIteration as end:
        found = end.value
    return found if found is not None and found[1] < upper_bound_offset else None
