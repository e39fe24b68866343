"""The command ``gapless dump``: its options, its exit status, and that its output may be cut off (``| head``)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from chaos.commands.dump.entries import TOO_DEEP, DamagedPart, Entry, Lines, as_json, as_text
from chaos.commands.dump.files import RANGED, kind_of, lines_of
from chaos.commands.dump.replica_agreement import data_directory, is_replica, replica, replicas_in, run_data
from chaos.commands.stored_paths import latest_run
from chaos.exits import BadRequest, Exit
from cluster.log.checkpoints import META_PROPERTIES_FILE
from cluster.process.one_line import printable, reason

#: The most problems that are listed. Further ones are only counted.
SHOWN_DAMAGE = 20
_RANGE = re.compile(r"(\d*)\.\.(\d*)")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dump", help="Print a file of a broker or run, one line per entry, or check a directory's files.")(dump)


def dump(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A segment, index, snapshot, checkpoint, history, or a directory: of a partition, a broker's data, a "
            "run. [dim]default: results/latest[/dim]"
        ),
    ] = None,
    records: Annotated[bool, typer.Option("--records", help="For a segment: also print each record.")] = False,
    offsets: Annotated[
        str | None, typer.Option(metavar="A..B", help="For a segment or index: only these offsets, inclusive.")
    ] = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> int:
    """Print what is good, then a line on each thing that is wrong. 0 if nothing is, 1 if something is."""
    path = path or latest_run("a file or directory of a broker or a run")
    wanted = _range(path, offsets)
    damage, places = list[str](), 0
    try:
        for line in _lines(path, records):
            if isinstance(line, DamagedPart):
                places += 1
                damage += [line.text] if places <= SHOWN_DAMAGE else []
            elif wanted is None or _overlaps(line, wanted):
                print(as_json(line) if json_lines else as_text(line))
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has closed the pipe; without this, Python would report an error again when it flushes at exit
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return int(Exit.VALID)
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {reason(error)}") from error
    except RecursionError as error:
        # a value that could be read may still be nested too deeply to be written
        raise BadRequest(f"{path}: {TOO_DEEP}") from error
    except ValueError as error:
        raise BadRequest(f"{path}: {error}") from error
    for text in damage:
        print(printable(f"gapless: {path} is damaged: {text}"), file=sys.stderr)
    if places > SHOWN_DAMAGE:
        print(f"gapless: {path} is damaged in {places - SHOWN_DAMAGE} more places", file=sys.stderr)
    return int(Exit.INVALID if damage else Exit.VALID)


def _lines(path: Path, records: bool) -> Lines:
    if not path.is_dir():
        path.stat()
        return lines_of(path, with_records=records)
    if (path / "run.json").is_file():
        return run_data(path)
    if is_replica(path):
        return replica(path)
    # a broker's own directory has its log beside its data
    data = path / "data" if (path / "data").is_dir() else path
    if (data / META_PROPERTIES_FILE).is_file() and not any(replicas_in(data)):
        raise BadRequest(f"{data} holds no partitions yet")
    return data_directory(data)


def _range(path: Path, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _RANGE.fullmatch(text)
    if match is None or text == "..":
        raise BadRequest(f"--offsets takes A..B, A.. or ..B, not {text}")
    if path.is_dir() or kind_of(path) not in RANGED:
        raise BadRequest(f"--offsets works only with segments and indexes, not with {path}")
    first, last = int(match[1] or 0), int(match[2] or (1 << 63) - 1)
    if first > last:
        raise BadRequest(f"--offsets {text} ends before it begins")
    return first, last


def _overlaps(entry: Entry, wanted: tuple[int, int]) -> bool:
    return entry.offsets is None or (entry.offsets[0] <= wanted[1] and wanted[0] <= entry.offsets[1])
