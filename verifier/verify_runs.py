"""From run directories to their verdicts and files: the one way through the verifier. Owns the order of steps."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa

from verifier import anomaly_files
from verifier.checks.stalled import stalled
from verifier.closing import Closing, gather
from verifier.deletions import Deletions, complaints, deletions, doubts
from verifier.evidence.outputs import BESIDE, SCRATCH, check_outputs
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.groups.group_checks import group_figures, of_groups
from verifier.recoveries import memory, recoveries, summary
from verifier.replacing import replacing
from verifier.report import write_reports
from verifier.sessions import Sessions
from verifier.standstills import standstills
from verifier.surroundings import gather as gather_surroundings
from verifier.transactions.transaction_checks import transactional
from verifier.unavailability import to_json, unavailability
from verifier.verdict import Verdict, decide, undecidable

if TYPE_CHECKING:
    from verifier.facts import Audit
    from verifier.run_checks import RunEvidence
    from verifier.staging import TellProgress

logger = logging.getLogger(__name__)

TellVerdict = Callable[[RunDirectory, Verdict | Exception], None]


class VerifierAtWork(Exception):
    """Another verifier judges this run directory; the message is one line."""


def verify(
    run_directory: RunDirectory | str | Path,
    spark_master: str = "local[2]",
    progress: TellProgress = lambda _: None,
) -> Verdict:
    """Judge a run from its files and write ``verdict.json``, ``summary.md``, ``junit.xml`` and ``report.html``.

    What an earlier verifier left is replaced at the end, all at once: if this one dies, the previous verdict stays.
    ``progress`` is told in words what is being done. Raises ``ValueError`` or ``OSError`` if ``run.json`` cannot be
    read, ``SparkUnavailable`` if Spark does not start and ``SparkLost`` if it dies; then nothing is written. Raises
    ``VerifierAtWork``, and touches nothing, if another one judges this directory now, and ``InTheWay`` if something
    stands where a result belongs.
    """
    directory = run_directory if isinstance(run_directory, RunDirectory) else RunDirectory(Path(run_directory))
    with Sessions(spark_master) as sessions:
        return _verify(directory, sessions, progress)


def verify_all(
    directories: Sequence[RunDirectory],
    spark_master: str = "local[2]",
    progress: TellProgress = lambda _: None,
    told: TellVerdict = lambda _directory, _outcome: None,
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
            except Exception as error:  # whatever one run raises, the others are judged; ``told`` gets it
                outcome = error
            told(directory, outcome)


@contextlib.contextmanager
def _alone(directory: RunDirectory, sessions: Sessions) -> Iterator[None]:
    """Hold the run directory against other verifiers, and leave no scratch in it, an earlier one's neither.

    Raises ``VerifierAtWork`` and ``InTheWay``, and then touches nothing.

    The lock is the kernel's and on the directory itself, so that a verifier that was killed leaves none. Where the
    session has its files it is held until that ends.
    """
    scratch = directory.path / SCRATCH
    if sessions.keeps(scratch):
        yield
        return
    with contextlib.ExitStack() as held:
        descriptor = os.open(directory.path, os.O_RDONLY | os.O_DIRECTORY)
        held.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another verifier judges {directory.path} now; wait for it, or end it"
            raise VerifierAtWork(message) from None
        check_outputs(directory.path)
        for left in (scratch, directory.path / BESIDE):
            if left.exists():
                shutil.rmtree(left)
        # ours from here: not made if it is there, whatever it leads to
        scratch.mkdir()
        try:
            yield
        finally:
            if sessions.keeps(scratch):
                sessions.at_end(held.pop_all())
            else:
                shutil.rmtree(scratch, ignore_errors=True)


def _verify(directory: RunDirectory, sessions: Sessions, progress: TellProgress) -> Verdict:
    with _alone(directory, sessions):
        return _verified(directory, sessions, progress)


def _verified(directory: RunDirectory, sessions: Sessions, progress: TellProgress) -> Verdict:
    run = RunModel.from_json(directory.read_run())
    verdict, anomalies, closing = _judge(directory, run, sessions, progress)
    progress("writing the report")
    return tell(directory, run, verdict, anomalies, closing)


def tell(
    directory: RunDirectory, run: RunModel, verdict: Verdict, anomalies: Mapping[str, pa.Table], closing: Closing
) -> Verdict:
    """Write every file about a verdict. Returns it with the figures that decide nothing. Raises OSError.

    The files of a previous verdict stay until the last of the new ones is written.
    """
    injected = closing.faults.injected
    with replacing(directory) as results:
        anomaly_files.write(results.anomalies_dir, anomalies, verdict)
        around = gather_surroundings(results, run, verdict, anomalies)
        verdict = verdict.with_figures(
            recoveries=summary(recoveries(directory)),
            memory_mb=memory(directory),
            faults=to_json(unavailability(run, injected, around.acks), injected),
            seal=closing.seal,
            groups=group_figures(directory, run),
            stable_offsets=standstills(directory),
        )
        write_reports(results, run, injected, verdict, around)
    return verdict


def _judge(
    directory: RunDirectory, run: RunModel, sessions: Sessions, progress: TellProgress
) -> tuple[Verdict, Mapping[str, pa.Table], Closing]:
    """The verdict, every anomaly by check, and what closes the evidence."""
    from verifier.run_checks import RunEvidence

    evidence = RunEvidence.of(directory, run, deletions=Deletions())
    if not evidence.segments and not evidence.histories:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        closing = gather(directory, run)
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted), {}, closing
    progress(f"reading {len(evidence.segments):,} segments and {len(evidence.histories)} histories")
    scratch = directory.path / SCRATCH
    try:
        evidence, found, closing = _audit(directory, run, evidence, scratch, sessions, progress)
    finally:
        shutil.rmtree(scratch / "evidence", ignore_errors=True)
    return conclude(run, evidence.deletions, found, closing), found.anomalies, closing


def conclude(run: RunModel, deleted: Deletions, found: Audit, closing: Closing) -> Verdict:
    """The verdict by everything that was found: in the tables, and in what closes the evidence. Pure."""
    whole = replace(found, found=(*found.found, *stalled(run, closing)))
    verdict = decide(run, whole, closing, doubts(deleted))
    for complaint in complaints(deleted, run):
        verdict = verdict.doubted(complaint)
    return verdict


def _audit(
    directory: RunDirectory,
    run: RunModel,
    evidence: RunEvidence,
    scratch: Path,
    sessions: Sessions,
    progress: TellProgress,
) -> tuple[RunEvidence, Audit, Closing]:
    """What Spark finds out, with what logs and clients say about transactions and groups, and what closes the evidence;
    with the deletions that were asked for in the evidence.
    """
    from verifier.run_checks import audit, staged
    from verifier.spark_settings import is_local

    abandoned = Event()
    with ThreadPoolExecutor(2) as reader:
        try:
            # the files are read while Spark starts; its workers read them where this process cannot share any
            rows = None
            if is_local(sessions.master):
                staging = sessions.plain(scratch) / "evidence"
                rows = reader.submit(staged, staging, [evidence], progress, abandoned)
            gathering = reader.submit(gather, directory, run)
            of_clients = reader.submit(lambda: (*transactional(directory, run), *of_groups(directory, run)))
            progress(f"starting Spark ({sessions.master})")
            started = sessions.get(scratch, evidence.size_bytes)
            closing = gathering.result()
            evidence = replace(evidence, deletions=deletions(directory, run, closing.accounts))
            here = None if rows is None else rows.result()
            with sessions.watched():
                found = audit(started.spark, [evidence], progress, here)[evidence.name]
            return evidence, replace(found, found=(*found.found, *of_clients.result())), closing
        finally:
            abandoned.set()
