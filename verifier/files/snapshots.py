"""``snapshot-mismatch``: producer-state snapshots against a replay of the batches before their offset. Pure.

Owns the replay and the comparison (Kafka's ProducerStateManager). A snapshot has of each producer its newest batch
below the snapshot's offset. Legal are producers whose batches the log no longer has, because its start has moved, even
if a marker of theirs is left;
producers that are not there because ``producer.id.expiration.ms`` had passed; and that snapshots are absent, but for
the one at the end of a log that was stopped cleanly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from verifier.files.formats import FormatError, SnapshotEntry, histories, read, snapshot
from verifier.files.headers import Headers
from verifier.files.model import SNAPSHOT, Finding

_READERS = {".snapshot": snapshot, ".producers": histories}


class ProducerReplay:
    """The newest batch of every producer, batch after batch in the order of the file."""

    def __init__(self) -> None:
        self.producers: dict[int, SnapshotEntry] = {}

    def __repr__(self) -> str:
        return f"ProducerReplay({len(self.producers)} producers)"

    def advance(self, headers: Headers, first: int, end: int) -> None:
        """Take the batches ``first`` up to, not with, ``end`` of a segment."""
        ids = headers.producer_ids[first:end]
        # the newest of each: the first when looked at from the end
        known, back = np.unique(ids[::-1], return_index=True)
        newest = dict(zip(known.tolist(), (end - 1 - back).tolist(), strict=True))
        without = (headers.base_sequences[first:end] < 0) & (ids >= 0)
        one_by_one = set(ids[without].tolist())
        for producer_id, at in newest.items():
            if producer_id >= 0 and producer_id not in one_by_one:
                self._take(headers, at)
        for at in (first + np.flatnonzero(np.isin(ids, sorted(one_by_one)))).tolist():
            self._take(headers, at)

    def _take(self, headers: Headers, at: int) -> None:
        producer_id, epoch = int(headers.producer_ids[at]), int(headers.producer_epochs[at])
        timestamp = int(headers.max_timestamps[at])
        if headers.base_sequences[at] >= 0:
            base, last = int(headers.base_offsets[at]), int(headers.last_offsets[at])
            sequence = int(headers.base_sequences[at]) + last - base & 2**31 - 1
            self.producers[producer_id] = SnapshotEntry(producer_id, epoch, sequence, last, last - base, timestamp)
            return
        # a marker: it may begin an epoch, in which there is no batch yet
        before = self.producers.get(producer_id)
        if before is None or before.producer_epoch != epoch:
            before = SnapshotEntry(producer_id, epoch, -1, -1, 0, timestamp)
        self.producers[producer_id] = before._replace(timestamp=timestamp)


def compare(
    path: Path, offset: int, expected: Mapping[int, SnapshotEntry], first_offset: int, expired_ms: int
) -> Iterator[Finding]:
    """One ``.snapshot`` or ``.producers`` file against the replay up to its ``offset``.

    ``first_offset``: where the files of the log begin. ``expired_ms``: a producer whose newest batch is not younger may
    have been forgotten. Raises ``OSError``.
    """
    try:
        data = read(path)
        found = {producer.producer_id: producer for producer in _READERS[path.suffix](b"" if data is None else data)}
    except FormatError as error:
        yield Finding(SNAPSHOT, "unreadable", path.name, offset, 1, str(error))
        return
    wrong = sorted(
        each
        for each in found.keys() & expected.keys()
        if found[each] != expected[each] and not _marker_is_left(found[each], expected[each], first_offset)
    )
    lacking = sorted(each for each in expected.keys() - found.keys() if expected[each].timestamp > expired_ms)
    strangers = sorted(
        each
        for each in found.keys() - expected.keys()
        if not (first_offset > 0 and found[each].last_offset < first_offset)
    )
    if wrong:
        one = wrong[0]
        problem = f"producer {one}: {_said(found[one])}, where the log has {_said(expected[one])}"
        yield Finding(SNAPSHOT, "entry", path.name, offset, len(wrong), problem)
    if lacking:
        problem = f"producer {lacking[0]} is not in it, where the log has {_said(expected[lacking[0]])}"
        yield Finding(SNAPSHOT, "lacks", path.name, offset, len(lacking), problem)
    if strangers:
        problem = f"producer {strangers[0]}: {_said(found[strangers[0]])}, which the log does not have"
        yield Finding(SNAPSHOT, "stranger", path.name, offset, len(strangers), problem)


def _marker_is_left(found: SnapshotEntry, expected: SnapshotEntry, first_offset: int) -> bool:
    """Whether the log has but a marker of a producer, whose newest batch was deleted."""
    without_batch = found._replace(last_sequence=-1, last_offset=-1, offset_delta=0)
    return found.last_offset < first_offset and expected == without_batch


def beyond(name: str, offset: int, end_offset: int) -> Iterator[Finding]:
    """A snapshot of records that the log does not have: those above a cut are removed before it is made."""
    if offset > end_offset:
        problem = f"its offset lies beyond the end of the log, {end_offset}"
        yield Finding(SNAPSHOT, "beyond", name, offset, 1, problem)


def _said(producer: SnapshotEntry) -> str:
    if producer.last_offset < 0:
        return f"no batch of epoch {producer.producer_epoch}"
    return (
        f"epoch {producer.producer_epoch}, last sequence {producer.last_sequence}, "
        f"{producer.offset_delta + 1} records up to offset {producer.last_offset}, timestamp {producer.timestamp}"
    )
