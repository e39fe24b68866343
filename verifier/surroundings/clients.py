"""Reads all histories once for the report: what clients were told at some places, and when anomalies happened.

Owns this pass and what it keeps. It streams each file batch by batch, so that only the times of acknowledgements take
memory (8 bytes per row). A torn or damaged file is read up to the damage; the verdict has already reported it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from verifier.evidence.arrow_claims import claimed_by
from verifier.evidence.arrow_stream import HistoryError, check
from verifier.evidence.bounded import size_of
from verifier.surroundings.model import Name, Outcomes, Spot, ToldSpan

#: The most claims of clients that are kept for each spot.
MOST_TOLD = 400


_NUMBERS = ("partition", "stream", "first_sequence", "last_sequence", "first_offset", "last_offset", "complete_ns")


@dataclass(slots=True)
class WantedAnomalies:
    """Anomalies of one check in one partition, for which the pass finds the times. All arrays have the same length.

    ``keys`` ascend: they are sequences of ``stream``, or offsets if ``stream`` is None. ``counts`` is how many
    anomalies each key stands for. ``allowed``: the settings allow them. The pass fills ``times_ns``; -1 means unknown.
    """

    check: str
    name: Name
    stream: int | None
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    allowed: bool
    times_ns: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.times_ns = np.full(self.keys.size, -1, dtype=np.int64)


@dataclass(slots=True)
class Heard:
    """The result of the pass. ``acks`` has the times of acknowledgements by partition, ascending.

    ``told`` has the claims of clients by ``Spot.key``. ``notes`` name the damaged files.
    """

    acks: dict[Name, NDArray[np.int64]]
    told: dict[str, list[ToldSpan]]
    outcomes: Outcomes
    notes: list[str]


def listen(histories: Iterable[Path], spots: Sequence[Spot] = (), wanted: Sequence[WantedAnomalies] = ()) -> Heard:
    """Reads all histories once. Does not raise for damaged files; ``notes`` reports them."""
    by_name: dict[Name, list[Spot]] = defaultdict(list)
    for spot in spots:
        by_name[spot.name].append(spot)
    asked: dict[Name, list[WantedAnomalies]] = defaultdict(list)
    for each in wanted:
        asked[each.name].append(each)
    acks: dict[Name, list[NDArray[np.int64]]] = defaultdict(list)
    told: dict[str, list[ToldSpan]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    notes: list[str] = []
    for path in histories:
        try:
            for batch in _batches(path):
                rows = _ClientRows(batch)
                rows.count(counts)
                for name, mask in rows.partitions():
                    _take_rows(rows, mask, name, by_name[name], asked[name], acks, told)
        except (OSError, pa.ArrowException, HistoryError, KeyError) as error:
            notes.append(f"{path.name} was read up to where it is damaged: {str(error).splitlines()[0][:200]}")
    return Heard(
        {name: np.sort(np.concatenate(times)) for name, times in acks.items()},
        dict(told),
        Outcomes(counts["reserved"], counts["failed"], counts["never_sent"], counts["unknown"]),
        notes,
    )


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The record batches of a file, up to its end or to its last whole batch."""
    if not size_of(path):
        return
    with pa.memory_map(str(path)) as source:
        messages = pa.ipc.MessageReader.open_stream(source)
        first = next(iter(messages), None)
        if first is None:
            return
        schema = pa.ipc.read_schema(first)
        while True:
            try:
                message = messages.read_next_message()
                claimed_by(memoryview(message.metadata or b""), memoryview(message.body or b""), path.name)
                batch = pa.ipc.read_record_batch(message, schema)
            except StopIteration:
                return
            except (pa.ArrowInvalid, OSError):
                # a torn tail can be legal; the verdict decides that
                return
            check(batch)
            yield batch


class _ClientRows:
    """The columns of one batch as NumPy arrays. Conditions are boolean masks; topics are indices into ``topics``."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.number: dict[str, NDArray[np.int64]] = {name: _numbers(batch.column(name)) for name in _NUMBERS}
        f, outcome = batch.column("f"), batch.column("type")
        ok = _is(outcome, "ok")
        self.send = _is(f, "send", "sentinel")
        self.load_send = _is(f, "send")
        self.acked = self.send & ok
        self.read = _is(f, "poll") & ok
        self.reserved = _is(f, "reserve")
        self.failed = self.load_send & _is(outcome, "fail")
        self.unknown = self.load_send & _is(outcome, "info")
        self.never_sent = _is(f, "unsent")
        topics: Any = pc.dictionary_encode(batch.column("topic"))
        self.topics: list[str] = topics.dictionary.to_pylist()
        self.topic = _numbers(topics.indices)

    def count(self, counts: dict[str, int]) -> None:
        """Adds the numbers of sequences with each outcome to ``counts``."""
        values = self.number["last_sequence"] - self.number["first_sequence"] + 1
        for what, mask in (
            ("reserved", self.reserved), ("failed", self.failed),
            ("never_sent", self.never_sent), ("unknown", self.unknown),
        ):  # fmt: skip
            counts[what] += int(np.sum(values[mask & (values > 0)]))

    def partitions(self) -> Iterator[tuple[Name, NDArray[np.bool_]]]:
        """Each partition in the batch, with a mask of its acknowledged and read rows."""
        useful = (self.acked | self.read) & (self.number["partition"] >= 0)
        keys = self.topic * (1 << 32) + self.number["partition"]
        for key in np.unique(keys[useful]).tolist():
            yield (self.topics[key >> 32], key & 0xFFFFFFFF), useful & (keys == key)


def _is(column: pa.Array[Any], *words: str) -> NDArray[np.bool_]:
    """A mask of the rows in which a column has one of these words. Null matches no word."""
    mask: NDArray[np.bool_] = pc.is_in(column, pa.array(words)).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


def _numbers(column: pa.Array[Any]) -> NDArray[np.int64]:
    """A column of integers, which must have no nulls, as int64."""
    numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _take_rows(
    rows: _ClientRows,
    mask: NDArray[np.bool_],
    name: Name,
    spots: Sequence[Spot],
    wanted: Sequence[WantedAnomalies],
    acks: dict[Name, list[NDArray[np.int64]]],
    told: dict[str, list[ToldSpan]],
) -> None:
    """Adds the masked rows of one partition to ``acks``, ``wanted`` and ``told``."""
    acked = mask & rows.acked
    times = rows.number["complete_ns"][acked & rows.load_send]
    if times.size:
        acks[name].append(times[times >= 0])
    for each in wanted:
        _time(rows.number, acked, each)
    for spot in spots:
        kept = told[spot.key]
        for row in np.flatnonzero(mask & _rows_about(rows.number, spot)).tolist()[: MOST_TOLD - len(kept)]:
            kept.append(_told(rows.batch.slice(row, 1).to_pylist()[0], name, bool(rows.acked[row])))


def _time(number: Mapping[str, NDArray[np.int64]], acked: NDArray[np.bool_], wanted: WantedAnomalies) -> None:
    """Notes when the anomalies were acknowledged. The earliest acknowledgement counts."""
    by = "offset" if wanted.stream is None else "sequence"
    chosen = acked & (number["first_offset"] >= 0 if wanted.stream is None else number["stream"] == wanted.stream)
    index = np.flatnonzero(chosen)
    low = np.searchsorted(wanted.keys, number[f"first_{by}"][index])
    high = np.searchsorted(wanted.keys, number[f"last_{by}"][index], side="right")
    for row, first, last in zip(index[low < high], low[low < high], high[low < high], strict=True):
        here = wanted.times_ns[first:last]
        at = number["complete_ns"][row]
        here[(here < 0) | (here > at)] = at


def _rows_about(number: Mapping[str, NDArray[np.int64]], spot: Spot) -> NDArray[np.bool_]:
    """A mask of the rows about an offset in the spot's windows, or about the spot's own value at any offset."""
    known = number["first_offset"] >= 0
    concerned = np.zeros(known.size, dtype=np.bool_)
    for low, high in spot.windows:
        concerned |= known & (number["first_offset"] <= high) & (number["last_offset"] >= low)
    if spot.found.stream is not None and spot.found.sequence is not None:
        at = spot.found.sequence
        own = (number["stream"] == spot.found.stream) & (number["first_sequence"] <= at)
        concerned |= own & (number["last_sequence"] >= at)
    return concerned


def _told(row: Mapping[str, Any], name: Name, acked: bool) -> ToldSpan:
    offset, stream = int(row["first_offset"]), int(row["stream"])
    by_sequence = int(row["last_sequence"]) - int(row["first_sequence"]) + 1
    by_offset = int(row["last_offset"]) - offset + 1
    return ToldSpan(
        name=name,
        how="acknowledged" if acked else "read",
        process=str(row["process"]),
        final=row["phase"] == "final",
        offset=offset if offset >= 0 else None,
        values=max(1, by_sequence if stream >= 0 else by_offset),
        stream=stream if stream >= 0 else None,
        sequence=int(row["first_sequence"]),
        at_ns=int(row["complete_ns"]),
        error=row.get("error"),
    )
