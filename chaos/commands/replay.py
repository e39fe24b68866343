"""``gapless replay``: repeats what really happened in a stored run. Owns its options and the report on punctuality.

Does not own how the stored run is read (``chaos.replay``); the new run is conducted like any other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos.commands.commit import commit
from chaos.commands.session import conduct
from chaos.commands.stored_paths import A_RUN, run_directory
from chaos.commands.talk import PlainQuiet, talk_of
from chaos.exits import VERDICTS, BadRequest, Exit
from chaos.experiment.choices import Keep
from chaos.experiment.command_line import FIELDS, option
from chaos.experiment.recorded import differences
from chaos.experiment.resolve import plan, resolve
from chaos.replay.punctuality import punctuality
from chaos.replay.stored_run import NoReplay, StoredRun, is_schedule, load_started, read_stored
from chaos.schedules.model import Schedule
from cluster.process.invocation import command
from cluster.process.one_line import printable
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.evidence.standalone import is_load_by_hand

NAME = "replay"

HELP = """Play again what really happened in a run: the same faults at the times at which they struck, with the same
seed, settings and load.

A fault that waited for something to break waits again. The line 'replay:' tells how far the
others were from their times. The last lines on stdout and the exit status are those of 'gapless run'.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay", help=HELP)(replay)


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, for example results/latest.")],
    out: Annotated[str | None, typer.Option(help="Run directory, instead of results/replay/TIME-sSEED.")] = None,
    keep: Annotated[Keep, option("keep")] = Keep.FAILED,
    spark_master: Annotated[str, option("spark_master")] = FIELDS["spark_master"].default,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only the contents of verdict.json to stdout, with 'replay' added.")
    ] = False,
    quiet: PlainQuiet = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the whole log.")] = False,
) -> int:
    """Read the run, then conduct it again."""
    talk = talk_of(quiet=quiet, verbose=verbose)
    of = stored_run(run)
    asked = replace(of.asked, name=NAME, out=out, keep=keep.value, spark_master=spark_master, web=False, web_port=None)
    try:
        experiment, warnings = resolve(asked)
    except ValueError as error:
        raise BadRequest(f"{run} cannot be replayed: {error}") from error
    warnings += [*of.notes, *differences(of.model.experiment, experiment), *other_code(of.model)]
    schedule = plan(experiment)

    def told(directory: RunDirectory) -> Mapping[str, Any]:
        return _told(directory, schedule, of, as_json=as_json)

    repeat = command([NAME, str(run)])
    verdict = conduct(experiment, schedule, warnings, repeat, as_json=as_json, talk=talk, more=told)
    return int(VERDICTS.get(verdict, Exit.HARNESS_FAILED))


def stored_run(run: Path, *, with_faults: bool = True) -> StoredRun:
    """The stored run at this path. Raises BadRequest, which says what the path is instead."""
    if is_schedule(run):
        raise BadRequest(f"{run} is a schedule, not a run; play it with: {command(['run', '--schedule', str(run)])}")
    if is_load_by_hand(RunDirectory(run)):
        raise BadRequest(f"{run} is a standalone load: gapless injected no faults there; name {A_RUN}")
    try:
        return read_stored(run_directory(run), with_faults=with_faults)
    except NoReplay as error:
        raise BadRequest(str(error)) from error


def other_code(model: RunModel) -> list[str]:
    """A line if the code that replays the run differs from the code that made it."""
    then, now = model.versions.get("commit"), commit()
    return [] if then == now else [f"the run was made by commit {then or '?'}, and this is {now or 'no checkout'}"]


def _told(directory: RunDirectory, schedule: Schedule, of: StoredRun, *, as_json: bool) -> Mapping[str, Any]:
    """Print how punctual the replay was; returns the same as an object."""
    try:
        began_ns = load_started(directory, RunModel.from_json(directory.read_run()))
        found = punctuality(schedule, directory.read_faults(), began_ns)
    except (NoReplay, OSError, ValueError) as error:
        print(printable(f"replay: nothing was played: {error}"), file=sys.stderr)
        return {"replay": {"of": str(of.directory.path)}}
    print(printable(f"replay: {found.sentence}"), file=sys.stderr if as_json else sys.stdout, flush=True)
    return {"replay": {"of": str(of.directory.path), **found.to_json()}}
