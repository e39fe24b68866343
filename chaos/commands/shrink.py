"""``gapless shrink``: the options of a search for the smallest run that still fails, and its outcome.

Owns no decision of the search (``chaos.shrinking.search``) and no try (``chaos.shrinking.shrinker``).
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos.commands.interrupts import Interrupts
from chaos.commands.preflight import check_outside
from chaos.commands.replay import other_code, stored_run
from chaos.commands.talk import PlainQuiet, Talk, talk_of
from chaos.conductor.child_runs import ChildRuns
from chaos.conductor.leftovers import WorkedOn, clean
from chaos.conductor.progress import Progress
from chaos.exits import BadRequest, Exit
from chaos.experiment.asked import Asked
from chaos.experiment.choices import Keep
from chaos.experiment.command_line import FIELDS, option, words
from chaos.experiment.recorded import differences
from chaos.experiment.resolve import resolve
from chaos.replay.stored_run import StoredRun
from chaos.shrinking import regression
from chaos.shrinking.failure import SameFailure, first_seen_ns, forbidden, found, leading
from chaos.shrinking.scale import load_steps, words_of
from chaos.shrinking.search import Search
from chaos.shrinking.shrinker import ShrinkDirectory, Shrinker, ShrinkLimits
from chaos.shrinking.smaller_run import SearchEnd
from cluster.process.invocation import command
from cluster.process.one_line import log_to, printable, reason
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from cluster.seams.randomness import fresh_seed
from verifier.evidence.how_many import how_many
from verifier.evidence.phases import CHAOS
from verifier.evidence.run_directory import read_json, write_text_atomic

RESULTS = "results"
#: One try before the search, one after it, and one in between.
LEAST_RUNS = 3
INTERRUPTED = "the current try is stopped and thrown away; the smallest run that failed before it is kept"

HELP = """Find the smallest schedule, duration and load with which a run still fails, by trying.

Replays the run to see how often it fails, then leaves out faults (delta debugging), time and load. A try fails in the
same way if it has the same anomalies. Writes schedule.yaml, a regression test and shrink.json to results/shrink/TIME.
Ctrl-C throws the current try away and keeps the smallest found so far. Exit status: 0 the run failed again, 2 it did
not, 130 interrupted.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("shrink", help=HELP)(shrink)


def shrink(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The directory of an invalid run, such as results/latest.")
    ],
    max_runs: Annotated[
        int,
        typer.Option(
            min=LEAST_RUNS,
            max=1000,
            metavar="N",
            help="Maximum number of runs in total: more than twice --tries, or none is left to search with.",
        ),
    ] = 60,
    tries: Annotated[
        int, typer.Option(min=1, max=50, metavar="N", help="Runs that show how often it fails, before and after.")
    ] = 3,
    minutes: Annotated[
        int | None,
        typer.Option(min=1, max=1440, metavar="N", help="Stop looking for a smaller run after N minutes."),
    ] = None,
    anomaly: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An anomaly that a try must show to fail in the same way. Repeatable. [dim]default: those of the run "
            "that no other anomaly explains[/dim]",
        ),
    ] = None,
    out: Annotated[str | None, typer.Option(help="Directory, instead of results/shrink/TIME.")] = None,
    spark_master: Annotated[str, option("spark_master")] = FIELDS["spark_master"].default,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the contents of shrink.json to stdout.")] = False,
    quiet: PlainQuiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the whole log.")] = False,
) -> int:
    """Read the run and how it failed, then try."""
    talk = talk_of(quiet=quiet, verbose=verbose)
    _check_enough(max_runs, tries)
    of = stored_run(run, with_faults=False)
    verdict = _verdict(run, of)
    failure = _failure(run, verdict, anomaly)
    try:
        experiment, _ = resolve(of.asked)
    except ValueError as error:
        raise BadRequest(f"{run} cannot be repeated: {error}") from error
    check_outside(replace(experiment, asked=replace(of.asked, spark_master=spark_master, web=False, web_port=None)))
    search = Search(
        len(of.schedule.injections),
        max_runs=max_runs,
        tries=tries,
        likely=_likely(of, verdict, failure.names),
        load=load_steps(experiment),
    )
    notes = [*of.notes, *differences(of.model.experiment, experiment), *other_code(of.model)]

    def started(asked: Asked) -> list[str]:
        chosen = replace(asked, keep=Keep.FAILED.value, spark_master=spark_master, web=False, web_port=None)
        return [sys.executable, "-m", "chaos.commands.main", *words(chosen, everything=True)]

    limits = ShrinkLimits(max_runs, tries, minutes)
    return _run(of, str(run), failure, search, _directory(out), started, notes, limits, as_json=as_json, talk=talk)


def _check_enough(max_runs: int, tries: int) -> None:
    """Raises BadRequest if the tries before and after leave no run to search with."""
    if max_runs <= 2 * tries:
        fewer = (max_runs - 1) // 2
        raise BadRequest(
            f"--max-runs {max_runs} leaves no run to search with: --tries {tries} takes {tries} before and {tries} "
            f"after; use --max-runs {2 * tries + 1} or more, or --tries {fewer}{' or fewer' * (fewer > 1)}"
        )


def _run(
    of: StoredRun,
    called: str,
    failure: SameFailure,
    search: Search,
    directory: ShrinkDirectory,
    started: Callable[[Asked], list[str]],
    notes: Sequence[str],
    limits: ShrinkLimits,
    *,
    as_json: bool,
    talk: Talk,
) -> int:
    """Search, write and print the result; returns the exit status. ``called`` is the run as the user named it."""
    log_to(logging.FileHandler(directory.path / "shrink.log", encoding="utf-8"), "%(asctime)s %(message)s", force=True)
    talk.show_log()
    clock, is_interrupted = SystemClock(), False
    with Interrupts() as interrupts:
        with (
            Progress(clock, is_silent=talk.is_silent) as progress,
            WorkedOn(directory.path, fresh_seed()) as worked_on,
            Supervisor(str(directory.path), worked_on.children) as supervisor,
        ):
            for line in clean(Path(RESULTS)):
                progress.note(line)
            progress.note(f"shrink {of.directory.path}: {directory.path}; a try fails with {failure}")
            for note in notes:
                progress.note(f"warning: {note}")
            # an interrupted try is stopped without a verdict, because nothing would read the verdict
            runs = ChildRuns(supervisor, clock, progress, lambda: True, interrupted=INTERRUPTED)
            shrinker = Shrinker(of, failure, search, directory, runs, clock, progress, started, _remove, limits)
            try:
                shrinker.run()
            except KeyboardInterrupt:
                is_interrupted = True
        interrupts.ignore()
        written = _write(shrinker, directory, failure, called)
        whole = {**shrinker.record(), "shrink_dir": str(directory.path)}
    _say(whole, search, written, of, as_json=as_json)
    if is_interrupted:
        return int(Exit.INTERRUPTED)
    return int(Exit.VALID if search.best is not None else Exit.UNKNOWN)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _verdict(run: Path, of: StoredRun) -> dict[str, Any]:
    try:
        return read_json(of.directory.verdict_json)
    except (OSError, ValueError) as error:
        judge = command(["verify", str(run)])
        raise BadRequest(f"{run} has no verdict that can be read ({error}); judge it with: {judge}") from error


def _failure(run: Path, verdict: Mapping[str, Any], asked: Sequence[str] | None) -> SameFailure:
    """How a try must fail to count. Raises BadRequest if the run did not fail, or not with these anomalies."""
    wrong, anything = forbidden(verdict), found(verdict)
    for name in asked or ():
        if name not in anything:
            among = f"use one of {', '.join(anything)}" if anything else "nothing else was found either"
            raise BadRequest(f"--anomaly {name} was not found in {run}; {among}")
    if asked:
        return SameFailure(tuple(dict.fromkeys(asked)), frozenset(asked) - wrong.keys())
    if not wrong:
        hint = f"to shrink to what they allow, use --anomaly {next(iter(anything))}" if anything else "name another run"
        raise BadRequest(f"{run} is {verdict.get('verdict')}: nothing was found that its settings forbid; {hint}")
    return SameFailure(leading(verdict))


def _likely(of: StoredRun, verdict: Mapping[str, Any], wanted: Sequence[str]) -> int | None:
    """How many of the faults had begun when the anomaly first appeared; None if that is unknown."""
    phase = of.model.phase(CHAOS)
    if phase is None or phase.end_ns is None:
        return None
    seen_ns = first_seen_ns(verdict, wanted, phase.start_ns, phase.end_ns)
    if seen_ns is None:
        return None
    return sum(of.begins_ns(injection) <= seen_ns for injection in of.schedule.injections)


def _directory(out: str | None) -> ShrinkDirectory:
    try:
        if out is not None:
            return ShrinkDirectory.at(Path(out).resolve())
        return ShrinkDirectory.create(Path(RESULTS).resolve(), datetime.now(UTC))
    except OSError as error:
        raise BadRequest(f"the directory {out or RESULTS} cannot be used: {reason(error)}; see --out") from error


def _write(
    shrinker: Shrinker, directory: ShrinkDirectory, failure: SameFailure, called: str
) -> tuple[Asked, Path, Path] | None:
    """Write the schedule and the test of the smallest failing run; returns its options and both paths, or None."""
    search = shrinker.search
    if search.best is None:
        return None
    asked = shrinker.asked(search.best, directory.schedule_yaml)
    lines = regression.story(failure, called, search.end, search.before, search.after)
    if asked.schedule is not None:
        text = regression.schedule_text(asked, asked.schedule.schedule, lines)
        write_text_atomic(directory.schedule_yaml, text)
    test = directory.test_py(failure.names[0])
    seen = search.after if search.after.runs else search.before
    tries = regression.tries_needed(seen)
    told = [*lines, *regression.doubts_of(seen, tries)]
    text = regression.regression_test(asked, directory.schedule_yaml.name, failure, told, tries)
    write_text_atomic(test, text)
    return asked, directory.schedule_yaml, test


def _say(
    whole: Mapping[str, Any],
    search: Search,
    written: tuple[Asked, Path, Path] | None,
    of: StoredRun,
    *,
    as_json: bool,
) -> None:
    """Print the result, as lines or as a JSON object."""
    if as_json:
        print(json.dumps(whole))
        return
    runs, before, after = how_many(search.runs, "run"), search.before, search.after
    if written is None:
        lines = [
            f"NOT SHRUNK: the run failed in {before}, so there is nothing to shrink; more --tries, or a run that fails "
            "more often"
            if before.tries
            else "NOT SHRUNK: ended before the first try did"
        ]
    else:
        asked, schedule, test = written
        whole_faults, faults = how_many(len(of.schedule.injections), "fault"), whole["best"]["events"]
        lines = [f"NOT SHRUNK in {runs}: {search.end.value}", f"failed in {before}: {words_of(of.asked)}"]
        if search.end is SearchEnd.SMALLER:
            again = f"failed in {after}" if after.tries else "failed when it was found, and was not tried again"
            lines = [
                f"SHRUNK {whole_faults} to {faults} in {runs}",
                f"before: failed in {before}: {words_of(of.asked)}",
                f"after: {again}: {words_of(asked)}",
            ]
        lines += [f"schedule: {schedule}", f"test: {test}", f"play it: {command(words(asked))}"]
    print("\n".join(map(printable, lines)), flush=True)
