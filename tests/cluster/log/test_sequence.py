"""The sequence check (docs/producer-state.md) by its rules, one by one, and on the circle of 2^31 sequences."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cluster.log.producers import ProducerStates
from cluster.log.sequence import (
    HALF,
    SEQUENCES,
    BatchMetadata,
    ProducerEntry,
    SequenceVerdict,
    VerdictKind,
    check_sequence,
    is_below_window,
)
from cluster.protocol.batch import increment_sequence
from cluster.protocol.errors import ErrorCode
from tests.cluster.log.builders import make_header

LAST = SEQUENCES - 1
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def entry_of(*batches: tuple[int, int], epoch: int = 0, complete: bool = True, wrapped: bool = False) -> ProducerEntry:
    """An entry whose batches are (base sequence, count), at offsets from 100 on."""
    offset = 100
    known = []
    for base, count in batches:
        known.append(BatchMetadata(base, (base + count - 1) % SEQUENCES, offset, offset + count - 1, 5))
        offset += count
    return ProducerEntry(7, epoch, tuple(known), complete, 5, wrapped)


def check(
    entry: ProducerEntry | None,
    base_sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    log_start: int = 0,
    unknown: str = "gapless",
) -> SequenceVerdict:
    header = make_header(producer_epoch=epoch, base_sequence=base_sequence, count=count)
    return check_sequence(entry, header, log_start, unknown)


@pytest.mark.parametrize(
    ("unknown", "base_sequence", "log_start", "expected"),
    [
        ("gapless", 0, 0, ErrorCode.NONE),
        ("gapless", 5, 0, OUT_OF_ORDER),
        ("gapless", 0, 9, ErrorCode.NONE),
        ("gapless", 5, 9, ErrorCode.NONE),
        ("kafka", 0, 0, ErrorCode.NONE),
        ("kafka", 5, 0, ErrorCode.NONE),
        ("seed", 0, 9, ErrorCode.NONE),
        ("seed", 5, 0, ErrorCode.UNKNOWN_PRODUCER_ID),
        ("seed", 5, 9, ErrorCode.UNKNOWN_PRODUCER_ID),
    ],
)
def test_unknown_producer(unknown, base_sequence, log_start, expected):
    """Without an entry only sequence 0 is accepted while the log starts at 0; Kafka's rules are settings (KIP-360)."""
    verdict = check(None, base_sequence, log_start=log_start, unknown=unknown)
    assert verdict.error_code == expected
    assert (verdict.kind is VerdictKind.ACCEPT) == (expected == ErrorCode.NONE)


def test_lower_epoch_is_fenced():
    """A lower epoch is INVALID_PRODUCER_EPOCH, whatever its sequence."""
    entry = entry_of((0, 5), epoch=3)
    for base in (0, 5, 9):
        assert check(entry, base, epoch=2).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_higher_epoch_begins_with_zero():
    """A higher epoch must start at sequence 0, else OUT_OF_ORDER_SEQUENCE_NUMBER."""
    entry = entry_of((0, 5), epoch=3)
    assert check(entry, 0, epoch=4).kind is VerdictKind.ACCEPT
    assert check(entry, 5, epoch=4).error_code == OUT_OF_ORDER


def test_epoch_bumped_by_a_marker_expects_zero():
    """An entry without batches in its epoch expects sequence 0."""
    entry = entry_of(epoch=4)
    assert check(entry, 0, epoch=4).kind is VerdictKind.ACCEPT
    assert check(entry, 5, epoch=4).error_code == OUT_OF_ORDER


def test_each_of_the_last_five_is_a_duplicate_with_its_offsets():
    """A batch equal to a cached one is answered with the original's offsets, once those are committed."""
    entry = entry_of((0, 2), (2, 3), (5, 1), (6, 4), (10, 2))
    for batch in entry.batches:
        verdict = check(entry, batch.base_sequence, batch.last_sequence - batch.base_sequence + 1)
        assert verdict.kind is VerdictKind.DUPLICATE
        assert verdict.batch is batch
        assert verdict.must_commit_offset == batch.last_offset
    assert check(entry, 12).kind is VerdictKind.ACCEPT


@pytest.mark.parametrize(
    ("base", "count"), [(13, 1), (40, 1), (12, 1), (3, 2), (2, 2), (4, 3), (2, 10), (9, 3), (1, 3)]
)
def test_what_is_neither_next_nor_equal_is_out_of_order(base, count):
    """Above the next sequence, or overlapping a cached batch without being equal: OUT_OF_ORDER_SEQUENCE_NUMBER."""
    entry = entry_of((2, 3), (5, 5))
    if (base, count) == (12, 1):
        entry = entry_of((2, 3), (5, 5), (10, 1))
    assert check(entry, base, count).error_code == OUT_OF_ORDER


def test_below_the_window_is_a_duplicate_only_with_a_complete_history():
    """Wholly below the cached batches: a duplicate if the history has no hole from sequence 0, else out of order."""
    window = [(10, 2), (12, 3), (15, 1), (16, 4), (20, 2)]
    below = check(entry_of(*window), 8, 2)
    assert below.kind is VerdictKind.DUPLICATE_BELOW_WINDOW
    assert below.must_commit_offset == 99  # all that is older lies before the first cached batch, at 100
    assert check(entry_of(*window), 0).kind is VerdictKind.DUPLICATE_BELOW_WINDOW
    assert check(entry_of(*window, complete=False), 8, 2).error_code == OUT_OF_ORDER


@pytest.mark.parametrize("setting", ["kafka", "seed"])
def test_kafka_does_not_tell_old_from_new(setting):
    """Under its own rules what is older than the last five batches is out of order, however complete the history."""
    entry = entry_of((10, 2), (12, 3))
    verdict = check_sequence(entry, make_header(base_sequence=0), 0, setting)
    assert verdict.error_code == OUT_OF_ORDER
    assert check_sequence(entry, make_header(base_sequence=0), 0, "gapless").kind is VerdictKind.DUPLICATE_BELOW_WINDOW


def test_a_batch_that_begins_below_and_reaches_the_window_is_no_duplicate():
    """A partial overlap with the first cached batch is out of order."""
    assert check(entry_of((10, 2), (12, 3)), 9, 2).error_code == OUT_OF_ORDER


def test_wrap_follows_the_reference_vectors():
    """next(INT32_MAX) = 0 and inc(MAX-1, 4) = 2 (Kafka's ProducerAppendInfo)."""
    assert increment_sequence(LAST, 1) == 0
    assert increment_sequence(LAST - 1, 4) == 2
    entry = entry_of((LAST - 5, 6))
    assert check(entry, 0, 3).kind is VerdictKind.ACCEPT
    straddling = entry_of((LAST - 1, 5), wrapped=True)
    assert straddling.last_sequence == 2
    assert check(straddling, 3).kind is VerdictKind.ACCEPT
    assert check(straddling, LAST - 1, 5).kind is VerdictKind.DUPLICATE


def test_below_before_the_wrap_is_numerical():
    """Until the sequence wraps exactly 0 .. last were used: no number above is called a duplicate."""
    assert is_below_window(entry_of((10, 10)), 0, 10)
    assert not is_below_window(entry_of((10, 10)), LAST - 3, 2)  # "behind" on the circle, and never appended
    assert not is_below_window(entry_of((10, 10)), HALF + 30, 1)


def test_a_batch_that_went_round_and_came_first_is_no_duplicate():
    """Close to the end of the circle, of two batches in flight the second begins again at 0 and may arrive alone."""
    entry = entry_of((LAST - 30, 10), (LAST - 20, 10))
    lost = (LAST - 10, 11)
    assert check(entry, 0, 5).error_code == OUT_OF_ORDER
    assert check(entry, *lost).kind is VerdictKind.ACCEPT


def test_below_after_the_wrap_is_the_nearer_side():
    """Once wrapped, up to 2^30 before the next sequence is below; just ahead is not, though it was used before."""
    entry = entry_of((2, 10), wrapped=True)
    assert is_below_window(entry, 0, 2)
    assert is_below_window(entry, LAST, 1)
    assert is_below_window(entry, LAST, 3)
    assert not is_below_window(entry, LAST, 4)  # reaches sequence 2
    assert is_below_window(entry, (12 - HALF) % SEQUENCES, 1)
    assert not is_below_window(entry, (12 - HALF - 1) % SEQUENCES, 1)
    assert not is_below_window(entry, 13, 1)
    assert check(entry, 13).error_code == OUT_OF_ORDER


COUNTS = st.one_of(st.integers(1, 5), st.integers(2**26, 2**29))


@given(
    counts=st.lists(COUNTS, min_size=1, max_size=20),
    place=st.floats(0, 1.2),
    count=COUNTS,
    exact=st.booleans(),
)
def test_against_absolute_positions(counts, place, count, exact):
    """The oracle counts records without ever wrapping. What is next is accepted, a cached batch is recognized, what is
    appended and older is too (up to 2^30 back), and nothing up to 2^30 ahead is called a duplicate."""
    producers = ProducerStates()
    starts = []
    total = 0
    for size in counts:
        starts.append(total)
        header = make_header(base_sequence=total % SEQUENCES, count=size)
        entry = producers.get(7)
        assert check_sequence(entry, header, 0, "gapless").kind is VerdictKind.ACCEPT
        producers.update(header, 1000 + total)
        total += size
    entry = producers.get(7)
    assert entry is not None and entry.complete
    window = list(zip(starts, counts, strict=True))[-5:]
    if exact:  # a retry of a whole batch
        number = min(int(place * len(counts)), len(counts) - 1)
        start, count = starts[number], counts[number]
    else:
        start = min(int(place * total), total + HALF - 1)
    assume(start > total - HALF * 3 // 2 or total <= SEQUENCES)  # else it is nearer from the other side
    verdict = check_sequence(entry, make_header(base_sequence=start % SEQUENCES, count=count), 0, "gapless")
    if (start, count) in window:
        assert verdict.kind is VerdictKind.DUPLICATE
        assert verdict.batch is not None and verdict.batch.base_offset == 1000 + start
    elif start == total:
        assert verdict.kind is VerdictKind.ACCEPT
    elif start + count <= window[0][0] and total - start <= HALF:
        assert verdict.kind is VerdictKind.DUPLICATE_BELOW_WINDOW
        assert verdict.must_commit_offset == 1000 + window[0][0] - 1
    else:
        assert verdict.error_code == OUT_OF_ORDER
