"""The small files of a broker's log directory, in the formats of Kafka's CheckpointFile (docs/reference/kafka.md "Files
of a log").

Owns the texts of the offset checkpoints, ``leader-epoch-checkpoint``, ``meta.properties``, ``partition.metadata`` and
the clean-shutdown marker, and the names of all of them. Reading is strict: a file that is not in its format raises
``CheckpointError``, and the caller decides what may be made of it. Does not own what the numbers mean.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from uuid import UUID

from cluster.log.errors import CheckpointError
from cluster.seams.storage import Storage
from cluster.topic_partition import TopicPartition

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"
META_PROPERTIES_FILE = "meta.properties"
PARTITION_METADATA_FILE = "partition.metadata"
LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_VERSION = 0


def offsets_text(offsets: Mapping[TopicPartition, int]) -> str:
    """``0``, the count, then a line ``topic partition offset`` each."""
    lines = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in sorted(offsets.items())]
    return f"{_VERSION}\n{len(lines)}\n" + "".join(lines)


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The inverse of ``offsets_text``; an empty text has no entries. Raises ``CheckpointError``."""
    offsets: dict[TopicPartition, int] = {}
    for fields in _lines(text, 3):
        topic_partition = fields[0], _number(fields[1])
        if topic_partition in offsets:
            raise CheckpointError(f"{fields[0]}-{fields[1]} is there twice")
        offsets[topic_partition] = _number(fields[2])
    return offsets


def pairs_text(pairs: Iterable[tuple[int, int]]) -> str:
    """``0``, the count, then a line ``epoch startOffset`` each."""
    lines = [f"{first} {second}\n" for first, second in pairs]
    return f"{_VERSION}\n{len(lines)}\n" + "".join(lines)


def parse_pairs(text: str) -> list[tuple[int, int]]:
    """The inverse of ``pairs_text``; an empty text has no entries. Raises ``CheckpointError``."""
    return [(_number(first), _number(second)) for first, second in _lines(text, 2)]


def _lines(text: str, fields: int) -> list[list[str]]:
    if not text:
        return []
    if not text.endswith("\n"):
        # Of a file that was not synced a power loss may leave a part, and "4 23" of "4 231" is an entry too.
        raise CheckpointError("it ends within a line")
    lines = text.splitlines()
    if _number(lines[0]) != _VERSION:
        raise CheckpointError(f"version {lines[0]!r}, only {_VERSION} is known")
    if len(lines) < 2:
        raise CheckpointError("the count is missing")
    count = _number(lines[1])
    rows = [line.split() for line in lines[2:]]
    if count != len(rows):
        raise CheckpointError(f"{len(rows)} lines where {count} are announced")
    for number, row in enumerate(rows):
        if len(row) != fields:
            raise CheckpointError(f"line {number + 3} has {len(row)} fields, not {fields}")
    return rows


def _number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise CheckpointError(f"{text!r} is no number") from None
    if value < 0:
        raise CheckpointError(f"{value} is negative")
    return value


def topic_id_text(topic_id: UUID) -> str:
    """A topic id as Kafka spells it: 22 characters of base64url without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> UUID:
    """The inverse of ``topic_id_text``. Raises ``CheckpointError``."""
    try:
        return UUID(bytes=base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as error:
        raise CheckpointError(f"{text!r} is no topic id: {error}") from error


def partition_metadata_text(topic_id: UUID) -> str:
    """The content of ``partition.metadata``: two lines, and no newline at the end."""
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}"


def parse_partition_metadata(text: str) -> UUID:
    """The topic id of ``partition.metadata``. Raises ``CheckpointError``."""
    fields = dict(_pair(line, ":") for line in text.splitlines() if line.strip())
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise CheckpointError(f"partition.metadata without version 0 or topic_id: {text!r}")
    return parse_topic_id(fields["topic_id"])


def meta_properties_text(broker_id: int, cluster_id: str) -> str:
    """The content of ``meta.properties`` (ZooKeeper mode: version 0)."""
    return f"version=0\nbroker.id={broker_id}\ncluster.id={cluster_id}\n"


def parse_meta_properties(text: str) -> tuple[int, str]:
    """(broker id, cluster id) of ``meta.properties``. Raises ``CheckpointError``."""
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "!"))]
    fields = dict(_pair(line, "=") for line in rows)
    if fields.get("version") != "0" or not fields.get("cluster.id"):
        raise CheckpointError(f"meta.properties without version 0 or cluster.id: {text!r}")
    return _number(fields.get("broker.id", "")), fields["cluster.id"]


def clean_shutdown_text(broker_epoch: int = -1) -> str:
    """The content of the marker of a clean stop, as Kafka 3.8 writes it."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))


def _pair(line: str, separator: str) -> tuple[str, str]:
    key, found, value = line.partition(separator)
    if not found:
        raise CheckpointError(f"no {separator!r} in {line!r}")
    return key.strip(), value.strip()


def read_text(storage: Storage, path: str) -> str | None:
    """A small text file, None if it is absent. Raises ``CheckpointError`` if it is no UTF-8."""
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is no text: {error}") from error


def write_unsynced(storage: Storage, path: str, data: bytes) -> None:
    """Replace the content of ``path`` without waiting for the disk.

    For files that are rebuilt from the log when a power loss takes them: an fsync for each partition of a broker
    would cost seconds at every failover. So does a rename over a file that was written a moment ago, for a file system
    may wait until its bytes are on the disk. Hence what does not shrink is written over what was there, in one call
    that a kill cannot divide; only what is new or shorter goes by rename.
    """
    if not _overwrite(storage, path, data):
        temporary = path + ".tmp"
        write_new(storage, temporary, data)
        storage.rename(temporary, path)


def write_new(storage: Storage, path: str, data: bytes) -> None:
    """Write a new file in the place of any that is there, without waiting for the disk. Raises ``OSError``."""
    storage.remove(path)
    file = storage.open(path)
    try:
        file.append(data)
    finally:
        file.close()


def _overwrite(storage: Storage, path: str, data: bytes) -> bool:
    """Write ``data`` over a file that is not longer; False if there is no such file."""
    try:
        file = storage.open(path, create=False)
    except FileNotFoundError:
        return False
    try:
        if file.size_bytes > len(data):
            return False
        file.pwrite(data, 0)
        return True
    finally:
        file.close()
