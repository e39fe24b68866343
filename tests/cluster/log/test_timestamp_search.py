"""The search for a time: in steps that are short whatever the batches are, and to the same end as a plain one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterable

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from cluster.log import scan, timestamps
from cluster.log.config import LogConfig
from cluster.log.partition_log import PartitionLog
from cluster.log.timestamps import HEADERS_AT_ONCE, FoundTime, Look
from cluster.protocol.batch import CRC_FROM, MAX_TIMESTAMP_AT, BatchHeader, parse_header
from cluster.protocol.records import NewRecord, Record, build_batch, decode_records
from tests.cluster.log.builders import Bench, append, bench, offset_for_timestamp, open_log, read_all

#: Of a batch: where its checksum is.
CRC_AT = 17
BATCHES = 3000
#: The headers of the smallest batches between two entries of the index, and of the batch at the second.
IN_AN_INTERVAL = 4096 // 68 + 2


class Headers:
    """How many headers of batches were read in files since it was asked last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        parse = scan.parse_header

        def counting(buffer: bytes, position: int = 0) -> BatchHeader:
            self._count += 1
            return parse(buffer, position)

        monkeypatch.setattr(scan, "parse_header", counting)

    def read(self) -> int:
        count, self._count = self._count, 0
        return count


def steps_of(search: Generator[Look | None, FoundTime, FoundTime], headers: Headers) -> tuple[FoundTime, list[int]]:
    """What a search finds, and how many headers each of its steps read."""
    steps = []
    headers.read()
    try:
        while True:
            assert next(search) is None
            steps.append(headers.read())
    except StopIteration as end:
        return end.value, [*steps, headers.read()]


def filled(timestamps: Iterable[int], config: LogConfig | None = None) -> tuple[Bench, PartitionLog]:
    on = bench()
    log = open_log(on, config)
    for timestamp in timestamps:
        append(log, bytearray(build_batch([NewRecord(timestamp, None, b"")])))
    return on, log


def test_equal_times_are_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time index has one entry, as in Kafka: a search for what is newer read all headers of the segment."""
    on, log = filled([1000] * BATCHES + [2000])
    headers = Headers(monkeypatch)
    assert steps_of(log.search_timestamp(2001), headers) == (None, [0, 0])
    for stop in (None, "clean", "crash"):
        if stop is not None:
            log.close(clean=stop == "clean")
            log = open_log(on, clean=stop == "clean")
        found, steps = steps_of(log.search_timestamp(1500), headers)
        assert found == (2000, BATCHES)
        assert sum(steps) <= IN_AN_INTERVAL


def test_a_cut_behind_equal_times_is_no_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest time of what is left is that of the time index, or in the last interval."""
    _, log = filled([1000] * BATCHES + [2000])
    headers = Headers(monkeypatch)
    log.truncate_to(BATCHES - 400)
    assert headers.read() <= 3 * IN_AN_INTERVAL
    assert log.max_timestamp == 1000


@pytest.mark.parametrize("start", [1, BATCHES // 2])
def test_a_log_start_behind_a_newer_batch_is_a_scan_in_steps(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index says that nothing new enough follows what was deleted; what was deleted is not read."""
    _, log = filled([5000] + [1000] * BATCHES + [6000])
    log.advance_log_start_offset(start)
    found, steps = steps_of(log.search_timestamp(3000), Headers(monkeypatch))
    assert found == (6000, BATCHES + 1)
    assert max(steps) <= HEADERS_AT_ONCE + 1
    assert sum(steps) <= BATCHES + 2 - start + IN_AN_INTERVAL + len(steps)


def test_headers_that_promise_too_much_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each says that it holds a newer record, and none does: after each look it began with the first again."""
    on = bench()
    log = open_log(on)
    for _ in range(1000):
        batch = bytearray(build_batch([NewRecord(1000, None, b"")]))
        struct.pack_into(">q", batch, MAX_TIMESTAMP_AT, 9000)
        struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CRC_FROM:]))
        append(log, batch)
    found, steps = steps_of(log.search_timestamp(5000), Headers(monkeypatch))
    assert found is None
    assert max(steps) <= 2
    assert sum(steps) <= 2000


def test_a_search_goes_on_in_what_the_log_has_become(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appended to, rolled, deleted at its start, cut and written again while the search waits for its turn."""
    monkeypatch.setattr(timestamps, "HEADERS_AT_ONCE", 10)

    def after_step(change: Callable[[PartitionLog], object], config: LogConfig | None = None) -> FoundTime:
        _, log = filled([5000] + [1000] * 100, config)
        log.advance_log_start_offset(1)
        search = log.search_timestamp(3000)
        assert next(search) is None
        change(log)
        return steps_of(search, Headers(monkeypatch))[0]

    def add(log: PartitionLog, *times: int) -> None:
        for time in times:
            append(log, bytearray(build_batch([NewRecord(time, None, b"")])))

    small = LogConfig(segment_bytes=3000)
    for config in (None, small):
        assert after_step(lambda log: None, config) is None
        assert after_step(lambda log: add(log, 6000), config) == (6000, 101)
        assert after_step(lambda log: add(log, *[1000] * 100, 6000), config) == (6000, 201)
        assert after_step(lambda log: (log.advance_log_start_offset(90), add(log, 6000)), config) == (6000, 101)
        assert after_step(lambda log: (log.truncate_to(5), add(log, 6000, 7000)), config) in (
            (7000, 6),
            (6000, 5),
            None,
        )
        assert after_step(lambda log: (log.truncate_to(50), add(log, 6000)), config) == (6000, 50)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=40),
    st.sampled_from([0, 100, 150, 400]),
    st.sampled_from([150, 600, 4000]),
    st.integers(0, 20),
    st.integers(1, 4),
    st.sampled_from(["", "clean", "crash", "cut", "cut and crash"]),
)
def test_steps_find_what_a_plain_search_finds(
    batches: list[tuple[int, int]], interval: int, segment_bytes: int, start: int, at_once: int, then: str
) -> None:
    """For every timestamp: the first record from the log start on, looked at one by one."""
    config = LogConfig(index_interval_bytes=interval, segment_bytes=segment_bytes)
    on = bench()
    log = open_log(on, config)
    for timestamp, count in batches:
        append(log, bytearray(build_batch([NewRecord(max(0, timestamp - each), None, b"") for each in range(count)])))
    if "cut" in then:
        log.truncate_to(log.log_end_offset * 2 // 3)
    if then:
        if then == "clean":
            log.close(clean=True)
        log = open_log(on, config, clean=then == "clean")
    assert log.max_timestamp == max((each.timestamp for each in all_records(log)), default=-1)
    log.advance_log_start_offset(min(start, log.log_end_offset))
    records = [record for record in all_records(log) if record.offset >= log.log_start_offset]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(timestamps, "HEADERS_AT_ONCE", at_once)
        for wanted in range(6):
            plain = next(((each.timestamp, each.offset) for each in records if each.timestamp >= wanted), None)
            assert offset_for_timestamp(log, wanted, log.log_end_offset) == plain


def all_records(log: PartitionLog) -> list[Record]:
    data, position, records = read_all(log), 0, []
    while position < len(data):
        size = parse_header(data, position).size_bytes
        records += decode_records(data[position : position + size])
        position += size
    return records
