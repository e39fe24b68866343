"""What a log notes of its producers at each roll: Kafka's snapshot, and the producers' whole histories beside it.

Owns both files' names, when one is worth writing, which ones must go, and the bytes of the histories. Does not own the
bytes of a snapshot (``producer_snapshot.py``). ``%020d.snapshot`` and ``%020d.producers`` are the state for records
below that offset. They are not synced: what they say is rebuilt from the log, as far as the log still has it.

``%020d.producers`` is a file of ours, whose name Kafka's loader passes over. A snapshot has only the newest batch of
each producer; with the histories the next start continues with the last five, and with what is known of the sequences
before, without reading the batches below. It is five times as large as a snapshot, and a start reads one alone, so not
every segment keeps one (``superseded_histories``). Snapshots stay as long as their segments, as in Kafka: any of those
may become the log's first, whose snapshot speaks for producers that have no batch left.

The histories carry the leader epoch of the record before their offset. An offset and its epoch name one record in all
replicas' logs forever, so a file that a power loss brought back, of records that were cut off since, is found out.

version int16, CRC-32C of what follows it, leader epoch int32, producers int32; then int64s, for each producer: id,
epoch, 1 if complete + 2 if wrapped, last timestamp, batches, coordinator epoch and first offset of its transaction
(from version 2 on), and of each batch its five numbers. All big-endian. Ten thousand producers take tens of
milliseconds, so a roll in a broker puts both files off (``waiting_snapshots.py``).
"""

from __future__ import annotations

import logging
import re
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from crc32c import crc32c

from cluster.log.checkpoints import write_unsynced
from cluster.log.config import INT64_MAX
from cluster.log.epochs import LeaderEpochCache
from cluster.log.errors import CheckpointError
from cluster.log.producer_snapshot import parse_snapshot, snapshot_bytes
from cluster.log.producers import ProducerStates
from cluster.log.sequence import BatchMetadata, ProducerEntry
from cluster.log.waiting_snapshots import NotedProducers, PendingSnapshot, WaitingSnapshots
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

#: How many of the newest histories are kept anyway, so that a start finds another if the one it wants is damaged.
HISTORIES = 8
#: A roll removes no more than this: what was left over while no recovery point was written goes little by little.
REMOVALS = 8

_HISTORIES_VERSION = 2
#: Without the last two numbers of a producer: no transaction could be then.
_HISTORIES_WITHOUT_TRANSACTIONS = 1
_HEAD = struct.Struct(">hIii")
#: The checksum covers everything after itself.
_CRC_FROM = 6
_FIELDS = len(BatchMetadata._fields)


def histories_bytes(leader_epoch: int, entries: Iterable[ProducerEntry]) -> bytes:
    """The file. ``leader_epoch`` is -1 if there is none."""
    numbers, count = array("q"), 0
    for producer_id, producer_epoch, batches, complete, last_timestamp, wrapped, coordinator_epoch, first in entries:
        flags = complete + 2 * wrapped
        numbers.extend((producer_id, producer_epoch, flags, last_timestamp, len(batches), coordinator_epoch, first))
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
    if version not in (_HISTORIES_WITHOUT_TRANSACTIONS, _HISTORIES_VERSION) or crc32c(data[_CRC_FROM:]) != crc:
        raise CheckpointError(f"producers' histories of version {version} whose checksum does not hold, or not known")
    numbers = array("q", data[_HEAD.size :])
    if sys.byteorder == "little":
        numbers.byteswap()
    has_transactions = version != _HISTORIES_WITHOUT_TRANSACTIONS
    entries = []
    at = 0
    for _ in range(count):
        producer_id, producer_epoch, flags, last_timestamp, known = numbers[at : at + 5]
        at += 5
        coordinator_epoch, first_offset = numbers[at : at + 2] if has_transactions else (-1, -1)
        at += 2 * has_transactions
        end = at + known * _FIELDS
        batches = tuple(BatchMetadata(*numbers[start : start + _FIELDS]) for start in range(at, end, _FIELDS))
        entries.append(
            ProducerEntry(
                producer_id,
                producer_epoch,
                batches,
                bool(flags & 1),
                last_timestamp,
                bool(flags & 2),
                coordinator_epoch,
                first_offset,
            )
        )
        at = end
    return leader_epoch, entries


def superseded_histories(offsets: Iterable[int], base_offsets: Sequence[int], recovery_point: int) -> list[int]:
    """Which histories no start will want, oldest first, if ``recovery_point`` is what a start would find. Pure.

    A start after a crash takes the newest at a segment's base at or below that point. That one stays with all above it,
    and so do the newest ``HISTORIES``. If there is no such one, all stay. ``base_offsets`` ascend.
    """
    ordered = sorted(offsets)
    if len(ordered) <= HISTORIES:
        return []
    wanted = next((offset for offset in reversed(ordered) if _is_in(base_offsets, offset, recovery_point)), -1)
    keep_from = min(wanted, ordered[-HISTORIES])
    return ordered[: bisect_left(ordered, keep_from)]


def _is_in(base_offsets: Sequence[int], offset: int, recovery_point: int) -> bool:
    if offset > recovery_point:
        return False
    at = bisect_left(base_offsets, offset)
    return at < len(base_offsets) and base_offsets[at] == offset


def _snapshot_of(noted: NotedProducers) -> bytes:
    return snapshot_bytes(noted.entries.values())


def _histories_of(noted: NotedProducers) -> bytes:
    return histories_bytes(noted.leader_epoch, noted.entries.values())


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
        self.waiting = WaitingSnapshots()

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

    def put_off(self, offset: int, entries: Mapping[int, ProducerEntry]) -> None:
        """Let the state for records below ``offset`` wait; ``entries`` must not change. The rest is as with ``write``,
        but at any later time: ``begin_write``."""
        if offset > 0 and not (offset in self._offsets and offset in self._histories):
            self.waiting.add(NotedProducers(offset, self._epoch_before(offset), entries))

    def begin_write(self) -> PendingSnapshot | None:
        """The oldest that waits. Its ``run`` may block another thread; ``finish_write`` must follow on this one."""
        noted = self.waiting.first()
        if noted is None:
            return None
        wanted = (
            (self._offsets, self._path(noted.offset), _snapshot_of),
            (self._histories, self._history_path(noted.offset), _histories_of),
        )
        files = tuple((path, encode) for known, path, encode in wanted if noted.offset not in known)
        return PendingSnapshot(noted, files, self._storage)

    def finish_write(self, pending: PendingSnapshot, error: OSError | None = None) -> None:
        """Keep what was written, unless the log was cut meanwhile. Raises ``OSError``, also what ``run`` did."""
        offset = pending.noted.offset
        if not self.waiting.take(pending.noted):
            pending.discard()
            return
        if error is not None:
            raise error
        pending.keep()
        self._offsets.add(offset)
        self._histories.add(offset)

    def write_waiting(self) -> None:
        """Write all that wait. Raises ``OSError``."""
        while (pending := self.begin_write()) is not None:
            pending.run()
            self.finish_write(pending)

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
        self.waiting.keep_within(0, offset)

    def drop_below(self, offset: int) -> None:
        """Remove what is below ``offset``, the first segment's base."""
        self._drop({known for known in self._known if known < offset})
        self.waiting.keep_within(offset, INT64_MAX)

    def drop_strays(self, base_offsets: Sequence[int], log_end_offset: int, recovery_point: int) -> None:
        """Keep one for each segment's base and the newest at or below the log's end (ProducerStateManager), and fewer
        histories."""
        self.drop_above(log_end_offset)
        newest = max(self._known, default=-1)
        self._drop({known for known in self._known if known not in base_offsets and known != newest})
        self.drop_superseded(base_offsets, recovery_point)

    def drop_superseded(self, base_offsets: Sequence[int], recovery_point: int, at_most: int | None = None) -> None:
        """Remove histories that no start will want, the oldest ``at_most`` of them (``superseded_histories``)."""
        for offset in superseded_histories(self._histories, base_offsets, recovery_point)[:at_most]:
            self._storage.remove(self._history_path(offset))
            self._histories.discard(offset)

    def drop_damaged(self) -> None:
        """Remove what a power loss has torn: nothing is synced here. No start takes such a file, but it would stay as
        long as its segment, and no whole one be written in its place. Raises ``OSError``."""
        parse: Callable[[bytes], object]
        for known, path_of, parse in (
            (self._offsets, self._path, parse_snapshot),
            (self._histories, self._history_path, parse_histories),
        ):
            for offset in sorted(known):
                try:
                    parse(self._storage.read(path_of(offset)))
                except CheckpointError as error:
                    logger.warning("removing %s: %s", path_of(offset), error)
                    self._storage.remove(path_of(offset))
                    known.discard(offset)

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
