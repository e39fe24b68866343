"""Judges many run directories at once by the real verifier: gathered one by one, audited in a few Spark jobs.

Owns how a batch is cut where one run of it breaks a job: a query that raises is no verdict on the others beside it.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifier.closing.closing import Closing, gather
from verifier.deletions import deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Audit
from verifier.run_checks import RunEvidence, audit, staged
from verifier.verdict import undecidable
from verifier.verify_runs import conclude, tell


@dataclass(frozen=True, slots=True)
class Judgement:
    """``verdict``: valid, invalid or unknown; ``refused`` of what is no run; ``crashed`` if the verifier raised."""

    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run that Spark must look at, and what needs no Spark."""

    directory: RunDirectory
    run: RunModel
    closing: Closing
    evidence: RunEvidence


def judge(spark: Any, runs: Mapping[str, Path], scratch: Path) -> dict[str, Judgement]:
    """The judgement of each run, by its name. ``scratch`` does not exist, and does not afterwards."""
    found = gathered(runs)
    return concluded(found, _audited(spark, [each for each in found.values() if isinstance(each, Gathered)], scratch))


def gathered(runs: Mapping[str, Path]) -> dict[str, Gathered | Judgement]:
    """What each run gives Spark to look at; the judgement of those that are decided without."""
    return {name: _gathered(name, RunDirectory(path)) for name, path in runs.items()}


def concluded(
    found: Mapping[str, Gathered | Judgement], audits: Mapping[str, Audit | Judgement]
) -> dict[str, Judgement]:
    """The judgement of each run, by what Spark found of it; all reports are written."""
    judged: dict[str, Judgement] = {}
    for name, each in found.items():
        result = each if isinstance(each, Judgement) else audits[name]
        judged[name] = result if isinstance(result, Judgement) else _concluded(each, result)
    return judged


def _gathered(name: str, directory: RunDirectory) -> Gathered | Judgement:
    try:
        run = RunModel.from_json(directory.read_run())
    except (OSError, ValueError) as error:
        return Judgement("refused", (str(error),))
    try:
        closing = gather(directory, run)
        evidence = RunEvidence.of(directory, run, name, deletions(directory, run, closing.accounts))
        if not evidence.segments and not evidence.histories:
            verdict = undecidable("the run left neither segments nor histories")
            return Judgement(verdict.verdict, verdict.reasons)
        return Gathered(directory, run, closing, evidence)
    except Exception:
        return _crashed()


def _audited(spark: Any, gathered: Sequence[Gathered], scratch: Path) -> dict[str, Audit | Judgement]:
    """What Spark finds of each; halved until what breaks a job stands alone."""
    if not gathered:
        return {}
    evidence = [each.evidence for each in gathered]
    found: dict[str, Audit | Judgement] = {}
    try:
        audits = audit(spark, evidence, here=staged(scratch, evidence))
        found.update(audits)
        broken = any(each.failures for each in audits.values())
    except Exception:
        broken = True
        found = {evidence[0].name: _crashed()}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not broken or len(gathered) == 1:
        return found
    middle = len(gathered) // 2
    return {**_audited(spark, gathered[:middle], scratch), **_audited(spark, gathered[middle:], scratch)}


def _concluded(gathered: Gathered, found: Audit) -> Judgement:
    try:
        verdict = conclude(gathered.run, gathered.evidence.deletions, found, gathered.closing)
        told = tell(gathered.directory, gathered.run, verdict, found.anomalies, gathered.closing)
    except Exception:
        return _crashed()
    return Judgement(told.verdict, told.reasons)


def _crashed() -> Judgement:
    return Judgement("crashed", (traceback.format_exc(limit=-4),))
