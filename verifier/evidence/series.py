"""The load's time series: one point per process and second. Owns its shape; written by loadgen, read by report.

A point says what happened in the interval that ends at ``time_ns``; the ``total_*`` fields count from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any

from verifier.evidence.run_directory import read_json_lines

#: The totals of a point. They never fall, and a process writes the last ones into its status as well.
TOTALS = ("total_acked", "total_read", "total_failed", "total_unknown", "total_errors", "total_fatal")


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One interval of one load process.

    Latencies are in milliseconds from the intended send time to the acknowledgement, None where nothing was
    acknowledged; a reader's are from the intended send time to the delivery. ``last_acked_ns`` is when something was
    last acknowledged in each partition.
    """

    process: str
    time_ns: int
    interval_ns: int
    acked: int = 0
    read: int = 0
    failed: int = 0
    unknown: int = 0
    errors: int = 0
    fatal: int = 0
    backlog: int = 0
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    latency_max_ms: float | None = None
    loop_lag_ms: float = 0.0
    total_acked: int = 0
    total_read: int = 0
    total_failed: int = 0
    total_unknown: int = 0
    total_errors: int = 0
    total_fatal: int = 0
    last_acked_ns: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SeriesPoint:
        """Tolerant of fields it does not know. Raises ``TypeError`` for one of another type, or without a time."""
        point = cls(**{each.name: value[each.name] for each in fields(cls) if each.name in value})
        for each in fields(cls):
            item = getattr(point, each.name)
            if isinstance(item, bool) or not isinstance(item, _TYPES[str(each.type).partition("[")[0]]):
                raise TypeError(f"{each.name} of a point is {item!r:.40}, not {each.type}")
        return point


#: What a field may be, by its declared type.
_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "dict": (dict,)}
_TYPES["float | None"] = (int, float, NoneType)


def read_series(path: Path) -> Iterator[SeriesPoint]:
    """The points of one ``*.series.jsonl``, in time order; none if the file is absent.

    Raises ``OSError``, ``ValueError`` or ``TypeError`` for what is no series.
    """
    return map(SeriesPoint.from_json, read_json_lines(path))


def read_all_series(directory: Path) -> list[SeriesPoint]:
    """The points of every ``*.series.jsonl`` in ``loadgen/``, by process and time. Raises as ``read_series`` does."""
    return [point for path in sorted(directory.glob("*.series.jsonl")) for point in read_series(path)]
