"""``checkpoint-mismatch``: the small text files of a replica and its broker against the log. Pure.

Owns what each number must be, after a clean stop and after any other (docs/log.md). After a kill the offset
checkpoints lag, and the recovery point and the high watermark may even lie above a log that had just been cut; nothing
is said about them then. A file that cannot be read is wrong after any stop: all are replaced in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verifier.files.formats import FormatError, OutOfBounds, offsets, pairs
from verifier.files.headers import Headers
from verifier.files.model import CHECKPOINT, HIGH_WATERMARK, LEADER_EPOCH, LOG_START, RECOVERY_POINT, Finding

OFFSET_FILES = (RECOVERY_POINT, HIGH_WATERMARK, LOG_START)


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of a replica. ``end_offset`` and ``first_offset`` of its files; ``high_watermark`` and
    ``log_start_offset`` as the final phase saw them if it is the final leader, else None.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    high_watermark: int | None = None
    log_start_offset: int | None = None


def leader_epochs(
    data: bytes | OutOfBounds | None, *, has_batches: bool, clean: bool, end_offset: int | None
) -> Iterator[Finding]:
    """What is wrong with ``leader-epoch-checkpoint`` by itself; ``data`` None: there is no such file.

    ``end_offset`` None: the log may just have been cut, so that epochs may begin above its end.
    """
    if data is None:
        if has_batches or clean:
            yield _mismatch("missing", LEADER_EPOCH, None, "it is missing")
        return
    try:
        entries = pairs(data)
    except FormatError as error:
        yield _mismatch("unreadable", LEADER_EPOCH, None, str(error))
        return
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start <= start:
            problem = f"epoch {next_epoch} at {next_start} does not come after epoch {epoch} at {start}"
            yield _mismatch("epochs", LEADER_EPOCH, next_start, problem)
    for epoch, start in entries:
        # an epoch may begin where the log ends
        if end_offset is not None and start > end_offset:
            problem = f"epoch {epoch} starts at {start}, beyond the end of the log, {end_offset}"
            yield _mismatch("epochs", LEADER_EPOCH, start, problem)


def epochs_of_batches(data: bytes | OutOfBounds | None, headers: Headers, from_offset: int) -> Iterator[Finding]:
    """The batches of one segment, from ``from_offset`` on, whose epoch is not what the checkpoint says there."""
    try:
        entries = sorted((start, epoch) for epoch, start in pairs(data or b""))
    except FormatError:
        return
    judged = headers.base_offsets >= from_offset
    if data is None or not judged.any():
        return
    starts = np.array([start for start, _ in entries], dtype=np.int64)
    epochs = np.array([-1, *(epoch for _, epoch in entries)], dtype=np.int64)
    said = epochs[np.searchsorted(starts, headers.base_offsets, side="right")]
    where = np.flatnonzero(judged & (said != headers.leader_epochs))
    if where.size:
        at = int(where[np.argmin(headers.base_offsets[where])])
        epoch = None if said[at] < 0 else int(said[at])
        problem = (
            f"epoch {epoch} for offset {headers.base_offsets[at]}, the batch there has {headers.leader_epochs[at]}"
        )
        yield _mismatch("epochs", LEADER_EPOCH, int(headers.base_offsets[at]), problem, int(where.size))


def first_judged(
    data: bytes | OutOfBounds | None, known: Known, log_starts: bytes | OutOfBounds | None, *, clean: bool
) -> int:
    """From which offset on the epochs of batches are judged: what lies below the log's start is forgotten.

    After a kill the checkpoint of log starts may lag behind the epochs; then these say themselves where they begin.
    """
    try:
        noted = offsets(log_starts or b"").get((known.topic, known.partition), 0)
        begins = min((start for _, start in pairs(data or b"")), default=0)
    except FormatError:
        return known.first_offset
    return max(known.first_offset, noted) if clean else max(known.first_offset, noted, begins)


def offset_checkpoint(name: str, data: bytes | OutOfBounds | None, known: Known, *, clean: bool) -> Iterator[Finding]:
    """What is wrong with this replica's line in one of the broker's offset checkpoints."""
    if data is None:
        if clean:
            yield _mismatch("missing", name, None, "it is missing")
        return
    try:
        offset = offsets(data).get((known.topic, known.partition))
    except FormatError as error:
        yield _mismatch("unreadable", name, None, str(error))
        return
    if not clean:
        return
    end, shown = known.end_offset, "no line" if offset is None else f"offset {offset}"
    if name == RECOVERY_POINT and offset != end:
        yield _mismatch("recovery-point", name, None, f"{shown} where the log was stopped at {end}, all of it synced")
    elif name == HIGH_WATERMARK:
        least = known.high_watermark or 0
        if (offset or 0) > end:
            yield _mismatch("high-watermark", name, None, f"{shown}, beyond the end of the log, {end}")
        elif (offset or 0) < least:
            yield _mismatch("high-watermark", name, None, f"{shown} on the leader, whose high watermark was {least}")
    elif name == LOG_START:
        begins = max(known.first_offset, offset or 0)
        if (offset or 0) > end:
            yield _mismatch("log-start", name, None, f"{shown}, beyond the end of the log, {end}")
        elif known.log_start_offset is not None and begins != known.log_start_offset:
            problem = f"{shown}: by this file the log begins at {begins}, but it began at {known.log_start_offset}"
            yield _mismatch("log-start", name, None, problem)


def _mismatch(cause: str, name: str, offset: int | None, problem: str, places: int = 1) -> Finding:
    return Finding(CHECKPOINT, cause, name, offset, places, problem)
