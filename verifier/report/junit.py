"""``junit.xml`` of a run, for CI. Owns its names and properties, but not its form (``verifier.telling.suites``)."""

from __future__ import annotations

from pathlib import Path

from verifier.anomalies import BY_NAME
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import seconds_of_ns
from verifier.report.occasions import Occasions
from verifier.telling.suites import Suite, suite_xml
from verifier.verdict import Verdict


def junit_xml(path: Path, run: RunModel, verdict: Verdict, occasions: Occasions | None = None) -> str:
    """The document as text. ``occasions`` describes the events that excuse anomalies."""
    told = occasions or Occasions.of(run, ())
    faults = "+".join(run.faults_requested) or "none"
    suite = Suite(
        name=f"gapless.{run.name}",
        classname=f"{run.name}.{faults}",
        summaries={name: anomaly.summary for name, anomaly in BY_NAME.items()},
        unanswered="the evidence is incomplete",
        properties=(
            ("verdict", verdict.verdict),
            ("seed", str(run.seed)),
            ("run_dir", str(path)),
            ("repro", run.repro),
            *((f"version.{name}", version) for name, version in sorted(run.versions.items())),
        ),
        attributes={"timestamp": run.started.removesuffix("Z")},
        seconds=_seconds(run),
        event=lambda example: told.words(example.found),
    )
    return suite_xml(suite, verdict)


def _seconds(run: RunModel) -> float:
    """Seconds from the start of a run to the end of its last phase; 0 if no phase ended."""
    ends = [phase.end_ns for phase in run.phases if phase.end_ns is not None]
    return round(seconds_of_ns(max(0, max(ends, default=run.started_ns) - run.started_ns)), 3)
