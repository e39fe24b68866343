"""From a run directory to its verdict and its files: the one way through the verifier. Owns the order of steps."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pyarrow as pa

from verifier import anomaly_files
from verifier.effectiveness import Injected, injections
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.recoveries import memory, recoveries, summary
from verifier.report import write_reports
from verifier.surroundings import gather
from verifier.unavailability import to_json, unavailability
from verifier.verdict import Verdict, decide, undecidable

logger = logging.getLogger(__name__)

#: Spark's own files while it works, inside the run directory so that nothing is left elsewhere; removed at the end.
SCRATCH = ".verifier"

Progress = Callable[[str], None]


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
    run = RunModel.from_json(directory.read_run())
    injected, complaint = _faults(directory)
    verdict, anomalies = _judge(directory, run, injected, spark_master, progress)
    if complaint is not None:
        verdict = verdict.doubted(complaint)
    progress("writing the report")
    anomaly_files.write(directory.anomalies_dir, anomalies, verdict)
    around = gather(directory, run, verdict, anomalies)
    verdict = verdict.with_figures(
        recoveries=summary(recoveries(directory)),
        memory_mb=memory(directory),
        faults=to_json(unavailability(run, injected, around.acks), injected),
    )
    write_reports(directory, run, injected, verdict, around)
    return verdict


def _faults(directory: RunDirectory) -> tuple[list[Injected], str | None]:
    """The faults as they happened; a record that cannot be read is no reason to judge nothing, but a doubt."""
    try:
        return injections(directory.read_faults()), None
    except (ValueError, TypeError) as error:
        return [], f"faults.jsonl cannot be read: {error}"


def _judge(
    directory: RunDirectory, run: RunModel, injected: list[Injected], spark_master: str, progress: Progress
) -> tuple[Verdict, Mapping[str, pa.Table]]:
    """The verdict, and every anomaly by check."""
    from verifier.audit import RunEvidence, audit, staged
    from verifier.spark import is_local, session

    evidence = RunEvidence.of(directory, run)
    if not evidence.segments and not evidence.histories:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted), {}
    scratch, abandoned = directory.path / SCRATCH, Event()
    progress(f"reading {len(evidence.segments):,} segments and {len(evidence.histories)} histories")
    try:
        with ThreadPoolExecutor(1) as reader:
            try:
                # the files are read while Spark starts; its workers read them where this process cannot share any
                rows = None
                if is_local(spark_master):
                    rows = reader.submit(staged, scratch / "evidence", [evidence], progress, abandoned)
                progress(f"starting Spark ({spark_master})")
                with session(scratch, spark_master, evidence.size_bytes) as started:
                    here = None if rows is None else rows.result()
                    found = audit(started.spark, [evidence], progress, here)[evidence.name]
            finally:
                abandoned.set()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    verdict = decide(run, injected, found)
    complaint = evidence.deletions.complaint
    return verdict if complaint is None else verdict.doubted(complaint), found.anomalies
