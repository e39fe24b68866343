"""The batches of one segment as its side files are compared with them: header fields alone, by ``segments.walk``.

Owns which fields. Of the records, only the markers of transactions are read, and only their CRC is taken: the segments'
own rows have the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verifier.segments import walk
from verifier.segments.markers import MOST_MARKER_BYTES, marker_of

#: In ``Headers.markers``, besides ABORT and COMMIT: no control batch, and one without a marker that can be read.
NO_CONTROL, NO_MARKER = -1, -2

#: Batches whose fields are gathered at a time, so that a segment of any size needs bounded memory.
CHUNK_BATCHES = 1 << 18


class Headers(NamedTuple):
    """One element a batch, in the order of the file. ``tail`` says what follows the last of them (``walk.Walk``)."""

    base_offset: int
    size_bytes: int
    tail_position: int
    tail: str
    positions: NDArray[np.int64]
    base_offsets: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    max_timestamps: NDArray[np.int64]
    leader_epochs: NDArray[np.int64]
    producer_ids: NDArray[np.int64]
    producer_epochs: NDArray[np.int64]
    base_sequences: NDArray[np.int64]
    attributes: NDArray[np.int64]
    record_counts: NDArray[np.int64]
    markers: NDArray[np.int64]
    coordinator_epochs: NDArray[np.int64]

    @property
    def next_offset(self) -> int:
        """Behind the last batch."""
        return int(self.last_offsets[-1]) + 1 if self.last_offsets.size else self.base_offset

    @property
    def end_offset(self) -> int:
        """Behind the highest batch."""
        return int(self.last_offsets.max()) + 1 if self.last_offsets.size else self.base_offset


_FIELDS = (
    "base_offset", "last_offset_delta", "max_timestamp", "leader_epoch", "producer_id", "producer_epoch",
    "base_sequence", "attributes", "record_count",
)  # fmt: skip


def read_headers(path: str | Path) -> Headers:
    """The batches of a ``.log`` file, which is named after its base offset. Raises ``OSError``, ``ValueError``."""
    data = walk.open_segment(path)
    found = walk.walk(data)
    chunks: dict[str, list[NDArray[np.int64]]] = {name: [np.zeros(0, dtype=np.int64)] for name in _FIELDS}
    for first in range(0, found.positions.size, CHUNK_BATCHES):
        fields = walk.headers(data, found.positions[first : first + CHUNK_BATCHES])
        for name in _FIELDS:
            chunks[name].append(fields[name].astype(np.int64))
    base, delta, *rest = (np.concatenate(chunks[name]) for name in _FIELDS)
    markers, coordinator_epochs = _markers(data, found, rest[-2])
    base_offset = int(Path(path).name.partition(".")[0])
    return Headers(
        base_offset,
        int(data.size),
        found.tail_position,
        found.tail,
        found.positions,
        base,
        base + delta,
        *(*rest, markers, coordinator_epochs),
    )


def _markers(
    data: NDArray[np.uint8], found: walk.Walk, attributes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each control batch says about its transaction, and the epoch of the coordinator that wrote it, else -1."""
    kinds, epochs = np.full(attributes.size, NO_CONTROL), np.full(attributes.size, -1)
    for at in np.flatnonzero(attributes & walk.CONTROL).tolist():
        start = int(found.positions[at])
        size = min(int(found.sizes[at]), MOST_MARKER_BYTES + 1)
        marker = marker_of(data[start : start + size].tobytes())
        kinds[at], epochs[at] = (NO_MARKER, -1) if marker is None else marker
    return kinds, epochs
