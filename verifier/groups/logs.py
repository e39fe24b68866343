"""Finds the records that a log has for the members of a group, from the batch headers of the final leader.

Owns how the replica's directory is read, and which records are left out: control batches, and for members with
``isolation.level=read_committed``, records of transactions that were not committed. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.files.headers import Headers, read_headers
from verifier.files.transactions import TransactionReplay
from verifier.groups.model import OffsetSpan, ReadableLog, Spans
from verifier.segments.markers import COMMIT, TRANSACTIONAL
from verifier.segments.walk import CONTROL
from verifier.transactions.state_records import TopicPartition


def readable_logs(directory: RunDirectory, run: RunModel, *, committed_only: bool) -> dict[TopicPartition, ReadableLog]:
    """The readable log of every partition with a known final state and a replica of its leader. Raises ``OSError``."""
    found = {}
    for final in run.final:
        home = directory.node(final.leader) / "data" / f"{final.topic}-{final.partition}"
        if final.status == "ok" and final.high_watermark >= 0 and home.is_dir():
            segments = [read_headers(path) for path in sorted(home.glob("*.log"))]
            found[final.topic, final.partition] = readable_log(segments, final, committed_only=committed_only)
    return found


def readable_log(segments: Iterable[Headers], final: FinalPartition, *, committed_only: bool) -> ReadableLog:
    """The readable records between the log start and the final high watermark, from the segments in order. Pure."""
    replay, plain = TransactionReplay(), []
    written: dict[int, list[OffsetSpan]] = defaultdict(list)
    for headers in segments:
        replay.advance(headers, 0, headers.positions.size)
        for span, producer_id in _batches(headers):
            if producer_id < 0 or not committed_only:
                plain.append(span)
            else:
                written[producer_id].append(span)
    for ended in replay.ended:
        if ended.kind == COMMIT and ended.first_offset >= 0:
            own = written[ended.producer_id]
            plain += [span for span in own if ended.first_offset <= span.first < ended.marker_offset]
    return ReadableLog(
        final.log_start_offset, Spans(list(Spans(plain).within(final.log_start_offset, final.high_watermark)))
    )


def _batches(headers: Headers) -> Iterator[tuple[OffsetSpan, int]]:
    """The offsets of every data batch, with its producer id if it is part of a transaction, or else -1."""
    data = np.flatnonzero(headers.attributes & CONTROL == 0)
    is_transactional = headers.attributes[data] & TRANSACTIONAL != 0
    producers = np.where(is_transactional, headers.producer_ids[data], -1)
    rows = zip(
        headers.base_offsets[data].tolist(), headers.last_offsets[data].tolist(), producers.tolist(), strict=True
    )
    for first, last, producer_id in rows:
        yield OffsetSpan(first, last), producer_id
