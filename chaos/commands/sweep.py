"""``gapless sweep``: the options of a sweep, its cells as commands, and its outcome for people and scripts.

Owns no cell and no judgment: what is swept is declared in ``chaos.sweeps``, each cell is one ``gapless run``.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from chaos.commands import sweep_options
from chaos.commands.cell_calls import CellCalls, calls_of
from chaos.commands.continued import check_beside_resume, resumed, same_again, take_over
from chaos.commands.interrupts import Interrupts
from chaos.commands.preflight import check_disk, check_java, check_spark_master
from chaos.commands.talk import Quiet, Talk, Verbose, talk_of
from chaos.conductor.child_runs import ChildRuns
from chaos.conductor.leftovers import WorkedOn, clean
from chaos.conductor.progress import Progress
from chaos.exits import BadRequest
from chaos.experiment.choices import Keep
from chaos.experiment.command_line import FIELDS, option
from chaos.experiment.record_size import check_record_size
from chaos.experiment.resolve import load_seconds, plan, resolve
from chaos.sweeps import in_flight, nightly
from chaos.sweeps import seeds as seeds_sweep
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Sweep, SweepError, Wanted, parse_filter
from chaos.sweeps.outcome import made_by
from chaos.sweeps.report.words import red_lines
from chaos.sweeps.shrunk import shrink_red, shrunk_of, to_shrink
from chaos.sweeps.summary import claims_line, exit_status, left_out, ran, rows_of
from chaos.sweeps.sweep_runner import SweepRunner, stored
from cluster.process import invocation
from cluster.process.one_line import log_to, printable, reason
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from cluster.seams.os_storage import OsStorage
from cluster.seams.randomness import fresh_seed
from verifier.evidence.how_many import how_many

RESULTS = "results"
CLIENT = FIELDS["client"].default
SHRINKING_INTERRUPTED = "the current try is stopped and thrown away; what was shrunk is kept"
#: The width of the table if stdout is not a terminal.
PLAIN_WIDTH = 180
#: The most settings that were not run which the terminal lists by name.
MOST_LEFT_OUT = 6

HELP = """Run a matrix of experiments one after another and compare them (see 'gapless list sweeps').

Each cell is a 'gapless run' in its own directory. Prints a table and writes sweep.json, sweep.md, sweep.html (which
needs no network) and, for CI, summary.md and junit.xml to results/NAME/TIME. The exit status is that of the worst cell,
from worst to best: 255, 1, 2, 0.
"""


def _today() -> int:
    """The date, in UTC, as the number YYYYMMDD."""
    return int(f"{datetime.now(UTC):%Y%m%d}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep", help=HELP)(sweep)


def sweep(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the sweep. Leave it out with --resume.")
    ] = None,
    seeds: sweep_options.Seeds = None,
    random: sweep_options.Random = None,
    time_limit: sweep_options.TimeLimit = None,
    minutes: sweep_options.Minutes = None,
    client: sweep_options.CellClient = None,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Records per second in each cell. [dim]default: the sweep's[/dim]")
    ] = None,
    faults: Annotated[str | None, typer.Option(help="Faults for the sweep 'seeds', as in 'gapless run'.")] = None,
    profile: Annotated[
        str | None, typer.Option(help="Base configuration for the sweep 'seeds', as in 'gapless run'.")
    ] = None,
    swarm: Annotated[
        str | None, typer.Option(help="Swarm for the sweep 'seeds', as in 'gapless run' (such as historic).")
    ] = None,
    defect: Annotated[list[str] | None, option("defects")] = None,
    only: sweep_options.Only = None,
    fail_fast: sweep_options.FailFast = False,
    shrink: sweep_options.Shrink = None,
    list_cells: Annotated[bool, typer.Option("--list", help="List the cells without running them.")] = False,
    resume: sweep_options.Resume = None,
    out: Annotated[str | None, typer.Option(help="Directory of the sweep, instead of results/NAME/TIME.")] = None,
    keep: Annotated[Keep, option("keep")] = Keep.FAILED,
    spark_master: Annotated[str, option("spark_master")] = FIELDS["spark_master"].default,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the contents of sweep.json to stdout.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Build the cells, then run them."""
    talk = talk_of(quiet=quiet, verbose=verbose)
    try:
        if resume is not None:
            check_beside_resume(context)
            name, wanted, directory = resumed(resume)
            chosen = _built(name, wanted)
        else:
            if name is None:
                raise SweepError("name a sweep (see 'gapless list sweeps'), or resume one with --resume DIR")
            given, filters, planted = sweep_options.chosen_seeds(seeds, random), tuple(only or ()), tuple(defect or ())
            made = (time_limit, client or CLIENT, rate, faults, filters, planted, minutes, _today(), profile, swarm)
            wanted = Wanted(given, *made)
            _check_client(name, client)
            chosen, directory = _built(name, wanted), None
            # so that the sweep continues with these seeds tomorrow, or with another filter
            wanted = replace(wanted, seeds=chosen.seeds)
            if out is not None and not list_cells:
                directory = same_again(chosen, wanted, Path(out))
        cells = chosen.filtered(parse_filter(wanted.filters if only is None else only))
        _check(cells)
        if list_cells:
            return _list(cells, as_json=as_json)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    check_java()
    check_spark_master(spark_master)
    _check_room(cells, Path(out or RESULTS))
    left = clean(Path(RESULTS)) if directory is None else take_over(directory)
    directory = directory or _directory(out, chosen.name)

    calls = calls_of(chosen, keep, spark_master, left)
    return _run(chosen, wanted, cells, directory, calls, as_json=as_json, talk=talk, fail_fast=fail_fast, shrink=shrink)


def _check(cells: tuple[Cell, ...]) -> None:
    """Raises SweepError if no cell matches or none applies, and ValueError for a cell that cannot be run."""
    if not cells:
        raise SweepError("--filter matches no cell; --list shows them all")
    if all(cell.inapplicable for cell in cells):
        raise SweepError(f"--filter leaves nothing to run: {cells[0].inapplicable}; --list shows all cells")
    for cell in cells:
        if not cell.inapplicable:
            check_record_size(resolve(cell.asked)[0])


def _check_room(cells: tuple[Cell, ...], place: Path) -> None:
    """Raises BadRequest if the disk has no room for one of the cells."""
    there = next(path for path in (place.resolve(), *place.resolve().parents) if path.exists())
    for cell in cells:
        if not cell.inapplicable:
            check_disk(resolve(cell.asked)[0], _load_seconds(cell), OsStorage(), str(there))


def _built(name: str, wanted: Wanted) -> Sweep:
    """The sweep of that name. Raises SweepError."""
    build = find_sweep(name)
    for said, given in (("--faults", wanted.faults), ("--profile", wanted.profile), ("--swarm", wanted.swarm)):
        if given is not None and name != seeds_sweep.NAME:
            raise SweepError(f"{said} works only with the sweep 'seeds'; {name} has its own (--list, --filter)")
    if wanted.defects and name not in (seeds_sweep.NAME, nightly.NAME):
        raise SweepError("--defect works only with the sweeps 'seeds' and 'nightly'; leave it out")
    return build(wanted)


def _check_client(name: str, client: str | None) -> None:
    """Raises SweepError if ``--client`` names a client that this sweep does not use."""
    if name == in_flight.NAME and client not in (None, in_flight.CLIENT):
        raise SweepError(f"--client {client}: {name} runs only with {in_flight.CLIENT}: {in_flight.WHY}; leave it out")


def _directory(out: str | None, name: str) -> SweepDirectory:
    try:
        if out is not None:
            return SweepDirectory.at(Path(out).resolve())
        return SweepDirectory.create(Path(RESULTS).resolve(), name, datetime.now(UTC))
    except OSError as error:
        raise BadRequest(f"the directory {out or RESULTS} cannot be used: {reason(error)}; see --out") from error


def _list(cells: tuple[Cell, ...], *, as_json: bool) -> int:
    """Show what would be run."""
    if as_json:
        print(json.dumps({cell.name: {**cell.labels, "claims": cell.claims} for cell in cells}, indent=2))
        return 0
    for cell in cells:
        remark = f"  (not run: {cell.inapplicable})" if cell.inapplicable else ""
        print(f"{','.join(f'{name}={value}' for name, value in cell.labels.items())}{remark}")
    print(_cost(cells), file=sys.stderr)
    return 0


def _cost(cells: tuple[Cell, ...]) -> str:
    """The estimated time to run the cells, in words, including faults that need more time than the limit."""
    seconds = sum(_load_seconds(cell) for cell in cells if not cell.inapplicable)
    minutes = how_many(round(seconds / 60), "minute")
    return f"{how_many(len(cells), 'cell')}, {minutes} of load, and most of a minute more for each"


def _load_seconds(cell: Cell) -> float:
    experiment, _ = resolve(cell.asked)
    return load_seconds(experiment, cell.schedule or plan(experiment))


def _run(
    chosen: Sweep,
    wanted: Wanted,
    cells: tuple[Cell, ...],
    directory: SweepDirectory,
    calls: CellCalls,
    *,
    as_json: bool,
    talk: Talk,
    fail_fast: bool,
    shrink: int | None = None,
) -> int:
    """Run the cells and print what they show. Returns the exit status."""
    clock, interrupted = SystemClock(), False
    started = stored(directory).get("started") if directory.sweep_json.exists() else None
    log_to(logging.FileHandler(directory.path / "sweep.log", encoding="utf-8"), "%(asctime)s %(message)s", force=True)
    talk.show_log()
    with Interrupts() as interrupts:
        with Progress(clock, is_silent=talk.is_silent) as progress:
            progress.note(f"sweep {chosen.name}: {directory.path}; {_cost(cells)}")
            for line in calls.left:
                progress.note(line)
            with (
                WorkedOn(directory.path, fresh_seed()) as worked_on,
                Supervisor(str(directory.path), worked_on.children) as supervisor,
            ):
                runner = SweepRunner(
                    chosen,
                    wanted.to_json(),
                    directory,
                    supervisor,
                    clock,
                    progress,
                    calls.command,
                    calls.judge,
                    insistent=lambda: interrupts.count > 1,
                    started=started,
                    fail_fast=fail_fast,
                    minutes=wanted.minutes,
                )
                try:
                    runner.run(cells, chosen.filtered(parse_filter(wanted.filters)))
                    if shrink is not None:
                        runs = ChildRuns(supervisor, clock, progress, interrupted=SHRINKING_INTERRUPTED)
                        red = to_shrink(chosen, runner.outcomes)
                        shrink_red(red, directory, runs, clock, progress, calls.shrink, shrink)
                except KeyboardInterrupt:
                    interrupted = True
        interrupts.ignore()
        whole = runner.finish()
        _say(chosen, runner, directory, whole, as_json=as_json)
    if interrupted:
        again = invocation.command(["sweep", "--resume", str(directory.path)])
        print(f"interrupted; resume with: {again}", file=sys.stderr)
    return exit_status([runner.outcomes[cell.name] for cell in cells], interrupted=interrupted)


def _say(
    chosen: Sweep, runner: SweepRunner, directory: SweepDirectory, whole: dict[str, Any], *, as_json: bool
) -> None:
    """Print a table of the cells that were run and lines on the others, or the JSON object."""
    if as_json:
        print(json.dumps({**whole, "sweep_dir": str(directory.path)}))
        return
    from rich.console import Console

    from chaos.sweeps.report.table import tables

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH)
    rows = rows_of(chosen, runner.outcomes)
    if shown := ran(rows):
        for part in tables(chosen, shown, console.width):
            console.print(part, "")
    for line in (
        *(f"{why}: {which}" for why, which in left_out(rows, MOST_LEFT_OUT)),
        claims_line(rows),
        made_by(list(runner.outcomes.values())),
    ):
        if line:
            console.print(printable(line), markup=False, soft_wrap=True)
    for cell in chosen.cells:
        for line in red_lines(cell, runner.outcomes[cell.name]):
            console.print(line, markup=False, soft_wrap=True)
        if (smaller := shrunk_of(directory, cell)) is not None:
            console.print(printable(str(smaller)), markup=False, soft_wrap=True)
    console.print(f"report: {directory.sweep_html}", markup=False, soft_wrap=True)
