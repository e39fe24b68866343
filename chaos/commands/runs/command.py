"""The commands: ``gapless runs`` (the list), ``compare``, ``prune`` and ``index``. Owns options and output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.runs.comparison import ABSENT, StoredPair, compared, side_by_side
from chaos.commands.runs.found import RunRow, runs_below, size, stored_pair
from chaos.commands.runs.page import index_page
from chaos.commands.runs.pruning import remove, to_remove
from chaos.commands.stored_paths import run_directory
from chaos.exits import BadRequest, Exit
from cluster.process.one_line import printable
from cluster.seams.clock import SystemClock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.run_directory import write_text_atomic

RESULTS = Path("results")
HELP = """List stored runs, newest first; compare or prune them.

The runs of a sweep's cells are not listed here, but on the sweep's own pages and by 'gapless serve'.
"""
HEADS = ("RUN", "SEED", "VERDICT", "STARTED (UTC)", "SIZE", "ANOMALIES")

Results = Annotated[Path, typer.Option("--results", help="The results directory.")]
#: Of the commands below ``runs``, which takes it too.
ItsResults = Annotated[
    Path | None, typer.Option("--results", help="The results directory. [dim]default: results[/dim]")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    runs = typer.Typer(invoke_without_command=True, help=HELP)
    runs.callback()(listed)
    runs.command("compare", help="Compare the options and the outcome of two runs.")(compare)
    runs.command("prune", help="Remove the oldest finished runs and list what was removed. Removes nothing else.")(
        prune
    )
    runs.command("index", help="Write index.html, a page of all runs with links to their reports.")(index)
    app.add_typer(runs, name="runs")


def listed(
    context: typer.Context,
    results: Results = RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> int:
    """List stored runs, newest first; compare or prune them."""
    context.obj = results
    if context.invoked_subcommand is not None:
        return int(Exit.VALID)
    rows = _rows(results)
    if as_json:
        print(json.dumps([row.to_json() for row in rows], indent=2))
    else:
        print("\n".join(map(printable, table([HEADS, *(_cells(row, results) for row in rows)]))))
    return int(Exit.VALID)


def compare(
    one: Annotated[Path, typer.Argument(metavar="A", help="A run directory.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="Another run directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Print what differs, one line each."""
    pairs = [_pair(one), _pair(other)]
    if as_json:
        found = {line.name: [ABSENT if each is None else each for each in line.recorded] for line in compared(pairs)}
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(map(printable, table([("", str(one), str(other)), *side_by_side(pairs)]))))
    return int(Exit.VALID)


def prune(
    context: typer.Context,
    keep: Annotated[int, typer.Option(min=0, help="Number of finished runs to keep, the newest ones.")],
    results: ItsResults = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed without removing it.")] = False,
) -> int:
    """Remove what is beyond."""
    base = (results or context.obj).resolve()
    freed_bytes, removed, status = 0, 0, Exit.VALID
    for row, why_kept in to_remove(_rows(base), base, keep):
        shown = f"{row.path.relative_to(base)}  {row.verdict}  {size(row.size_bytes)}"
        if why_kept is None and not dry_run:
            try:
                remove(row.path)
            except OSError as error:
                why_kept, status = str(error), Exit.HARNESS_FAILED
        if why_kept is not None:
            print(printable(f"kept {shown}: {why_kept}"), file=sys.stderr)
            continue
        print(printable(f"{'would remove' if dry_run else 'removed'} {shown}"))
        freed_bytes, removed = freed_bytes + row.size_bytes, removed + 1
    print(f"{removed} runs, {size(freed_bytes)}{' would be' * dry_run} freed")
    return int(status)


def index(context: typer.Context, results: ItsResults = None) -> int:
    """Write the page, and print where it is."""
    base = (results or context.obj).resolve()
    page = base / "index.html"
    try:
        write_text_atomic(page, index_page(_rows(base), base))
    except OSError as error:
        raise BadRequest(f"{page} cannot be written: {error.strerror}") from error
    print(printable(str(page)))
    return int(Exit.VALID)


def table(lines: list[tuple[str, ...]]) -> list[str]:
    """The lines with their cells in columns; the last column is as long as it is. Pure."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths[-1] = 0
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cells(row: RunRow, results: Path) -> tuple[str, ...]:
    found = row.anomalies if row.allowed in ("", "none") else f"{row.anomalies} (allowed: {row.allowed})"
    place = str(row.path.relative_to(results))
    return place, str(row.seed), row.verdict, row.when, size(row.size_bytes), found


def _rows(results: Path) -> list[RunRow]:
    rows = runs_below(results, seconds_of_ms(SystemClock().wall_ms()))
    if not rows:
        raise BadRequest(f"there is no run in {results}; create one with 'gapless run', or pass another --results")
    return rows


def _pair(path: Path) -> StoredPair:
    directory = run_directory(path)
    try:
        return stored_pair(directory)
    except (OSError, ValueError) as error:
        raise BadRequest(f"{path}/verdict.json cannot be read: {error}") from error
