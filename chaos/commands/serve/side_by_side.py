"""Compares several stored runs, or several sweeps. Owns which figures of sweeps are compared.

Does not own which figures of runs are compared (``chaos.commands.runs.comparison``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chaos.commands.runs.comparison import ABSENT, side_by_side
from chaos.commands.runs.found import stored_pair
from verifier.evidence.run_directory import RunDirectory, read_json

MOST_COMPARED = 8

#: The name of a figure, and its value in each run or sweep.
ComparedRow = tuple[str, ...]


class CannotCompare(ValueError):
    """The paths cannot be compared. The message says why."""


def compared(paths: Sequence[Path]) -> list[ComparedRow]:
    """The rows of a table of these runs, or sweeps. Raises CannotCompare."""
    sweeps = [(path / "sweep.json").is_file() for path in paths]
    if any(sweeps) and not all(sweeps):
        raise CannotCompare("A run cannot be compared with a sweep.")
    try:
        return _sweeps(paths) if all(sweeps) else side_by_side([stored_pair(RunDirectory(path)) for path in paths])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CannotCompare(f"One of these cannot be read: {error}") from error


def _sweeps(paths: Sequence[Path]) -> list[ComparedRow]:
    """The number of cells by outcome, then each setting with its verdict and the number of findings in each sweep."""
    columns = [dict(_settings(read_json(path / "sweep.json"))) for path in paths]
    names = dict.fromkeys(name for column in columns for name in column)
    return [(name, *(column.get(name, ABSENT) for column in columns)) for name in names]


def _settings(whole: dict[str, object]) -> list[tuple[str, str]]:
    told = [("sweep", str(whole["sweep"]))]
    if isinstance(counts := whole["counts"], dict):
        told += [(f"cells: {name}", str(count)) for name, count in counts.items()]
    for row in whole["rows"] if isinstance(whole["rows"], list) else []:
        verdicts, forbidden = row["verdicts"], row["forbidden"]
        if not verdicts:
            continue
        shown = row["verdict"]
        if len(verdicts) > 1:
            shown += f" {verdicts.count(row['verdict'])}/{len(verdicts)}"
        found = ", ".join(f"{name} {count:,}" for name, count in forbidden.items())
        told.append((", ".join(row["labels"].values()), f"{shown}: {found}" if found else shown))
    return told
