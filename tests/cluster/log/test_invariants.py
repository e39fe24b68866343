"""Each invariant of a log and of its producers, broken by hand."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from cluster.log import invariants, producer_invariants
from cluster.log.aborted_transactions import AbortedTransaction
from cluster.log.config import LogConfig
from cluster.log.epochs import EpochEntry
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.protocol.control_records import ControlRecordType
from tests.cluster.log.builders import NOW_MS, Bench, append, bench, make_marker, open_log, produce
from tests.support.invariants import is_named, raised, stated

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
PRODUCER = 7


def written(on: Bench) -> PartitionLog:
    """[0, 40) in several segments and two leader epochs, half of it a producer's; synced up to 8 and read up to 3."""
    log = open_log(on, CONFIG)
    for number in range(20):
        epoch, timestamp = number // 10, NOW_MS + number
        produce(log, number, leader_epoch=epoch, timestamp=timestamp)
        append(log, leader_epoch=epoch, timestamp=timestamp)
    log.flush(8)
    first = log._local.segments.first
    assert first.read(0, 3 * 68, 40, at_least_one=True) is not None
    assert first._resume
    return log


def validate_all(log: PartitionLog) -> None:
    headers = invariants.validate_whole(log)
    producer_invariants.validate(log.producers, log.log_end_offset)
    producer_invariants.validate_batches(log.producers, headers, log.log_start_offset, holes_allowed=log.holes_allowed)


def local_is(field: str, value: int) -> Callable[[PartitionLog], None]:
    return lambda log: setattr(log._local, field, value)


def cut_the_file(log: PartitionLog) -> None:
    active = log._local.segments.active
    active.file.truncate(active.size_bytes - 1)


def point_behind_the_end(log: PartitionLog) -> None:
    active = log._local.segments.active
    active.offset_index.append(active.next_offset - 1, active.size_bytes)


def index_a_later_time(log: PartitionLog) -> None:
    active = log._local.segments.active
    active.time_index.maybe_append(active.max_timestamp + 1, active.next_offset - 1)


def begin_an_epoch_beyond_the_end(log: PartitionLog) -> None:
    log.epochs._entries.append(EpochEntry(5, log.log_end_offset + 1))
    log.epochs.latest_number = 5


def forget_the_newest_epoch(log: PartitionLog) -> None:
    log.epochs.latest_number = 0


def lose_a_segment(log: PartitionLog) -> None:
    segments = log._local.segments
    del segments._segments[1]
    del segments._bases[1]


def misplace_a_segment(log: PartitionLog) -> None:
    log._local.segments._bases[1] += 1


def write_elsewhere(log: PartitionLog) -> None:
    segments = log._local.segments
    last = segments._segments.pop()
    segments._segments.insert(0, last)


def swap_epochs(log: PartitionLog) -> None:
    log.epochs._entries.insert(0, EpochEntry(0, 30))


def keep_an_epoch_below_the_start(log: PartitionLog) -> None:
    log.log_start_offset = 3


def overwrite_an_offset(log: PartitionLog) -> None:
    """The batch at 1 says that it is at 2."""
    first = log._local.segments.first
    (_, _), (position, header), *_ = first.headers()
    first.file.pwrite((header.base_offset + 1).to_bytes(8, "big"), position)


def end_behind_the_last_batch(log: PartitionLog) -> None:
    first, second = list(log._local.segments)[:2]
    first.next_offset += 1
    second.base_offset += 1
    log._local.segments._bases[1] += 1


def forget_where_an_epoch_began(log: PartitionLog) -> None:
    log.epochs._entries[1] = EpochEntry(1, 21)


def point_beside_a_batch(log: PartitionLog) -> None:
    log._local.segments.first.offset_index._positions[1] += 1


def promise_an_older_time(log: PartitionLog) -> None:
    log._local.segments.first.time_index._timestamps[-1] -= 1


def lose_a_time(log: PartitionLog) -> None:
    index = log._local.segments.first.time_index
    del index._timestamps[0], index._offsets[0]


def lose_the_time_of_the_roll(log: PartitionLog) -> None:
    index = log._local.segments.first.time_index
    del index._timestamps[-1], index._offsets[-1]
    offsets = log._local.segments.first.offset_index
    while len(offsets) and offsets.last_offset > (index.last or (0, -1))[1]:
        del offsets._offsets[-1], offsets._positions[-1]


def forget_the_newest_time(log: PartitionLog) -> None:
    log._local.segments.active.max_timestamp += 1


def remember_another_place(log: PartitionLog) -> None:
    log._local.segments.active._recent_positions[0] += 1


def resume_elsewhere(log: PartitionLog) -> None:
    resume = log._local.segments.first._resume
    resume[next(iter(resume)) + 1] = resume[next(iter(resume))]


def abort_without_a_marker(log: PartitionLog) -> None:
    log._local.note_aborted(log._local.segments.active, AbortedTransaction(PRODUCER, 38, 39, 40))


def lose_the_file_of_aborts(log: PartitionLog) -> None:
    append(log, producer_id=9, producer_epoch=0, base_sequence=0, leader_epoch=1, attributes=0x10)
    log.append_as_coordinator(make_marker(9, ControlRecordType.ABORT), 1)
    log._storage.remove(log._local.segments.active.aborted.path)


LOG_BREAKS: list[tuple[str, Callable[[PartitionLog], None]]] = [
    ("log-bounds", local_is("recovery_point", 41)),
    ("log-bounds", local_is("cleaned_to", 41)),
    ("log-bounds", local_is("log_end_offset", 39)),
    ("log-bounds", lambda log: setattr(log, "log_start_offset", 41)),
    ("log-bounds", lambda log: setattr(log._local.segments.first, "base_offset", 1)),
    ("segment-file", cut_the_file),
    ("index-within", point_behind_the_end),
    ("index-within", index_a_later_time),
    ("epochs-within", begin_an_epoch_beyond_the_end),
    ("epochs-within", forget_the_newest_epoch),
    ("segments-contiguous", lose_a_segment),
    ("segments-contiguous", misplace_a_segment),
    ("epochs-ascend", swap_epochs),
    ("epochs-ascend", keep_an_epoch_below_the_start),
    ("batches-contiguous", overwrite_an_offset),
    ("batches-contiguous", end_behind_the_last_batch),
    ("batches-epochs", forget_where_an_epoch_began),
    ("index-batches", point_beside_a_batch),
    ("index-batches", promise_an_older_time),
    ("index-batches", lose_a_time),
    ("index-batches", lose_the_time_of_the_roll),
    ("newest-timestamp", forget_the_newest_time),
    ("aborted-markers", abort_without_a_marker),
    ("aborted-markers", lose_the_file_of_aborts),
    ("remembered-batches", remember_another_place),
    ("remembered-batches", resume_elsewhere),
]


def entry_is(**fields: object) -> Callable[[PartitionLog], None]:
    def break_it(log: PartitionLog) -> None:
        log.producers.put(entry_of(log)._replace(**fields))

    return break_it


def batch_is(**fields: int) -> Callable[[PartitionLog], None]:
    """The newest that is remembered."""

    def break_it(log: PartitionLog) -> None:
        *older, newest = entry_of(log).batches
        log.producers.put(entry_of(log)._replace(batches=(*older, newest._replace(**fields))))

    return break_it


def entry_of(log: PartitionLog) -> ProducerEntry:
    entry = log.producers.get(PRODUCER)
    assert entry is not None
    return entry


def remember_six(log: PartitionLog) -> None:
    entry = entry_of(log)
    log.producers.put(entry._replace(batches=(BatchMetadata(14, 14, 28, 28, NOW_MS), *entry.batches)))


def file_it_under_another(log: PartitionLog) -> None:
    log.producers.entries[8] = log.producers.entries.pop(PRODUCER)


def swap_batches(log: PartitionLog) -> None:
    entry = entry_of(log)
    log.producers.put(entry._replace(batches=entry.batches[::-1], complete=False))


def lose_one_in_between(log: PartitionLog) -> None:
    first, _, *rest = entry_of(log).batches
    log.producers.put(entry_of(log)._replace(batches=(first, *rest)))


def forget_the_newest(log: PartitionLog) -> None:
    log.producers.put(entry_of(log)._replace(batches=entry_of(log).batches[:-1]))


PRODUCER_BREAKS: list[tuple[str, Callable[[PartitionLog], None]]] = [
    ("producer-window", remember_six),
    ("producer-window", file_it_under_another),
    ("producer-sequences", batch_is(last_sequence=25)),
    ("producer-sequences", lose_one_in_between),
    ("producer-offsets", batch_is(base_offset=40, last_offset=40)),
    ("producer-offsets", swap_batches),
    ("producer-marks", lambda log: log.producers.mark(41)),
    ("producer-transactions", entry_is(txn_first_offset=3)),
    ("producer-transactions", lambda log: log.producers.transactions.begin(PRODUCER, 3)),
    ("producer-transactions", lambda log: log.producers.transactions.end(3, 41)),
    ("producer-batches", entry_is(producer_epoch=1)),
    ("producer-batches", batch_is(base_offset=39, last_offset=39)),
    ("producer-batches", forget_the_newest),
]


@pytest.mark.parametrize(("name", "break_it"), [*LOG_BREAKS, *PRODUCER_BREAKS])
def test_what_is_broken_is_named(name: str, break_it: Callable[[PartitionLog], None]) -> None:
    """One line with the invariant's name and the values."""
    log = written(bench())
    is_named(name, lambda: validate_all(log), lambda: break_it(log))


def test_each_is_stated_checked_and_broken() -> None:
    """In words, in code, and by hand."""
    assert stated(invariants) == raised(invariants) == {name for name, _ in LOG_BREAKS}
    assert stated(producer_invariants) == raised(producer_invariants) == {name for name, _ in PRODUCER_BREAKS}


def test_what_compaction_leaves_is_sound() -> None:
    """Holes between batches and segments are no violation where compaction may have made them."""
    on = bench()
    log = open_log(on, LogConfig(segment_bytes=400, cleanup_policy=("compact",)))
    for number in range(9):
        append(log, timestamp=NOW_MS + number)
    segment = log._local.segments.active
    segment.next_offset = log._local.log_end_offset = 12
    segment._recent_positions = segment._recent_last = array("q")
    validate_all(log)
