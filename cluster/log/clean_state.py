"""What a log was when it was stopped cleanly, so that the next start need not read all its headers.

Owns ``.gapless_clean_state``, a file of ours beside Kafka's (whose tools pass it over): per log the sizes and ends of
its segments, checksums of its indexes, its epochs, and of each producer all that was known, not only the newest batch
that a Kafka snapshot has. Does not own what is made of it (``opening.py``).

It is trusted only after a clean stop, and of a log only if every file is as it says; otherwise all headers are read as
after any other stop. The file is removed before anything is changed, so an older one can never be taken for true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from crc32c import crc32c

from cluster.log.errors import CheckpointError
from cluster.log.sequence import BatchMetadata, ProducerEntry

CLEAN_STATE_FILE = ".gapless_clean_state"

_VERSION = 1


class SegmentRecord(NamedTuple):
    """One segment. The checksums (CRC-32C) are those of the index files; that of a file that is not there is 0."""

    base_offset: int
    next_offset: int
    size_bytes: int
    first_timestamp: int
    max_timestamp: int
    max_timestamp_offset: int
    offset_index_crc: int
    time_index_crc: int
    aborted_crc: int = 0


class LogState(NamedTuple):
    """One log. ``epochs`` are (epoch, start offset)."""

    segments: tuple[SegmentRecord, ...]
    epochs: tuple[tuple[int, int], ...]
    producers: tuple[ProducerEntry, ...]


def clean_state_text(states: Mapping[str, LogState]) -> str:
    """The file for these logs, by the names of their directories: a line with version and CRC-32C, a line of JSON."""
    rows = {
        name: [state.segments, state.epochs, [_producer_row(entry) for entry in state.producers]]
        for name, state in states.items()
    }
    body = json.dumps(rows, separators=(",", ":"))
    return f"{_VERSION} {crc32c(body.encode()):08x}\n{body}\n"


def parse_clean_state(text: str) -> dict[str, LogState]:
    """The inverse of ``clean_state_text``. Raises ``CheckpointError``."""
    head, _, body = text.partition("\n")
    body = body.rstrip("\n")
    if head != f"{_VERSION} {crc32c(body.encode()):08x}":
        raise CheckpointError(f"the state of a clean stop begins with {head!r:.40}, which does not fit the rest")
    try:
        return {name: _log_state(*row) for name, row in json.loads(body).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"the state of a clean stop is no such: {type(error).__name__}") from error


def _log_state(segments: list[Any], epochs: list[Any], producers: list[Any]) -> LogState:
    return LogState(
        tuple(SegmentRecord(*row) for row in segments),
        tuple((epoch, start_offset) for epoch, start_offset in epochs),
        tuple(_producer_entry(*row) for row in producers),
    )


def _producer_row(entry: ProducerEntry) -> list[Any]:
    return [
        entry.producer_id,
        entry.producer_epoch,
        entry.complete,
        entry.last_timestamp,
        entry.wrapped,
        entry.batches,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    ]


def _producer_entry(
    producer_id: int,
    producer_epoch: int,
    complete: bool,
    last_timestamp: int,
    wrapped: bool,
    batches: list[list[int]],
    coordinator_epoch: int = -1,
    txn_first_offset: int = -1,
) -> ProducerEntry:
    """A file that was written before there were transactions lacks the last two."""
    known = tuple(BatchMetadata(*row) for row in batches)
    return ProducerEntry(
        producer_id, producer_epoch, known, complete, last_timestamp, wrapped, coordinator_epoch, txn_first_offset
    )
