"""What a log notes of its producers at each roll: Kafka's snapshot, and the producers' whole histories beside it.

Owns both files' names, when one is worth writing, which ones must go, and the bytes of the histories. Does not own the
bytes of a snapshot (``producers.py``). ``%020d.snapshot`` and ``%020d.producers`` are the state for records below that
offset. They are not synced: what they say is rebuilt from the log, as far as the log still has it.

``%020d.producers`` is a file of ours, whose name Kafka's loader passes over. A snapshot has only the newest batch of
each producer; with the histories the next start continues with the last five, and with what is known of the sequences
before, without reading the batches below.

The histories carry the leader epoch of the record before their offset. An offset and its epoch name one record in all
replicas' logs forever, so a file that a power loss brought back, of records that were cut off since, is found out.

version int16, CRC-32C of what follows it, leader epoch int32, producers int32; then int64s, for each producer: id,
epoch, 1 if complete + 2 if wrapped, last timestamp, batches, and of each batch its five numbers. All big-endian. A roll
waits for it, so what is most of it is made in one go.
"""

from __future__ import annotations

import logging
import re
import struct
import sys
from array import array
from collections.abc import Collection, Iterable
from itertools import chain

from crc32c import crc32c

from cluster.log.checkpoints import write_unsynced
from cluster.log.epochs import LeaderEpochCache
from cluster.log.errors import CheckpointError
from cluster.log.producers import ProducerStates
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

_HISTORIES_VERSION = 1
_HEAD = struct.Struct(">hIii")
#: The checksum covers everything after itself.
_CRC_FROM = 6
_FIELDS = len(BatchMetadata._fields)


def histories_bytes(leader_epoch: int, entries: Iterable[ProducerEntry]) -> bytes:
    """The file. ``leader_epoch`` is -1 if there is none."""
    numbers, count = array("q"), 0
    for producer_id, producer_epoch, batches, complete, last_timestamp, wrapped in entries:
        numbers.extend((producer_id, producer_epoch, complete + 2 * wrapped, last_timestamp, len(batches)))
        numbers.extend(chain.from_iterable(batches))
        count += 1
    if sys.byteorder == "little":
        numbers.byteswap()
    data = bytearray(_HEAD.pack(_HISTORIES_VERSION, 0, leader_epoch, count) + numbers.tobytes())
    struct.pack_into(">I", data, 2, crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def parse_histories(data: bytes) -> tuple[int, list[ProducerEntry]]:
    """(leader epoch, entries). Raises ``CheckpointError``."""
    if len(data) < _HEAD.size:
        raise CheckpointError(f"producers' histories of {len(data)} bytes")
    version, crc, leader_epoch, count = _HEAD.unpack_from(data)
    if version != _HISTORIES_VERSION or crc32c(data[_CRC_FROM:]) != crc:
        raise CheckpointError(f"producers' histories of version {version} whose checksum does not hold, or not known")
    numbers = array("q", data[_HEAD.size :])
    if sys.byteorder == "little":
        numbers.byteswap()
    entries = []
    at = 0
    for _ in range(count):
        producer_id, producer_epoch, flags, last_timestamp, known = numbers[at : at + 5]
        at += 5
        end = at + known * _FIELDS
        batches = tuple(BatchMetadata(*numbers[start : start + _FIELDS]) for start in range(at, end, _FIELDS))
        entries.append(
            ProducerEntry(producer_id, producer_epoch, batches, bool(flags & 1), last_timestamp, bool(flags & 2))
        )
        at = end
    return leader_epoch, entries


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
