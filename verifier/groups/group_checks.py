"""Runs the checks of consumer groups over a run.

Owns the list of checks, the reading of the members' histories, and the figures of groups. Does not own the checks
(``verifier/checks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from verifier.checks.committed_offset_regression import committed_offset_regression
from verifier.checks.double_assignment import double_assignment
from verifier.checks.group_completeness import group_completeness
from verifier.checks.lost_offset_commit import lost_offset_commit
from verifier.checks.pipeline_exactly_once import pipeline_exactly_once
from verifier.checks.resume_position import resume_position
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import stream_history
from verifier.evidence.history_parts import with_functions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Found
from verifier.groups.logs import readable_logs
from verifier.groups.model import GroupEvidence, GroupPartition, GroupPlace
from verifier.groups.pipeline import pipelines
from verifier.groups.rows import COLUMNS, FUNCTIONS, group_partitions
from verifier.groups.stored import stored_offsets
from verifier.transactions.model import Anomalous
from verifier.transactions.transaction_checks import summed_up

CHECKS: tuple[Callable[[GroupEvidence], Iterator[Anomalous]], ...] = (
    double_assignment,
    group_completeness,
    committed_offset_regression,
    resume_position,
    lost_offset_commit,
)


def group_evidence(directory: RunDirectory, run: RunModel) -> GroupEvidence | None:
    """The evidence of a run; None if it has no groups. Raises ``OSError``."""
    names = [process.name for process in run.evidence.of_role("members")]
    if not names:
        return None
    rows: list[dict[str, Any]] = []
    whole = [_read(directory.history(name), rows) for name in names]
    # members have isolation.level=read_committed here, so they receive no aborted records
    logs = readable_logs(directory, run, committed_only=True)
    stored = stored_offsets(directory, run)
    return GroupEvidence(group_partitions(rows, logs, is_whole=all(whole), stored=stored.of))


def of_groups(directory: RunDirectory, run: RunModel) -> tuple[Found, ...]:
    """The findings of all checks in a run; empty if it has no groups. Raises ``OSError``."""
    evidence = group_evidence(directory, run)
    if evidence is None:
        return ()
    return tuple(summed_up([*audit(evidence), *pipeline_exactly_once(pipelines(directory, run, evidence))]))


def group_figures(directory: RunDirectory, run: RunModel) -> dict[str, dict[str, int]]:
    """Counts for each group, from the members' histories. They decide nothing: a group may deliver records again.

    ``delivered`` counts records, ``delivered_again`` those of them that were delivered before, and ``resumed`` how
    often a member began to read a partition.
    """
    rows: list[dict[str, Any]] = []
    for process in run.evidence.of_role("members"):
        _read(directory.history(process.name), rows)
    return figures_of(group_partitions(rows, {}, is_whole=False))


def figures_of(partitions: Mapping[GroupPlace, GroupPartition]) -> dict[str, dict[str, int]]:
    """The same counts, from the joined rows. Pure."""
    found: dict[str, dict[str, int]] = {}
    for (group, _), partition in partitions.items():
        told = found.setdefault(group, {"delivered": 0, "delivered_again": 0, "resumed": 0})
        told["delivered"] += sum(span.last - span.first + 1 for span in partition.delivered)
        told["delivered_again"] += partition.delivered_again
        told["resumed"] += len(partition.resumed)
    return found


def audit(evidence: GroupEvidence) -> list[Anomalous]:
    """Every anomaly, check by check. Pure."""
    return [anomaly for check in CHECKS for anomaly in check(evidence)]


def _read(path: Path, rows: list[dict[str, Any]]) -> bool:
    """Adds a history's rows about groups to ``rows``. Returns whether the history is readable and was closed properly.

    A damaged history adds only the rows before the damage.
    """
    try:
        file, parts = stream_history(path)
        for part in with_functions(parts, FUNCTIONS, COLUMNS):
            rows += part.to_pylist()
    except (HistoryError, OSError):
        return False
    return file.closed
