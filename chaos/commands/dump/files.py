"""Which reader a file's name asks for, and the readers of what is text, JSON or a history.

Checkpoints are read line by line here, not all or nothing as a broker reads them: what is good is shown, and then
what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from chaos.commands.dump import segments
from chaos.commands.dump.entries import TOO_DEEP, DamagedPart, Entry, Lines
from chaos.exits import BadRequest
from cluster.log.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    parse_meta_properties,
    parse_partition_metadata,
)
from cluster.log.clean_state import CLEAN_STATE_FILE, parse_clean_state
from cluster.log.errors import CheckpointError
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.bounded import MOST_LINE_BYTES, MOST_LINES_BYTES, whole
from verifier.evidence.bounded import lines as bounded_lines
from verifier.evidence.history import scan_history

KNOWN = (
    ".log, .index, .timeindex, .txnindex, .snapshot, .producers, leader-epoch-checkpoint, *-offset-checkpoint, "
    "partition.metadata, meta.properties, .kafka_cleanshutdown, .gapless_clean_state, .arrow, .jsonl, "
    "or a directory of these"
)

#: The suffixes of a segment's files while they are removed or replaced.
_PASSING = re.compile(r"\.(deleted|cleaned|swap)$")

#: The number of rows of a history that are converted to Python objects at a time.
_ROWS_AT_A_TIME = 4096

#: The size limits for a file with a few lines, and for one with lines about each epoch, partition or log of a broker.
_MOST_TEXT_BYTES = 64 << 10
_MOST_STATE_BYTES = 64 << 20
#: The size limit for a line. A line of a checkpoint has a topic's name and two numbers.
_MOST_LINE_BYTES = 64 << 10

#: The suffixes of files for which a range of offsets can be chosen.
RANGED = {".log", ".index", ".timeindex", ".txnindex"}


def kind_of(path: Path) -> str:
    """The suffix that decides how a file is read, without ``.deleted`` and the like."""
    return Path(_PASSING.sub("", path.name)).suffix


def lines_of(path: Path, *, with_records: bool) -> Lines:
    """The content of one file. Raises ``BadRequest`` for a name that nothing here reads."""
    by_suffix: Mapping[str, Callable[[Path], Lines]] = {
        ".log": partial(segments.segment, with_records=with_records),
        ".index": segments.offset_index,
        ".timeindex": segments.time_index,
        ".txnindex": segments.aborted_transactions,
        ".snapshot": segments.snapshot,
        ".producers": segments.histories,
        ".arrow": _history,
        ".jsonl": _json_lines,
    }
    by_name: Mapping[str, Callable[[Path], Lines]] = {
        LEADER_EPOCH_FILE: partial(_rows, names=("epoch", "start_offset")),
        PARTITION_METADATA_FILE: _partition_metadata,
        META_PROPERTIES_FILE: _meta_properties,
        CLEAN_SHUTDOWN_FILE: _marker,
        CLEAN_STATE_FILE: _clean_state,
    }
    reader = by_name.get(path.name) or by_suffix.get(kind_of(path))
    if reader is None and path.name.endswith("-offset-checkpoint"):
        reader = partial(_rows, names=("topic", "partition", "offset"))
    if reader is None:
        raise BadRequest(f"{path}: unknown kind of file; known: {KNOWN}")
    return reader(path)


def _text(path: Path, most_bytes: int = _MOST_TEXT_BYTES) -> str:
    return "\n".join(whole(path, most_bytes).decode(errors="backslashreplace").splitlines())


def _lines(path: Path, most_bytes: int, most_line_bytes: int) -> Iterator[str]:
    for line in bounded_lines(path, most_bytes, most_line_bytes):
        yield line.decode(errors="backslashreplace").rstrip("\r\n")


def _rows(path: Path, names: tuple[str, ...]) -> Lines:
    """Kafka's CheckpointFile: version 0, the count, and one line per entry; an empty file has no entries."""
    lines = _lines(path, _MOST_STATE_BYTES, _MOST_LINE_BYTES)
    version = next(lines, None)
    if version is None:
        return
    if version.strip() != "0":
        yield DamagedPart(f"line 1: version {version!r}, only 0 is supported")
        return
    announced = next(lines, None)
    count = 0
    for number, line in enumerate(lines, start=3):
        fields = line.split()
        values = [field if name == "topic" else _number(field) for name, field in zip(names, fields, strict=False)]
        if len(fields) != len(names) or None in values:
            yield DamagedPart(f"line {number}: {line!r} is not {' '.join(names)}")
            continue
        count += 1
        yield Entry(dict(zip(names, values, strict=True)))
    if announced is None or _number(announced.strip()) != count:
        said = "no number of" if announced is None else repr(announced)
        yield DamagedPart(f"line 2: {said} entries announced, but {count} are valid")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _partition_metadata(path: Path) -> Lines:
    try:
        topic_id = parse_partition_metadata(_text(path))
    except CheckpointError as error:
        yield DamagedPart(str(error))
    else:
        yield Entry({"version": 0, "topic_id": str(topic_id)})


def _meta_properties(path: Path) -> Lines:
    try:
        broker_id, cluster_id = parse_meta_properties(_text(path))
    except CheckpointError as error:
        yield DamagedPart(str(error))
    else:
        yield Entry({"version": 0, "broker.id": broker_id, "cluster.id": cluster_id})


def _marker(path: Path) -> Lines:
    yield from _json(iter([_text(path)]))


def _clean_state(path: Path) -> Lines:
    text = _text(path, _MOST_STATE_BYTES)
    try:
        states = parse_clean_state(text)
    except (CheckpointError, ValueError, TypeError) as error:
        yield DamagedPart(str(error))
    else:
        for name, state in sorted(states.items()):
            end = state.segments[-1].next_offset if state.segments else 0
            counts = {"segments": len(state.segments), "epochs": len(state.epochs), "producers": len(state.producers)}
            yield Entry({"log": name, "log_end_offset": end, **counts})


def _json_lines(path: Path) -> Lines:
    yield from _json(_lines(path, MOST_LINES_BYTES, MOST_LINE_BYTES))


def _json(lines: Iterator[str]) -> Lines:
    number, following = 0, next(lines, None)
    while following is not None:
        line, following, number = following, next(lines, None), number + 1
        try:
            value = json.loads(line)
        except RecursionError:
            yield DamagedPart(f"line {number}: {TOO_DEEP}")
            continue
        except ValueError as error:
            torn = "torn last line" if following is None and number > 1 else f"line {number}"
            yield DamagedPart(f"{torn}: not valid JSON: {error}")
            continue
        yield Entry(value if isinstance(value, dict) else {"value": value})


def _history(path: Path) -> Lines:
    """A load process's history. A torn last message is legal: the process was killed."""
    try:
        file, tables = scan_history(path)
    except HistoryError as error:
        yield DamagedPart(str(error))
        return
    for table in tables:
        for batch in table.to_batches(max_chunksize=_ROWS_AT_A_TIME):
            for row in batch.to_pylist():
                yield Entry(row)
    if file.torn_bytes:
        yield Entry({"torn_bytes": file.torn_bytes})
