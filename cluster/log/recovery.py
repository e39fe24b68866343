"""Opening the segments of a log after a stop: what is read, checked and truncated (Kafka's LogLoader).

Owns which segments are adopted by their indexes and which are walked (to rebuild indexes, epochs and producers from the
batches), and how damage is handled:

* After an unclean stop, everything at or above the recovery point may be torn or lost. From the segment of the recovery
  point on, checksums are verified. The log is truncated at the first bad batch, or where a segment ends before the next
  one begins, and later segments are deleted. Whole segments below the recovery point were synced, and cost almost
  nothing.
* If the checkpoint of recovery points was lost, a torn tail is truncated in the same way. Damage that is followed by
  sound batches, or that is below the last known high watermark, is not a torn tail.
* Damage below the recovery point, or after a clean stop, is not repaired by deleting. It raises, the log stays as it
  is, and its replica is offline on this broker. Kafka truncates here too, and may lose records that exist nowhere else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from cluster.log.aborted_index import AbortedIndex
from cluster.log.checkpoints import RECOVERY_POINT_FILE
from cluster.log.config import LogConfig
from cluster.log.errors import CheckpointError, StorageFailed
from cluster.log.producers import ProducerStates
from cluster.log.replay import LogReplay
from cluster.log.roll import INT32_MAX
from cluster.log.scan import scan_batches, sound_batch_behind
from cluster.log.segment import CLEANED_SUFFIX, SWAP_SUFFIX, Segment, remove_segment
from cluster.log.segment_start import adopt, walk
from cluster.protocol.errors import CorruptBatch
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

#: The value of ``trusted_below`` after a clean stop.
UNTIL_THE_END = 2**63 - 1

_LOG_FILE = re.compile(r"(\d{20})\.log")
_INDEX_FILE = re.compile(r"(\d{20})\.(?:index|timeindex|txnindex)")
_SWAP_FILE = re.compile(r"(\d{20})\.log\.swap")


def tidy(directory: str, storage: Storage) -> list[int]:
    """Finish what a crash interrupted, remove leftovers, and return the base offsets in ascending order.

    Leftovers are ``.deleted``, ``.tmp`` and ``.cleaned`` files, indexes without a log, and ``.swap`` files without
    their batches. Raises ``StorageFailed`` if a compacted segment is damaged.
    """
    names = storage.listdir(directory)
    swaps = {int(match[1]) for name in names if (match := _SWAP_FILE.fullmatch(name))}
    bases = {int(match[1]) for name in names if (match := _LOG_FILE.fullmatch(name))}
    for base_offset in sorted(swaps):
        bases = _finish_swap(directory, base_offset, bases, storage)
    for name in storage.listdir(directory) if swaps else names:
        index = _INDEX_FILE.fullmatch(name)
        if name.endswith((".deleted", ".tmp", CLEANED_SUFFIX, SWAP_SUFFIX)) or (index and int(index[1]) not in bases):
            storage.remove(f"{directory}/{name}")
    return sorted(bases)


def _finish_swap(directory: str, base_offset: int, bases: set[int], storage: Storage) -> set[int]:
    """Replace the remaining originals of a compacted segment by it; returns the base offsets.

    The file with the batches is renamed last, so that all of this can be repeated after another crash.
    """
    stem = f"{directory}/{base_offset:020d}"
    file = storage.open(f"{stem}.log{SWAP_SUFFIX}")
    end_offset = base_offset + 1
    try:
        for _, header in scan_batches(file, 0, file.size_bytes):
            end_offset = header.next_offset
    except CorruptBatch as error:
        raise StorageFailed(f"{file.path}, the outcome of a compaction, is damaged: {error}") from error
    finally:
        file.close()
    originals = {base for base in bases if base_offset <= base < end_offset}
    for base in sorted(originals, reverse=True):
        remove_segment(directory, base, storage)
    for kind in (".index", ".timeindex", ".txnindex", ".log"):
        if storage.exists(stem + kind + SWAP_SUFFIX):
            storage.rename(stem + kind + SWAP_SUFFIX, stem + kind)
    logger.info("%s: the compaction from %d to %d is finished", directory, base_offset, end_offset)
    return (bases - originals) | {base_offset}


def sound_aborted(directory: str, bases: list[int], count: int, storage: Storage) -> int:
    """How many of the first ``count`` segments have a ``.txnindex`` that can be theirs, or none. Raises ``OSError``."""
    for number, (base_offset, end_offset) in enumerate(pairwise(bases[: count + 1])):
        index = AbortedIndex(storage, f"{directory}/{base_offset:020d}.txnindex")
        try:
            index.load(index.read())
            if any(not base_offset <= entry.last_offset < end_offset for entry in index):
                raise CheckpointError("a marker that is not in the segment")
        except CheckpointError as error:
            logger.warning("reading all from offset %d on because of %s: %s", base_offset, index.path, error)
            return number
    return count


class StaleHistories(Exception):
    """The recorded producer state does not match the records in the log."""


@dataclass(slots=True)
class Opening:
    """The opening of the segments ``bases`` of one directory.

    Offsets below ``trusted_below`` were synced, or the stop was clean. If it is no longer known what was synced,
    ``trusted_below`` is 0 and ``committed_to`` is the last known high watermark; otherwise ``committed_to`` is None.
    ``verified_bytes`` counts the bytes, as they were found, that may have been torn.
    """

    directory: str
    bases: list[int]
    config: LogConfig
    storage: Storage
    now_ms: int
    trusted_below: int
    replay: LogReplay
    committed_to: int | None = None
    verified_bytes: int = 0

    def run(self, adopted: int, begin_walk: Callable[[], None]) -> list[Segment]:
        """Adopt the first ``adopted`` segments by their indexes, then call ``begin_walk`` and walk the others.

        Raises ``StorageFailed``: see the module's docstring.
        """
        segments: list[Segment] = []
        self.verified_bytes = 0
        try:
            for number, base_offset in enumerate(self.bases):
                if segments and self._is_lost(segments[-1].next_offset, base_offset):
                    problem: str | None = f"there is nothing between it and segment {base_offset}"
                else:
                    if number == adopted:
                        begin_walk()
                    segment = Segment(self.directory, base_offset, self.config, self.storage, self.now_ms)
                    segments.append(segment)
                    end = self.bases[number + 1] if number + 1 < len(self.bases) else UNTIL_THE_END
                    problem = self._adopt(segment) if number < adopted else self._walk(segment, end)
                if problem is not None:
                    self._cut_off(segments[-1], self.bases[len(segments) :], problem)
                    break
            for segment in segments[adopted:-1]:
                segment.seal()
        except BaseException:
            for segment in segments:
                segment.close()
            raise
        self.replay.settle()
        return segments

    def _is_lost(self, end: int, base_offset: int) -> bool:
        """Whether records between the end of a segment and the next segment are lost.

        In a compacted log, they may have been compacted away, but only below the recovery point (``cleaner.py``); or
        the next batch has such a high offset that it needed a segment of its own (``LocalLog.roll``).
        """
        if end == base_offset:
            return False
        if not self.replay.holes_allowed:
            return True
        knows = self.committed_to is None
        return knows and base_offset > self.trusted_below and base_offset - end <= INT32_MAX

    def _adopt(self, segment: Segment) -> str | None:
        # The producers are read later from their recorded state.
        allowed = self.replay.holes_allowed
        aside = LogReplay(self.replay.epochs, ProducerStates(), holes_allowed=allowed, knows_producers=False)
        segment.aborted.load(segment.aborted.read())
        try:
            adopt(segment, aside)
        except (CheckpointError, CorruptBatch) as error:
            logger.warning("reading all of %s: %s", segment.file.path, error)
            segment.reset()
            problem = walk(segment, aside, check_crc=False)
            if problem is None:
                segment.seal()
            return problem
        return None

    def _walk(self, segment: Segment, end: int) -> str | None:
        self.replay.begin_segment(segment.base_offset)
        verifies = self.trusted_below < end
        if verifies:
            self.verified_bytes += segment.file.size_bytes
        problem = walk(segment, self.replay, check_crc=verifies)
        segment.aborted.store()
        return problem

    def _cut_off(self, last: Segment, later: list[int], problem: str) -> None:
        """Truncate the log to the good part of ``last``, or raise. Later segments are removed first, from the newest to
        the oldest, so that a crash in between leaves no hole."""
        message = f"{last.file.path} is good up to offset {last.next_offset} and byte {last.size_bytes}: {problem}"
        fix = (
            f"nothing is truncated. If another replica has the records, stop this broker and remove {self.directory}: "
            f"they are fetched again. To discard everything from offset {last.next_offset} on, stop it and remove "
            f"this partition's line from {RECOVERY_POINT_FILE}"
        )
        if last.next_offset < self.trusted_below:
            raise StorageFailed(f"{message}; what follows was once stored safely, so {fix}")
        if self.committed_to is not None:
            stored_to = max(self.committed_to, self._sound_behind(last, later) or 0)
            if stored_to > last.next_offset:
                raise StorageFailed(
                    f"{message}; records up to offset {stored_to} were stored, so this is not a torn tail, and {fix}"
                )
        logger.warning("%s; truncating the rest and deleting %d later segments", message, len(later))
        for base_offset in reversed(later):
            remove_segment(self.directory, base_offset, self.storage)
        if last.size_bytes < last.file.size_bytes:
            last.cut(last.size_bytes, last.next_offset)

    def _sound_behind(self, last: Segment, later: list[int]) -> int | None:
        """Where a complete batch after the good part of ``last`` ends; None without such a batch."""
        found = sound_batch_behind(last.file, last.size_bytes, last.next_offset)
        for base_offset in later if found is None else ():
            file = self.storage.open(f"{self.directory}/{base_offset:020d}.log", create=False)
            try:
                found = sound_batch_behind(file, 0, base_offset)
            finally:
                file.close()
            if found is not None:
                break
        return found
