"""Cleaning a log of transactions: markers, aborted records and open transactions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.log.partition_log import PartitionLog
from cluster.log.transactions import marker_in
from cluster.protocol.batch import parse_header
from cluster.protocol.control_records import ControlRecordType
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.log.builders import NOW_MS, Bench, bench, make_marker, open_log
from tests.cluster.log.cleaning import CONFIG, PAIRS, RETENTION_MS, batches, clean, put, records


@pytest.fixture
def on() -> Bench:
    return bench()


def transact(log: PartitionLog, producer_id: int, *pairs: tuple[bytes, bytes | None]) -> None:
    """A transactional batch as a coordinator writes it, without a sequence."""
    records = [NewRecord(NOW_MS, key, value) for key, value in pairs]
    batch = build_batch(records, producer_id=producer_id, producer_epoch=0, transactional=True)
    log.append_as_coordinator(bytearray(batch), 0)


def decide(log: PartitionLog, producer_id: int, how: ControlRecordType) -> None:
    log.append_as_coordinator(make_marker(producer_id, how), 0)


def committed(log: PartitionLog) -> dict[bytes, bytes | None]:
    """What a reader of committed records has of each key in the end."""
    found: dict[bytes, bytes | None] = {}
    pending: dict[int, dict[bytes, bytes | None]] = {}
    placed: dict[bytes, int] = {}

    def take(offset: int, key: bytes, value: bytes | None) -> None:
        if offset >= placed.get(key, -1):
            placed[key], found[key] = offset, value

    offsets: dict[int, dict[bytes, int]] = {}
    for batch in batches(log):
        header = parse_header(batch)
        if header.is_control:
            marker = marker_in(batch)
            written = pending.pop(header.producer_id, {})
            if marker is not None and marker.control_type is ControlRecordType.COMMIT:
                for key, value in written.items():
                    take(offsets[header.producer_id][key], key, value)
            continue
        for record in decode_records(batch):
            assert record.key is not None
            if header.is_transactional:
                pending.setdefault(header.producer_id, {})[record.key] = record.value
                offsets.setdefault(header.producer_id, {})[record.key] = record.offset
            else:
                take(record.offset, record.key, record.value)
    return {key: value for key, value in found.items() if value is not None}


def test_committed_offsets_do_not_pile_up(on):
    """Of thousands of transactions that write one key, and of those that are aborted, markers alone stay."""
    log = open_log(on, config=CONFIG)
    for number in range(50):
        transact(log, number, (b"a", str(number).encode()))
        decide(log, number, ControlRecordType.COMMIT if number % 2 else ControlRecordType.ABORT)
    before = committed(log)
    assert clean(log)
    assert committed(log) == before == {b"a": b"49"}
    headers = [parse_header(batch) for batch in batches(log)]
    assert sum(not header.is_control for header in headers) <= 4, "of the last segments, which are not compacted"
    assert sum(header.is_control for header in headers) == 50


def test_a_tombstone_does_not_bring_back_what_a_transaction_wrote(on):
    """The deletion of an offset outlives the transaction that committed it, whatever is compacted when."""
    log = open_log(on, config=CONFIG)
    transact(log, 1, (b"a", b"old"))
    put(log, (b"a", None))
    for number in range(5):
        put(log, (b"b", b"2" * 60 + str(number).encode()))
    decide(log, 1, ControlRecordType.COMMIT)
    for now_ms in (NOW_MS, NOW_MS + RETENTION_MS + 1, NOW_MS + 3 * RETENTION_MS):
        for number in range(5):
            put(log, (b"b", b"3" * 60 + str(number).encode()))
        clean(log, now_ms)
        assert b"a" not in committed(log)
    assert b"a" not in {record.key for record in records(log)}, "the tombstone went, and with it what it covered"


def test_a_transaction_without_its_marker_ends_a_compaction(on):
    """It is decided, but its marker lies behind what can be read; the same end is not tried again."""
    log = open_log(on, config=CONFIG)
    for number in range(6):
        put(log, (b"b", b"1" * 60 + str(number).encode()))
    first = log.log_end_offset
    transact(log, 1, (b"a", b"1" * 200))
    put(log, (b"b", b"2" * 200))
    decide(log, 1, ControlRecordType.COMMIT)
    clean(log)
    assert log.cleaned_to == first
    assert log.cleanable(log.log_end_offset, NOW_MS) is None
    for _ in range(4):
        put(log, (b"b", b"3" * 200))
    assert clean(log)
    assert log.cleaned_to > first
    assert committed(log) == {b"a": b"1" * 200, b"b": b"3" * 200}


OFTEN = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.none(), PAIRS),
        st.tuples(st.just("transact"), st.integers(1, 3), PAIRS),
        st.tuples(st.sampled_from(["commit", "abort", "clean", "later"]), st.integers(1, 3), st.none()),
    ),
    max_size=60,
)


@given(OFTEN)
@settings(deadline=None)
def test_compaction_changes_nothing_that_is_committed(steps):
    """Transactions of several producers interleave with records outside any, whatever is compacted in between; after an
    unclean stop, too."""
    on = bench()
    log = open_log(on, config=CONFIG)
    now_ms, opened = NOW_MS, set()
    for what, producer_id, pair in steps:
        if what == "put":
            put(log, pair, now_ms=now_ms)
        elif what == "transact":
            transact(log, producer_id, pair)
            opened.add(producer_id)
        elif what in ("commit", "abort"):
            if producer_id in opened:
                decide(log, producer_id, ControlRecordType.COMMIT if what == "commit" else ControlRecordType.ABORT)
                opened.discard(producer_id)
        elif what == "later":
            now_ms += RETENTION_MS
        else:
            before = committed(log)
            clean(log, now_ms)
            assert committed(log) == before
    before, stable_offset = committed(log), log.last_stable_offset(log.log_end_offset)
    again = open_log(on, CONFIG, recovery_point=log.recovery_point)
    assert committed(again) == before
    assert again.last_stable_offset(again.log_end_offset) == stable_offset
