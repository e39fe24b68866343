"""Transactions in a log: what a coordinator may write, what is stable, and that nothing of it is lost in a crash."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from cluster.log.aborted_transactions import AbortedTransaction, aborted_transactions_bytes, parse_aborted_transactions
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.partition_log import PartitionLog
from cluster.log.producer_snapshot import parse_snapshot, snapshot_bytes
from cluster.log.producers import ProducerStates
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.log.snapshots import histories_bytes, parse_histories
from cluster.log.transactions import marker_in
from cluster.protocol.batch import TRANSACTIONAL_BIT
from cluster.protocol.control_records import ControlRecordType
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, pack_record
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    code_of,
    make_batch,
    make_header,
    make_marker,
    open_log,
)
from tests.cluster.log.crashing import Died, dying_after, full_after

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
#: A segment for about two transactions.
SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
RECORD = pack_record(NewRecord(NOW_MS, b"k", b""), 0, NOW_MS)
TXNINDEX = f"{DIRECTORY}/00000000000000000000.txnindex"


def write(log: PartitionLog, producer: int, sequence: int, epoch: int = 0) -> int:
    """One record in a transaction; returns its offset."""
    fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    return append(log, attributes=TRANSACTIONAL_BIT, payload=RECORD, **fields).first_offset


def end(log: PartitionLog, producer: int, how: ControlRecordType, **epochs: int) -> int:
    """The marker of a transaction; returns its offset."""
    return log.append_as_coordinator(make_marker(producer, how, **epochs), 0).first_offset


def aborted_of(log: PartitionLog) -> list[AbortedTransaction]:
    return [entry for segment in log._local.segments for entry in segment.aborted]


def filled(on: Bench, transactions: int = 6, config: LogConfig = SMALL) -> PartitionLog:
    """One transaction after the other, two records each, every second one aborted; producer 9's stays open."""
    log = open_log(on, config)
    write(log, 9, 0)
    for number in range(transactions):
        write(log, 1, 2 * number)
        write(log, 1, 2 * number + 1)
        end(log, 1, ABORT if number % 2 else COMMIT)
    return log


ABORTED_IN_FILLED = [AbortedTransaction(1, 4, 6, 0), AbortedTransaction(1, 10, 12, 0), AbortedTransaction(1, 16, 18, 0)]


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        ({"producer_epoch": 4}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"producer_epoch": 4, "coordinator_epoch": 9}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"producer_epoch": 5, "coordinator_epoch": 2}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({"producer_epoch": 6, "coordinator_epoch": 2}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ({"producer_epoch": 5, "coordinator_epoch": 3}, None),
        ({"producer_epoch": 6, "coordinator_epoch": 4}, None),
    ],
)
def test_a_marker_is_judged_by_both_epochs(marker, code):
    """Older than the producer's epoch, or than the newest marker's coordinator: refused, and nothing is appended."""
    log = open_log(bench())
    write(log, 1, 0, epoch=5)
    end(log, 1, COMMIT, producer_epoch=5, coordinator_epoch=3)
    before = log.log_end_offset
    if code is None:
        assert end(log, 1, ABORT, **marker) == before
        return
    assert code_of(lambda: end(log, 1, ABORT, **marker)) is code
    assert log.log_end_offset == before


def test_a_batch_outside_an_open_transaction_is_refused():
    """INVALID_TXN_STATE for a client and a coordinator, until a marker decides. A resent batch is a duplicate."""
    log = open_log(bench())
    write(log, 1, 0)
    plain = make_batch(producer_id=1, producer_epoch=0, base_sequence=1)
    assert code_of(lambda: append(log, plain)) is ErrorCode.INVALID_TXN_STATE
    assert append(log, make_batch(producer_id=1, producer_epoch=0, base_sequence=0)).duplicate
    without_sequence = make_batch(producer_id=1, producer_epoch=0)
    assert code_of(lambda: log.append_as_coordinator(without_sequence, 0)) is ErrorCode.INVALID_TXN_STATE
    out_of_order = make_batch(producer_id=1, producer_epoch=0, base_sequence=5)
    assert code_of(lambda: append(log, out_of_order)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    end(log, 1, COMMIT)
    assert append(log, plain).first_offset == 2


def test_a_deposed_leader_writes_no_marker():
    """An append in an older leader epoch than the log's newest."""
    log = open_log(bench())
    append(log, leader_epoch=3)
    assert code_of(lambda: log.append_as_coordinator(make_marker(1, ABORT), 2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_is_stable():
    """min(high watermark, first open transaction, first transaction whose marker is not replicated, not below the log
    start)."""
    log = open_log(bench())
    append(log)
    assert log.last_stable_offset(1) == 1
    assert (write(log, 1, 0), write(log, 2, 0), end(log, 2, COMMIT)) == (1, 2, 3)
    assert (log.last_stable_offset(1), log.last_stable_offset(4)) == (1, 1)
    assert end(log, 1, COMMIT) == 4
    assert (log.last_stable_offset(4), log.last_stable_offset(5)) == (1, 5)
    assert write(log, 1, 1) == 5
    append(log)
    log.advance_log_start_offset(6)
    assert log.last_stable_offset(7) == 6


def test_a_marker_without_a_transaction_aborts_nothing():
    """Only the epochs are noted: no file, no entry."""
    on = bench()
    log = open_log(on)
    end(log, 1, ABORT, coordinator_epoch=4)
    assert aborted_of(log) == [] and not on.storage.exists(TXNINDEX)
    entry = log.producers.get(1)
    assert entry is not None and (entry.coordinator_epoch, entry.txn_first_offset) == (4, -1)


def test_the_index_is_written_with_the_marker():
    """Kafka's bytes; the last stable offset is where the next open transaction begins, else after the marker."""
    on = bench()
    log = open_log(on)
    write(log, 1, 0), write(log, 2, 0)
    end(log, 1, ABORT)
    end(log, 2, ABORT)
    expected = [AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 3, 4)]
    assert parse_aborted_transactions(on.storage.read(TXNINDEX)) == expected == aborted_of(log)


def test_a_reader_hears_of_what_it_reads():
    """Aborted transactions with records between the fetch offset and the end of what was read, also if their marker is
    in a later segment."""
    log = filled(bench())
    assert len(log.segment_base_offsets) > 3 and aborted_of(log) == ABORTED_IN_FILLED
    for offset in range(19):
        found = log.read(offset, 100_000, 19)
        told = log.aborted_transactions(offset, found, 19)
        end_offset = [*log.segment_base_offsets, 19][log.segment_base_offsets.index(found.segment_base_offset) + 1]
        wanted = [(1, first) for _, first, last, _ in ABORTED_IN_FILLED if last >= offset and first < end_offset]
        assert told == wanted


def test_an_index_that_cannot_be_written_ends_the_log():
    """Readers would take what was aborted for committed: KAFKA_STORAGE_ERROR from then on."""
    log = open_log(bench())
    write(log, 1, 0)
    with full_after(1), pytest.raises(StorageFailed):
        end(log, 1, ABORT)
    assert log.is_failed


@pytest.mark.parametrize("recovery_point", [0, 7, 13, 19])
def test_a_crash_anywhere_is_recovered(recovery_point):
    """Whichever operation is the last one before a kill: after the start, the index says what the batches say."""
    operations = None
    done = 0
    while operations is None or done <= operations:
        on = bench()
        log = filled(on)
        log.flush(recovery_point)
        at_most = log.recovery_point
        try:
            with dying_after(done) as counted:
                write(log, 1, 12)
                end(log, 1, ABORT)
                log.flush(10)
                log.truncate_to(15)
                write(log, 1, 9)
                end(log, 9, ABORT)
                log.roll("asked for")
            operations = counted[0]
        except Died:
            pass
        again = open_log(on, SMALL, recovery_point=min(at_most, log.log_end_offset))
        expected = ProducerStates()
        aborted = []
        for segment in again._local.segments:
            for position, header in segment.headers():
                batch = segment.file.pread(header.size_bytes, position)
                found = expected.update(header, header.base_offset, marker_in(batch) if header.is_control else None)
                aborted += [] if found is None else [found]
        assert aborted_of(again) == aborted
        assert again.producers.transactions.open == expected.transactions.open
        done += 1


@pytest.mark.parametrize("bytes_left", [0, 20, 34, None])
def test_a_power_loss_takes_no_abort_that_was_flushed(bytes_left):
    """What is below the recovery point is synced, the name of the file too; what is above is rebuilt."""
    on = bench()
    log = filled(on)
    log.flush(13)
    keep = 1 << 20 if bytes_left is None else bytes_left
    on.storage.power_loss(lambda path, unsynced: min(unsynced, keep if path.endswith("index") else 1 << 20))
    again = open_log(on, SMALL, recovery_point=13)
    assert [entry for entry in aborted_of(again) if entry.last_offset < 13] == ABORTED_IN_FILLED[:2]
    assert aborted_of(again) == ABORTED_IN_FILLED[: len(aborted_of(again))]


@pytest.mark.parametrize(
    "data", [b"\x00" * 33, b"\x00\x01" + bytes(32), aborted_transactions_bytes([AbortedTransaction(1, 50, 60, 61)])]
)
def test_a_damaged_index_is_rebuilt(data):
    """Cut, of another version, or with a marker of another segment: also in a segment that was synced."""
    on = bench()
    log = filled(on)
    log.flush()
    first = next(segment for segment in log._local.segments if len(segment.aborted))
    file = on.storage.open(first.aborted.path)
    file.truncate(0)
    file.append(data)
    again = open_log(on, SMALL, recovery_point=19)
    assert aborted_of(again) == ABORTED_IN_FILLED
    assert parse_aborted_transactions(on.storage.read(first.aborted.path)) == list(first.aborted)


def test_a_truncation_opens_a_transaction_again():
    """Without its marker it is undecided, and its entry is gone from the index and its file."""
    on = bench()
    log = filled(on, config=LogConfig())
    log.truncate_to(18)
    assert aborted_of(log) == ABORTED_IN_FILLED[:2] == parse_aborted_transactions(on.storage.read(TXNINDEX))
    assert log.producers.transactions.open == {0: 9, 16: 1}
    log.truncate_to(0)
    assert aborted_of(log) == [] == parse_aborted_transactions(on.storage.read(TXNINDEX))
    assert log.last_stable_offset(0) == 0


def test_the_file_goes_with_its_segment():
    """Retention renames it with the others; a log that starts over has none."""
    on = bench()
    log = filled(on)
    log.advance_log_start_offset(13)
    names = [name for name in on.storage.listdir(DIRECTORY) if ".txnindex" in name]
    assert {name.endswith(".deleted") for name in names} == {False, True}
    assert {int(name[:20]) in log.segment_base_offsets for name in names if name.endswith(".deleted")} == {False}
    assert aborted_of(log) == ABORTED_IN_FILLED[1:]
    log.truncate_fully_and_start_at(40)
    assert [name for name in on.storage.listdir(DIRECTORY) if name.endswith(".txnindex")] == []
    assert log.last_stable_offset(40) == 40


def test_a_compaction_keeps_the_aborted_transactions():
    """The segments that it joins have one index together."""
    on = bench()
    log = filled(on, config=LogConfig(segment_bytes=400, cleanup_policy=frozenset({"compact"})))
    log.update_config(LogConfig(cleanup_policy=frozenset({"compact"})))
    end(log, 9, COMMIT)
    log.roll("asked for")
    log.flush()
    what = log.cleanable(log.log_end_offset, NOW_MS)
    assert what is not None
    cleaning = log.begin_cleaning(what, 1000, NOW_MS)
    cleaning.run()
    assert log.finish_cleaning(cleaning)
    assert len(log.segment_base_offsets) == 2 and aborted_of(log) == ABORTED_IN_FILLED
    assert parse_aborted_transactions(on.storage.read(TXNINDEX)) == ABORTED_IN_FILLED


def test_an_open_transaction_is_not_compacted():
    """What can be compacted ends at the last stable offset."""
    log = filled(bench(), config=LogConfig(segment_bytes=400, cleanup_policy=frozenset({"compact"})))
    log.flush()
    assert log.cleanable(log.log_end_offset, NOW_MS) is None


def test_a_producer_stays_while_its_transaction_is_open():
    """Neither age nor a lack of room takes it."""
    producers = ProducerStates()
    producers.update(make_header(producer_id=1, attributes=TRANSACTIONAL_BIT), 0)
    producers.update(make_header(producer_id=2), 1)
    producers.expire(NOW_MS + 100, 0, 100)
    assert producers.expire(NOW_MS + 100, 100, 100) == 1 and producers.get(1) is not None
    producers.has_room(1, 10, 0)
    assert not producers.has_room(1, 10, 300_000)
    assert producers.get(1) is not None


ENTRY = ProducerEntry(1000, 5, (BatchMetadata(7, 8, 100, 101, 9),), True, 9, False, 3, 90)


def test_snapshots_have_the_open_transaction():
    """Kafka's fields for coordinator epoch and first offset; the histories have them too, from version 2 on."""
    (found,) = parse_snapshot(snapshot_bytes([ENTRY]))
    assert found == ENTRY._replace(complete=False)
    assert snapshot_bytes([ENTRY])[-12:].hex() == "00000003" + "000000000000005a"
    assert parse_histories(histories_bytes(4, [ENTRY])) == (4, [ENTRY])


def test_histories_from_before_transactions_are_read():
    """Version 1, which lacks both numbers of transactions, is still read."""
    body = struct.pack(">ii5q", 4, 1, 7, 1, 1, 11, 0)
    data = struct.pack(">hI", 1, crc32c(body)) + body
    assert parse_histories(data) == (4, [ProducerEntry(7, 1, (), True, 11)])


def test_the_name_of_a_new_index_is_flushed():
    """The names in the directory were synced before there was an index; a power loss must not take its name."""
    on = bench()
    log = open_log(on)
    write(log, 1, 0)
    log.flush()
    end(log, 1, ABORT)
    log.flush()
    on.storage.power_loss()
    assert on.storage.exists(TXNINDEX)


def test_a_truncation_forgets_the_decisions_that_it_cuts():
    """The producers go back to a mark below the cut; markers above the mark are told again by the log alone."""
    log = open_log(bench())
    append(log)
    log.roll("asked for")
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 1, COMMIT)
    end(log, 2, COMMIT)
    log.truncate_to(3)
    assert [*log.producers.transactions.unreplicated] == []
    end(log, 1, COMMIT)
    assert [*log.producers.transactions.unreplicated] == [(1, 3)]


def test_a_coordinator_is_refused_where_there_is_no_room():
    """Another producer's offsets are, with the error of a client's batch; a marker must be written anyway."""
    log = open_log(bench(), LogConfig(max_producers=1))
    write(log, 1, 0)
    offsets = make_batch(producer_id=2, producer_epoch=0, attributes=TRANSACTIONAL_BIT)
    code = code_of(lambda: log.append_as_coordinator(offsets, 0))
    assert code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert end(log, 3, COMMIT) == 1
    assert end(log, 1, COMMIT) == 2


def test_markers_of_unknown_producers_leave_little_in_memory():
    """They are written, also where there is no room, and copied; half of the room is for producers that write."""
    config = LogConfig(max_producers=4)
    log, copy = open_log(bench(), config), open_log(bench(), config)
    for producer in range(10):
        assert end(log, producer, ABORT) == producer
    copy.append_as_follower(memoryview(bytes(log._local.segments.active.file.pread(10_000, 0))))
    for each in (log, copy):
        assert (each.log_end_offset, len(each.producers)) == (10, 2)
        assert each.last_stable_offset(10) == 10
    write(log, 20, 0)
    assert end(log, 20, COMMIT, producer_epoch=0) == 11
    assert log.producers.get(20) is not None
