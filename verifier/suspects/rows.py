"""Rows of a table as numpy arrays: sorted, compared with their neighbors, and the places of those that stand out.

Owns how the tables of ``verifier.tables`` are read without Spark: the files that were staged, with what is known of
each replica and partition beside their rows, and those that Spark wrote. What is suspicious is the other modules'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from verifier.spark.staging import Staged

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Partitions, by their numbers (``verifier.places``).
Places = frozenset[int]

#: Below any number in a table, and above.
LEAST, MOST = -(1 << 63), (1 << 63) - 1
#: numpy wraps where Spark refuses. Of numbers below this, which no honest run reaches before the year 2043 (a time in
#: nanoseconds), what suspicions compute fits into 64 bits.
MOST_RELIABLE = 1 << 61

_REPLICA = ["run", "topic", "partition", "broker"]
_PARTITION = ["run", "topic", "partition"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table. Each has a ``place``."""

    table: pa.Table

    def ints(self, name: str, null: int = LEAST) -> Ints:
        """A column of numbers; ``null`` stands for what is not known."""
        return np.asarray(_column(self.table, name).cast(pa.int64()).fill_null(null), dtype=np.int64)

    def flags(self, name: str, *, null: bool = True) -> Flags:
        """A column of truths; ``null`` stands for what is not known."""
        return np.asarray(_column(self.table, name).fill_null(null), dtype=np.bool_)

    def known(self, name: str) -> Flags:
        """Where a column is not null."""
        return np.asarray(_column(self.table, name).is_valid(), dtype=np.bool_)

    def equal(self, name: str, *texts: str) -> Flags:
        """Where a column is one of these texts."""
        return np.asarray(pc.is_in(self.table[name], pa.array(texts, pa.string())), dtype=np.bool_)

    def numbered(self, name: str) -> Ints:
        """A column of texts as numbers: the same for the same text."""
        texts = self.table[name].combine_chunks().dictionary_encode()
        return np.asarray(texts.indices.cast(pa.int64()).fill_null(-1), dtype=np.int64)

    def having(self, name: str, values: Ints) -> Rows:
        """The same rows with one more column."""
        return Rows(self.table.append_column(name, pa.array(values)))

    def where(self, chosen: Flags) -> Rows:
        """Some of the rows."""
        return Rows(self.table.filter(pa.array(chosen)))

    def ordered(self, *names: str) -> Rows:
        """The same rows in the order of these columns of numbers."""
        keys = [self.ints(name) for name in names]
        return Rows(self.table.take(np.lexsort(keys[::-1])))

    def begins(self, *names: str) -> Flags:
        """Of ordered rows, where one begins that has another key than the row before."""
        found = np.ones(self.table.num_rows, dtype=np.bool_)
        if found.size:
            found[1:] = False
            for name in names:
                key = self.ints(name)
                found[1:] |= key[1:] != key[:-1]
        return found

    def places(self, suspect: Flags) -> Places:
        """Where the suspect rows are."""
        return frozenset(np.unique(self.ints("place")[suspect]).tolist())

    def __len__(self) -> int:
        return int(self.table.num_rows)


def _column(table: pa.Table, name: str) -> Any:
    """Its types are known to this module alone."""
    return table[name]


def before(values: Any, begins: Flags, none: Any) -> Any:
    """Of each row the value of the one before it; ``none`` where a key begins."""
    shifted = np.concatenate([values[:1], values[:-1]])
    return np.where(begins, none, shifted)


def reached(values: Ints, begins: Flags, none: int = LEAST) -> Ints:
    """Of each row the greatest value of those before it with the same key; ``none`` where a key begins."""
    greatest = np.empty_like(values)
    starts = [*np.flatnonzero(begins).tolist(), len(values)]
    for start, end in pairwise(starts):
        np.maximum.accumulate(values[start:end], out=greatest[start:end])
    return before(greatest, begins, none)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class ExaminedRows:
    """What is examined. ``batches`` and ``spans`` are those of ``segments``, with what is known of their replica.

    ``replicas`` has a row for each. ``unsettled`` are the sound batches of those that did not settle.
    ``contradictable``: where clients may contradict each other about deleted offsets.
    """

    replicas: Rows
    batches: Rows
    unsettled: Rows
    spans: Rows
    files: Rows
    history: Rows
    claims: Rows
    ledger: Rows
    jumps: Rows
    contradictable: Places

    @property
    def is_reliable(self) -> bool:
        """Whether no number is so large that a suspicion could come out wrong: evidence may say anything."""
        batches = (self.replicas, self.batches, self.unsettled, self.spans, self.files)
        tables = (*batches, self.history, self.claims, self.ledger, self.jumps)
        return all(_is_small(column) for rows in tables for column in rows.table.itercolumns())


def examine(staged: Staged, replicas: pa.Table, partitions: pa.Table, unsettled: pa.Table) -> ExaminedRows:
    """All rows of judged partitions. The three tables are those of ``verifier.places``."""
    segments = _read(staged.segments)
    own = Rows(segments.join(replicas, _REPLICA, join_type="inner"))
    rest = Rows(segments.join(unsettled, _REPLICA, join_type="inner"))
    whole = Rows(partitions)
    deleted = whole.flags("judges_deleted") & (whole.ints("from_offset", 0) > 0)
    return ExaminedRows(
        replicas=Rows(replicas),
        batches=own.where(own.equal("kind", "batch", "file")),
        unsettled=rest.where(rest.equal("kind", "batch") & ~rest.known("problem")),
        spans=own.where(own.equal("kind", "span")),
        files=Rows(_read(staged.files).join(replicas.select([*_REPLICA, "place"]), _REPLICA, join_type="inner")),
        history=Rows(
            _read(staged.histories).join(
                partitions.select([*_PARTITION, "place", "from_offset"]), _PARTITION, join_type="inner"
            )
        ),
        claims=Rows(_read(staged.tables / "claims")),
        ledger=Rows(_read(staged.tables / "ledger")),
        jumps=Rows(_read(staged.tables / "jumps")),
        contradictable=whole.places(deleted),
    )


def _is_small(column: Any) -> bool:
    if not pa.types.is_integer(column.type):
        return True
    extremes: Any = pc.min_max(column).as_py()
    least, most = extremes["min"], extremes["max"]
    return least is None or most is None or -MOST_RELIABLE < least <= most < MOST_RELIABLE


def _read(directory: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(directory.glob("*.parquet"))])


def merged(*found: Mapping[str, Places]) -> dict[str, Places]:
    """All places of each check."""
    together: dict[str, Places] = defaultdict(frozenset)
    for each in found:
        for name, places in each.items():
            together[name] |= places
    return dict(together)
