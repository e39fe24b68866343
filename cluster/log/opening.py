"""Opening a log: everything that is made from its files before the first append or read.

Owns the order of Kafka's LogLoader. Does not own the treatment of damage (``recovery.py``).

After a clean stop the log is what was noted then (``clean_state.py``), if every file is as noted. Else epochs are taken
from the batches themselves: a ``leader-epoch-checkpoint`` that lags or was lost (KAFKA-16541) cannot mislead. It counts
where batches are missing: in a compacted log, and in one whose records were all deleted (``epoch_file.py``). Producers
are those that were noted at the newest roll that was synced (``snapshots.py``), and all batches after it. Without that
note all batches are read; Kafka's snapshots matter only for producers whose batches the log no longer has.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from cluster.log.checkpoints import (
    LEADER_EPOCH_FILE,
    PARTITION_METADATA_FILE,
    parse_partition_metadata,
    read_text,
)
from cluster.log.clean_state import LogState
from cluster.log.config import LogConfig
from cluster.log.epoch_file import EpochFile
from cluster.log.epochs import EpochEntry, LeaderEpochCache
from cluster.log.errors import CheckpointError, not_opened
from cluster.log.producers import ProducerStates
from cluster.log.recovery import UNTIL_THE_END, Opening, StaleHistories, sound_aborted, tidy
from cluster.log.replay import LogReplay
from cluster.log.segment import Segment
from cluster.log.segment_start import restore
from cluster.log.segments import Segments
from cluster.log.snapshots import SnapshotFiles
from cluster.protocol.errors import CorruptBatch
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """What a log is made of."""

    segments: Segments
    snapshots: SnapshotFiles
    producers: ProducerStates
    epochs: LeaderEpochCache
    epoch_file: EpochFile
    topic_id: UUID | None
    log_start_offset: int
    #: The bytes that were not known to be synced, as they were found.
    verified_bytes: int


#: A function as ``open_log``.
OpenLog = Callable[..., OpenedLog]


def open_log(
    directory: str,
    config: LogConfig,
    storage: Storage,
    now_ms: int,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    holes_allowed: bool,
    state: LogState | None = None,
    committed_to: int | None = None,
) -> OpenedLog:
    """Read, verify and mend what is in ``directory``; an empty one gets a segment at ``log_start_offset``.

    ``holes_allowed``: it is or was compacted, so offsets may be missing. ``state`` is what it was at a clean stop.
    ``committed_to``: the recovery point is not known, but this high watermark is.

    Raises ``StorageFailed``.
    """
    segments: Segments | None = None
    try:
        storage.makedirs(directory)
        topic_id = _topic_id(directory, storage)
        epoch_file = EpochFile(directory, storage)
        epochs = LeaderEpochCache(on_change=epoch_file.write)
        snapshots = SnapshotFiles(directory, storage, epochs)
        if not clean:
            snapshots.drop_damaged()
        producers = ProducerStates()
        verified_bytes = 0
        segments = None if state is None else _restore(directory, config, storage, now_ms, state, producers, epochs)
        restored = segments is not None
        if segments is None:
            if holes_allowed:
                _load_epochs(directory, storage, epochs)
            bases = tidy(directory, storage)
            trusted_below = UNTIL_THE_END if clean else recovery_point
            replay = LogReplay(epochs, producers, holes_allowed=holes_allowed)
            opening = Opening(directory, bases, config, storage, now_ms, trusted_below, replay, committed_to)
            # After a clean stop something is wrong, or it would have been restored: everything is read.
            synced = 0 if clean else max(0, bisect_right(bases, recovery_point) - 1)
            segments = _open_segments(opening, snapshots, synced) if bases else None
            verified_bytes = opening.verified_bytes
        if segments is None or segments.active.next_offset < log_start_offset:
            _discard(segments, producers, epochs)
            segments = Segments([Segment(directory, log_start_offset, config, storage, now_ms)])
            restored = False
        elif epochs.latest is None and segments.active.next_offset > 0:
            # All was deleted, and no batch is left to tell it: a leader of another history must see in which epoch we
            # were where we ended.
            _load_epochs(directory, storage, epochs)
        end = segments.active.next_offset
        start = max(log_start_offset, segments.first.base_offset)
        _fit(directory, epochs, start, end, 0 if clean else recovery_point)
        if not restored:
            segments.active.flush_indexes()
        snapshots.drop_strays(segments.base_offsets, end, recovery_point)
        if not clean:
            snapshots.write(end, producers)
        epoch_file.keep(epochs, segments)
    except BaseException as error:  # Raised again, whatever it was: only open files must not be left behind.
        if segments is not None:
            segments.close()
        if isinstance(error, OSError):
            raise not_opened(f"opening {directory}", error) from error
        raise
    return OpenedLog(segments, snapshots, producers, epochs, epoch_file, topic_id, start, verified_bytes)


def _discard(segments: Segments | None, producers: ProducerStates, epochs: LeaderEpochCache) -> None:
    """All that is there lies below the log's start: it was deleted, whatever the files say."""
    if segments is not None:
        segments.delete_all()
    producers.clear()
    epochs.clear()


def _fit(directory: str, epochs: LeaderEpochCache, start: int, end: int, synced_to: int) -> None:
    if end < synced_to:
        # It was cut and its broker crashed before it could say so, or something else removed records.
        logger.warning("%s ends at %d, although it was synced up to %d", directory, end, synced_to)
    # In an empty log the one epoch begins where the log ends.
    epochs.truncate_from_end(end if end > start else end + 1)
    epochs.truncate_from_start(start)


def _topic_id(directory: str, storage: Storage) -> UUID | None:
    metadata = read_text(storage, f"{directory}/{PARTITION_METADATA_FILE}")
    return parse_partition_metadata(metadata) if metadata is not None else None


def _open_segments(opening: Opening, snapshots: SnapshotFiles, bases_synced: int) -> Segments:
    """Open what is there and fill the producers and epochs of ``opening.replay`` from it.

    Of the first ``bases_synced`` segments as many are taken over by their indexes as have noted all producers at their
    end; without such a note the batches of all are read.
    """
    replay, bases = opening.replay, opening.bases
    producers, epochs = replay.producers, replay.epochs
    stored_epochs = epochs.entries
    found = None
    adopted = sound_aborted(opening.directory, bases, bases_synced, opening.storage)
    while adopted and (found := snapshots.histories(bases[adopted])) is None:
        adopted -= 1

    def begin_walk() -> None:
        if found is None:
            snapshots.load(bases[0], producers)
        elif not snapshots.fits(bases[adopted], found[0]):
            raise StaleHistories
        else:
            producers.restore(found[1])

    try:
        return Segments(opening.run(adopted, begin_walk))
    except StaleHistories:
        logger.warning("%s: the producers noted at %d are of other records", opening.directory, bases[adopted])
    found = None
    epochs.replace_with(stored_epochs)
    return Segments(opening.run(0, begin_walk))


def _restore(
    directory: str,
    config: LogConfig,
    storage: Storage,
    now_ms: int,
    state: LogState,
    producers: ProducerStates,
    epochs: LeaderEpochCache,
) -> Segments | None:
    """The log as it was stopped, from what was noted then; None if a file is not as noted, so that all are read."""
    segments: list[Segment] = []
    try:
        bases = tidy(directory, storage)
        noted = [record.base_offset for record in state.segments]
        if bases != noted:
            raise CheckpointError(f"segments {bases} where {noted} were noted")
        for record in state.segments:
            segments.append(Segment(directory, record.base_offset, config, storage, now_ms))
            restore(segments[-1], record)
        restored = Segments(segments)
    except (CheckpointError, CorruptBatch, OSError, ValueError) as error:
        for segment in segments:
            segment.close()
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        logger.warning("%s is not as it was at the clean stop, so all of it is read: %s", directory, error)
        return None
    producers.restore(state.producers)
    epochs.replace_with(EpochEntry(*pair) for pair in state.epochs)
    return restored


def _load_epochs(directory: str, storage: Storage, epochs: LeaderEpochCache) -> None:
    """Take ``leader-epoch-checkpoint`` for where epochs began: of a compacted log the batches no longer tell.

    What it lacks, because it lags or was lost, comes from the batches nevertheless.
    """
    path = f"{directory}/{LEADER_EPOCH_FILE}"
    try:
        stored = LeaderEpochCache.from_text(read_text(storage, path) or "")
    except (CheckpointError, ValueError) as error:
        logger.warning("passing over %s: %s", path, error)
        return
    epochs.replace_with(stored.entries)
