"""``gapless export``: a run's histories as operations, for Jepsen's checker, this one, or a program of yours."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from chaos.commands.exportable import BLAMED, check_ends, check_files, excused
from chaos.commands.stored_paths import run_directory
from chaos.exits import BadRequest, BadUsage, Exit
from cluster.process.one_line import printable, reason
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.standalone import ByHandError, is_load_by_hand, read_starts


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", help="Export a run's histories as operations: EDN in Jepsen's format, or JSON Lines.")(export)


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory, for example results/latest, or a standalone load.")
    ],
    edn: Annotated[
        bool, typer.Option("--edn", help="Write EDN, one operation per line. This or --jsonl is required.")
    ] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Write JSON, one operation per line. This or --edn is required.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: stdout.")] = None,
) -> int:
    """Write them in the order of time."""
    load = RunDirectory(run) if is_load_by_hand(RunDirectory(run)) else None
    directory = load or run_directory(run)
    if not any(directory.history_dir.glob("*.arrow")):
        raise BadRequest(f"{run} has no history/*.arrow: the run left none, or they were removed; name another run")
    if edn == jsonl:
        wrong = "--edn or --jsonl, not both" if edn else "a form: add --edn or --jsonl"
        raise BadUsage(f"export needs {wrong}")
    unsealed = check_files(run, directory) if load is None else []
    from verifier.operations.export import export_run
    from verifier.operations.writing import FORMS
    from verifier.verify_standalone import Sieve

    try:
        exported = export_run(directory.history_dir, None if load is None else Sieve(read_starts(load)))
    except (ByHandError, HistoryError) as error:
        raise BadRequest(f"{error}; {BLAMED}") from error
    more = [] if load is not None else [*check_ends(run, directory, exported.unfinished), *excused(run, directory)]
    for note in [*unsealed, *more]:
        print(f"gapless: note: {printable(note)}", file=sys.stderr)
    form = FORMS["edn" if edn else "jsonl"]
    try:
        with _target(out) as file:
            for line in exported.lines:
                file.write(form(line) + "\n")
    except BrokenPipeError:
        # the reader has seen enough; once closed, stdout is not flushed again at exit
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.close()
        return int(Exit.VALID)
    if exported.left_out:
        print(
            f"gapless: left out {exported.left_out:,} rows whose sequences and offsets contradict each other; "
            "gapless verify calls such a run unknown",
            file=sys.stderr,
        )
    if out is not None:
        print(f"{exported.operations:,} operations: {out}", file=sys.stderr)
    return int(Exit.VALID)


@contextlib.contextmanager
def _target(out: Path | None) -> Iterator[IO[str]]:
    if out is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        file = out.open("w", encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"--out {out} cannot be written: {reason(error)}") from error
    with file:
        yield file
