"""Whose a data directory is: the lock of the broker that runs on it, and ``meta.properties``.

Owns both files. Does not own what else is in the directory (``manager.py``).
"""

from __future__ import annotations

import posixpath

from cluster.log.checkpoints import (
    LOCK_FILE,
    META_PROPERTIES_FILE,
    meta_properties_text,
    parse_meta_properties,
    read_text,
)
from cluster.log.errors import LogError, StorageFailed
from cluster.protocol.errors import ErrorCode
from cluster.seams.storage import Lock, Storage


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
