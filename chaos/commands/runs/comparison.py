"""Stored runs side by side: what they were asked and the outcome, where that differs. Pure.

Owns which figures are compared. The verdicts stay those that are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verifier.telling.result_lines import result_lines

#: ``run.json`` and ``verdict.json`` of a run.
StoredPair = tuple[Mapping[str, Any], Mapping[str, Any]]

ABSENT = "-"
#: Of who ran it and where it is written: no difference between two experiments.
_NOT_COMPARED = ("out", "name", "keep", "web", "web_port", "spark_master")
#: Lists of places and digests differ always and say nothing at a glance.
_FIGURES = (int, float, str, bool)


def differences(one: StoredPair, other: StoredPair) -> list[tuple[str, ...]]:
    """(what, in the first, in the second) of two runs, where they differ. See ``side_by_side``."""
    return side_by_side([one, other])


def side_by_side(runs: Sequence[StoredPair]) -> list[tuple[str, ...]]:
    """What, and its value in each run, where not all are equal.

    The verdict, anomalies and counts come first and always; what is not there is ``-``.
    """
    rows = list(_rows([dict(_result(each)) for each in runs], always=True))
    rows += _rows([dict(_asked(run)) for run, _ in runs])
    told = {row[0] for row in rows}
    figures = _rows([dict(_figures(verdict.get("stats"))) for _, verdict in runs])
    return [*rows, *(row for row in figures if row[0] not in told)]


def _rows(columns: Sequence[Mapping[str, str]], *, always: bool = False) -> Iterator[tuple[str, ...]]:
    for what in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(what, ABSENT) for column in columns]
        if always or len(set(values)) > 1:
            yield (what, *values)


def _result(pair: StoredPair) -> Iterator[tuple[str, str]]:
    run, verdict = pair
    yield "verdict", str(verdict.get("verdict", ABSENT))
    yield "seed", str(run.get("seed", ABSENT))
    if "checks" in verdict:
        yield from (tuple(word.split("=", 1)) for word in result_lines(verdict, repro="")[0].split()[2:])  # type: ignore[misc]


def _asked(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    asked = run.get("experiment", {}).get("asked", {})
    for name, value in asked.items():
        if name not in (*_NOT_COMPARED, "seed") and value is not None:
            yield f"--{name.replace('_', '-')}", str(value)


def _figures(stats: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if not isinstance(stats, dict):
        return
    for name, value in stats.items():
        if isinstance(value, dict) and not prefix:
            yield from _figures(value, f"{name}.")
        elif isinstance(value, _FIGURES) and name != "seal":
            yield f"{prefix}{name}", f"{value:.6g}" if isinstance(value, float) else str(value)
