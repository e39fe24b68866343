"""ProducerBatch: the bytes others write for the same records, limits, sequences, and division."""

from __future__ import annotations

import dis
import itertools
import sys
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.delivery import ProducerClosed, RecordMetadata
from cluster.client.producer.encoding import size_upper_bound
from cluster.protocol.batch import CODEC_NONE, HEADER_BYTES, INT32_MAX, LEADER_EPOCH_AT, crc_ok, parse_header
from cluster.protocol.compression import CODEC_NAMES
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.protocol.strategies import SOME_BYTES, TEXT
from tests.cluster.protocol.vectors import TRANSACTIONAL

CODECS = st.sampled_from(sorted(CODEC_NAMES))
HEADERS = st.just(()) | st.lists(st.tuples(TEXT, st.none() | SOME_BYTES), max_size=2).map(tuple)
#: Below and above every table's end, and where varints become longer.
VALUES = st.none() | SOME_BYTES | st.sampled_from([b"", b"v" * 63, b"v" * 64, b"v" * 4095, b"v" * 4096, b"v" * 9000])
RECORDS = st.lists(
    st.builds(
        NewRecord,
        # Mostly one millisecond, as in a busy program: that is another way through the code.
        timestamp=st.just(1_700_000_000_000) | st.integers(0, 1 << 42),
        key=st.none() | SOME_BYTES,
        value=VALUES,
        headers=HEADERS,
    ),
    min_size=1,
    max_size=12,
)
STATES = st.tuples(st.integers(0, 1 << 40), st.integers(0, 32767), st.integers(0, INT32_MAX), st.booleans())


def batch_of(records, limit_bytes=1 << 20, codec=CODEC_NONE, **settings):
    batch = ProducerBatch("t", 3, limit_bytes, codec, 1000, **settings)
    return batch, [batch.try_append(*record, None) for record in records]


#: What a program sends: some of a kind, then some of another, in one millisecond or the next.
RUNS = st.lists(
    st.tuples(
        st.integers(1, 80),
        st.sampled_from([0, 0, 0, 1, -1]),
        st.sampled_from([None, b"k", b"key", b"k" * 64]),
        st.sampled_from([None, b"", b"v" * 5, b"v" * 63, b"w" * 100]),
        st.sampled_from([(), (), (), (("h", b"x"),)]),
    ),
    min_size=1,
    max_size=6,
)


def build_with_kafka_python(records, producer_id, epoch, sequence, transactional):
    builder = DefaultRecordBatchBuilder(2, CODEC_NONE, transactional, producer_id, epoch, sequence, 1 << 20)
    for index, record in enumerate(records):
        builder.append(index, *record)
    built = builder.build()
    # It leaves the leader's epoch at 0; Kafka's own producer says that it does not know.
    built[LEADER_EPOCH_AT : LEADER_EPOCH_AT + 4] = b"\xff" * 4
    return bytes(built)


@given(RUNS)
def test_runs_of_records_that_are_alike(runs):
    """Records of the same millisecond and sizes, which go the short way, are packed as those between them are."""
    records, timestamp_ms = [], 1_700_000_000_000
    for count, step_ms, key, value, headers in runs:
        timestamp_ms += step_ms
        for index in range(count):
            digit = b"%d" % (index % 10)
            own_key = key and key[:-1] + digit
            records.append(NewRecord(timestamp_ms, own_key, value and value[:-1] + digit, headers))
    batch, futures = batch_of(records)
    assert [(future[1], future[2]) for future in futures] == [
        (index, record.timestamp) for index, record in enumerate(records)
    ]
    sizes = [tuple(-1 if each is None else len(each) for each in (record.key, record.value)) for record in records]
    assert [future[3:5] for future in futures] == sizes
    expected_bytes, taken = batch.record_bytes, batch.record_count
    batch.set_producer_state(5, 1, 0, False)
    built = batch.build()
    assert built == build_with_kafka_python(records, 5, 1, 0, False)
    assert (taken, expected_bytes) == (len(records), len(built) - HEADER_BYTES)


@given(st.integers(0, 300), st.integers(1, 120), st.none() | st.just(b"k"))
def test_a_run_takes_as_many_as_records_one_by_one(limit_bytes, value_bytes, key):
    """The short way stops where the long one does: at the last record that fits into batch.size."""
    limit_bytes += HEADER_BYTES
    run = ProducerBatch("t", 0, limit_bytes, CODEC_NONE, 0)
    single = ProducerBatch("t", 0, limit_bytes, CODEC_NONE, 0)
    while run.try_append(7, key, bytes(value_bytes), (), None) is not None:
        assert single.try_append(7, key, bytearray(value_bytes), (), None) is not None
    assert single.try_append(7, key, bytearray(value_bytes), (), None) is None
    assert run.build() == single.build()


class Interrupt:
    """A signal at the nth point at which Python looks for one in the producer's code: after a call, or at its begin."""

    def __init__(self, nth):
        self.left, self.came = nth, False

    def __call__(self, frame, event, _argument):
        if not frame.f_code.co_filename.endswith(("packed_records.py", "batch.py")):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in after_calls(frame.f_code):
            self.left -= 1
            if self.left < 0 and not self.came:
                self.came = True
                raise KeyboardInterrupt
        return self


@lru_cache
def after_calls(code):
    """Where Python has just called something, or begun."""
    instructions = list(dis.get_instructions(code))
    return {
        after.offset
        for before, after in itertools.pairwise(instructions)
        if before.opname.startswith(("CALL", "RESUME"))
    }


KINDS_OF_RECORDS = {
    "alike": (7, b"k", b"value", ()),
    "of another size": (7, b"k", b"longer value", ()),
    "without a key": (7, None, b"value", ()),
    "of another time": (9, b"k", b"value", ()),
    "with a header": (7, b"k", b"value", (("h", b"x"),)),
}


@pytest.mark.parametrize("kind", KINDS_OF_RECORDS)
def test_an_interrupt_takes_a_record_whole_or_not_at_all(kind):
    """Ctrl-C in an append, wherever it is seen: the batch is sent all the same, and what it holds is what it counts."""
    alike, other = NewRecord(*KINDS_OF_RECORDS["alike"]), NewRecord(*KINDS_OF_RECORDS[kind])
    nth = 0
    while True:
        batch, _futures = batch_of([alike] * 4)
        interrupt, earlier = Interrupt(nth), sys.gettrace()
        sys.settrace(interrupt)
        try:
            batch.try_append(*other, None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(earlier)
        if not interrupt.came:
            break
        batch.try_append(*alike, None)
        expected = [alike] * 4 + [other] * (batch.record_count - 5) + [alike]
        assert 5 <= batch.record_count <= 6
        size = batch.record_bytes
        batch.set_producer_state(5, 1, 0, False)
        built = batch.build()
        decoded = decode_records(built)
        assert [NewRecord(*record[1:]) for record in decoded] == expected
        assert [record[0] for record in decoded] == list(range(batch.record_count))
        assert size == len(built) - HEADER_BYTES
        nth += 1
    assert nth > 2


@given(RECORDS, STATES)
def test_the_bytes_are_those_of_kafka_python(records, state):
    """An independent producer packs the same records, in the same sequence, to the same bytes."""
    batch, _futures = batch_of(records)
    batch.set_producer_state(*state)
    assert batch.build() == build_with_kafka_python(records, *state)


@given(RECORDS, STATES, CODECS)
def test_the_bytes_are_those_of_the_cold_path(records, state, codec):
    """In every codec a batch is, byte for byte, what cluster.protocol.records builds."""
    batch, _futures = batch_of(records, codec=codec)
    batch.set_producer_state(*state)
    names = ("producer_id", "producer_epoch", "base_sequence", "transactional")
    assert batch.build() == build_batch(records, codec=codec, **dict(zip(names, state, strict=True)))


def test_the_bytes_of_a_long_batch():
    """Offsets beyond the table of varints are packed as well."""
    records = [NewRecord(7, None if index % 2 else b"k", b"v") for index in range(8300)]
    batch, _futures = batch_of(records)
    assert batch.record_count == 8300
    assert batch.build() == build_batch(records)


def test_the_bytes_of_kafka():
    """A transactional batch that Apache Kafka wrote."""
    batch, _futures = batch_of(
        [
            NewRecord(1_700_000_000_000, b"k", b"v1"),
            NewRecord(1_700_000_000_001, None, b"v2", (("h", b"x"), ("n", None))),
        ]
    )
    batch.set_producer_state(1000, 5, 7, transactional=True)
    assert batch.build() == TRANSACTIONAL


@given(RECORDS, STATES, STATES, CODECS)
def test_another_producer_state_makes_a_new_header_alone(records, first, second, codec):
    """After an epoch bump the records are the same bytes, and the checksum holds."""
    batch, _futures = batch_of(records, codec=codec)
    batch.set_producer_state(*first)
    before = batch.build()
    assert batch.build() is before
    batch.reset_producer_state(*second[:3])
    after = batch.build()
    assert after[61:] == before[61:] and crc_ok(after, 0, len(after))
    header = parse_header(after)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == second[:3]
    assert header.is_transactional == first[3] and batch.last_sequence == header.last_sequence


def test_a_sequence_is_given_once():
    """A batch that has a sequence keeps it: the broker may have written it under that one."""
    batch, _futures = batch_of([NewRecord(1), NewRecord(2), NewRecord(3)])
    assert (batch.has_sequence, batch.last_sequence) == (False, -1)
    batch.set_producer_state(4, 0, INT32_MAX)
    assert (batch.has_sequence, batch.last_sequence) == (True, 1)
    with pytest.raises(RuntimeError, match="has a sequence"):
        batch.set_producer_state(4, 0, 7)


@given(RECORDS, st.integers(0, 4000))
def test_limits(records, limit_bytes):
    """Uncompressed, a record fits exactly if the bytes do; the first always fits; the estimate is what is built."""
    batch, futures = batch_of(records, limit_bytes)
    limit = max(limit_bytes, size_upper_bound(*records[0][1:]))
    assert batch.memory_bytes == limit
    taken = [record for record, future in zip(records, futures, strict=True) if future is not None]
    assert futures[0] is not None
    assert batch.size_bytes == len(build_batch(taken)) <= limit
    for index, future in enumerate(futures):
        if future is None:
            accepted = [record for record, each in zip(records[:index], futures, strict=False) if each is not None]
            assert len(build_batch([*accepted, records[index]])) > limit
    assert batch.build() == build_batch(taken)


@pytest.mark.parametrize(("codec", "fitting"), [(CODEC_NONE, 61 + 1000), (4, 61 + 945 + 100)])
def test_the_last_byte(codec, fitting):
    """Ten equal records fit into just their bytes; at the ratio 1.0, nine compressed ones count a twentieth more."""
    for limit_bytes, count in ((fitting, 10), (fitting - 1, 9)):
        batch, _futures = batch_of([NewRecord(5, None, b"v" * 91)] * 11, limit_bytes, codec)
        assert batch.record_count == count


def test_the_upper_bound():
    """What a record is counted as against max.request.size and buffer.memory is Kafka's figure."""
    assert size_upper_bound(b"k" * 10, b"v" * 100, ()) == 196
    for limit_bytes in range(150, 250):
        batch, _futures = batch_of([NewRecord(1, b"k" * 10, b"v" * 100)], limit_bytes)
        assert batch.memory_bytes == max(limit_bytes, 196)


def test_a_compressed_batch_is_estimated():
    """By the ratio of earlier batches more is taken than fits uncompressed; the real ratio is known afterwards."""
    records = [NewRecord(5, None, b"v" * 500) for _ in range(100)]
    plain, _futures = batch_of(records, 10_000)
    packed, _futures = batch_of(records, 10_000, codec=4, estimated_ratio=0.2)
    doubted, _futures = batch_of(records, 10_000, codec=4)
    assert plain.record_count == 19 and doubted.record_count == 18 and 80 < packed.record_count < 100
    assert packed.size_bytes <= 10_000
    assert packed.size_bytes != len(packed.build()) == packed.size_bytes
    assert packed.compression_ratio == (packed.size_bytes - 61) / packed.record_bytes < 0.2


def test_closed():
    """A closed batch takes nothing, however small, and is full; so does one that was built or has an outcome."""
    finishes = (lambda batch: batch.complete(1), lambda batch: batch.fail(ProducerClosed()))
    for end in (ProducerBatch.close, ProducerBatch.build, *finishes):
        batch, _futures = batch_of([NewRecord(1, None, b"v")])
        assert not batch.is_full
        end(batch)
        assert batch.is_closed and batch.is_full
        assert batch.try_append(1, None, b"v", (), None) is None
        assert len(decode_records(batch.build())) == 1
    with pytest.raises(ValueError, match="without a record"):
        ProducerBatch("t", 0, 100, 0, 0).build()


def test_full():
    """A batch without room for any record is full; batch.size 0 means one record a batch."""
    batch, futures = batch_of([NewRecord(1, None, b"v" * 100), NewRecord(1, None, b"v" * 100)], limit_bytes=0)
    assert futures[1] is None
    batch, _futures = batch_of([NewRecord(1, None, b"v" * 91)] * 3, limit_bytes=61 + 3 * 100)
    assert batch.size_bytes == 61 + 3 * 100 and batch.is_full


def test_only_bytes():
    """What can change later is copied, what is no bytes is refused at once, and leaves the batch as it was."""
    value = bytearray(b"before")
    batch, _futures = batch_of([NewRecord(1, memoryview(b"key"), value), NewRecord(1, bytearray(b"k2"), b"v")])
    value[:] = b"after!"
    for wrong in ({"key": "k", "value": b"v"}, {"key": b"k", "value": 5}):
        with pytest.raises(TypeError, match="serializer"):
            batch.try_append(1, headers=(), on_delivery=None, **wrong)
    assert [(record.key, record.value) for record in decode_records(batch.build())] == [
        (b"key", b"before"),
        (b"k2", b"v"),
    ]


def test_times_and_attempts():
    """A retried batch counts its attempts and waits from the failure on; time does not go back."""
    batch, _futures = batch_of([NewRecord(1)])
    assert (batch.created_ms, batch.last_attempt_ms, batch.attempts) == (1000, 1000, 0)
    assert not batch.is_in_retry and batch.leader_epoch_at_attempt == -1
    batch.reenqueued(2000)
    batch.reenqueued(1500)
    assert (batch.last_attempt_ms, batch.attempts, batch.is_in_retry) == (2000, 2, True)
    assert "attempts 2" in repr(batch)


@given(st.lists(st.binary(max_size=300), min_size=2, max_size=30), CODECS, st.integers(0, 1500), st.booleans())
def test_split(values, codec, limit_bytes, has_sequence):
    """The parts hold the same records in order and sequence, within the limit, and there are at least two."""
    records = [NewRecord(5 + index % 3, None, value) for index, value in enumerate(values)]
    batch, futures = batch_of(records, codec=codec)
    held = batch.memory_bytes
    if has_sequence:
        batch.set_producer_state(9, 2, INT32_MAX - 1)
    parts = batch.split(limit_bytes)
    assert len(parts) >= 2
    assert sum(part.memory_bytes for part in parts) == held and batch.memory_bytes == 0
    found = []
    for part in parts:
        assert part.is_closed and part.created_ms == batch.created_ms and part.attempts == 0
        if has_sequence:
            expected = INT32_MAX - 1 + len(found)
            assert part.base_sequence == (expected if expected <= INT32_MAX else expected - INT32_MAX - 1)
        assert (part.producer_id, part.has_sequence) == ((9, True) if has_sequence else (-1, False))
        first = size_upper_bound(*decode_records(part.build())[0][2:])
        if codec == CODEC_NONE:
            assert len(part.build()) <= max(limit_bytes, first)
        found += [(record.timestamp, record.value) for record in decode_records(part.build())]
    assert found == [(record.timestamp, record.value) for record in records]
    offset = 100
    for part in parts:
        assert part.complete(offset)
        offset += part.record_count
    assert [future.result(0).offset for future in futures] == list(range(100, 100 + len(records)))


def test_a_batch_that_would_fit_is_split_nevertheless():
    """A broker may take less than batch.size: splitting comes to an end, at single records."""
    batch, _futures = batch_of([NewRecord(1, None, b"v" * 900), NewRecord(1), NewRecord(1)])
    first, second = batch.split(1 << 20)
    assert (first.record_count, second.record_count) == (2, 1)
    assert [part.record_count for part in first.split(1 << 20)] == [1, 1]
    with pytest.raises(RuntimeError, match="cannot be split"):
        second.split(1)


def test_split_moves_callbacks():
    """Callbacks and who waits go along with their records; the whole batch has no outcome of its own any more."""
    told = []
    batch = ProducerBatch("t", 3, 1 << 20, CODEC_NONE, 0)
    futures = [
        batch.try_append(5, None, b"v", (), lambda error, metadata: told.append((metadata.offset, error)))
        for _ in range(4)
    ]
    futures[3].add_done_callback(lambda future: told.append(future))
    first, second = batch.split(1 << 20)
    error = ProducerClosed()
    assert not batch.complete(5) and not batch.fail(error)
    with pytest.raises(RuntimeError, match="has an outcome"):
        batch.split(1)
    assert not batch.is_done and not batch.wait_until_done(0)
    assert second.complete(7) and not futures[1].done()
    assert told == [(7, None), (8, None), futures[3]]
    assert first.fail(error)
    assert told[3:] == [(-1, error), (-1, error)]
    assert batch.is_done and batch.wait_until_done(0)
    assert futures[3].result(0) == RecordMetadata("t", 3, 8, 5, -1, 1)
