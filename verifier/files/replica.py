"""All rules, asked of one replica's directory. Owns the order in which its files are read, and what a stop promises.

A broker that stopped cleanly left ``.kafka_cleanshutdown``, made last of all; one whose process ended with status 0
must have. Then everything is flushed, sealed and noted. After any other stop less is promised, and it is the next start
that mends: indexes of the last segment may lag or point beyond a log that had just been cut, bytes that are no batch
may end it, checkpoints may lag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from verifier.files import checkpoints, indexes, model, snapshots
from verifier.files.aborted_index import aborted_index
from verifier.files.checkpoints import Known
from verifier.files.formats import read
from verifier.files.headers import Headers, read_headers
from verifier.files.model import Finding
from verifier.files.transactions import TransactionReplay

_SEGMENT = re.compile(r"^\d{20}\.log$")
_SNAPSHOT = re.compile(r"^(\d{20})\.(?:snapshot|producers)$")


class ReplicaDirectory(NamedTuple):
    """One replica. ``ended_in_order``: its broker's process ended with status 0, as the run noted. ``high_watermark``
    and ``log_start_offset`` are the final phase's if this is the final leader, else -1. ``expired_ms``: producers whose
    newest batch is not younger may have been forgotten (-1: none).
    """

    run: str
    broker: int
    topic: str
    partition: int
    path: str
    ended_in_order: bool = False
    high_watermark: int = -1
    log_start_offset: int = -1
    expired_ms: int = -1


def is_clean(replica: ReplicaDirectory) -> bool:
    """Whether the files must be as a clean stop leaves them."""
    return replica.ended_in_order or _marker(replica).exists()


def _marker(replica: ReplicaDirectory) -> Path:
    return Path(replica.path).parent / model.CLEAN_SHUTDOWN


def check(replica: ReplicaDirectory, *, strict: bool = False) -> Iterator[Finding]:
    """Everything that is wrong with the files of one replica. Raises ``OSError``.

    ``strict``: what a kill may leave counts too: in the last segment's indexes, and epochs beyond the log's end.
    """
    directory, clean = Path(replica.path), is_clean(replica)
    if not _marker(replica).exists() and replica.ended_in_order:
        problem = "it is missing, although the broker's process ended cleanly"
        yield Finding(model.CHECKPOINT, "marker", model.CLEAN_SHUTDOWN, None, 1, problem)
    logs = sorted(path for path in directory.iterdir() if _SEGMENT.match(path.name))
    if not logs:
        return
    log_starts, epochs = read(directory.parent / model.LOG_START), read(directory / model.LEADER_EPOCH)
    first_offset = int(logs[0].stem)
    known = Known(replica.topic, replica.partition, first_offset, first_offset)
    epochs_from = checkpoints.first_judged(epochs, known, log_starts, clean=clean)
    producers = _Producers(directory, first_offset, replica.expired_ms)
    transactions = _ReplicaTransactions(first_offset)
    end, batches = first_offset, 0
    for log in logs:
        headers = read_headers(log)
        yield from transactions.segment(log, headers, judged=clean or strict or log != logs[-1])
        end = headers.next_offset
        batches += headers.positions.size
        is_last = log == logs[-1]
        if clean or strict or not is_last:
            yield from _indexes(log, headers, clean=clean, closed=clean or not is_last)
        if clean and headers.tail:
            size = headers.size_bytes - headers.tail_position
            problem = f"{size} {headers.tail} bytes at byte {headers.tail_position}, after a clean stop"
            yield Finding(model.TAIL, None, log.name, headers.next_offset, 1, problem)
        yield from checkpoints.epochs_of_batches(epochs, headers, epochs_from)
        yield from producers.segment(headers)
    yield from producers.end(end, clean=clean)
    leads = replica.high_watermark >= 0
    known = replace(
        known,
        end_offset=end,
        high_watermark=replica.high_watermark if leads else None,
        log_start_offset=replica.log_start_offset if leads else None,
    )
    yield from checkpoints.leader_epochs(
        epochs, has_batches=batches > 0, clean=clean, end_offset=end if clean or strict else None
    )
    for name in checkpoints.OFFSET_FILES:
        yield from checkpoints.offset_checkpoint(name, read(directory.parent / name), known, clean=clean)


def _indexes(log: Path, headers: Headers, *, clean: bool, closed: bool) -> Iterator[Finding]:
    for suffix in (".index", ".timeindex"):
        path = log.with_suffix(suffix)
        data = read(path)
        if data is None:
            if clean:
                yield Finding(model.INDEX, "missing", path.name, None, 1, "it is missing")
        elif suffix == ".index":
            yield from indexes.offset_index(path.name, data, headers)
        else:
            yield from indexes.time_index(path.name, data, headers, closed=closed)


class _ReplicaTransactions:
    """The indexes of aborted transactions of one directory, compared as the segments go by."""

    def __init__(self, first_offset: int) -> None:
        self._first_offset = self._next_offset = first_offset
        self._replay = TransactionReplay()
        self._is_whole = True

    def segment(self, log: Path, headers: Headers, *, judged: bool) -> Iterator[Finding]:
        """Go through a segment. Where compaction has removed batches, their transactions cannot be told."""
        before = np.concatenate([[self._next_offset], headers.last_offsets[:-1] + 1])
        follow = headers.base_offsets == before[: headers.base_offsets.size]
        full = headers.record_counts == headers.last_offsets - headers.base_offsets + 1
        self._is_whole &= bool(follow.all() and full.all())
        self._next_offset = headers.next_offset
        self._replay.advance(headers, 0, headers.positions.size)
        if judged and self._is_whole and self._replay.unreadable < 0:
            path = log.with_suffix(".txnindex")
            yield from aborted_index(path.name, read(path), self._replay.ended, self._first_offset)
        self._replay.ended.clear()


class _Producers:
    """The snapshots of one directory, compared as the batches go by."""

    def __init__(self, directory: Path, first_offset: int, expired_ms: int) -> None:
        found = [(int(match[1]), path) for path in directory.iterdir() if (match := _SNAPSHOT.match(path.name))]
        self._waiting = sorted(found)
        self._offsets = {offset for offset, path in found if path.suffix == ".snapshot"}
        self._first_offset = first_offset
        self._expired_ms = expired_ms
        self._replay = snapshots.ProducerReplay()

    def segment(self, headers: Headers) -> Iterator[Finding]:
        """Go through a segment; each snapshot is compared before the first batch that it does not cover."""
        done, count = 0, headers.positions.size
        highest = np.maximum.accumulate(headers.base_offsets)
        while self._waiting:
            offset, path = self._waiting[0]
            at = max(done, int(np.searchsorted(highest, offset)))
            if at == count:
                break
            self._replay.advance(headers, done, at)
            done = at
            yield from self._compare(path, offset)
        self._replay.advance(headers, done, count)

    def end(self, end_offset: int, *, clean: bool) -> Iterator[Finding]:
        """What is left: snapshots at the end of the log, and beyond it."""
        while self._waiting:
            offset, path = self._waiting[0]
            if offset > end_offset:
                self._waiting.pop(0)
                yield from snapshots.beyond(path.name, offset, end_offset)
            else:
                yield from self._compare(path, offset)
        if clean and end_offset > 0 and end_offset not in self._offsets:
            name = f"{end_offset:020d}.snapshot"
            yield Finding(model.SNAPSHOT, "missing", name, end_offset, 1, "it is missing after a clean stop")

    def _compare(self, path: Path, offset: int) -> Iterator[Finding]:
        self._waiting.pop(0)
        expected = self._replay.producers
        yield from snapshots.compare(path, offset, expected, self._first_offset, self._expired_ms)
