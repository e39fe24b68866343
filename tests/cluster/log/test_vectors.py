"""Bytes of Kafka 3.8.0's own classes through a log and back."""

from __future__ import annotations

import pytest

from cluster.log.config import LogConfig
from cluster.protocol.batch import crc_ok, parse_header
from tests.cluster.log.builders import DIRECTORY, append, bench, content, offset_for_timestamp, open_log, read_all

TRANSACTIONAL = bytes.fromhex(
    "0000000000000000 0000004b ffffffff 02 228973fb 0010 00000001 0000018bcfe56800 0000018bcfe56801"
    "00000000000003e8 0005 00000007 00000002"
    "120000 00026b04763100 1e00020201047632 04026802 78026e01"
)
COMMIT = bytes.fromhex(
    "0000000000000064 00000042 00000003 02 1335b965 0030 00000000 0000018bcfe56802 0000018bcfe56802"
    "00000000000003e8 0005 ffffffff 00000001 20000000 0800000001 0c000000000009 00"
)
COMPRESSED = {
    "gzip": "000000000000000000000059ffffffff024066a60400010000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff000000031f8b08000000000000ff5362606060ca16298303062506262674111616541100cf8b0a2a36000000",
    "snappy": "00000000000000000000006bffffffff02ccc6c10700020000000200000000000003e800000000000003eaffffffffffffffffff"
    "ffffffffff0000000382534e4150505900000000010000000100000026361c22000000026b147615011000220002023e12003c0404026b"
    "147676767676767676767600",
    "lz4": "00000000000000000000005effffffff0217e0185e00030000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff0000000304224d186040821e0000008522000000026b147601005c00220002021200250404120050767676760000000000",
    "zstd": "000000000000000000000056ffffffff020185a3bc00040000000200000000000003e800000000000003eaffffffffffffffffffff"
    "ffffffff0000000328b52ffd0058cc00007822000000026b147600220002020404030040c635912e0017010000",
}


def test_a_batch_is_stored_as_it_is_but_for_offset_and_epoch():
    """Bytes 0-7 and 12-15 are the log's; all others, and so the checksum, are the producer's."""
    on = bench()
    log = open_log(on, LogConfig(unknown_producer="kafka"))
    append(log, leader_epoch=0)
    append(log, bytearray(TRANSACTIONAL), leader_epoch=3)
    stored = read_all(log)[-87:]
    assert len(TRANSACTIONAL) == 87
    assert stored.hex() == (b"\0\0\0\0\0\0\0\x01" + TRANSACTIONAL[8:12] + b"\0\0\0\x03" + TRANSACTIONAL[16:]).hex()
    assert crc_ok(stored, 0, 87)


def test_a_follower_stores_a_marker_byte_for_byte():
    """Offset 100 and epoch 3 are the leader's; the marker's producer epoch is known after it."""
    on = bench()
    log = open_log(on, log_start_offset=100)
    log.append_as_follower(memoryview(bytearray(COMMIT)))
    assert on.storage.read(f"{DIRECTORY}/{100:020d}.log") == COMMIT
    assert log.epochs.to_text() == "0\n1\n3 100\n"
    entry = log.producers.get(1000)
    assert entry is not None and entry.producer_epoch == 5 and entry.batches == ()


@pytest.mark.parametrize("codec", COMPRESSED)
def test_compressed_batches_pass_through(codec):
    """No byte of the payload changes, and a timestamp inside is found."""
    batch = bytes.fromhex(COMPRESSED[codec])
    log = open_log(bench())
    append(log, bytearray(batch))
    result = log.read(2, 1, 3)
    assert content(result.records)[16:] == batch[16:]
    assert parse_header(content(result.records)).codec == list(COMPRESSED).index(codec) + 1
    assert offset_for_timestamp(log, 1001, 3) == (1001, 1)
    assert log.max_timestamp == 1002
