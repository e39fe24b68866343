"""Spans say exactly what the single records said, in order, in as few rows as the rules allow."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from loadgen.spans import (
    Delivery,
    OffsetTrust,
    ReadRecord,
    coalesce_deliveries,
    coalesce_records,
    ranges,
)
from verifier.evidence.sequenced_value import encode

RUN = 77


class TrustEverything(OffsetTrust):
    """Offsets as given, so that coalescing is tested by itself."""

    def judge(self, sequence: int, offset: int) -> int:
        return offset if offset >= 0 else -1


@st.composite
def deliveries(draw: st.DrawFn) -> list[Delivery]:
    """Reports that mostly go up by one, with jumps, unknown offsets and errors among them."""
    made = []
    sequence, offset = 0, draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 30))):
        sequence += draw(st.sampled_from([1, 1, 1, 1, 2, -3]))
        offset += draw(st.sampled_from([1, 1, 1, 1, 4]))
        known = draw(st.sampled_from([True, True, True, False]))
        error = draw(st.sampled_from([None, None, None, "A", "B"]))
        made.append(Delivery(sequence, draw(st.integers(0, 9)), offset if known else -1, error))
    return made


@given(deliveries())
def test_spans_of_deliveries_equal_the_single_records(reports: list[Delivery]) -> None:
    """Expanded, the spans are the reports, in order; and no two neighbors could have been one span."""
    spans = list(coalesce_deliveries(reports, TrustEverything()))
    expanded = [
        Delivery(
            span.first_sequence + i,
            span.intended_ns[i],
            -1 if span.first_offset < 0 else span.first_offset + i,
            span.error,
        )
        for span in spans
        for i in range(span.records)
    ]
    assert expanded == [each if each.error is None else each._replace(offset=-1) for each in reports]
    for one, next_one in itertools.pairwise(spans):
        follows = next_one.first_sequence == one.last_sequence + 1 and next_one.error == one.error
        offsets_follow = next_one.first_offset == (-1 if one.first_offset < 0 else one.last_offset + 1)
        assert not (follows and offsets_follow)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 3), st.data())
def test_offsets_counted_up_from_an_unknown_base_are_unknown(sizes: list[int], start: int, data: st.DataObject) -> None:
    """A batch answered without a base offset is numbered -1, 0, 1 ... by librdkafka: none of these is believed.

    The other batches are, unless one happens to continue such a numbering, which may cost its offsets, never
    invents one.
    """
    trust = OffsetTrust()
    sequence, offset = 0, start
    chain_end: int | None = None
    for size in sizes:
        unknown = data.draw(st.booleans())
        base = data.draw(st.sampled_from([-1, -1001])) if unknown else offset
        judged = [trust.judge(sequence + i, base + i) for i in range(size)]
        if unknown or (chain_end is not None and base == chain_end):
            assert judged == [-1] * size
            chain_end = base + size
        else:
            assert judged == [base + i for i in range(size)]
            chain_end = None
        sequence += size
        offset += size + data.draw(st.integers(0, 2))


def test_a_very_long_unacknowledged_batch() -> None:
    """acks=0: 1500 records numbered from -1001 on reach real-looking offsets; all stay unknown."""
    trust = OffsetTrust()
    assert {trust.judge(i, i - 1001) for i in range(1500)} == {-1}
    assert OffsetTrust(acknowledged=False).judge(0, 5) == -1


@given(st.sets(st.integers(0, 60)))
def test_ranges(sequences: set[int]) -> None:
    """Closed ranges that hold each sequence once and do not touch."""
    found = list(ranges(sorted(sequences)))
    assert [each for first, last in found for each in range(first, last + 1)] == sorted(sequences)
    assert all(later[0] > earlier[1] + 1 for earlier, later in itertools.pairwise(found))


@st.composite
def read_records(draw: st.DrawFn) -> list[ReadRecord]:
    """Records as a consumer hands them out: streams, jumps, foreign runs, damage and nulls."""
    records = []
    sequences = {0: 0, 1: 0}
    offsets = {0: 0, 1: 0}
    for _ in range(draw(st.integers(0, 30))):
        partition = draw(st.sampled_from([0, 0, 0, 1]))
        stream = draw(st.sampled_from([0, 0, 0, 1]))
        sequences[stream] += draw(st.sampled_from([1, 1, 1, 1, 2, -1]))
        offsets[partition] += draw(st.sampled_from([1, 1, 1, 1, 3]))
        sequence = max(0, sequences[stream])
        value: bytes | None = encode(RUN, stream, sequence, sequence)
        kind = draw(st.sampled_from(["ours"] * 5 + ["foreign", "damaged", "other", "null"]))
        if kind == "foreign":
            value = encode(RUN + 1, stream, sequence, 0)
        elif kind == "damaged":
            value = encode(RUN, stream, sequence, 0)[:-1] + b"?"
        elif kind == "other":
            value = b"something"
        elif kind == "null":
            value = None
        records.append(ReadRecord(partition, offsets[partition], value))
    return records


def one_by_one(record: ReadRecord) -> tuple[int, int, int, int, str | None]:
    """The obvious model: what one record says by itself."""
    rows = coalesce_records([record], topic="t", run_id=RUN, invoke_ns=1, complete_ns=2, session=3).rows
    (row,) = rows
    assert row.first_offset == row.last_offset == record.offset and row.first_sequence == row.last_sequence
    return record.partition, row.stream, row.first_sequence, record.offset, row.error


@given(read_records())
def test_poll_rows_equal_the_single_records(records: list[ReadRecord]) -> None:
    """Expanded, the rows of a poll are its records in the order of delivery; values not of this run are told apart."""
    polled = coalesce_records(records, topic="t", run_id=RUN, invoke_ns=1, complete_ns=2, session=3)
    expanded = []
    for row in polled.rows:
        assert row.f == "poll" and row.type == "ok" and row.topic == "t" and row.session == 3
        assert (row.invoke_ns, row.complete_ns) == (1, 2)
        for i in range(row.last_offset - row.first_offset + 1):
            sequence = -1 if row.stream < 0 else row.first_sequence + i
            expanded.append((row.partition, row.stream, sequence, row.first_offset + i, row.error))
        if row.stream >= 0:
            assert row.last_sequence - row.first_sequence == row.last_offset - row.first_offset
    assert expanded == [one_by_one(record) for record in records]
    assert len(polled.send_times_ns) == sum(error is None for *_, error in expanded)


def test_what_is_no_value_of_this_run_says_why() -> None:
    """A null, another text, a damaged value and another run's value are four different errors."""
    values = [None, b"x", encode(RUN, 1, 2, 3)[:-1] + b"?", encode(RUN + 1, 1, 2, 3)]
    errors = [one_by_one(ReadRecord(0, 0, value))[-1] for value in values]
    assert errors == [
        "undecodable: null value",
        "undecodable: not a sequenced value",
        "undecodable: damaged",
        f"foreign: run {RUN + 1}",
    ]
