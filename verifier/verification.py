"""From a run directory to its verdict and its files: the one way through the verifier. Owns the order of steps."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from verifier.effectiveness import Injected, injections
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.recoveries import memory, recoveries, summary
from verifier.report import write_reports
from verifier.verdict import Verdict, decide, undecidable

logger = logging.getLogger(__name__)

#: Spark's own files while it works, inside the run directory so that nothing is left elsewhere; removed at the end.
SCRATCH = ".verifier"

Progress = Callable[[str], None]


class VerifierAtWork(Exception):
    """Another verifier judges this run directory; the message is one line."""


def verify(
    run_directory: RunDirectory | str | Path,
    spark_master: str = "local[2]",
    progress: Progress = lambda _: None,
) -> Verdict:
    """Judge a run from its files and write ``verdict.json``, ``summary.md``, ``junit.xml`` and ``report.html``.

    What an earlier verifier left is removed first, its verdict too: if this one dies, there is none. ``progress`` is
    told in words what is being done. Raises ``ValueError`` or ``OSError`` if ``run.json`` cannot be read,
    ``SparkUnavailable`` if Spark does not start and ``SparkLost`` if it dies; then nothing is written. Raises
    ``VerifierAtWork``, and touches nothing, if another one judges this directory now.
    """
    directory = run_directory if isinstance(run_directory, RunDirectory) else RunDirectory(Path(run_directory))
    with _alone(directory):
        for result in (directory.verdict_json, directory.summary_md, directory.junit_xml, directory.report_html):
            result.unlink(missing_ok=True)
        return _verify(directory, spark_master, progress)


@contextlib.contextmanager
def _alone(directory: RunDirectory) -> Iterator[None]:
    """Hold the run directory against other verifiers, and leave no scratch in it, an earlier one's neither.

    The lock is the kernel's and on the directory itself, so that a verifier that was killed leaves none.
    """
    scratch = directory.path / SCRATCH
    descriptor = os.open(directory.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another verifier judges {directory.path} now; wait for it, or end it"
            raise VerifierAtWork(message) from None
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    finally:
        os.close(descriptor)


def _verify(directory: RunDirectory, spark_master: str, progress: Progress) -> Verdict:
    run = RunModel.from_json(directory.read_run())
    injected, complaint = _faults(directory)
    # Spark ends after the verdict is there: that takes its time, and nobody waits for it
    with contextlib.ExitStack() as open_until_written:
        verdict = _judge(directory, run, injected, spark_master, progress, open_until_written)
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
    directory: RunDirectory,
    run: RunModel,
    injected: list[Injected],
    spark_master: str,
    progress: Progress,
    open_until_written: contextlib.ExitStack,
) -> Verdict:
    from verifier.audit import RunEvidence, audit, staged
    from verifier.spark import is_local, session

    evidence = RunEvidence.of(directory, run)
    if not evidence.segments and not evidence.histories:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted)
    scratch, abandoned = directory.path / SCRATCH, Event()
    progress(f"reading {len(evidence.segments):,} segments and {len(evidence.histories)} histories")
    with ThreadPoolExecutor(1) as reader:
        try:
            # the files are read while Spark starts; its workers read them where this process cannot share any
            rows = None
            if is_local(spark_master):
                rows = reader.submit(staged, scratch / "evidence", [evidence], progress, abandoned)
            progress(f"starting Spark ({spark_master})")
            started = open_until_written.enter_context(
                session(scratch, spark_master, evidence.size_bytes, archive=True)
            )
            here = None if rows is None else rows.result()
            found = audit(started.spark, [evidence], progress, here)[evidence.name]
            started.check()
        finally:
            abandoned.set()
    verdict = decide(run, injected, found)
    complaint = evidence.deletions.complaint
    return verdict if complaint is None else verdict.doubted(complaint)
