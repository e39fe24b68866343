"""A check's findings in an operation history, as columns with one row per anomaly. Owns the form; finds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from verifier.operations.model import IntArray

NONE = -1


@dataclass(frozen=True, slots=True)
class Findings:
    """The anomalies of one check. All columns have one row per anomaly; -1 means that a column does not apply.

    ``key``, ``value`` and ``other`` are numbers of keys and values, ``operation`` and ``earlier`` numbers of operations
    (``verifier.operations.pairing``). ``delta`` is the distance of two values in the log, in indices.
    """

    check: str
    key: IntArray
    value: IntArray
    offset: IntArray
    other: IntArray
    operation: IntArray
    earlier: IntArray
    delta: IntArray
    cycles: Sequence[Cycle] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.key)

    def __repr__(self) -> str:
        return f"Findings({self.check}: {len(self):,})"


@dataclass(frozen=True, slots=True)
class CycleEdge:
    """One edge of a cycle. ``kind`` is ww, wr, process or realtime. ``key`` and the values are -1 if none apply."""

    kind: str
    before: int
    after: int
    key: int = NONE
    value: int = NONE
    next_value: int = NONE


@dataclass(frozen=True, slots=True)
class Cycle:
    """The shortest cycle that was found in a component of ``size`` operations. ``is_shortest``: none is shorter."""

    steps: tuple[CycleEdge, ...]
    size: int
    is_shortest: bool


def findings(
    check: str,
    key: IntArray,
    *,
    value: IntArray | None = None,
    offset: IntArray | None = None,
    other: IntArray | None = None,
    operation: IntArray | None = None,
    earlier: IntArray | None = None,
    delta: IntArray | None = None,
    cycles: Sequence[Cycle] = (),
) -> Findings:
    """Findings with these columns. Absent columns are filled with -1."""
    count = len(key)

    def column(given: IntArray | None) -> IntArray:
        return np.full(count, NONE, dtype=np.int64) if given is None else np.asarray(given, dtype=np.int64)

    return Findings(
        check, column(key), column(value), column(offset), column(other), column(operation), column(earlier),
        column(delta), cycles,
    )  # fmt: skip
