"""Carries out one ``gapless run``: has it conducted and judged, and prints the outcome.

Creates the run directory, the seams and the supervisor, and handles Ctrl-C. Does not own any phase of the run
(``chaos.conductor``) or the verdict (the verifier).
"""

from __future__ import annotations

import asyncio
import logging
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from chaos.commands.commit import commit
from chaos.commands.interrupts import Interrupts
from chaos.commands.preflight import check_disk, check_outside
from chaos.commands.talk import Talk
from chaos.commands.verdict_lines import say
from chaos.commands.verifier_process import judging, run_verifier, write_unjudged
from chaos.conductor.conductor import Conductor
from chaos.conductor.leftovers import WorkedOn, clean
from chaos.conductor.progress import Progress
from chaos.conductor.record import RunRecord
from chaos.conductor.workbench import Workbench
from chaos.exits import VERDICTS, BadRequest
from chaos.experiment.experiment import Experiment
from chaos.experiment.resolve import load_seconds, overrun
from chaos.experiment.verdict_settings import settings_of
from chaos.reached import REACHED_FILE, reached_by
from chaos.schedules.model import Schedule, to_yaml
from cluster.process.invocation import command
from cluster.process.one_line import log_to, reason
from cluster.process.supervisor import ChildRecord, Supervisor
from cluster.seams.asyncio_transport import AsyncioTransport
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from cluster.seams.randomness import derive
from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.run_directory import (
    RunDirectory,
    read_json,
    update_latest,
    write_json_atomic,
    write_text_atomic,
)
from verifier.evidence.run_model import HarnessHealth, RunModel

logger = logging.getLogger(__name__)

RESULTS = "results"
VERSIONED = ("gapless", "pyspark", "confluent-kafka", "locust", "kazoo", "kafka-python", "pyarrow")


#: What a command adds to a run's verdict: prints it, and returns the same for the JSON object.
More = Callable[[RunDirectory], Mapping[str, Any]]


def conduct(
    experiment: Experiment,
    schedule: Schedule,
    warnings: list[str],
    repro: str,
    *,
    as_json: bool,
    talk: Talk,
    more: More | None = None,
) -> str:
    """Run one experiment. Returns the verdict; raises BadRequest before anything was started, or what failed."""
    clock, storage = SystemClock(), OsStorage()
    check_outside(experiment)
    existing = Path(experiment.asked.out or RESULTS).resolve()
    place = next(path for path in (existing, *existing.parents) if path.exists())
    expected_gb = check_disk(experiment, load_seconds(experiment, schedule), storage, str(place))
    directory = _directory(experiment)
    _log_to(directory, talk)
    write_text_atomic(directory.schedule_yaml, to_yaml(schedule))
    record = RunRecord(directory, first_record(experiment, schedule, repro, clock.monotonic_ns()), clock)
    if experiment.asked.out is None:
        # at the very start, so that "latest" never means the previous run, however this one ends
        update_latest(directory, RESULTS)
    is_judged = True
    with Interrupts() as interrupts:
        with Progress(clock, is_silent=talk.is_silent) as progress:
            try:
                for line in clean(Path(RESULTS)):
                    progress.note(line)
                progress.note(f"run {directory.path}, seed {experiment.asked.seed}, profile {experiment.asked.profile}")
                progress.note(f"expects to write about {expected_gb:.1f} GB")
                if experiment.drawn is not None:
                    progress.note(experiment.drawn.line())
                for line in overrun(experiment, schedule):
                    progress.note(line)
                for warning in warnings:
                    progress.note(f"warning: {warning}")
                with _supervised(directory, record) as supervisor:
                    bench = Workbench(clock, storage, AsyncioTransport(), supervisor, directory, progress)
                    conductor = Conductor(experiment, schedule, bench, record)
                    asyncio.run(_conduct(conductor, interrupts, progress))
                if experiment.asked.target is None:
                    _tell_reached(directory, progress)
                record.seal()
                interrupts.raise_if_insistent()
                is_judged = not experiment.asked.unjudged
                if is_judged:
                    progress.phase("verify", f"Spark on {experiment.asked.spark_master}")
                    waiting = judging(directory, say=progress.still)
                    with _supervised(directory, record) as supervisor:
                        run_verifier(supervisor, directory, experiment.asked.spark_master, look=waiting.look)
                else:
                    _write_later(directory, "not judged yet")
            except KeyboardInterrupt:
                is_judged = False
                progress.note("interrupted before the verdict")
                _write_later(directory, "interrupted before the verdict")
        interrupts.ignore()
        return _conclude(experiment, directory, record, is_judged=is_judged, as_json=as_json, talk=talk, more=more)


@contextmanager
def _supervised(directory: RunDirectory, record: RunRecord) -> Iterator[Supervisor]:
    """A Supervisor whose children are recorded in ``run.json``, and in ``processes.json`` for a later cleanup."""
    with WorkedOn(directory.path, record.model.run_id) as worked_on:

        def changed(children: list[ChildRecord]) -> None:
            worked_on.children(children)
            record.children(children)

        with Supervisor(str(directory.path), changed) as supervisor:
            yield supervisor


def _conclude(
    experiment: Experiment,
    directory: RunDirectory,
    record: RunRecord,
    *,
    is_judged: bool,
    as_json: bool,
    talk: Talk = Talk.PROGRESS,
    more: More | None = None,
) -> str:
    """Print how the run ended, and remove what is not to be kept. Returns the verdict."""
    verdict = say(directory, as_json=as_json, more=None if more is None else more(directory))
    # a run that is not judged yet has no exit status and keeps its data, because a sweep has it judged later
    status = int(VERDICTS[verdict]) if is_judged else None
    record.update(ended=datetime.now(UTC).isoformat(), exit_status=status)
    if is_judged:
        _prune(directory, experiment.asked.keep, verdict)
    if verdict == "valid" and sys.stderr.isatty() and talk is not Talk.QUIET and not experiment.defects:
        # the sentence of the report, because a valid run may have anomalies that its settings allow
        headline = read_json(directory.verdict_json)["headline"]
        print(f"{headline} See a run that is invalid: make demo-red", file=sys.stderr)
    return verdict


def _tell_reached(directory: RunDirectory, progress: Progress) -> None:
    """Print what the run reached according to its journals, and write it to a file that the seal covers."""
    whole = reached_by(directory)
    write_json_atomic(directory.path / REACHED_FILE, {**whole.to_json(), "figures": whole.figures()})
    progress.note(f"reached: {whole.line()}")


def _write_later(directory: RunDirectory, why: str) -> None:
    write_unjudged(directory, f"{why}; judge it with: {command(['verify', str(directory.path)])}")


def settle(directory: RunDirectory, keep: str) -> None:
    """Complete a run that was judged later, as if judged at its end. Raises ``OSError`` or ``ValueError``."""
    verdict = str(read_json(directory.verdict_json)["verdict"])
    write_json_atomic(directory.run_json, {**directory.read_run(), "exit_status": int(VERDICTS[verdict])})
    _prune(directory, keep, verdict)


async def _conduct(conductor: Conductor, interrupts: Interrupts, progress: Progress) -> None:
    def stop() -> None:
        conductor.interrupt()
        if interrupts.count == 1:
            progress.note("interrupted: ending early, healing, judging the evidence (Ctrl-C again skips judging)")
        else:
            progress.note("interrupted again: healing and stopping at once, without judging")

    interrupts.ask_through(asyncio.get_running_loop(), stop)
    await conductor.run()


def _directory(experiment: Experiment) -> RunDirectory:
    now = datetime.now(UTC)
    try:
        if experiment.asked.out is not None:
            return RunDirectory.at(Path(experiment.asked.out).resolve())
        return RunDirectory.create(Path(RESULTS).resolve(), experiment.asked.name, experiment.asked.seed, now)
    except OSError as error:
        where = experiment.asked.out or RESULTS
        raise BadRequest(f"the results directory {where} cannot be used: {reason(error)}; see --out") from error


def _log_to(directory: RunDirectory, talk: Talk) -> None:
    """Log everything to ``run.log``, and to stderr with ``--verbose``."""
    log_to(logging.FileHandler(directory.run_log, encoding="utf-8"), force=True)
    talk.show_log()
    logging.getLogger("kazoo").setLevel(logging.WARNING)


def first_record(experiment: Experiment, schedule: Schedule, repro: str, now_ns: int) -> RunModel:
    """The first content of ``run.json``. Fields that become known later are empty."""
    seed = experiment.asked.seed
    return RunModel(
        name=experiment.asked.name,
        seed=seed,
        # All that the load draws follows from it: sizes, keys, what is aborted, lives of members (docs/load.md). A run
        # has brokers of its own, so no values of another run with this seed are in its logs.
        run_id=derive(seed, "run").getrandbits(63),
        started=datetime.now(UTC).isoformat(),
        started_ns=now_ns,
        settings=settings_of(experiment),
        experiment=experiment.to_json(),
        versions=_versions(),
        repro=repro,
        faults_requested=list(schedule.kinds()),
        defects=list(experiment.planted),
        topology={},
        topics=[],
        evidence=DeclaredEvidence.nothing(),
        final_topic_ids={},
        phases=[],
        children=[],
        harness=HarnessHealth(),
        final=[],
        interrupted=False,
        problems=[],
        producer_ids_below=None,
    )


def _versions() -> dict[str, str]:
    """The versions of Python and of the libraries that matter to a run, and the commit of the sources, if known."""
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in VERSIONED}}
    found = commit()
    return versions if found is None else {**versions, "commit": found}


def _prune(directory: RunDirectory, keep: str, verdict: str) -> None:
    """Remove the brokers' data, unless ``keep`` and the verdict say to keep it."""
    if keep == "all" or (keep == "failed" and verdict != "valid"):
        return
    for broker_id in directory.broker_ids():
        shutil.rmtree(directory.node(broker_id) / "data", ignore_errors=True)
