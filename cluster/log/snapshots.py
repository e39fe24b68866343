"""SnapshotFiles: the producer snapshots in a log's directory, each with the producers' whole histories beside it.

Owns their names, when one is worth writing, and which ones must go. Does not own their bytes (``producers.py``,
``histories.py``). ``%020d.snapshot`` and ``%020d.producers`` are the state for records below that offset. They are not
synced: what they say is made again from the log, as far as the log still has it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

from cluster.log.checkpoints import write_unsynced
from cluster.log.epochs import LeaderEpochCache
from cluster.log.errors import CheckpointError
from cluster.log.histories import histories_bytes, parse_histories
from cluster.log.producers import ProducerStates
from cluster.log.sequence import ProducerEntry
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{20})\.(snapshot|producers)")


class SnapshotFiles:
    """The snapshots of one directory. It knows their offsets, so that a truncation reads no directory."""

    def __init__(self, directory: str, storage: Storage, epochs: LeaderEpochCache) -> None:
        self._directory = directory
        self._storage = storage
        self._epochs = epochs
        found = [match for name in storage.listdir(directory) if (match := _NAME.fullmatch(name))]
        self._offsets = {int(match[1]) for match in found if match[2] == "snapshot"}
        self._histories = {int(match[1]) for match in found if match[2] == "producers"}

    def __repr__(self) -> str:
        return f"SnapshotFiles({sorted(self._offsets)}, histories {sorted(self._histories)})"

    @property
    def offsets(self) -> list[int]:
        return sorted(self._offsets)

    def write(self, offset: int, producers: ProducerStates) -> None:
        """Write the state for records below ``offset``, unless it is there; offset 0 has none."""
        if offset > 0 and offset not in self._offsets:
            write_unsynced(self._storage, self._path(offset), producers.snapshot())
            self._offsets.add(offset)
        if offset > 0 and offset not in self._histories:
            data = histories_bytes(self._epoch_before(offset), producers)
            write_unsynced(self._storage, self._history_path(offset), data)
            self._histories.add(offset)

    def load(self, offset: int, producers: ProducerStates) -> bool:
        """Take the snapshot at ``offset`` into ``producers``; False if there is none that can be used."""
        if offset not in self._offsets:
            return False
        try:
            producers.load_snapshot(self._storage.read(self._path(offset)))
        except (CheckpointError, OSError) as error:
            logger.warning("passing over %s: %s", self._path(offset), error)
            return False
        return True

    def histories(self, offset: int) -> tuple[int, list[ProducerEntry]] | None:
        """(leader epoch, entries) as noted for records below ``offset``; None if there is nothing that can be used."""
        if offset not in self._histories:
            return None
        try:
            return parse_histories(self._storage.read(self._history_path(offset)))
        except (CheckpointError, OSError) as error:
            logger.warning("passing over %s: %s", self._history_path(offset), error)
            return None

    def fits(self, offset: int, leader_epoch: int) -> bool:
        """Whether the record before ``offset`` is of that epoch."""
        return self._epoch_before(offset) == leader_epoch

    def _epoch_before(self, offset: int) -> int:
        epoch = self._epochs.epoch_for_offset(offset - 1)
        return -1 if epoch is None else epoch

    def drop_above(self, offset: int) -> None:
        """Remove what is above ``offset``: it would speak of records that are no more."""
        self._drop({known for known in self._known if known > offset})

    def drop_below(self, offset: int) -> None:
        """Remove what is below ``offset``, the first segment's base."""
        self._drop({known for known in self._known if known < offset})

    def drop_strays(self, base_offsets: Collection[int], log_end_offset: int) -> None:
        """Keep one for each segment's base and the newest at or below the log's end (ProducerStateManager)."""
        self.drop_above(log_end_offset)
        newest = max(self._known, default=-1)
        self._drop({known for known in self._known if known not in base_offsets and known != newest})

    def clear(self) -> None:
        self._drop(self._known)

    @property
    def _known(self) -> set[int]:
        return self._offsets | self._histories

    def _drop(self, offsets: set[int]) -> None:
        for offset in offsets:
            self._storage.remove(self._path(offset))
            self._storage.remove(self._history_path(offset))
            self._offsets.discard(offset)
            self._histories.discard(offset)

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}.snapshot"

    def _history_path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}.producers"
