"""Compares stored runs: their options and outcomes, where these differ. Pure.

Owns which figures are compared. Does not own their wording (``chaos.commands.runs.wording``). Judges nothing: verdicts
are those that were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.commands.runs.wording import figure_words, option_words
from verifier.telling.result_lines import result_lines

#: ``run.json`` and ``verdict.json`` of a run.
StoredPair = tuple[Mapping[str, Any], Mapping[str, Any]]

ABSENT = "-"
#: Options that do not make two experiments different: where a run is written, how it is watched and judged.
_NOT_COMPARED = ("out", "name", "keep", "unjudged", "web", "web_port", "spark_master")
#: The types of values that are compared. Lists and digests always differ, and are not readable at a glance.
_FIGURES = (int, float, str, bool)
_PLACES = ("seal", "read_lag.worst_stream", "read_lag.worst_sequence")


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One figure that is compared: its name and its value in each run, both as recorded and as shown to users.

    A value is None where a run has none.
    """

    name: str
    label: str
    recorded: tuple[str | None, ...]
    shown: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _ComparedRun:
    """The figures of one run: name -> (label, recorded value, shown value)."""

    result: Mapping[str, tuple[str, str, str]]
    asked: Mapping[str, tuple[str, str, str]]
    figures: Mapping[str, tuple[str, str, str]]


def side_by_side(runs: Sequence[StoredPair]) -> list[tuple[str, ...]]:
    """What, and its value in each run, where not all are equal, for people.

    The verdict, anomalies and counts come first and always; what is not there is ``-``.
    """
    return [(line.label, *(each if each is not None else ABSENT for each in line.shown)) for line in compared(runs)]


def compared(runs: Sequence[StoredPair]) -> list[ComparedLine]:
    """The lines of ``side_by_side``, with the recorded values."""
    columns = [
        _ComparedRun(dict(_result(each)), dict(_asked(each[0])), dict(_figures(each[1].get("stats")))) for each in runs
    ]
    lines = list(_lines([each.result for each in columns], always=True))
    lines += _lines([each.asked for each in columns])
    told = {line.name for line in lines}
    return [*lines, *(line for line in _lines([each.figures for each in columns]) if line.name not in told)]


def _lines(columns: Sequence[Mapping[str, tuple[str, str, str]]], *, always: bool = False) -> Iterator[ComparedLine]:
    for name in dict.fromkeys(name for column in columns for name in column):
        found = [column.get(name) for column in columns]
        recorded = tuple(None if each is None else each[1] for each in found)
        if always or len(set(recorded)) > 1:
            label = next(each[0] for each in found if each is not None)
            yield ComparedLine(name, label, recorded, tuple(None if each is None else each[2] for each in found))


def _result(pair: StoredPair) -> Iterator[tuple[str, tuple[str, str, str]]]:
    run, verdict = pair
    for name, value in (("verdict", verdict.get("verdict", ABSENT)), ("seed", run.get("seed", ABSENT))):
        yield name, (name, str(value), str(value))
    if "checks" in verdict:
        for word in result_lines(verdict, repro="")[0].split()[2:]:
            name, _, said = word.partition("=")
            label, shown = figure_words(name, said)
            yield name, (label, said, shown)


def _asked(run: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str, str]]]:
    asked = run.get("experiment", {}).get("asked", {})
    for name, value in asked.items():
        if name not in (*_NOT_COMPARED, "seed") and value is not None:
            label, shown = option_words(name, value)
            yield f"--{name.replace('_', '-')}", (label, str(value), shown)


def _figures(stats: Any, prefix: str = "") -> Iterator[tuple[str, tuple[str, str, str]]]:
    if not isinstance(stats, dict):
        return
    for key, value in stats.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and not prefix:
            yield from _figures(value, f"{key}.")
        elif isinstance(value, _FIGURES) and name not in _PLACES:
            label, shown = figure_words(name, value)
            yield name, (label, f"{value:.6g}" if isinstance(value, float) else str(value), shown)
