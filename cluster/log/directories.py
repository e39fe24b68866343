"""The directories in a broker's log directory (Kafka's LocalLog).

Owns ``<topic>-<partition>`` and the names of directories that are going away. Removing them is ``removal.py``'s.
"""

from __future__ import annotations

import posixpath
import re

from cluster.log.checkpoints import TopicPartition
from cluster.log.errors import StorageFailed
from cluster.seams.randomness import derive
from cluster.seams.storage import Storage

_REPLICA = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_GOING = re.compile(r".+\.[0-9a-f]{32}-(?:delete|future|stray)")
#: The longest name a file system takes.
_NAME_BYTES = 255


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
