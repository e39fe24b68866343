"""A broker's data directory as a whole: whose it is, and what the directories in it are called.

Owns the lock of the broker that runs on it, ``meta.properties``, ``<topic>-<partition>`` (Kafka's LocalLog) and the
names of directories that are going away. Removing them is ``removal.py``'s; what else is in the directory is
``manager.py``'s.
"""

from __future__ import annotations

import posixpath
import re

from cluster.log.checkpoints import (
    LOCK_FILE,
    META_PROPERTIES_FILE,
    meta_properties_text,
    parse_meta_properties,
    read_text,
)
from cluster.log.errors import LogError, StorageFailed
from cluster.protocol.errors import ErrorCode
from cluster.seams.randomness import derive
from cluster.seams.storage import Lock, Storage
from cluster.topic_partition import TopicPartition

_REPLICA = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_GOING = re.compile(r".+\.[0-9a-f]{32}-(?:delete|future|stray)")
#: The longest name a file system takes.
_NAME_BYTES = 255


def make_directory(data_dir: str, storage: Storage) -> None:
    """Make it if it is not there, and sync its name. Raises ``OSError``."""
    missing = []
    path = posixpath.normpath(data_dir)
    while not storage.exists(path):
        missing.append(path)
        path = posixpath.dirname(path) or "."
    storage.makedirs(data_dir)
    for path in reversed(missing):
        storage.sync_directory(posixpath.dirname(path) or ".")


def lock_directory(data_dir: str, storage: Storage) -> Lock:
    """Take it for this broker alone, until the lock is released or the process ends. Raises ``StorageFailed``."""
    path = f"{data_dir}/{LOCK_FILE}"
    try:
        make_directory(data_dir, storage)
        return storage.lock(path)
    except BlockingIOError as error:
        raise StorageFailed(
            f"the data directory {data_dir} is in use by another broker (it holds {path}): "
            "stop that one, or give this one a log.dirs of its own"
        ) from error
    except OSError as error:
        raise StorageFailed(f"cannot use the data directory {data_dir}: {error}") from error


def claim_directory(data_dir: str, storage: Storage, broker_id: int, cluster_id: str) -> None:
    """Write ``meta.properties``, or check that it names this broker and cluster. Raises ``LogError``."""
    path = f"{data_dir}/{META_PROPERTIES_FILE}"
    try:
        make_directory(data_dir, storage)
        text = read_text(storage, path)
        if text is None:
            storage.write_atomic(path, meta_properties_text(broker_id, cluster_id).encode())
            return
    except OSError as error:
        raise StorageFailed(f"cannot use the data directory {data_dir}: {error}") from error
    stored_broker, stored_cluster = parse_meta_properties(text)
    if stored_cluster != cluster_id:
        raise LogError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"{data_dir} belongs to cluster {stored_cluster}, not to {cluster_id}",
        )
    if stored_broker != broker_id:
        raise StorageFailed(f"{data_dir} belongs to broker {stored_broker}, not to {broker_id}")


def replica_directory_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_replica_directory_name(name: str) -> TopicPartition | None:
    """(topic, partition), or None for what is no replica (also one that is being deleted)."""
    if is_going_away(name):
        return None
    match = _REPLICA.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def is_going_away(name: str) -> bool:
    """Whether a directory was renamed for deletion, or is of a kind that we never make."""
    return _GOING.fullmatch(name) is not None


def doomed_directory(directory: str, salt: int) -> str:
    """Where a replica's directory goes to be deleted: its name (cut if need be), 32 hex digits, ``-delete``."""
    parent, name = posixpath.split(directory)
    digits = f"{derive(salt, name).getrandbits(128):032x}"
    suffix = f".{digits}-delete"
    return posixpath.join(parent, name[: _NAME_BYTES - len(suffix)] + suffix)


def retire_directory(directory: str, storage: Storage, salt: int) -> str:
    """Give a replica's directory its last name and return that; a crash before its removal leaves no half a log.

    Raises ``StorageFailed``.
    """
    doomed = doomed_directory(directory, salt)
    try:
        storage.rename(directory, doomed)
    except OSError as error:
        raise StorageFailed(f"deleting {directory}: {error}") from error
    return doomed
