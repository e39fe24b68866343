"""From a run directory to its verdict and its files: the one way through the verifier. Owns the order of steps."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pyarrow as pa

from verifier import anomaly_files
from verifier.closing import Closing, gather
from verifier.deletions import Deletions, complaints, deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.recoveries import memory, recoveries, summary
from verifier.report import write_reports
from verifier.stalled import stalled
from verifier.surroundings import gather as gather_surroundings
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
    verdict, anomalies, closing = _judge(directory, run, spark_master, progress)
    injected = closing.faults.injected
    progress("writing the report")
    anomaly_files.write(directory.anomalies_dir, anomalies, verdict)
    around = gather_surroundings(directory, run, verdict, anomalies)
    verdict = verdict.with_figures(
        recoveries=summary(recoveries(directory)),
        memory_mb=memory(directory),
        faults=to_json(unavailability(run, injected, around.acks), injected),
        seal=closing.seal,
    )
    write_reports(directory, run, injected, verdict, around)
    return verdict


def _judge(
    directory: RunDirectory, run: RunModel, spark_master: str, progress: Progress
) -> tuple[Verdict, Mapping[str, pa.Table], Closing]:
    """The verdict, every anomaly by check, and what closes the evidence."""
    from verifier.audit import RunEvidence, audit, staged
    from verifier.spark import is_local, session

    evidence = RunEvidence.of(directory, run, deletions=Deletions())
    if not evidence.segments and not evidence.histories:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        closing = gather(directory, run)
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted), {}, closing
    scratch, abandoned = directory.path / SCRATCH, Event()
    progress(f"reading {len(evidence.segments):,} segments and {len(evidence.histories)} histories")
    try:
        with ThreadPoolExecutor(2) as reader:
            try:
                # the files are read while Spark starts; its workers read them where this process cannot share any
                rows = None
                if is_local(spark_master):
                    rows = reader.submit(staged, scratch / "evidence", [evidence], progress, abandoned)
                gathering = reader.submit(gather, directory, run)
                progress(f"starting Spark ({spark_master})")
                with session(scratch, spark_master, evidence.size_bytes) as started:
                    closing = gathering.result()
                    evidence = replace(evidence, deletions=deletions(directory, run, closing.accounts))
                    here = None if rows is None else rows.result()
                    found = audit(started.spark, [evidence], progress, here)[evidence.name]
            finally:
                abandoned.set()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = replace(found, found=(*found.found, *stalled(run, closing)))
    verdict = decide(run, found, closing)
    for complaint in complaints(evidence.deletions, run):
        verdict = verdict.doubted(complaint)
    return verdict, found.anomalies, closing
