"""Finds when the first evidence of an anomaly appeared in a run: after how many records, and how many seconds of load.

Owns which operation counts as evidence: the first send or poll to complete that has the value or the offset of one of
the anomaly's examples. Judges nothing: the examples come from the verdict, which is made after the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cluster.seams.units import seconds_of_ns
from verifier.evidence.history import READ_SCHEMA, read_history
from verifier.evidence.run_directory import RunDirectory, read_json

#: The fields of an example that locate it.
_PLACE = ("partition", "stream", "sequence", "offset")
#: The operations that show a value or an offset.
_SHOWING = ("send", "poll")


class FirstEvidence(NamedTuple):
    """``records``: acknowledged until then. ``seconds``: since the start of the first operation."""

    records: int
    seconds: float


class _Columns(NamedTuple):
    """The successful sends and polls of all load processes, one array element per operation; -1 for no number."""

    is_send: NDArray[np.bool_]
    partition: NDArray[np.int64]
    stream: NDArray[np.int64]
    first_sequence: NDArray[np.int64]
    last_sequence: NDArray[np.int64]
    first_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    invoke_ns: NDArray[np.int64]
    complete_ns: NDArray[np.int64]


def first_evidence(directory: RunDirectory, checks: Collection[str]) -> FirstEvidence | None:
    """The earliest evidence of any example of these checks; None if no operation shows one.

    Examples that the settings allow do not count. Raises ``OSError`` or ``ValueError`` for a damaged directory.
    """
    found = read_json(directory.verdict_json)["checks"]
    examples = [each for name in checks for each in found.get(name, {}).get("examples", ()) if not each.get("allowed")]
    if not examples:
        return None
    return evidence_in([read_history(path) for path in sorted(directory.history_dir.glob("*.arrow"))], examples)


def evidence_in(histories: Iterable[pa.Table], examples: Iterable[Mapping[str, object]]) -> FirstEvidence | None:
    """The same, from histories and from examples in the form of ``verdict.json``. Pure."""
    told = _columns(histories)
    times = [time for each in examples if (time := _seen_ns(told, each)) is not None]
    if not times:
        return None
    until = told.is_send & (told.complete_ns <= min(times))
    records = int(np.sum((told.last_sequence - told.first_sequence + 1)[until]))
    begun = told.invoke_ns[told.invoke_ns >= 0]
    begin_ns = int(begun.min()) if begun.size else min(times)
    return FirstEvidence(records, round(seconds_of_ns(max(0, min(times) - begin_ns)), 2))


def _seen_ns(told: _Columns, example: Mapping[str, object]) -> int | None:
    """When the first operation completed that has the value of an example, or if none has, its offset; else None."""
    partition, stream, sequence, offset = (_number(example.get(name)) for name in _PLACE)
    here = told.partition == partition
    if stream >= 0 and sequence >= 0:
        is_value = here & (told.stream == stream) & (told.first_sequence <= sequence)
        if (times := told.complete_ns[is_value & (sequence <= told.last_sequence)]).size:
            return int(times.min())
    is_offset = here & (offset >= 0) & (told.first_offset <= offset)
    times = told.complete_ns[is_offset & (offset <= told.last_offset)]
    return int(times.min()) if times.size else None


def _number(value: object) -> int:
    """The value if it is an integer; -1 if the example does not have it."""
    return value if isinstance(value, int) else -1


def _columns(histories: Iterable[pa.Table]) -> _Columns:
    parts = [table.cast(READ_SCHEMA) for table in histories if table.num_rows]
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return _Columns(np.empty(0, dtype=np.bool_), *[empty] * (len(_Columns._fields) - 1))
    whole = pa.concat_tables(parts)
    kinds, outcomes, phases = (np.array(whole[name].to_pylist()) for name in ("f", "type", "phase"))
    wanted = np.isin(kinds, _SHOWING) & (outcomes == "ok") & (phases == "load")
    numbers = [whole[name].to_numpy().astype(np.int64) for name in _Columns._fields[1:]]
    ended = wanted & (numbers[-1] >= 0)
    return _Columns((kinds == "send")[ended], *(each[ended] for each in numbers))
