"""The small files, byte for byte as Kafka's CheckpointFile has them, and what is refused."""

from __future__ import annotations

from uuid import UUID

import pytest

from cluster.log.checkpoints import (
    clean_shutdown_text,
    meta_properties_text,
    offsets_text,
    pairs_text,
    parse_meta_properties,
    parse_offsets,
    parse_pairs,
    parse_partition_metadata,
    parse_topic_id,
    partition_metadata_text,
    read_text,
    topic_id_text,
    write_unsynced,
)
from cluster.log.errors import CheckpointError
from cluster.seams.memory_storage import MemoryStorage

TOPIC_ID = UUID("f3b1c0de-0000-4000-8000-0123456789ab")


def test_offset_checkpoint():
    """Version 0, the count, ``topic partition offset`` lines; an empty file has no entries."""
    offsets = {("t", 1): 7, ("t", 0): 42, ("a-b.c_d", 10): 0}
    assert offsets_text(offsets) == "0\n3\na-b.c_d 10 0\nt 0 42\nt 1 7\n"
    assert parse_offsets(offsets_text(offsets)) == offsets
    assert offsets_text({}) == "0\n0\n"
    assert parse_offsets("") == {}


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "x\n0\n",
        "0\n",
        "0\n2\nt 0 1\n",
        "0\n1\nt 0\n",
        "0\n1\nt 0 -1\n",
        "0\n1\nt x 1\n",
        "0\n2\nt 0 1\nt 0 1\n",
    ],
)
def test_what_is_not_in_the_format_is_refused(text):
    """Wrong version, count, fields or numbers, or an entry twice."""
    with pytest.raises(CheckpointError):
        parse_offsets(text)


def test_partition_metadata():
    """Two lines without a newline at the end; the topic id is 22 characters of base64url."""
    text = partition_metadata_text(TOPIC_ID)
    assert text == "version: 0\ntopic_id: 87HA3gAAQACAAAEjRWeJqw"
    assert len(topic_id_text(TOPIC_ID)) == 22
    assert parse_partition_metadata(text) == TOPIC_ID
    assert parse_topic_id(topic_id_text(UUID(int=2**128 - 1))) == UUID(int=2**128 - 1)
    for bad in ("version: 1\ntopic_id: 87HA3gAAQACAAAEjRWeJqw", "version: 0\n", "", "version: 0\ntopic_id: short", "x"):
        with pytest.raises(CheckpointError):
            parse_partition_metadata(bad)


def test_meta_properties():
    """Java properties of version 0 (ZooKeeper mode); comments are passed over."""
    text = meta_properties_text(3, "4L6g3nShT-eMCtK--X86sw")
    assert text == "version=0\nbroker.id=3\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    assert parse_meta_properties("#\n#Tue\n" + text) == (3, "4L6g3nShT-eMCtK--X86sw")
    for bad in (
        "",
        "version=1\nbroker.id=1\ncluster.id=x\n",
        "version=0\ncluster.id=x\n",
        "version=0\nbroker.id=1\n",
        "?",
    ):
        with pytest.raises(CheckpointError):
            parse_meta_properties(bad)


def test_clean_shutdown_marker():
    """The JSON of Kafka 3.8, without blanks."""
    assert clean_shutdown_text() == '{"version":0,"brokerEpoch":-1}'


def test_reading_and_replacing():
    """An absent file is None, one that is no text is refused, and a replacement is whole."""
    storage = MemoryStorage()
    assert read_text(storage, "x") is None
    write_unsynced(storage, "x", b"first, and long")
    write_unsynced(storage, "x", b"second")
    assert read_text(storage, "x") == "second"
    assert storage.listdir("") == ["x"]
    write_unsynced(storage, "x", b"longer than that")
    assert read_text(storage, "x") == "longer than that"
    write_unsynced(storage, "x", b"\xff")
    with pytest.raises(CheckpointError):
        read_text(storage, "x")


def test_what_grows_is_written_in_place(monkeypatch):
    """A rename over a file that was just written may wait for the disk, once for each partition of a broker."""
    storage = MemoryStorage()
    write_unsynced(storage, "x", b"0\n1\n0 0\n")
    monkeypatch.setattr(storage, "rename", lambda *_: pytest.fail("renamed"))
    write_unsynced(storage, "x", b"0\n1\n1 0\n")
    write_unsynced(storage, "x", b"0\n2\n1 0\n2 5\n")
    assert read_text(storage, "x") == "0\n2\n1 0\n2 5\n"


def test_a_part_of_a_file_is_none():
    """A power loss may leave any part of one that was not synced: 23 of 231 must not be taken for the number."""
    text = pairs_text([(0, 0), (1, 164), (4, 231)])
    for size in range(1, len(text)):
        with pytest.raises(CheckpointError):
            parse_pairs(text[:size])
    assert parse_pairs(text) == [(0, 0), (1, 164), (4, 231)]
