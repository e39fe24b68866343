"""What a group read from each partition, and what of it is in its output: values by their offsets, from both logs.

The output is of read_committed: a value counts where the transaction that wrote it was committed. Of the output the
most advanced replica is read (``verifier.transactions.evidence``), of the input the final leader's. Owns the reading;
judges nothing.
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

#: A stream and a sequence.
KeyedValue = tuple[int, int]
_NO_END = 2**62


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One group in one partition of its input. ``inputs`` and ``outputs`` are values by offset and offsets by value.

    ``began``: the lowest offset at which a member began. ``certain``: below it all is committed past; ``possible``:
    no commit, whatever became of it, went beyond. ``is_whole``: nothing that a member was handed can be missing in
    ``inputs``.
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
    """Of a run whose groups have an output; none without. Raises ``OSError``."""
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
                # an unclean election may cut off what was handed over
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
    """From (offset, value) of both logs. Pure."""
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
    segments = [read_headers(path) for path in sorted(home.glob("*.log"))]
    whole = FinalPartition(topic, partition, high_watermark=_NO_END)
    committed = readable_log(segments, whole, committed_only=True).records
    return _values(run_id, home, topic, partition, committed)


def _values(run_id: int, home: Path, topic: str, partition: int, wanted: Spans) -> Iterator[tuple[int, KeyedValue]]:
    """The values of this run at the wanted offsets; whatever else is there is another check's."""
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
