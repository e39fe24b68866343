"""Reads the values in the input and the output of a group that transforms records, each with its offset.

Owns how both logs are read; judges nothing (``verifier/checks/pipeline_exactly_once.py`` does). An output value counts
only if its transaction was committed, as for a reader with ``isolation.level=read_committed``. The output comes from
the most advanced replica (``verifier.transactions.evidence``), the input from the final leader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.files.headers import read_headers
from verifier.groups.logs import readable_log
from verifier.groups.model import GroupEvidence, GroupPartition, Spans
from verifier.segments.rows import SegmentFile, read_segment
from verifier.transactions.logs import replica_end
from verifier.transactions.state_records import TopicPartition

#: (stream, sequence)
KeyedValue = tuple[int, int]
_NO_END = 2**62


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One group in one partition of its input, ``place``. It writes to the partition ``output``.

    ``inputs`` maps offsets to values, ``outputs`` maps values to all their offsets. ``began`` is the lowest offset at
    which a member began. ``certain`` is the highest offset that was certainly committed, ``possible`` the highest one
    that was or may have been. ``is_whole``: ``inputs`` has every record that a member can have received.
    """

    group: str
    place: TopicPartition
    output: TopicPartition
    began: int
    certain: int
    possible: int
    inputs: Mapping[int, KeyedValue] = field(default_factory=dict)
    outputs: Mapping[KeyedValue, Sequence[int]] = field(default_factory=dict)
    is_whole: bool = False


def pipelines(directory: RunDirectory, run: RunModel, evidence: GroupEvidence) -> list[Pipeline]:
    """The pipelines of a run; empty if its groups have no output. Raises ``OSError``."""
    finals = {(final.topic, final.partition): final for final in run.final}
    found = []
    for (group, place), partition in evidence.partitions.items():
        output = OUTPUT_TOPIC, place[1]
        homes = [directory.node(broker) / "data" / f"{output[0]}-{output[1]}" for broker in directory.broker_ids()]
        homes = [home for home in homes if home.is_dir()]
        if place[0] == OUTPUT_TOPIC or partition.log is None or not homes:
            continue
        final = finals[place]
        home = directory.node(final.leader) / "data" / f"{place[0]}-{place[1]}"
        found.append(
            pipeline(
                group,
                place,
                partition,
                _values(run.run_id, home, *place, partition.log.records),
                _output(run.run_id, max(homes, key=replica_end), *output),
                # an unclean election may truncate records that a member received
                is_whole=partition.log.start == 0 and not run.may_elect_uncleanly,
            )
        )
    return found


def pipeline(
    group: str,
    place: TopicPartition,
    partition: GroupPartition,
    inputs: Iterable[tuple[int, KeyedValue]],
    outputs: Iterable[tuple[int, KeyedValue]],
    *,
    is_whole: bool = False,
) -> Pipeline:
    """One pipeline, from the (offset, value) pairs of both logs. Pure."""
    offsets: dict[KeyedValue, list[int]] = defaultdict(list)
    for offset, value in outputs:
        offsets[value].append(offset)
    return Pipeline(
        group,
        place,
        (OUTPUT_TOPIC, place[1]),
        min((resumed.offset for resumed in partition.resumed), default=0),
        max((commit.offset for commit in partition.certain), default=0),
        max((commit.offset for commit in partition.commits), default=0),
        dict(inputs),
        offsets,
        is_whole,
    )


def _output(run_id: int, home: Path, topic: str, partition: int) -> Iterator[tuple[int, KeyedValue]]:
    """The values in the output that a reader with ``isolation.level=read_committed`` receives, each with its offset."""
    segments = [read_headers(path) for path in sorted(home.glob("*.log"))]
    whole = FinalPartition(topic, partition, high_watermark=_NO_END)
    committed = readable_log(segments, whole, committed_only=True).records
    return _values(run_id, home, topic, partition, committed)


def _values(run_id: int, home: Path, topic: str, partition: int, wanted: Spans) -> Iterator[tuple[int, KeyedValue]]:
    """This run's values at the wanted offsets. Other content is the business of ``phantom``, not of this module."""
    for path in sorted(home.glob("*.log")):
        segment = SegmentFile("", run_id, 0, topic, partition, int(path.stem), str(path))
        for rows in read_segment(segment):
            yield from _spans(rows, wanted)


def _spans(rows: pa.RecordBatch, wanted: Spans) -> Iterator[tuple[int, KeyedValue]]:
    some = rows.select(["kind", "stream", "first_offset", "last_offset", "first_sequence", "value_problem"])
    for row in some.to_pylist():
        if row["kind"] != "span" or row["stream"] is None or row["value_problem"] not in (None, "payload"):
            continue
        first = row["first_offset"]
        for part in wanted.within(first, row["last_offset"] + 1):
            for offset in range(part.first, part.last + 1):
                yield offset, (row["stream"], row["first_sequence"] + offset - first)
