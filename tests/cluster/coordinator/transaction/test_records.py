"""Records of ``__transaction_state``: Kafka's bytes, round trips, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.coordinator.transaction.loading import TransactionTable
from cluster.coordinator.transaction.records import (
    CorruptTransactionRecord,
    UnknownKeyVersion,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState, TransitMetadata

S = TransactionState
ID = "aio-e06fd4"
#: As Kafka 3.8.0 wrote them for a producer of aiokafka.
KEY = bytes.fromhex("0000 000a 61696f2d653036666434")
EMPTY = bytes.fromhex("0000 000000000000000d 0000 0000ea60 00 ffffffff 000001a1fd9d1181 ffffffffffffffff")
ONGOING = bytes.fromhex(
    "0000 000000000000000d 0000 0000ea60 01 00000001 000a 61696f2d653036666434 00000001 00000001"
    "000001a1fd9d1184 000001a1fd9d1184"
)
#: The transaction of ONGOING in the layout of version 1: previous producer id 12, and a tag that is not known.
FLEXIBLE = bytes.fromhex(
    "0001 000000000000000d 0000 0000ea60 01 02 0b 61696f2d653036666434 02 00000001 00"
    "000001a1fd9d1184 000001a1fd9d1184 02 00 08 000000000000000c 09 01 ff"
)

UPDATED, BEGUN = 0x1A1FD9D1181, 0x1A1FD9D1184


def transit(state, partitions=(), update=BEGUN, start=BEGUN, producer_id=13, epoch=0, timeout=60_000):
    return TransitMetadata(producer_id, -1, epoch, -1, timeout, state, frozenset(partitions), start, update)


def test_keys_are_kafkas():
    """A key is version 0 and the transactional ID, byte for byte as Kafka's."""
    assert encode_key(ID) == KEY
    assert decode_key(KEY) == ID


def test_values_are_kafkas():
    """EMPTY has null for its partitions, ONGOING a list, a COMPLETE state an empty list."""
    assert encode_value(transit(S.EMPTY, update=UPDATED, start=-1)) == EMPTY
    assert encode_value(transit(S.ONGOING, {(ID, 1)})) == ONGOING
    assert encode_value(transit(S.COMPLETE_COMMIT))[17:21] == bytes(4)
    assert decode_value(ID, EMPTY) == TransactionMetadata(ID, 13, 0, 60_000, UPDATED)
    assert decode_value(ID, ONGOING) == TransactionMetadata(
        ID, 13, 0, 60_000, BEGUN, S.ONGOING, frozenset({(ID, 1)}), start_timestamp_ms=BEGUN
    )


def test_the_flexible_version_is_read():
    """Version 1 is the same transaction, with the previous producer id; tags that are not known are skipped."""
    found = decode_value(ID, FLEXIBLE)
    assert found.last_producer_id == 12
    assert (found.state, found.topic_partitions, found.start_timestamp_ms) == (S.ONGOING, {(ID, 1)}, BEGUN)
    empty = decode_value(ID, b"\0\1" + EMPTY[2:17] + b"\0" + EMPTY[21:] + b"\0")
    assert empty == decode_value(ID, EMPTY)


@given(
    st.sampled_from([state for state in S if state not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]),
    st.frozensets(st.tuples(st.text(max_size=20), st.integers(0, 2**31 - 1)), max_size=20),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.integers(0, 2**15 - 1),
    st.integers(1, 2**31 - 1),
)
def test_values_come_back(state, partitions, producer_id, update, epoch, timeout):
    """What is written is read, in every state that is stored."""
    is_empty = state is S.EMPTY
    written = transit(state, () if is_empty else partitions, update, -1 if is_empty else 7, producer_id, epoch, timeout)
    found = decode_value("t", encode_value(written))
    assert (found.producer_id, found.producer_epoch, found.timeout_ms) == (producer_id, epoch, timeout)
    assert (found.state, found.topic_partitions) == (state, written.topic_partitions)
    assert (found.last_update_timestamp_ms, found.start_timestamp_ms) == (update, written.start_timestamp_ms)


@given(st.text(max_size=100))
def test_keys_come_back(transactional_id):
    """The key of any transactional ID is read back as it was written."""
    assert decode_key(encode_key(transactional_id)) == transactional_id


@pytest.mark.parametrize("key", [None, b"", b"\0", KEY[:-1], KEY + b"\0", b"\xff\xff" + KEY[2:], b"\0\0\xff\xff"])
def test_corrupt_keys(key):
    """No key, a cut one, bytes after its end, a negative version, null for the id."""
    with pytest.raises(CorruptTransactionRecord):
        decode_key(key)


@pytest.mark.parametrize("whole", [EMPTY, ONGOING, FLEXIBLE], ids=["empty", "ongoing", "flexible"])
def test_a_value_is_read_to_its_last_byte(whole):
    """No prefix of a value is one, nor is a value with a byte more."""
    for size in range(len(whole)):
        with pytest.raises(CorruptTransactionRecord):
            decode_value(ID, whole[:size])
    with pytest.raises(CorruptTransactionRecord):
        decode_value(ID, whole + b"\0")


def changed(whole, at, data):
    return whole[:at] + data + whole[at + len(data) :]


@pytest.mark.parametrize(
    "value",
    [
        changed(EMPTY, 0, b"\0\2"),
        changed(EMPTY, 0, b"\xff\xff"),
        changed(EMPTY, 2, b"\xff" * 8),
        changed(EMPTY, 10, b"\xff\xff"),
        changed(EMPTY, 16, b"\1"),
        changed(EMPTY, 16, b"\6"),
        changed(EMPTY, 16, b"\7"),
        changed(EMPTY, 16, b"\x08"),
        changed(EMPTY, 29, bytes(8)),
        changed(ONGOING, 16, b"\0"),
        changed(ONGOING, 17, b"\xff\xff\xff\xfe"),
        changed(ONGOING, 17, b"\x7f\xff\xff\xff"),
        changed(ONGOING, 37, b"\xff" * 4),
        changed(ONGOING, 49, b"\xff" * 8),
        FLEXIBLE[:51] + bytes.fromhex("01 00 07 0000000000000c"),
        ONGOING[:33] + bytes.fromhex("00000002 00000001 00000001") + ONGOING[41:],
    ],
    ids=[
        "a later version", "a negative version", "no producer id", "no epoch", "open without partitions", "dead",
        "fence", "no such state", "empty with a start", "empty with partitions", "minus two topics",
        "too many topics", "a negative partition", "open without a start", "a short producer id", "a partition twice",
    ],
)  # fmt: skip
def test_corrupt_values(value):
    """A decision that cannot be read is not guessed."""
    with pytest.raises(CorruptTransactionRecord):
        decode_value(ID, value)


def test_what_is_never_stored():
    """DEAD is a tombstone; the fence of an epoch has no record."""
    assert encode_value(transit(S.DEAD)) is None
    with pytest.raises(ValueError, match="never stored"):
        encode_value(transit(S.PREPARE_EPOCH_FENCE))


def test_of_a_partition_the_last_records_count():
    """In the order of the log; a tombstone removes, a key of a later version is passed over."""
    table = TransactionTable()
    for key, value in [
        (KEY, EMPTY),
        (encode_key("other"), EMPTY),
        (KEY, ONGOING),
        (bytes.fromhex("0001 00"), b"?"),
        (encode_key("other"), None),
        (encode_key("never"), None),
    ]:
        table.take(0, key, value)
    assert table.transactions == {ID: decode_value(ID, ONGOING)}
    assert table.passed_over == 1
    assert not table.unavailable and not table.unreadable.count
    with pytest.raises(UnknownKeyVersion):
        decode_key(b"\0\1")


def test_a_record_that_cannot_be_read_concerns_its_own_id():
    """Of an id whose last value is unreadable nothing is known; of a key that is, nobody misses it. Both are told."""
    table = TransactionTable()
    for offset, (key, value) in enumerate(
        [(b"\0\0?", b"x"), (None, b"x"), (KEY, ONGOING), (encode_key("other"), b"\0\0"), (KEY, b"\0\0")]
    ):
        table.take(offset, key, value)
    assert table.transactions == {}
    assert table.unavailable == {ID, "other"}
    assert table.unreadable.count == 4
    assert [text.split(":")[0] for text in table.unreadable.named] == [f"at offset {each}" for each in (0, 1, 3, 4)]


@pytest.mark.parametrize(("value", "known"), [(ONGOING, {ID}), (None, set())])
def test_a_later_record_makes_an_id_available_again(value, known):
    """After an unreadable record, a later value or tombstone makes its ID available."""
    table = TransactionTable()
    table.take(0, KEY, b"\0\0")
    table.take(1, KEY, value)
    assert not table.unavailable
    assert set(table.transactions) == known
