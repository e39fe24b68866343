"""Two stored runs side by side: what they were asked and the outcome, where that differs. Pure.

Owns which figures are compared. The verdicts stay those that are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verifier.result_lines import result_lines

ABSENT = "-"
#: Of who ran it and where it is written: no difference between two experiments.
_NOT_COMPARED = ("out", "name", "keep", "web", "web_port", "spark_master")
#: Lists of places and digests differ always and say nothing at a glance.
_FIGURES = (int, float, str, bool)


def differences(
    one: tuple[Mapping[str, Any], Mapping[str, Any]], other: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """(what, in the first, in the second) of two pairs of ``run.json`` and ``verdict.json``, where they differ.

    The verdict, anomalies and counts come first and always; what is not there is ``-``.
    """
    rows = list(_both(dict(_result(one)), dict(_result(other)), always=True))
    rows += _both(dict(_asked(one[0])), dict(_asked(other[0])))
    told = {what for what, _, _ in rows}
    figures = _both(dict(_figures(one[1].get("stats"))), dict(_figures(other[1].get("stats"))))
    return [*rows, *(row for row in figures if row[0] not in told)]


def _both(one: Mapping[str, str], other: Mapping[str, str], *, always: bool = False) -> Iterator[tuple[str, str, str]]:
    for what in dict.fromkeys((*one, *other)):
        mine, theirs = one.get(what, ABSENT), other.get(what, ABSENT)
        if always or mine != theirs:
            yield what, mine, theirs


def _result(pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
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
