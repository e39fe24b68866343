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

from verifier.batches import Examined, Judged, batched
from verifier.checks.stalled import stalled
from verifier.closing.closing import Closing, gather
from verifier.deletions import Deletions, complaints, deletions, doubts
from verifier.evidence.outputs import BESIDE, SCRATCH, check_outputs
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.figures.recoveries import memory, recoveries, summary
from verifier.figures.standstills import standstills
from verifier.figures.unavailability import to_json, unavailability
from verifier.groups.group_checks import group_figures, of_groups
from verifier.in_sync.in_sync_checks import of_in_sync
from verifier.replacing import replacing
from verifier.report import write_reports
from verifier.spark.sessions import Sessions
from verifier.subjects import subjects_of, with_idle
from verifier.surroundings import gather as gather_surroundings
from verifier.telling import anomaly_files
from verifier.transactions.figures import transaction_figures
from verifier.transactions.transaction_checks import of_internal_replicas, transactional
from verifier.verdict import Verdict, decide, undecidable

if TYPE_CHECKING:
    from verifier.facts import Audit, Found
    from verifier.run_checks import RunEvidence
    from verifier.spark.staging import TellProgress

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
    """Judge several runs in one Spark session, and several small ones with the same questions.

    ``told`` is called with each run and its verdict, or what was raised in its place: no run takes another along.
    """
    batches = batched(directories)
    largest = max(each.size_bytes for each in batches) if len(directories) > 1 else 0
    with Sessions(spark_master, largest) as sessions:
        for batch in batches:
            several = len(batch.directories) > 1
            together = _verify_together(batch.directories, sessions, progress) if several else {}
            for directory in batch.directories:
                told(directory, together.get(directory) or _outcome(directory, sessions, progress))


def _outcome(directory: RunDirectory, sessions: Sessions, progress: TellProgress) -> Verdict | Exception:
    progress(f"run {directory.path}")
    try:
        return _verify(directory, sessions, progress)
    except Exception as error:  # whatever one run raises, the others are judged
        return error


def _verify_together(
    directories: Sequence[RunDirectory], sessions: Sessions, progress: TellProgress
) -> Mapping[RunDirectory, Verdict | Exception]:
    """Ask the same questions of several runs at once. Those that are not in the answer are to be judged alone.

    These are all of them if anything goes wrong: no one can say which one is the cause. So is a run that another
    verifier judges, or that cannot be read.
    """
    with contextlib.ExitStack() as held:
        runs: list[Examined] = []
        for directory in directories:
            try:
                held.enter_context(_alone(directory, sessions))
                runs.append(Examined.of(directory, name=str(len(runs))))
            except Exception as error:  # it is met again when this run is judged alone
                logger.info("%s is judged alone: %s", directory.path, error)
        runs = [each for each in runs if not each.is_empty]
        if len(runs) < 2:
            return {}
        progress(f"{len(runs)} runs together")
        try:
            audited = _audit(runs, sessions, progress)
        except Exception as error:  # likewise
            logger.warning("%d runs are judged one after the other: %s", len(runs), error)
            return {}
        if any(each.found.failures for each in audited):
            return {}
        return {each.directory: _told_of(each) for each in audited}


def _told_of(judged: Judged) -> Verdict | Exception:
    try:
        verdict = conclude(judged.run, judged.evidence.deletions, judged.found, judged.closing)
        return tell(judged.directory, judged.run, verdict, judged.found.anomalies, judged.closing)
    except Exception as error:  # of this run alone
        return error


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
        subjects = subjects_of(directory, run)
        verdict = with_idle(verdict, subjects).with_figures(
            recoveries=summary(recoveries(directory)),
            memory_mb=memory(directory),
            faults=to_json(unavailability(run, injected, around.acks), injected),
            seal=closing.seal,
            groups=group_figures(directory, run),
            stable_offsets=standstills(directory),
            transactions=transaction_figures(directory, run) if "transactions" in subjects else None,
        )
        write_reports(results, run, injected, verdict, around)
    return verdict


def _judge(
    directory: RunDirectory, run: RunModel, sessions: Sessions, progress: TellProgress
) -> tuple[Verdict, Mapping[str, pa.Table], Closing]:
    """The verdict, every anomaly by check, and what closes the evidence."""
    examined = Examined.of(directory, run)
    if examined.is_empty:
        interrupted = ["the run was interrupted"] if run.interrupted else []
        closing = gather(directory, run)
        return undecidable("the run left neither segments nor histories", *run.problems, *interrupted), {}, closing
    [judged] = _audit([examined], sessions, progress)
    verdict = conclude(run, judged.evidence.deletions, judged.found, judged.closing)
    return verdict, judged.found.anomalies, judged.closing


def conclude(run: RunModel, deleted: Deletions, found: Audit, closing: Closing) -> Verdict:
    """The verdict by everything that was found: in the tables, and in what closes the evidence. Pure."""
    whole = replace(found, found=(*found.found, *stalled(run, closing)))
    verdict = decide(run, whole, closing, doubts(deleted))
    for complaint in complaints(deleted, run):
        verdict = verdict.doubted(complaint)
    return verdict


def _audit(runs: Sequence[Examined], sessions: Sessions, progress: TellProgress) -> list[Judged]:
    """What Spark finds out about these runs, with what logs and clients say about transactions and groups, and what
    closes the evidence; with the deletions that were asked for in the evidence. Their scratch directories are there.
    """
    from verifier.run_checks import audit, staged
    from verifier.spark.settings import is_local

    evidence = [each.evidence for each in runs]
    segments, histories = sum(len(each.segments) for each in evidence), sum(len(each.histories) for each in evidence)
    progress(f"reading {segments:,} segments and {histories} histories")
    scratch, abandoned = runs[0].directory.path / SCRATCH, Event()
    with ThreadPoolExecutor(2) as reader:
        try:
            # the files are read while Spark starts; its workers read them where this process cannot share any
            rows = None
            if is_local(sessions.master):
                staging = sessions.plain(scratch) / "evidence"
                rows = reader.submit(staged, staging, evidence, progress, abandoned)
            gathering = [reader.submit(gather, each.directory, each.run) for each in runs]
            of_clients = [reader.submit(_of_clients, each) for each in runs]
            progress(f"starting Spark ({sessions.master})")
            started = sessions.get(scratch, sum(each.size_bytes for each in evidence))
            closings = [each.result() for each in gathering]
            evidence = [
                replace(each.evidence, deletions=deletions(each.directory, each.run, closing.accounts))
                for each, closing in zip(runs, closings, strict=True)
            ]
            here = None if rows is None else rows.result()
            with sessions.watched():
                found = audit(started.spark, evidence, progress, here)
            return [
                _judged(each, own, found[own.name], clients.result(), closing)
                for each, own, clients, closing in zip(runs, evidence, of_clients, closings, strict=True)
            ]
        finally:
            abandoned.set()
            shutil.rmtree(scratch / "evidence", ignore_errors=True)


def _judged(
    run: Examined, evidence: RunEvidence, found: Audit, of_clients: tuple[Found, ...], closing: Closing
) -> Judged:
    whole = replace(found, found=(*found.found, *of_clients))
    return Judged(run.directory, run.run, evidence, whole, closing)


def _of_clients(run: Examined) -> tuple[Found, ...]:
    asked = run.directory, run.run
    return (*transactional(*asked), *of_groups(*asked), *of_internal_replicas(*asked), *of_in_sync(*asked))
