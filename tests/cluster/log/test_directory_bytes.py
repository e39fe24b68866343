"""A whole data directory after a small life, every file of it, byte for byte by hand.

What each format is alone is held by the tests of its module; this is what lies on the disk, by its name.
"""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from crc32c import crc32c

from cluster.log.config import LogConfig
from cluster.log.manager import LogManager
from cluster.log.snapshots import parse_histories
from tests.cluster.log.builders import NOW_MS, Bench, append, bench, make_batch

TOPIC_ID = UUID("f3b1c0de-0000-4000-8000-0123456789ab")
CLUSTER_ID = "uAzXGVgnTaCeQjbbxGp9YA"
CONFIG = LogConfig(segment_bytes=250, index_interval_bytes=60)


@pytest.fixture
def on() -> Bench:
    return bench()


def stored(sequence: int) -> bytes:
    """The batch of one record at the offset of its sequence, in leader epoch 2 from offset 3 on."""
    return bytes(
        make_batch(
            producer_id=1000,
            producer_epoch=5,
            base_sequence=sequence,
            base_offset=sequence,
            leader_epoch=0 if sequence < 3 else 2,
            timestamp=NOW_MS + sequence,
        )
    )


def snapshot(last: int) -> bytes:
    """One producer whose newest batch is the record ``last``: 46 bytes after the head."""
    entry = struct.pack(">qhiqiqiq", 1000, 5, last, last, 0, NOW_MS + last, -1, -1)
    body = struct.pack(">i", 1) + entry
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_every_file_of_a_data_directory(on):
    """Five records in two segments, the log started over at 1, a clean stop: names and bytes as Kafka 3.8 has them."""
    made = LogManager("data", on.storage, on.clock, LogConfig())
    made.claim(1, CLUSTER_ID)
    made.load()
    log = made.get_or_create("t", 0, TOPIC_ID, CONFIG)
    size = len(stored(0))
    assert size == 68
    for sequence in range(5):
        append(log, bytearray(stored(sequence)), leader_epoch=0 if sequence < 3 else 2)
    log.advance_log_start_offset(1)
    made.checkpoint_high_watermarks({("t", 0): 5})
    made.close(clean=True)
    files = {name: on.storage.read(f"data/{name}") for name in on.storage.listdir("data") if name != "t-0"}
    del files[".gapless_clean_state"]
    assert files == {
        ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":-1}',
        "cleaner-offset-checkpoint": b"0\n0\n",
        "log-start-offset-checkpoint": b"0\n1\nt 0 1\n",
        "meta.properties": b"version=0\nbroker.id=1\ncluster.id=" + CLUSTER_ID.encode() + b"\n",
        "recovery-point-offset-checkpoint": b"0\n1\nt 0 5\n",
        "replication-offset-checkpoint": b"0\n1\nt 0 5\n",
    }
    files = {name: on.storage.read(f"data/t-0/{name}") for name in on.storage.listdir("data/t-0")}
    for base, epoch in ((3, 0), (5, 2)):  # ours, beside Kafka's snapshots
        assert parse_histories(files.pop(f"{base:020d}.producers"))[0] == epoch
    assert files == {
        "00000000000000000000.log": stored(0) + stored(1) + stored(2),
        # Offset less base, where its batch begins; an entry for each batch but the first, by index.interval.bytes.
        "00000000000000000000.index": struct.pack(">iiii", 1, size, 2, 2 * size),
        "00000000000000000000.timeindex": struct.pack(">qiqi", NOW_MS + 1, 1, NOW_MS + 2, 2),
        "00000000000000000003.log": stored(3) + stored(4),
        "00000000000000000003.index": struct.pack(">ii", 1, size),
        "00000000000000000003.timeindex": struct.pack(">qi", NOW_MS + 4, 1),
        "00000000000000000003.snapshot": snapshot(2),
        "00000000000000000005.snapshot": snapshot(4),
        "leader-epoch-checkpoint": b"0\n2\n0 1\n2 3\n",
        "partition.metadata": b"version: 0\ntopic_id: 87HA3gAAQACAAAEjRWeJqw",
    }


def test_a_compacted_segment(on):
    """A key's older record goes; the tombstone's batch gets bit 6, its horizon and new deltas; the rest stays."""
    config = LogConfig(segment_bytes=150, cleanup_policy=("compact",), delete_retention_ms=1000)
    made = LogManager("data", on.storage, on.clock, LogConfig())
    made.load()
    log = made.get_or_create("t", 0, None, config)
    value = bytes.fromhex("10000000026b027600")  # attributes, deltas 0 and 0, key "k", value "v", no header
    tombstone = bytes.fromhex("0e000000026b0100")
    for payload in (value, tombstone, value):
        append(log, make_batch(payload=payload, timestamp=NOW_MS))
    assert log.segment_base_offsets == [0, 2]
    log.flush()
    what = log.cleanable(3, NOW_MS)
    cleaning = log.begin_cleaning(what, 10, NOW_MS)
    cleaning.run()
    assert log.finish_cleaning(cleaning)
    # The delta of the timestamp is -1000, a zig-zag varint of two bytes, so the record is one byte longer.
    record = bytes.fromhex("10 00 cf0f 00 02 6b 01 00")
    checked = struct.pack(">hiqqqhii", 0x40, 0, NOW_MS + 1000, NOW_MS, -1, -1, -1, 1) + record
    batch = struct.pack(">qiibI", 1, 9 + len(checked), 0, 2, crc32c(checked)) + checked
    assert on.storage.read("data/t-0/00000000000000000000.log") == batch
    assert on.storage.read("data/t-0/00000000000000000000.timeindex") == struct.pack(">qi", NOW_MS, 1)
    made.checkpoint_cleaned()
    assert on.storage.read("data/cleaner-offset-checkpoint") == b"0\n1\nt 0 2\n"
