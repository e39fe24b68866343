"""From run directories to their verdicts and files: the one way through the verifier. Owns the order of steps."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from verifier.effectiveness import Injected, injections
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.recoveries import memory, recoveries, summary
from verifier.report import write_reports
from verifier.sessions import Sessions
from verifier.verdict import Verdict, decide, undecidable

if TYPE_CHECKING:
    from verifier.audit import RunEvidence
    from verifier.facts import Audit

logger = logging.getLogger(__name__)

#: Spark's own files while it works, inside the run directory so that nothing is left elsewhere; removed at the end.
SCRATCH = ".verifier"

Progress = Callable[[str], None]
Told = Callable[[RunDirectory, Verdict | Exception], None]


def verify(
    run_directory: RunDirectory | str | Path,
    spark_master: str = "local[2]",
    progress: Progress = lambda _: None,
) -> Verdict:
    """Judge a run from its files and write ``verdict.json``, ``summary.md``, ``junit.xml`` and ``report.html``.

    ``progress`` is told in words what is being done. Raises ``ValueError`` or ``OSError`` if ``run.json`` cannot be
    read, and ``SparkUnavailable`` if Spark does not start; then nothing is written.
    """
    directory = run_directory if isinstance(run_directory, RunDirectory) else RunDirectory(Path(run_directory))
    with Sessions(spark_master) as sessions:
        return _verify(directory, sessions, progress)


def verify_all(
    directories: Sequence[RunDirectory],
    spark_master: str = "local[2]",
    progress: Progress = lambda _: None,
    told: Told = lambda _directory, _outcome: None,
) -> None:
    """Judge several runs one after the other in one Spark session.

    ``told`` is called with each run and its verdict, or what was raised in its place: no run takes another along.
    """
    largest = max(each.size_bytes() for each in directories) if len(directories) > 1 else 0
    with Sessions(spark_master, largest) as sessions:
        for directory in directories:
            progress(f"run {directory.path}")
            outcome: Verdict | Exception
            try:
                outcome = _verify(directory, sessions, progress)
            except Exception as error:
                outcome = error
            told(directory, outcome)


def _verify(directory: RunDirectory, sessions: Sessions, progress: Progress) -> Verdict:
    run = RunModel.from_json(directory.read_run())
    injected, complaint = _faults(directory)
    verdict = _judge(directory, run, injected, sessions, progress)
    if complaint is not None:
        verdict = verdict.doubted(complaint)
    verdict = verdict.with_figures(recoveries=summary(recoveries(directory)), memory_mb=memory(directory))
    progress("writing the report")
    write_reports(directory, run, injected, verdict)
    return verdict


def _faults(directory: RunDirectory) -> tuple[list[Injected], str | None]:
    """The faults as they happened; a record that cannot be read is no reason to judge nothing, but a doubt."""
    try:
        return injections(directory.read_faults()), None
    except (ValueError, TypeError) as error:
        return [], f"faults.jsonl cannot be read: {error}"


def _judge(
    directory: RunDirectory, run: RunModel, injected: list[Injected], sessions: Sessions, progress: Progress
) -> Verdict:
    from verifier.audit import RunEvidence

    evidence = RunEvidence.of(directory, run)
    if not evidence.segments and not evidence.histories:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted)
    progress(f"reading {len(evidence.segments):,} segments and {len(evidence.histories)} histories")
    scratch = directory.path / SCRATCH
    try:
        found = _audit(evidence, scratch, sessions, progress)
    finally:
        shutil.rmtree(scratch / "evidence", ignore_errors=True)
        if not sessions.keeps(scratch):
            shutil.rmtree(scratch, ignore_errors=True)
    verdict = decide(run, injected, found)
    complaint = evidence.deletions.complaint
    return verdict if complaint is None else verdict.doubted(complaint)


def _audit(evidence: RunEvidence, scratch: Path, sessions: Sessions, progress: Progress) -> Audit:
    from verifier.audit import audit, staged
    from verifier.spark import is_local

    abandoned = Event()
    with ThreadPoolExecutor(1) as reader:
        try:
            # the files are read while Spark starts; its workers read them where this process cannot share any
            rows = None
            if is_local(sessions.master):
                rows = reader.submit(staged, scratch / "evidence", [evidence], progress, abandoned)
            progress(f"starting Spark ({sessions.master})")
            started = sessions.get(scratch, evidence.size_bytes)
            here = None if rows is None else rows.result()
            return audit(started.spark, [evidence], progress, here)[evidence.name]
        finally:
            abandoned.set()
